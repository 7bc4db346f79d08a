//! The evaluation protocols of several agents, side by side.

use overtone_core::Play;
use overtone_core::protocol::Difference;
use serde_json::Value;

use super::run_files::RunFiles;
use super::unique;
use overtone_eval::{Choice, Setting, UsedSettings, table::Table};

/// One evaluation protocol: the names and values of its settings.
#[derive(Clone, Debug, PartialEq)]
struct Protocol {
    name: String,
    settings: Vec<(String, String)>,
    /// Settings that the agent does not use, or that cannot differ between evaluations of it.
    unused: Vec<&'static str>,
}

impl Protocol {
    fn of(setting: &Setting) -> Self {
        let names = setting.choice.as_ref().map(Choice::settings).unwrap_or_default();
        let chosen: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let UsedSettings { target, temperature, return_quantile, top_percent } =
            setting.used_settings;
        let is_conditioned = target || setting.protocol.acting.top_percent > 0.0;
        let uses = [
            ("temperature", temperature),
            ("return_quantile", return_quantile),
            ("top_percent", top_percent),
            ("integer_returns", is_conditioned),
            ("delayed_reward", is_conditioned),
            // The agent's own unit, which an evaluation never changes.
            ("return_scale", false),
        ];
        let unused = uses.into_iter().filter(|(_, is_used)| !is_used).map(|(key, _)| key).collect();
        Self { unused, ..Self::new(&setting.protocol, &chosen) }
    }

    /// A protocol whose `chosen` settings were chosen for each run by the same rule. All values of
    /// these settings are the same protocol.
    fn new(play: &Play, chosen: &[&str]) -> Self {
        let mut settings = flat(play);
        let chosen: Vec<String> = chosen.iter().map(|name| name.replace(' ', "_")).collect();
        settings.retain(|(name, _)| !chosen.contains(name));
        settings.extend(chosen.into_iter().map(|name| (name, CHOSEN.into())));
        Self { name: play.name.clone(), settings, unused: Vec::new() }
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
    }

    /// Whether both agents would act the same under either protocol.
    fn agrees(&self, other: &Self) -> bool {
        let mut keys = self.settings.iter().chain(&other.settings).map(|(key, _)| key.as_str());
        let is_unused = |key: &str| self.unused.contains(&key) || other.unused.contains(&key);
        self.name == other.name
            && keys.all(|key| is_unused(key) || self.value(key) == other.value(key))
    }
}

/// The value of a setting that was chosen for each run.
const CHOSEN: &str = "chosen";

/// The distinct protocols of several runs.
pub(super) struct Protocols(Vec<Protocol>);

impl Protocols {
    /// The distinct protocols of `runs`, in order of first use.
    pub(super) fn of(runs: &[RunFiles]) -> Self {
        let evaluations = runs.iter().flat_map(|run| &run.evaluations);
        Self::different(evaluations.map(|source| Protocol::of(&source.evaluation.setting)))
    }

    /// The distinct protocols of `all`. A protocol that differs from another only in settings that
    /// one of the agents does not use counts as that other protocol.
    fn different(all: impl Iterator<Item = Protocol>) -> Self {
        let protocols = unique(all);
        // Protocols with the fewest unused settings come first.
        let mut places: Vec<usize> = (0..protocols.len()).collect();
        places.sort_by_key(|&place| protocols[place].unused.len());
        let mut kept: Vec<usize> = Vec::new();
        for place in places {
            if !kept.iter().any(|&other| protocols[other].agrees(&protocols[place])) {
                kept.push(place);
            }
        }
        let places = 0..protocols.len();
        let kept = places.zip(protocols).filter(|(place, _)| kept.contains(place));
        Self(kept.map(|(_, protocol)| protocol).collect())
    }

    /// The name of an evaluation's protocol. If several protocols share the name, the differing
    /// settings or a number follow.
    pub(super) fn label(&self, setting: &Setting) -> String {
        self.name(&Protocol::of(setting))
    }

