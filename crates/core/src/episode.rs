//! Episodes: runs of consecutive transitions of a log, and the reason why each ended.

use serde::{Deserialize, Serialize};

/// The reason why an episode has no further step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The task itself ended (game over, the robot fell).
    Terminated,
    /// Something outside the task cut it: a step limit, or the end of the log.
    Truncated,
}

/// One episode: transitions `start .. start + length` of a log, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    /// Index of its first transition.
    pub start: usize,
    /// Number of transitions; at least one.
    pub length: usize,
    /// The reason why it ended.
    pub outcome: Outcome,
}

impl Episode {
    /// Index one past its last transition.
    pub fn end(&self) -> usize {
        self.start + self.length
    }

    /// Its transitions as an index range.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start..self.end()
    }
}

/// An invalid list of episodes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EpisodeError {
    /// An episode without a transition.
    #[error("episode {episode} has no transition")]
    Empty {
        /// Its position in the list.
        episode: usize,
    },
    /// Episodes must follow each other without gap or overlap.
    #[error("episode {episode} starts at transition {got}, expected {expected}")]
    NotContiguous {
        /// Its position in the list.
        episode: usize,
        /// Its first transition.
        got: usize,
        /// The end of the previous episode.
        expected: usize,
    },
    /// A dataset without episodes cannot be sampled.
    #[error("the log holds no episode")]
    NoEpisode,
}

/// Episodes that cover transitions `0 .. n_transitions` in order, without gap or overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episodes(Vec<Episode>);

impl Episodes {
    /// Checks once that `episodes` cover `0 ..` in order.
    ///
    /// # Errors
    /// When the list is empty, an episode is empty, or two neighbours do not meet.
    pub fn new(episodes: Vec<Episode>) -> Result<Self, EpisodeError> {
        if episodes.is_empty() {
            return Err(EpisodeError::NoEpisode);
        }
        let mut expected = 0;
        for (episode, span) in episodes.iter().enumerate() {
            if span.length == 0 {
                return Err(EpisodeError::Empty { episode });
            }
            if span.start != expected {
                return Err(EpisodeError::NotContiguous { episode, got: span.start, expected });
            }
            expected = span.end();
        }
        Ok(Self(episodes))
    }

    /// The episodes in order.
    pub fn as_slice(&self) -> &[Episode] {
        &self.0
    }

    /// Number of transitions in all episodes together.
    pub fn n_transitions(&self) -> usize {
        self.0.last().map_or(0, Episode::end)
    }

    /// The episode that transition `transition_idx` belongs to, or `None` past the end.
    pub fn containing(&self, transition_idx: usize) -> Option<&Episode> {
        let after = self.0.partition_point(|episode| episode.end() <= transition_idx);
        self.0.get(after)
    }

    /// Number of transitions of the longest episode.
    pub fn longest(&self) -> usize {
        self.0.iter().map(|episode| episode.length).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(start: usize, length: usize) -> Episode {
        Episode { start, length, outcome: Outcome::Terminated }
    }

    #[test]
    fn containing_finds_each_transitions_episode() {
        let episodes = Episodes::new(vec![episode(0, 3), episode(3, 1), episode(4, 5)]).unwrap();
        let starts: Vec<_> = (0..10).map(|i| episodes.containing(i).map(|e| e.start)).collect();
        let expected =
            [0, 0, 0, 3, 4, 4, 4, 4, 4].map(Some).into_iter().chain([None]).collect::<Vec<_>>();
        assert_eq!(starts, expected);
        assert_eq!((episodes.n_transitions(), episodes.longest()), (9, 5));
    }

    #[test]
    fn rejects_gaps_overlaps_and_emptiness() {
        assert_eq!(Episodes::new(vec![]), Err(EpisodeError::NoEpisode));
        assert_eq!(
            Episodes::new(vec![episode(0, 3), episode(4, 1)]),
            Err(EpisodeError::NotContiguous { episode: 1, got: 4, expected: 3 })
        );
        assert_eq!(
            Episodes::new(vec![episode(0, 3), episode(2, 1)]),
            Err(EpisodeError::NotContiguous { episode: 1, got: 2, expected: 3 })
        );
        assert_eq!(Episodes::new(vec![episode(0, 0)]), Err(EpisodeError::Empty { episode: 0 }));
    }
}
