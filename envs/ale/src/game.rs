//! The four games, and their names in options, data folders and the emulator.

use std::fmt;
use std::str::FromStr;

use crate::AleError;

/// An Atari 2600 game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Game {
    /// Seaquest (1983).
    Seaquest,
    /// Gravitar (1988).
    Gravitar,
    /// Bank Heist (1983).
    BankHeist,
    /// Double Dunk (1989).
    DoubleDunk,
}

/// The emulator's actions in the order of their ids. The minimal action set of each of the
/// four games is all of them, so ids and indices are the same.
pub const ACTIONS: [&str; 18] = [
    "NOOP",
    "FIRE",
    "UP",
    "RIGHT",
    "LEFT",
    "DOWN",
    "UPRIGHT",
    "UPLEFT",
    "DOWNRIGHT",
    "DOWNLEFT",
    "UPFIRE",
    "RIGHTFIRE",
    "LEFTFIRE",
    "DOWNFIRE",
    "UPRIGHTFIRE",
    "UPLEFTFIRE",
    "DOWNRIGHTFIRE",
    "DOWNLEFTFIRE",
];

impl Game {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Seaquest, Self::Gravitar, Self::BankHeist, Self::DoubleDunk];

    /// Its name for people, and in the data's folders: `BankHeist`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seaquest => "Seaquest",
            Self::Gravitar => "Gravitar",
            Self::BankHeist => "BankHeist",
            Self::DoubleDunk => "DoubleDunk",
        }
    }

    /// Its name in options and in the emulator: `bank_heist`.
    pub fn id(self) -> &'static str {
        match self {
            Self::Seaquest => "seaquest",
            Self::Gravitar => "gravitar",
            Self::BankHeist => "bank_heist",
            Self::DoubleDunk => "double_dunk",
        }
    }

    /// MD5 of the ROM that comes with ale-py.
    pub fn rom_md5(self) -> &'static str {
        match self {
            Self::Seaquest => "240bfbac5163af4df5ae713985386f92",
            Self::Gravitar => "8ac18076d01a6b63acf6e2cab4968940",
            Self::BankHeist => "00ce0bdd43aed84a983bef38fe7f5ee3",
            Self::DoubleDunk => "368d88a6c071caba60b4f778615aae94",
        }
    }
}

impl fmt::Display for Game {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name without case, spaces, `_` and `-`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

impl FromStr for Game {
    type Err = AleError;

    /// Reads a name in any case, with or without underscores.
    fn from_str(name: &str) -> Result<Self, AleError> {
        let asked = plain(name);
        let distance = |game: &Self| strsim::damerau_levenshtein(&asked, &plain(game.id()));
        let nearest = Self::ALL.into_iter().min_by_key(distance).unwrap_or(Self::Seaquest);
        if distance(&nearest) == 0 {
            return Ok(nearest);
        }
        let known = Self::ALL.map(Self::id).join(", ");
        Err(AleError::UnknownGame { name: name.into(), nearest: nearest.id(), known })
    }
}

#[cfg(test)]
mod tests {
    use super::Game;

    #[test]
    fn names_are_read_in_any_spelling() {
        for name in ["bank_heist", "BankHeist", "bank-heist", "BANKHEIST", "Bank Heist"] {
            assert_eq!(name.parse::<Game>().unwrap(), Game::BankHeist);
        }
        for game in Game::ALL {
            assert_eq!(game.id().parse::<Game>().unwrap(), game);
            assert_eq!(game.name().parse::<Game>().unwrap(), game);
        }
    }

    #[test]
    fn unknown_games_name_the_nearest() {
        let message = "seaqest".parse::<Game>().unwrap_err().to_string();
        assert!(message.contains("`seaqest`; the nearest is `seaquest`"), "{message}");
        let message = "dunk".parse::<Game>().unwrap_err().to_string();
        assert!(message.contains("double_dunk"), "{message}");
    }
}
