//! Names of agents: the policy's name, followed by the differing settings if several agents share
//! that name.

use super::scores::Configuration;

/// Maximum number of settings in a name.
const MOST_SETTINGS: usize = 3;

/// A unique name for each agent. `names[i]` is the policy name of `configurations[i]`, and all
/// configurations are different.
pub(super) fn distinct(names: &[String], configurations: &[Configuration]) -> Vec<String> {
    let mut unique: Vec<String> = Vec::with_capacity(names.len());
    for (name, configuration) in names.iter().zip(configurations) {
        let others: Vec<&Configuration> = names
            .iter()
            .zip(configurations)
            .filter(|(other, settings)| *other == name && *settings != configuration)
            .map(|(_, settings)| settings)
            .collect();
        let full = match &others[..] {
            [] => name.clone(),
            others => format!("{name} ({})", differing(configuration, others)),
        };
        // These agents differ only in settings that their names omit.
        let has_same_name = |other: &&String| {
            other.strip_prefix(&full).is_some_and(|rest| rest.is_empty() || rest.starts_with(" #"))
        };
        let before = unique.iter().filter(has_same_name).count();
        unique.push(if before == 0 { full } else { format!("{full} #{}", before + 1) });
    }
    unique
}

/// The settings that differ from some other agent, such as `data.top_percent 10.0, head.bins -`.
/// A dash marks a setting that this agent does not have.
fn differing(configuration: &Configuration, others: &[&Configuration]) -> String {
    let mut keys: Vec<&String> =
        others.iter().flat_map(|other| other.keys()).chain(configuration.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| others.iter().any(|other| other.get(*key) != configuration.get(*key)));
    let shown = keys.iter().take(MOST_SETTINGS).map(|key| {
        let value = configuration.get(*key).map_or("-", String::as_str);
        format!("{key} {value}")
    });
    let mut words: Vec<String> = shown.collect();
    if let more @ 1.. = keys.len().saturating_sub(MOST_SETTINGS) {
        words.push(format!("and {more} more"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(settings: &[(&str, &str)]) -> Configuration {
        settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[track_caller]
    fn check(agents: &[(&str, &[(&str, &str)])], expected: &[&str]) {
        let names: Vec<String> = agents.iter().map(|(name, _)| (*name).to_owned()).collect();
        let settings: Vec<Configuration> =
            agents.iter().map(|(_, settings)| configuration(settings)).collect();
        assert_eq!(distinct(&names, &settings), expected);
    }

    #[test]
    fn unique_names_are_unchanged() {
        // One name begins with the other.
        check(&[("DT", &[("n", "1")]), ("DT, wide", &[("n", "2")])], &["DT", "DT, wide"]);
    }

    #[test]
    fn equal_names_are_followed_by_the_differing_settings() {
        check(
            &[
                ("DT", &[("data.top_percent", "10.0"), ("seed_like", "7")]),
                ("MLP", &[("data.top_percent", "10.0")]),
                ("DT", &[("data.top_percent", "100.0"), ("seed_like", "7")]),
                ("DT", &[("data.top_percent", "10.0"), ("head.bins", "9"), ("seed_like", "7")]),
            ],
            &[
                "DT (data.top_percent 10.0, head.bins -)",
                "MLP",
                "DT (data.top_percent 100.0, head.bins -)",
                "DT (data.top_percent 10.0, head.bins 9)",
            ],
        );
    }

    #[test]
    fn agents_that_differ_only_in_omitted_settings_are_numbered() {
        check(
            &[
                ("DT", &[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]),
                ("DT", &[("a", "2"), ("b", "2"), ("c", "2"), ("d", "2")]),
                ("DT", &[("a", "1"), ("b", "1"), ("c", "1"), ("d", "3")]),
            ],
            &[
                "DT (a 1, b 1, c 1, and 1 more)",
                "DT (a 2, b 2, c 2, and 1 more)",
                "DT (a 1, b 1, c 1, and 1 more) #2",
            ],
        );
    }
}
