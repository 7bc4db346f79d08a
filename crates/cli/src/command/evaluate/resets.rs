//! Comparison of a task's resets with the first observations of the recording.

use std::time::{Duration, Instant};

use overtone_core::{FirstObservations, Observations, decimal, protocol::Difference};

use super::{entry::Entry, playing};

/// Resets of the environment. Ten would do for one number of an observation, and an observation
/// may have hundreds.
const RESETS: u64 = 64;

/// Time for them. Slow environments are reset less often.
const TIME: Duration = Duration::from_secs(2);

/// The difference between the resets of the environment of `entry` and the recorded first
/// observations; `None` if they are alike, or cannot be compared. If an environment fails, the
/// rollouts report it.
pub(super) fn difference(entry: &Entry) -> Option<Difference> {
    let recorded = entry.checkpoint.state.first_observations.as_ref()?;
    let normalization = entry.agent.normalization.as_ref()?;
    let width = entry.task().observations.size();
    let mut env = playing::open(entry.task(), &entry.request.protocol, 1).ok()?;
    let started = Instant::now();
    let mut rows = Vec::new();
    for seed in 1..=RESETS {
        env.reset(&[0], &[seed]).ok()?;
        let Observations::Vectors(observation) = env.observations() else { return None };
        rows.extend_from_slice(observation);
        if started.elapsed() > TIME {
            break;
        }
    }
    let reset = FirstObservations::of(rows.chunks_exact(width.max(1)), width)?;
    let differing = recorded.differing(&reset, normalization);
    let number = *differing.first()?;
    let words = |[low, high]: [f32; 2]| {
        format!("{} to {}", decimal(low.into(), 3), decimal(high.into(), 3))
    };
    Some(Difference {
        setting: format!("first_observations[{number}]"),
        trained: words(recorded.range(number)),
        played: words(reset.range(number)),
        consequence: format!(
            "episodes begin with other observations than in the recording, in {} of {width} \
             numbers, so the score says little about the agent. If it was recorded through a \
             wrapper such as NormalizeObservation, record without it, or play through it",
            differing.len()
        ),
    })
}
