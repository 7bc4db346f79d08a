//! [`Ways`]: the ways of playing among which is chosen.

use overtone_agents::Agent;
use overtone_eval::Way;

use crate::settings::Choosable;

/// Temperatures, quantiles and shares among which is chosen.
pub struct Ways {
    temperatures: Vec<f32>,
    return_quantiles: Vec<f32>,
    /// Told in place of a return, whatever the quantile is.
    best_percents: Vec<f32>,
    usual: Way,
}

impl Ways {
    /// Of these those that change what `agent` does, and where `best_percent` is to be chosen the
    /// shares that it was told of; where it is said, each way has it, and asks for no return beside
    /// it. `None` where there are none. What is not chosen is as in the way `said`.
    pub fn of(
        agent: &Agent,
        said: Way,
        temperatures: &[f32],
        return_quantiles: &[f32],
        best_percent: Choosable,
    ) -> Option<Self> {
        let usual = Way { best_percent: best_percent.or(0.0), ..said };
        let return_quantiles = if usual.best_percent > 0.0 { &[] } else { return_quantiles };
        let or_usual = |numbers: &[f32], has: bool, usual: f32| match numbers {
            numbers if has && !numbers.is_empty() => numbers.to_vec(),
            _ => vec![usual],
        };
        let has = [agent.has_temperature(), agent.has_return_model()];
        let ways = Self {
            temperatures: or_usual(temperatures, has[0], usual.temperature),
            return_quantiles: or_usual(return_quantiles, has[1], usual.return_quantile),
            best_percents: match best_percent {
                Choosable::Chosen => agent.best_percents(),
                Choosable::Fixed(_) => Vec::new(),
            },
            usual,
        };
        let mut named = [temperatures, return_quantiles].into_iter().zip(has);
        let is_named = named.any(|(numbers, has)| has && !numbers.is_empty());
        (is_named || !ways.best_percents.is_empty()).then_some(ways)
    }

    /// Each temperature with each quantile and each share.
    pub fn all(&self) -> Vec<Way> {
        let of_one = |&temperature: &f32| {
            let usual = Way { temperature, ..self.usual };
            let asking = move |&return_quantile: &f32| Way { return_quantile, ..usual };
            let acting = move |&best_percent: &f32| Way { best_percent, ..usual };
            let asking = self.return_quantiles.iter().map(asking);
            asking.chain(self.best_percents.iter().map(acting))
        };
        self.temperatures.iter().flat_map(of_one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_all_pairs() {
        let ways = Ways {
            temperatures: vec![1.0, 0.5],
            return_quantiles: vec![0.9, 0.5],
            best_percents: vec![10.0],
            usual: Way { temperature: 1.0, return_quantile: 0.9, best_percent: 0.0 },
        };
        let all = ways.all().into_iter();
        let all = all.map(|way| [way.temperature, way.return_quantile, way.best_percent]);
        let of_one = |t| [[t, 0.9, 0.0], [t, 0.5, 0.0], [t, 0.9, 10.0]];
        assert_eq!(all.collect::<Vec<_>>(), [of_one(1.0), of_one(0.5)].concat());
    }
}
