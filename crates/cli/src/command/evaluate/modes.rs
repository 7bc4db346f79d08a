//! [`Modes`]: the candidate acting modes of a choice.

use overtone_agents::Agent;
use overtone_core::ActingMode;

use crate::settings::Choosable;

/// Candidate temperatures, return quantiles and top percentages.
pub struct Modes {
    temperatures: Vec<f32>,
    return_quantiles: Vec<f32>,
    /// Alternatives to a target return; the quantile has no effect on them.
    top_percents: Vec<f32>,
    usual: ActingMode,
    /// Whether a candidate has an effect on the agent.
    is_choice: bool,
}

impl Modes {
    /// The candidates that have an effect on `agent`. A `top_percent` that is `chosen` adds the
    /// agent's top percentages. A fixed one is in every mode, without return quantiles. Other
    /// settings are as in `usual`, which is the only mode if there are no candidates.
    pub fn of(
        agent: &Agent,
        usual: ActingMode,
        temperatures: &[f32],
        return_quantiles: &[f32],
        top_percent: Choosable,
    ) -> Self {
        let usual = ActingMode { top_percent: top_percent.or(0.0), ..usual };
        let return_quantiles = if usual.top_percent > 0.0 { &[] } else { return_quantiles };
        let or_usual = |numbers: &[f32], has: bool, usual: f32| match numbers {
            numbers if has && !numbers.is_empty() => numbers.to_vec(),
            _ => vec![usual],
        };
        let has = [agent.has_temperature(), agent.has_return_model()];
        let top_percents = match top_percent {
            Choosable::Chosen => agent.top_percents(),
            Choosable::Fixed(_) => Vec::new(),
        };
        let mut named = [temperatures, return_quantiles].into_iter().zip(has);
        let is_named = named.any(|(numbers, has)| has && !numbers.is_empty());
        Self {
            temperatures: or_usual(temperatures, has[0], usual.temperature),
            return_quantiles: or_usual(return_quantiles, has[1], usual.return_quantile),
            is_choice: is_named || !top_percents.is_empty(),
            top_percents,
            usual,
        }
    }

    /// Whether there is anything to choose.
    pub fn is_choice(&self) -> bool {
        self.is_choice
    }

    /// Each temperature with each top percentage, the lowest first, and with each quantile. The
    /// first mode is the choice without episodes: a rule that is fixed beforehand, and not the best
    /// mode of every agent (docs/results/budget.md).
    pub fn all(&self) -> Vec<ActingMode> {
        let of_one = |&temperature: &f32| {
            let usual = ActingMode { temperature, ..self.usual };
            let with_quantile =
                move |&return_quantile: &f32| ActingMode { return_quantile, ..usual };
            let with_percent = move |&top_percent: &f32| ActingMode { top_percent, ..usual };
            let with_percents = self.top_percents.iter().map(with_percent);
            with_percents.chain(self.return_quantiles.iter().map(with_quantile))
        };
        self.temperatures.iter().flat_map(of_one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_all_pairs() {
        let modes = Modes {
            temperatures: vec![1.0, 0.5],
            return_quantiles: vec![0.9, 0.5],
            top_percents: vec![10.0],
            usual: ActingMode { temperature: 1.0, return_quantile: 0.9, top_percent: 0.0 },
            is_choice: true,
        };
        let all = modes.all().into_iter();
        let all = all.map(|mode| [mode.temperature, mode.return_quantile, mode.top_percent]);
        let of_one = |t| [[t, 0.9, 10.0], [t, 0.9, 0.0], [t, 0.5, 0.0]];
        assert_eq!(all.collect::<Vec<_>>(), [of_one(1.0), of_one(0.5)].concat());
    }
}
