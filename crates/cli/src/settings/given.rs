//! Checks of what was given for a run, beyond the types of the values: every key that is said
//! must do something.
//!
//! Defaults and presets set all keys of all variants; only those given by a person are checked.

use anyhow::{Result, bail};

use crate::keys::{self, Keys};

/// A key that has a meaning only where another has one of these values.
struct Only {
    key: &'static str,
    of: &'static str,
    values: &'static [&'static str],
}

const fn only(key: &'static str, of: &'static str, values: &'static [&'static str]) -> Only {
    Only { key, of, values }
}

const FOURIER: &[&str] = &["fourier"];
const TRANSFORMER: &[&str] = &["transformer"];

/// Of games and robots; a row about a key that a kind of run does not have is none of its.
const ONLY: [Only; 22] = [
    only("model.conditioning", "model.kind", TRANSFORMER),
    only("model.n_heads", "model.kind", TRANSFORMER),
    only("model.timestep_std", "model.kind", TRANSFORMER),
    only("attention.kind", "model.kind", TRANSFORMER),
    only("attention.power", "model.kind", TRANSFORMER),
    only("attention.r", "model.kind", TRANSFORMER),
    only("attention.initial", "model.kind", TRANSFORMER),
    only("attention.epsilon", "model.kind", TRANSFORMER),
    only("attention.power", "attention.kind", FOURIER),
    only("attention.r", "attention.kind", FOURIER),
    only("attention.initial", "attention.kind", FOURIER),
    only("attention.epsilon", "attention.kind", FOURIER),
    only("head.frequencies", "head.kind", FOURIER),
    only("head.gamma", "head.kind", FOURIER),
    only("head.regularizer", "head.kind", FOURIER),
    only("head.domain", "head.kind", FOURIER),
    only("head.initial", "head.kind", FOURIER),
    only("head.initial_std", "head.kind", FOURIER),
    only("head.initial_std", "head.initial", &["normal"]),
    only("head.components", "head.kind", &["gmm"]),
    only("head.action_order", "head.kind", &["fourier", "gmm"]),
    only("train.epochs", "train.updates", &["0"]),
];

/// Whether every key of `words` (each `key=value`) does something, `keys` being all that came
/// of them.
///
/// # Errors
/// For the first that belongs to another variant than the one chosen.
pub fn check_heeded(words: &[String], keys: &Keys) -> Result<()> {
    for word in words {
        let (given, text) = keys::split(word)?;
        for Only { key, of, values } in ONLY.iter().filter(|only| only.key == given) {
            let Some(chosen) = keys.get(*of).map(keys::plain) else { continue };
            if !values.contains(&chosen.as_str()) {
                let (key, of) = (keys::short(key), keys::short(of));
                let values = values.join(" or ");
                bail!("{key}={text} is for {of}={values}; this run has {of}={chosen}");
            }
        }
    }
    Ok(())
}

/// Whether all keys of `words` are of this kind of run, where they are of another.
///
/// # Errors
/// For the first that is in `others` and not in `keys`, the two being about runs of `own` and of
/// `other`.
pub fn check_own(
    words: &[String],
    keys: &Keys,
    others: &Keys,
    [own, other]: [&str; 2],
) -> Result<()> {
    for word in words {
        let (key, _) = keys::split(word)?;
        if !keys.contains_key(&key) && others.contains_key(&key) {
            bail!("there is no option `{key}` for {own}; it is one for {other}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{AtariSettings, ContinuousSettings, Profile, Settings};

    fn resolve<S: Settings>(line: &str) -> Result<S> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        S::resolve(&words, |_| Profile::Quick)
    }

    #[track_caller]
    fn refused<S: Settings>(line: &str, expected: &str) {
        let error = resolve::<S>(line).map(drop).unwrap_err().to_string();
        assert_eq!(error, expected);
    }

    #[test]
    fn keys_of_a_variant_that_was_not_chosen_are_refused() {
        let linear = "head.frequencies=28 is for head=fourier; this run has head=linear";
        refused::<AtariSettings>("game=seaquest head.frequencies=28", linear);
        let tanh = "head.frequencies=28 is for head=fourier; this run has head=tanh";
        refused::<ContinuousSettings>("env=hopper head.frequencies=28", tanh);
        let softmax = "attention.power=6 is for attention=fourier; this run has attention=softmax";
        refused::<AtariSettings>("game=seaquest attention.power=6", softmax);
        // A value that is the default does no more.
        let order = "head.action_order=atari is for head=fourier or gmm; this run has head=linear";
        refused::<AtariSettings>("game=seaquest head.action_order=atari", order);
        for word in ["attention=fourier", "model.n_heads=3", "model.conditioning=return"] {
            let expected =
                format!("{word} is for model.kind=transformer; this run has model.kind=mlp");
            refused::<ContinuousSettings>(&format!("env=hopper model.kind=mlp {word}"), &expected);
        }
        let epochs = "train.epochs=3 is for train.updates=0; this run has train.updates=2600";
        refused::<AtariSettings>("game=seaquest train.epochs=3", epochs);
        let bins =
            "there is no option `head.bins` for games (game=…); it is one for robots (env=…)";
        refused::<AtariSettings>("game=seaquest head.bins=50", bins);
    }

    #[test]
    fn what_presets_say_of_other_variants_is_no_mistake() {
        resolve::<ContinuousSettings>("env=hopper preset=fourierformer model.kind=mlp").unwrap();
        // The preset chooses the attention that the key is of.
        let line = "env=hopper preset=fourierformer attention.power=6";
        assert_eq!(resolve::<ContinuousSettings>(line).unwrap().attention.name(), "fourier6");
        resolve::<AtariSettings>("game=seaquest profile=paper train.epochs=3").unwrap();
        resolve::<AtariSettings>("game=seaquest head=gmm head.components=3").unwrap();
    }

    /// The reason of a key begins with the variants that it is of.
    #[test]
    fn every_key_of_a_variant_is_known_as_one() {
        for document in [AtariSettings::KEYS, ContinuousSettings::KEYS] {
            let help = keys::help(document);
            let lines: Vec<&str> = help.lines().map(str::trim).collect();
            for pair in lines.chunks(2) {
                let [key, reason] = pair else { panic!("{pair:?}") };
                let (key, _) = keys::split(key).unwrap();
                let of = reason.split_once(": ").map_or("", |(start, _)| start);
                let is_of_one = of.ends_with(" head")
                    || of.ends_with(" heads")
                    || ["Fourier attention", "Transformer"].contains(&of);
                assert!(!is_of_one || ONLY.iter().any(|only| only.key == key), "{key}: {reason}");
            }
        }
    }
}
