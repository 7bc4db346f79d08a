//! Where the time of a rollout went.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Where the time of a rollout went, all players together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Actions per second.
    pub steps_per_second: f64,
    /// Share of the time in which a policy acted.
    pub acting: f64,
    /// Share of the time in which no policy acted because it waited for environments.
    pub waiting: f64,
    /// Time in which a group of environments stepped or reset, summed over groups, as a
    /// share of the whole; where it overlaps with `acting`, they add up to more than 1.
    pub stepping: f64,
    /// Share of the slots that had an episode under way, averaged over the time.
    pub full: f64,
}

/// Measures a [`Pace`]; all in seconds.
pub(super) struct Clock {
    began: Instant,
    acting: f64,
    waiting: f64,
    pub stepping: f64,
    /// Seconds times episodes under way, until `live_since`.
    live: f64,
    live_since: Instant,
}

impl Clock {
    pub fn start() -> Self {
        let began = Instant::now();
        Self { began, acting: 0.0, waiting: 0.0, stepping: 0.0, live: 0.0, live_since: began }
    }

    /// Times a policy.
    pub fn acting<T>(&mut self, act: impl FnOnce() -> T) -> T {
        timed(&mut self.acting, act)
    }

    /// Times waiting for environments.
    pub fn waiting<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        timed(&mut self.waiting, wait)
    }

    /// Notes that `live` episodes were under way since the last call.
    pub fn live(&mut self, live: usize) {
        let now = Instant::now();
        self.live += live as f64 * (now - self.live_since).as_secs_f64();
        self.live_since = now;
    }

    /// Seconds since the start, and what they went into.
    pub fn stop(self, n_slots: usize, steps: u64) -> (f64, Pace) {
        let seconds = self.began.elapsed().as_secs_f64();
        let share = |part: f64| part / seconds.max(1e-9);
        let pace = Pace {
            steps_per_second: share(steps as f64),
            acting: share(self.acting),
            waiting: share(self.waiting),
            stepping: share(self.stepping),
            full: share(self.live / n_slots.max(1) as f64),
        };
        (seconds, pace)
    }
}

fn timed<T>(total: &mut f64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *total += start.elapsed().as_secs_f64();
    result
}
