//! Normalized scores: `100 · (score − low) / (high − low)` for a pair of reference scores.
//!
//! Which pair is a convention, and the numbers differ: a report always names it.

use serde::{Deserialize, Serialize};

/// Where the reference scores come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convention {
    /// Random and human play of Wang et al. 2016 (no-op starts), with Seaquest rounded to
    /// 68 and 42055: reproduces the Fourier-head paper's table. Of Atari games.
    Wang2016,
    /// Random and expert play of D4RL (Fu et al. 2020). Of robots.
    D4rl,
}

impl Convention {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Wang2016, Self::D4rl];

    /// Its name in files, such as `wang2016`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wang2016 => "wang2016",
            Self::D4rl => "d4rl",
        }
    }

    /// What 0 and 100 mean, for a report.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Wang2016 => "random 0, human 100, scores of Wang et al. 2016",
            Self::D4rl => "random 0, expert 100, scores of D4RL",
        }
    }

    /// The pair of reference scores for `task` (`seaquest`, `hopper`, …), if the convention
    /// covers it. Case, `-` and `_` do not matter.
    pub fn pair(self, task: &str) -> Option<Pair> {
        let task: String = task.chars().filter(char::is_ascii_alphanumeric).collect();
        let task = task.to_ascii_lowercase();
        let table: &[(&str, f64, f64)] = match self {
            Self::Wang2016 => &[
                ("bankheist", 14.2, 753.1),
                ("doubledunk", -18.6, -16.4),
                ("gravitar", 173.0, 3351.4),
                ("seaquest", 68.0, 42055.0),
            ],
            Self::D4rl => &[
                ("halfcheetah", -280.178953, 12135.0),
                ("hopper", -20.272305, 3234.3),
                ("walker2d", 1.629008, 4592.3),
            ],
        };
        let &(_, low, high) = table.iter().find(|row| row.0 == task)?;
        Some(Pair { convention: self, low, high })
    }

    /// The pair that scores of `task` are normalized by, if a convention covers it.
    pub fn default_for(task: &str) -> Option<Pair> {
        Self::ALL.into_iter().find_map(|convention| convention.pair(task))
    }
}

/// The two scores that become 0 and 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Where they come from.
    pub convention: Convention,
    /// Becomes 0: random play.
    pub low: f64,
    /// Becomes 100: human or expert play.
    pub high: f64,
}

impl Pair {
    /// `score`, normalized.
    ///
    /// ```
    /// use overtone_eval::Convention;
    /// let pair = Convention::Wang2016.pair("Seaquest").unwrap();
    /// assert_eq!(pair.normalize(68.0), 0.0);
    /// assert_eq!(pair.normalize(42055.0), 100.0);
    /// ```
    pub fn normalize(&self, score: f64) -> f64 {
        100.0 * (score - self.low) / (self.high - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(convention: Convention, task: &str, score: f64, printed: f64) {
        let pair = convention.pair(task).unwrap();
        let got = pair.normalize(score);
        assert!((got - printed).abs() < 0.05, "{task}: {got}, the paper prints {printed}");
    }

    #[test]
    fn the_papers_table_is_reproduced() {
        // Raw scores and printed normalized scores of the Fourier-head paper's table 2.
        check(Convention::Wang2016, "BankHeist", 21.0, 0.92);
        check(Convention::Wang2016, "double_dunk", -20.2, -72.72);
        check(Convention::Wang2016, "DoubleDunk", -17.6, 45.45);
        check(Convention::Wang2016, "gravitar", 331.3, 4.98);
        check(Convention::Wang2016, "Seaquest", 1622.0, 3.70);
    }

    #[test]
    fn atari_defaults_to_wang_and_locomotion_to_d4rl() {
        let convention = |task| Convention::default_for(task).map(|pair| pair.convention);
        assert_eq!(convention("bank_heist"), Some(Convention::Wang2016));
        assert_eq!(convention("Hopper"), Some(Convention::D4rl));
        assert_eq!(convention("pong"), None);
        assert_eq!(Convention::Wang2016.pair("hopper"), None);
    }

    #[test]
    fn every_convention_reads_back_by_its_name() {
        for convention in Convention::ALL {
            let json = serde_json::to_string(&convention).unwrap();
            assert_eq!(json, format!("\"{}\"", convention.name()));
        }
    }
}