    fn name(&self, protocol: &Protocol) -> String {
        let same = self.0.iter().find(|other| *other == protocol);
        let agreeing = || self.0.iter().find(|other| other.agrees(protocol));
        let protocol = same.or_else(agreeing).unwrap_or(protocol);
        let same_name: Vec<&Protocol> =
            self.0.iter().filter(|other| other.name == protocol.name).collect();
        let (Some(place), [_, _, ..]) =
            (same_name.iter().position(|other| *other == protocol), &same_name[..])
        else {
            return protocol.name.clone();
        };
        let mut words: Vec<String> = Vec::new();
        for (key, _) in same_name.iter().flat_map(|other| &other.settings) {
            let value = protocol.value(key).filter(|_| !protocol.unused.contains(&key.as_str()));
            let Some(value) = value else { continue };
            let differs = same_name.iter().any(|other| other.value(key) != Some(value));
            let word =
                format!("{} {value}", key.rsplit('.').next().unwrap_or(key).replace('_', " "));
            if differs && !words.contains(&word) {
                words.push(word);
            }
        }
        // More settings would make the name too long. A protocol may also lack all of them.
        match &words[..] {
            [] | [_, _, _, _, ..] => format!("{} ({})", protocol.name, place + 1),
            words => format!("{} ({})", protocol.name, words.join(", ")),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A table with a column for each protocol and a row for each setting. With several protocols,
    /// the last column marks the settings that differ.
    pub(super) fn table(&self) -> Table {
        let names: Vec<String> = self.0.iter().map(|protocol| self.name(protocol)).collect();
        let mut header = vec!["setting"];
        header.extend(names.iter().map(String::as_str));
        if names.len() > 1 {
            header.push("");
        }
        let settings = self.0.iter().flat_map(|protocol| &protocol.settings);
        let keys = unique(settings.map(|(key, _)| key));
        let mut table = Table::new(header);
        for key in keys {
            let values: Vec<&str> =
                self.0.iter().map(|protocol| protocol.value(key).unwrap_or("-")).collect();
            let differ = values.iter().any(|value| *value != values[0]);
            let mut row = vec![key.clone()];
            row.extend(values.iter().map(|value| value.to_string()));
            if differ {
                row.push("differs".into());
            }
            table.row(row);
        }
        table
    }

    /// The settings that differ from training, and the consequences: a row for each protocol,
    /// setting and pair of values.
    pub(super) fn differences(&self, runs: &[RunFiles]) -> Table {
        let settings = runs.iter().flat_map(|run| &run.evaluations).map(|s| &s.evaluation.setting);
        let rows = settings.flat_map(|setting| {
            let label = self.label(setting);
            setting.differences.iter().map(move |difference| {
                let Difference { setting: name, trained, played, consequence } = difference;
                [&label, name, trained, played, consequence].map(String::clone).to_vec()
            })
        });
        let mut table = Table::new(["protocol", "setting", "trained", "played", "consequence"]);
        unique(rows).into_iter().for_each(|row| table.row(row));
        table
    }
}

/// The settings of a protocol by dotted names, such as `simulation.frame_skip`.
fn flat(play: &Play) -> Vec<(String, String)> {
    // Through JSON text, because there 0.1 as `f32` is still 0.1.
    let value = serde_json::to_string(play).and_then(|text| serde_json::from_str(&text));
    let mut pairs = Vec::new();
    flatten("", &value.unwrap_or(Value::Null), &mut pairs);
    let short = |name: String| name.strip_prefix("acting.").map_or(name.clone(), str::to_owned);
    pairs.into_iter().map(|(name, value)| (short(name), value)).collect()
}

fn flatten(name: &str, value: &Value, pairs: &mut Vec<(String, String)>) {
    match value {
        Value::Object(settings) => {
            for (key, value) in settings {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(&name, value, pairs);
            }
        }
        Value::String(word) => pairs.push((name.to_owned(), word.clone())),
        other => pairs.push((name.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use overtone_core::protocol::ReturnUnits;
    use overtone_core::{ActingMode, Simulation};

    use super::*;

    fn of(all: &[&Play]) -> Protocols {
        Protocols(all.iter().map(|play| Protocol::new(play, &[])).collect())
    }

    #[test]
    fn every_setting_has_a_row_and_differences_are_named() {
        let simulation = |sticky: f32| {
            Simulation::new([("sticky_probability", sticky.into()), ("frame_skip", 4u32.into())])
        };
        let matched =
            Play { return_units: ReturnUnits::Clipped, ..Play::matched(simulation(0.25)) };
        let released = Play { name: "released".into(), ..Play::matched(simulation(0.0)) };
        let markdown = of(&[&matched, &released]).table().to_markdown();
        for row in [
            "| setting | matched | released |  |",
            "| simulation.sticky_probability | 0.25 | 0.0 | differs |",
            "| simulation.frame_skip | 4 | 4 |  |",
            "| return_units | clipped | raw | differs |",
        ] {
            assert!(markdown.contains(row), "no {row:?} in\n{markdown}");
        }
        let cold =
            Play { acting: ActingMode { temperature: 0.1, ..released.acting }, ..released.clone() };
        let both = of(&[&released, &cold]);
        assert_eq!(
            [&released, &cold].map(|play| both.name(&Protocol::new(play, &[]))),
            ["released (temperature 1.0)", "released (temperature 0.1)"]
        );
        // All chosen values are one protocol, which differs from any fixed temperature.
        let [of_released, of_cold] =
            [&released, &cold].map(|play| Protocol::new(play, &["temperature"]));
        assert_eq!(of_released, of_cold);
        let chosen = Protocols(vec![of_released, Protocol::new(&cold, &[])]);
        assert_eq!(chosen.name(&of_cold), "released (temperature chosen)");
        let other_quantile = Play {
            acting: ActingMode { return_quantile: 0.5, ..released.acting },
            ..released.clone()
        };
        let [one, other] =
            [&released, &other_quantile].map(|play| Protocol::new(play, &["return quantile"]));
        assert_eq!(one, other);
        let chosen = Protocols(vec![one, Protocol::new(&other_quantile, &[])]);
        assert_eq!(chosen.name(&other), "released (return quantile chosen)");
        // An agent that does not use the quantile has the same protocol as agents that do.
        let unused = Protocol { unused: vec!["return_quantile"], ..Protocol::new(&released, &[]) };
        let [chosen, fixed] =
            [&["return quantile"][..], &[]].map(|chosen| Protocol::new(&other_quantile, chosen));
        let all = Protocols::different([&unused, &chosen, &fixed].into_iter().cloned());
        let names = [&unused, &chosen, &fixed].map(|protocol| all.name(protocol));
        let chosen_name = "released (return quantile chosen)";
        assert_eq!(
            (all.len(), names),
            (2, [chosen_name, chosen_name, "released (return quantile 0.5)"].map(String::from))
        );
        let usual = Protocol::new(&released, &[]);
        let both = Protocols::different([usual, fixed].into_iter());
        assert_eq!(both.name(&Protocol::new(&released, &[])), "released (return quantile 1.0)");
        let far = Play {
            simulation: Simulation::new([
                ("a", 1u32.into()),
                ("b", 1u32.into()),
                ("c", 1u32.into()),
                ("d", 1u32.into()),
            ]),
            ..released.clone()
        };
        let many = of(&[&released, &far]);
        assert_eq!(
            many.name(&Protocol::new(&far, &[])),
            "released (2)",
            "four settings are too many for a name"
        );
        let alone = of(&[&cold]).table().to_markdown();
        assert!(alone.contains("| temperature | 0.1 |\n"), "{alone}");
        assert!(!alone.contains("differs"));
    }
}
