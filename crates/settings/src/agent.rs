//! [`AgentConfig`]: an algorithm by the keys of a run.

use overtone_agents::{AlgorithmConfig, AlgorithmKind};
use overtone_console::keys::one_line;
use overtone_core::Task;
use overtone_model::{ModelConfig, head::HeadConfig};
use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use toml::{Table, Value};

use crate::{
    docs::Docs,
    head::HeadKeys,
    sequence::{Recorded, SequenceConfig},
};

/// An algorithm by the keys of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Table")]
pub enum AgentConfig {
    /// One that learns recorded actions. The data decide the rest of its model.
    Sequence(SequenceConfig),
    /// One of values. Its options are its keys, in a section of its name; a head on discrete actions
    /// has the section `head`.
    Values(AlgorithmConfig),
}

/// The key of the algorithm.
const ALGORITHM: &str = "algorithm";

impl Serialize for AgentConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl AgentConfig {
    fn table(&self) -> Result<Table, toml::ser::Error> {
        let config = match self {
            Self::Sequence(config) => return Table::try_from(config),
            Self::Values(config) => config,
        };
        let mut options = Table::try_from(config)?;
        options.remove(ALGORITHM);
        let name = config.kind().name();
        let mut table = Table::from_iter([(ALGORITHM.to_owned(), name.into())]);
        if let Some(head) = config.head() {
            options.remove(HEAD);
            table.insert(HEAD.into(), Value::try_from(HeadKeys(head.clone()))?);
        }
        table.insert(name.into(), options.remove(CONFIG).unwrap_or(Value::Table(options)));
        Ok(table)
    }
}

impl TryFrom<Table> for AgentConfig {
    type Error = String;

    fn try_from(mut table: Table) -> Result<Self, String> {
        let read = |error| one_line(error).to_string();
        let name = table.get(ALGORITHM).and_then(Value::as_str).unwrap_or_default();
        let Some(kind) = AlgorithmKind::named(name) else {
            return Err(format!("{ALGORITHM}: unknown algorithm `{name}`"));
        };
        let Some(Value::Table(mut options)) = table.remove(kind.name()) else {
            return table.try_into().map(Self::Sequence).map_err(read);
        };
        if kind == AlgorithmKind::Iql {
            options = Table::from_iter([(CONFIG.to_owned(), Value::Table(options))]);
        }
        if let Some(head) = table.remove(HEAD) {
            let HeadKeys(head) = head.try_into().map_err(read)?;
            let head = Value::try_from(head).map_err(|error| error.to_string())?;
            options.insert(HEAD.into(), head);
        }
        options.insert(ALGORITHM.into(), kind.name().into());
        options.try_into().map(Self::Values).map_err(read)
    }
}

/// Keys of the options of implicit Q-learning: its section, and its head.
const CONFIG: &str = "config";
const HEAD: &str = "head";

impl AgentConfig {
    /// The algorithm.
    pub fn kind(&self) -> AlgorithmKind {
        match self {
            Self::Sequence(config) => config.kind(),
            Self::Values(config) => config.kind(),
        }
    }

    /// The algorithm that learns recorded actions from their contexts, and no values.
    pub fn sequence(&self) -> Option<&SequenceConfig> {
        match self {
            Self::Sequence(config) => Some(config),
            Self::Values(_) => None,
        }
    }

    /// The action head, if it has one.
    pub fn head(&self) -> Option<&HeadConfig> {
        match self {
            Self::Sequence(config) => Some(config.head()),
            Self::Values(config) => config.head(),
        }
    }

    /// Whether it learns values of unscaled rewards.
    pub fn learns_values_of_rewards(&self) -> bool {
        matches!(self, Self::Values(config) if !config.scales_rewards())
    }

    /// Whether a batch can be cut into parts, whose gradients are added.
    pub fn steps_in_parts(&self) -> bool {
        match self {
            Self::Sequence(_) => true,
            Self::Values(config) => config.steps_in_parts(),
        }
    }

    /// The algorithm for `task` and data with the statistics `recorded`. A model has the ranges of
    /// timesteps and returns of `like`, if set.
    pub fn algorithm(
        &self,
        task: &Task,
        recorded: Recorded,
        like: Option<&ModelConfig>,
    ) -> AlgorithmConfig {
        match self {
            Self::Sequence(config) => {
                let mut model = config.model(task, recorded);
                if let Some(like) = like {
                    model = model.scaled_as(like);
                }
                AlgorithmConfig::of_model(config.kind(), model)
            }
            Self::Values(config) => config.clone(),
        }
    }

    /// The help of its keys, without heads and attentions.
    pub fn docs(&self) -> Docs {
        match self {
            Self::Sequence(config) => config.docs(),
            Self::Values(config) => {
                let name = config.kind().name();
                let keys = config.docs().into_iter();
                keys.map(|(key, doc)| (format!("{name}.{key}"), doc)).collect()
            }
        }
    }
}
