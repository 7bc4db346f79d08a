//! Heads and attentions as the library lists them: their words, and the keys that each has.

use anyhow::{Result, bail};
use overtone_core::{ActionSpace, Task};
use overtone_model::{AttentionConfig, HeadConfig, options::Choice};
use serde::{Serialize, de::DeserializeOwned};
use toml::{Table, Value};

use crate::keys::{self, Keys, one_line};

/// A head or an attention that can be asked for.
pub struct Variant {
    /// Of which it is one: `head` or `attention`.
    section: &'static str,
    /// What it is called.
    word: &'static str,
    about: &'static str,
    /// Each key with its default, and the reason for it.
    pub keys: Vec<(String, Value, &'static str)>,
    /// As the library stores it with its defaults.
    stored: Table,
}

impl Variant {
    fn new<C: Serialize>(section: &'static str, choice: Choice<C>) -> Result<Self> {
        let mut stored = Table::try_from(&choice.config)?;
        let own = options(&mut stored);
        let key = |(name, reason): &(&'static str, &'static str)| {
            let default = own.as_ref()?.get(*name)?.clone();
            Some((format!("{section}.{name}"), default, reason.trim()))
        };
        let keys = choice.keys.iter().filter_map(key).collect();
        Ok(Self { section, word: choice.word, about: choice.about.trim(), keys, stored })
    }

    fn has(&self, asked: &str) -> bool {
        self.keys.iter().any(|(key, ..)| key == asked)
    }

    /// The library's own configuration, with what `keys` say of it.
    ///
    /// # Errors
    /// Names the first key whose value it cannot have.
    pub fn config<C: DeserializeOwned>(&self, keys: &Keys) -> Result<C> {
        let mut stored = self.stored.clone();
        for (key, default, _) in &self.keys {
            let value = keys.get(key).unwrap_or(default);
            let name = key.rsplit('.').next().unwrap_or(key);
            if let Some(own) = options(&mut stored) {
                own.insert(name.to_owned(), value.clone());
            }
            if let Err(error) = stored.clone().try_into::<C>() {
                bail!("{key}={}: {}", keys::plain(value), one_line(error));
            }
        }
        stored.try_into().map_err(one_line)
    }
}

/// Where the options of a stored variant are: those of a head on bins of numbers are inside.
fn options(stored: &mut Table) -> Option<&mut Table> {
    if !stored.contains_key("head") {
        return Some(stored);
    }
    stored.get_mut("head")?.as_table_mut()
}

fn heads(actions: &ActionSpace, bins: usize) -> Result<Vec<Variant>> {
    let choices = HeadConfig::choices(actions, bins).into_iter();
    choices.map(|choice| Variant::new("head", choice)).collect()
}

fn attentions() -> Result<Vec<Variant>> {
    let choices = AttentionConfig::choices().into_iter();
    choices.map(|choice| Variant::new("attention", choice)).collect()
}

/// All attentions, heads for a list of actions or bins, and heads for real values.
pub fn all() -> Result<Vec<Variant>> {
    let [list, numbers] = [ActionSpace::numbered(0), ActionSpace::unit(0)];
    Ok([attentions()?, heads(&list, 0)?, heads(&numbers, 0)?].into_iter().flatten().collect())
}

/// The attention or head, as `section` says, that `keys` choose.
///
/// # Errors
/// When there is none of that word for such a task.
pub fn chosen(section: &str, keys: &Keys, task: &Task) -> Result<Variant> {
    let word = keys::text(keys, &format!("{section}.kind"));
    let bins = keys.get("head.bins").and_then(Value::as_integer).unwrap_or_default();
    let Ok(bins) = usize::try_from(bins) else {
        bail!("head.bins={bins}: expected a whole number, 0 or more");
    };
    let variants = match section {
        "head" => heads(&task.actions, bins)?,
        _ => attentions()?,
    };
    let words = words_of(&variants).join("`, `");
    if let Some(variant) = variants.into_iter().find(|variant| variant.word == word) {
        return Ok(variant);
    }
    let actions = match (section, &task.actions) {
        ("head", ActionSpace::Discrete { .. }) => "this task's actions are a list, for which ",
        ("head", _) if bins == 0 => "without bins, which head.bins=50 asks for, ",
        ("head", _) => "with bins, which head.bins=0 leaves out, ",
        _ => "",
    };
    bail!("{section}={word}: {actions}there are `{words}`")
}

/// The keys by which a stored head or attention is asked for, with their values.
///
/// # Errors
/// When it is none of those that can be.
pub fn asked(section: &str, config: &impl Serialize, task: &Task) -> Result<Keys> {
    let mut stored = Table::try_from(config)?;
    let bins = stored.get("bins").cloned();
    let n_bins = bins.as_ref().and_then(Value::as_integer).unwrap_or_default();
    let variants = match section {
        "head" => heads(&task.actions, n_bins.try_into()?)?,
        _ => attentions()?,
    };
    let own = options(&mut stored).cloned().unwrap_or_default();
    let kind = |mut stored: Table| options(&mut stored).and_then(|own| own.get("kind").cloned());
    let Some(variant) = variants
        .into_iter()
        .find(|variant| kind(variant.stored.clone()).as_ref() == own.get("kind"))
    else {
        bail!("{section}: {} cannot be asked for", toml::to_string(&own)?.trim())
    };
    let mut keys = Keys::from([(format!("{section}.kind"), Value::String(variant.word.into()))]);
    keys.extend(bins.map(|bins| ("head.bins".to_owned(), bins)));
    for (key, ..) in variant.keys {
        let value = own.get(key.rsplit('.').next().unwrap_or(&key)).cloned();
        keys.extend(value.map(|value| (key, value)));
    }
    Ok(keys)
}

/// Whether a given key is one of the variants that `keys` choose.
///
/// # Errors
/// When it belongs to others.
pub fn check_own(given: &str, text: &str, keys: &Keys, task: &Task) -> Result<()> {
    let others: Vec<Variant> = all()?.into_iter().filter(|variant| variant.has(given)).collect();
    let Some(section) = others.first().map(|variant| variant.section) else { return Ok(()) };
    let chosen = chosen(section, keys, task)?;
    if chosen.has(given) {
        return Ok(());
    }
    let (word, words) = (chosen.word, words_of(&others));
    if words.contains(&word) {
        bail!("{given}={text} is for {section}={word} on bins: say how many, such as head.bins=50");
    }
    bail!("{given}={text} is for {section}={}; this run has {section}={word}", words.join(" or "))
}

/// The words of variants, each once.
fn words_of(variants: &[Variant]) -> Vec<&'static str> {
    let mut words = Vec::new();
    for variant in variants {
        if !words.contains(&variant.word) {
            words.push(variant.word);
        }
    }
    words
}

/// Every variant with what it is, and each of its keys with its default and the reason for it, as
/// lines of `--help`.
pub fn help() -> Result<String> {
    let mut lines = String::new();
    let mut seen = Vec::new();
    for Variant { section, word, about, keys, .. } in all()? {
        lines += &format!("  {section}={word}\n      {about}\n");
        for (key, default, reason) in keys {
            if !seen.contains(&key) {
                lines += &format!("  {key}={}\n      {reason}\n", keys::plain(&default));
                seen.push(key);
            }
        }
    }
    Ok(lines)
}

/// Whether a key is an algorithm's own.
pub(super) fn is_of(key: &str, algorithm: &str) -> bool {
    key.strip_prefix(algorithm).is_some_and(|rest| rest.starts_with('.'))
}
