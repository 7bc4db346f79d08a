//! Breakdown of a rollout's time.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Breakdown of a rollout's time over all players.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Actions per second.
    pub steps_per_second: f64,
    /// Fraction of the time in which a policy acted.
    pub acting: f64,
    /// Fraction of the time in which all policies waited for environments.
    pub waiting: f64,
    /// Time in which groups of environments stepped or reset, summed over groups, as a fraction of
    /// the total. It can overlap with `acting`, so their sum can exceed 1.
    pub stepping: f64,
    /// Fraction of slots with a running episode, averaged over time.
    pub full: f64,
}

/// Measures a [`Timing`]. All values are in seconds.
pub(super) struct Clock {
    began: Instant,
    acting: f64,
    waiting: f64,
    pub stepping: f64,
    /// Integral of running episodes over seconds, until `live_since`.
    live: f64,
    live_since: Instant,
}

impl Clock {
    pub fn start() -> Self {
        let began = Instant::now();
        Self { began, acting: 0.0, waiting: 0.0, stepping: 0.0, live: 0.0, live_since: began }
    }

    /// Measures the time of a policy.
    pub fn acting<T>(&mut self, act: impl FnOnce() -> T) -> T {
        timed(&mut self.acting, act)
    }

    /// Measures the time of waiting for environments.
    pub fn waiting<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        timed(&mut self.waiting, wait)
    }

    /// Records that `live` episodes were running since the last call.
    pub fn live(&mut self, live: usize) {
        let now = Instant::now();
        self.live += live as f64 * (now - self.live_since).as_secs_f64();
        self.live_since = now;
    }

    /// Seconds since the start, and their breakdown.
    pub fn stop(self, n_slots: usize, steps: u64) -> (f64, Timing) {
        let seconds = self.began.elapsed().as_secs_f64();
        let share = |part: f64| part / seconds.max(1e-9);
        let timing = Timing {
            steps_per_second: share(steps as f64),
            acting: share(self.acting),
            waiting: share(self.waiting),
            stepping: share(self.stepping),
            full: share(self.live / n_slots.max(1) as f64),
        };
        (seconds, timing)
    }
}

fn timed<T>(total: &mut f64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *total += start.elapsed().as_secs_f64();
    result
}
