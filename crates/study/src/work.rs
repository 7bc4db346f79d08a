//! What one process does of a cell: all of it, or a share.

use std::{fmt, str::FromStr};

/// What is done of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Its run is trained and played.
    All,
    /// Its run is trained.
    Training,
    /// One of several equal parts of the episodes is played of its run, which was trained.
    Part {
        /// Which, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
}

/// A cell, and what is done of it. As a word: `head=tanh_s1`, `head=tanh_s1 training`,
/// `head=tanh_s1 part=2/4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The cell's id, in which there is no space.
    pub cell: String,
    /// What is done of it.
    pub share: Share,
}

impl Work {
    /// All of a cell.
    pub fn all(cell: &str) -> Self {
        Self { cell: cell.to_owned(), share: Share::All }
    }

    /// Its name as a file's: `head=tanh_s1`, `head=tanh_s1.training`, `head=tanh_s1.2-of-4`.
    pub fn file_name(&self) -> String {
        match self.share {
            Share::All => self.cell.clone(),
            Share::Training => format!("{}.training", self.cell),
            Share::Part { number, of } => format!("{}.{number}-of-{of}", self.cell),
        }
    }

    /// What is done of a cell of which `parts` processes share the playing: trained first, where
    /// there are several.
    pub fn of(cell: &str, parts: usize) -> Vec<Self> {
        if parts < 2 {
            return vec![Self::all(cell)];
        }
        let parts = (1..=parts).map(|number| Share::Part { number, of: parts });
        let shares = std::iter::once(Share::Training).chain(parts);
        shares.map(|share| Self { cell: cell.to_owned(), share }).collect()
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.share {
            Share::All => f.write_str(&self.cell),
            Share::Training => write!(f, "{} training", self.cell),
            Share::Part { number, of } => write!(f, "{} part={number}/{of}", self.cell),
        }
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (cell, share) = match line.split_once(' ') {
            None => (line, Some(Share::All)),
            Some((cell, "training")) => (cell, Some(Share::Training)),
            Some((cell, part)) => {
                let numbers = part.strip_prefix("part=").and_then(|part| part.split_once('/'));
                let share = numbers.and_then(|(number, of)| {
                    Some(Share::Part { number: number.parse().ok()?, of: of.parse().ok()? })
                });
                (cell, share)
            }
        };
        let wrong = || format!("`{line}`: expected a cell, and after it `training` or `part=2/4`");
        Ok(Self { cell: cell.to_owned(), share: share.ok_or_else(wrong)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_read_as_it_is_written_and_has_files_of_its_own() {
        let all = [Work::of("a.5", 1), Work::of("a", 2)].concat();
        let told: Vec<[String; 2]> =
            all.iter().map(|work| [work.to_string(), work.file_name()]).collect();
        let expected = [
            ["a.5", "a.5"],
            ["a training", "a.training"],
            ["a part=1/2", "a.1-of-2"],
            ["a part=2/2", "a.2-of-2"],
        ];
        assert_eq!(told, expected);
        for work in all {
            assert_eq!(work.to_string().parse(), Ok(work));
        }
        for line in ["a b", "a part=2", "a part=x/4"] {
            assert!(line.parse::<Work>().unwrap_err().starts_with(&format!("`{line}`: ")));
        }
    }
}
