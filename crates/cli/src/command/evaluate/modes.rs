//! [`Modes`]: the acting modes among which is chosen.

use overtone_agents::Agent;
use overtone_core::ActingMode;

use crate::settings::Choosable;

/// Temperatures, quantiles and shares among which is chosen.
pub struct Modes {
    temperatures: Vec<f32>,
    return_quantiles: Vec<f32>,
    /// In place of a return, whatever the quantile is.
    top_percents: Vec<f32>,
    usual: ActingMode,
}

impl Modes {
    /// Of these those that change what `agent` does, and where `top_percent` is to be chosen the
    /// shares that it was told of; where it is said, each mode has it, and asks for no return beside
    /// it. `None` where there are none. What is not chosen is as in the mode `said`.
    pub fn of(
        agent: &Agent,
        said: ActingMode,
        temperatures: &[f32],
        return_quantiles: &[f32],
        top_percent: Choosable,
    ) -> Option<Self> {
        let usual = ActingMode { top_percent: top_percent.or(0.0), ..said };
        let return_quantiles = if usual.top_percent > 0.0 { &[] } else { return_quantiles };
        let or_usual = |numbers: &[f32], has: bool, usual: f32| match numbers {
            numbers if has && !numbers.is_empty() => numbers.to_vec(),
            _ => vec![usual],
        };
        let has = [agent.has_temperature(), agent.has_return_model()];
        let modes = Self {
            temperatures: or_usual(temperatures, has[0], usual.temperature),
            return_quantiles: or_usual(return_quantiles, has[1], usual.return_quantile),
            top_percents: match top_percent {
                Choosable::Chosen => agent.top_percents(),
                Choosable::Fixed(_) => Vec::new(),
            },
            usual,
        };
        let mut named = [temperatures, return_quantiles].into_iter().zip(has);
        let is_named = named.any(|(numbers, has)| has && !numbers.is_empty());
        (is_named || !modes.top_percents.is_empty()).then_some(modes)
    }

    /// Each temperature with each quantile and each share.
    pub fn all(&self) -> Vec<ActingMode> {
        let of_one = |&temperature: &f32| {
            let usual = ActingMode { temperature, ..self.usual };
            let asking = move |&return_quantile: &f32| ActingMode { return_quantile, ..usual };
            let acting = move |&top_percent: &f32| ActingMode { top_percent, ..usual };
            let asking = self.return_quantiles.iter().map(asking);
            asking.chain(self.top_percents.iter().map(acting))
        };
        self.temperatures.iter().flat_map(of_one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_all_pairs() {
        let modes = Modes {
            temperatures: vec![1.0, 0.5],
            return_quantiles: vec![0.9, 0.5],
            top_percents: vec![10.0],
            usual: ActingMode { temperature: 1.0, return_quantile: 0.9, top_percent: 0.0 },
        };
        let all = modes.all().into_iter();
        let all = all.map(|mode| [mode.temperature, mode.return_quantile, mode.top_percent]);
        let of_one = |t| [[t, 0.9, 0.0], [t, 0.5, 0.0], [t, 0.9, 10.0]];
        assert_eq!(all.collect::<Vec<_>>(), [of_one(1.0), of_one(0.5)].concat());
    }
}
