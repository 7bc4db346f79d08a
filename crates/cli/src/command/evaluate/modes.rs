//! The candidate acting modes of a choice.

use overtone_agents::Agent;
use overtone_core::ActingMode;
use overtone_settings::Choosable;

use super::own_choice::OwnChoice;

/// The modes of the candidates that have an effect on `agent`, and whether there are any.
///
/// A `top_percent` that is `chosen` adds the agent's top percentages. A fixed one is in every mode,
/// without return quantiles. Other settings are as in `own`, whose mode is the only one if there
/// are no candidates.
pub fn candidates(
    agent: &Agent,
    own: &OwnChoice,
    temperatures: &[f32],
    return_quantiles: &[f32],
    top_percent: Choosable,
) -> (Vec<ActingMode>, bool) {
    let usual = own.from_settings(&agent.matched());
    let usual = ActingMode { top_percent: top_percent.or(0.0), ..usual };
    let temperatures = if agent.has_temperature() { temperatures } else { &[] };
    let has_quantile = agent.has_return_model() && usual.top_percent == 0.0;
    let return_quantiles = if has_quantile { return_quantiles } else { &[] };
    let top_percents = match top_percent {
        Choosable::Chosen => agent.top_percents(),
        Choosable::Fixed(_) => Vec::new(),
    };
    let lists = [temperatures, &top_percents, return_quantiles];
    (combinations(usual, lists), lists.iter().any(|list| !list.is_empty()))
}

/// Each temperature with each top percentage, the lowest first, and with each quantile. An empty
/// list stands for the value of `usual`; the quantile has no effect on a top percentage.
///
/// The first mode is the choice without episodes: a rule that is fixed beforehand, and not the best
/// mode of every agent (docs/results/budget.md).
fn combinations(
    usual: ActingMode,
    [temperatures, top_percents, return_quantiles]: [&[f32]; 3],
) -> Vec<ActingMode> {
    let or = |list: &[f32], usual| if list.is_empty() { vec![usual] } else { list.to_vec() };
    let mut modes = Vec::new();
    for temperature in or(temperatures, usual.temperature) {
        let usual = ActingMode { temperature, ..usual };
        modes.extend(top_percents.iter().map(|&top_percent| ActingMode { top_percent, ..usual }));
        let return_quantiles = or(return_quantiles, usual.return_quantile).into_iter();
        modes.extend(
            return_quantiles.map(|return_quantile| ActingMode { return_quantile, ..usual }),
        );
    }
    modes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_all_pairs() {
        let usual = ActingMode { temperature: 1.0, return_quantile: 0.9, top_percent: 0.0 };
        let all = combinations(usual, [&[1.0, 0.5], &[10.0], &[0.9, 0.5]]).into_iter();
        let all = all.map(|mode| [mode.temperature, mode.return_quantile, mode.top_percent]);
        let of_one = |t| [[t, 0.9, 10.0], [t, 0.9, 0.0], [t, 0.5, 0.0]];
        assert_eq!(all.collect::<Vec<_>>(), [of_one(1.0), of_one(0.5)].concat());
        assert_eq!(combinations(usual, [&[]; 3]), [usual]);
    }
}
