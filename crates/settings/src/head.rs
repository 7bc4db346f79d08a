//! [`HeadKeys`]: an action head by the keys of a run.

use overtone_console::keys::one_line;
use overtone_core::ActionSpace;
use overtone_model::head::{BinnedConfig, BinsHeadConfig, HeadConfig};
use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use toml::{Table, Value};

/// A head as `head=WORD` and `head.bins=N` choose it. The library nests a head on bins inside of
/// `Binned`, and names the heads of one word differently for discrete and for continuous actions.
/// Here both have the same keys. Heads for continuous actions have `bins`; 0: no bins.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Table")]
pub struct HeadKeys(pub HeadConfig);

impl Serialize for HeadKeys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl HeadKeys {
    fn table(&self) -> Result<Table, toml::ser::Error> {
        if let HeadConfig::Binned(BinnedConfig { bins, head }) = &self.0 {
            let mut table = Table::try_from(head)?;
            table.insert("bins".into(), i64::try_from(*bins).unwrap_or(i64::MAX).into());
            return Ok(table);
        }
        let mut table = Table::try_from(&self.0)?;
        if let Some((word, _)) = continuous().into_iter().find(|(_, kind)| *kind == table["kind"]) {
            table.insert("kind".into(), word.into());
            table.insert("bins".into(), 0.into());
        }
        Ok(table)
    }
}

impl TryFrom<Table> for HeadKeys {
    type Error = String;

    fn try_from(mut table: Table) -> Result<Self, String> {
        let read = |error| one_line(error).to_string();
        match table.remove("bins").map(|bins| bins.as_integer().unwrap_or(-1)) {
            None => {}
            Some(0) => {
                let kind = table.get("kind").cloned();
                let known = continuous().into_iter();
                let mut known = known.filter(|(word, _)| kind == Some((*word).into()));
                let (_, kind) = known.next().ok_or("no head for continuous actions")?;
                table.insert("kind".into(), kind);
            }
            Some(bins) => {
                let bins = usize::try_from(bins).map_err(|_| WHOLE)?;
                let head: BinsHeadConfig = table.try_into().map_err(read)?;
                return Ok(Self(HeadConfig::Binned(BinnedConfig { bins, head })));
            }
        }
        table.try_into().map(Self).map_err(read)
    }
}

const WHOLE: &str = "expected a whole number, 0 or more";

/// The word of each head for continuous actions with its name in the library.
fn continuous() -> Vec<(&'static str, Value)> {
    let choices = HeadConfig::choices(&ActionSpace::unit(1), 0).into_iter();
    let stored = choices.map(|choice| (choice.word, Table::try_from(&choice.config)));
    stored.filter_map(|(word, table)| Some((word, table.ok()?.remove("kind")?))).collect()
}
