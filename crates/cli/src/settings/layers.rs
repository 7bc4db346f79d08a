//! What every key is where nobody says otherwise: the defaults, and the presets on top of them, by
//! what a task shows and takes and by what was chosen.

use anyhow::{Context, Result};
use overtone_agents::AlgorithmConfig;
use overtone_core::{ActionSpace, ObservationSpace, Targets, Task, protocol::ReturnUnits};

use super::{BEHAVIOR_CLONING, ModelKind, Profile, Settings, variants};
use crate::{
    keys::{self, Keys},
    suites,
};

/// Every key with its default (of the quick profile) and the reason for it.
pub const DEFAULTS: &str = include_str!("../../presets/defaults.toml");

/// A document that changes defaults, and its name in messages.
pub(super) type Overlay = (&'static str, &'static str);

macro_rules! preset {
    ($name:literal) => {
        (include_str!(concat!("../../presets/", $name)), concat!("presets/", $name))
    };
}

const PIXELS: Overlay = preset!("pixels.toml");
const VECTORS: Overlay = preset!("vectors.toml");
const SMALL_VECTORS: Overlay = preset!("small-vectors.toml");
const CONTINUOUS: Overlay = preset!("continuous.toml");
const OWN_RETURNS: Overlay = preset!("own-returns.toml");
const NO_ENVIRONMENT: Overlay = preset!("no-environment.toml");
const PIXELS_PAPER: Overlay = preset!("pixels-paper.toml");
const VECTORS_PAPER: Overlay = preset!("vectors-paper.toml");
const PERCEPTRON: Overlay = preset!("perceptron.toml");

/// The most numbers of an observation that is small: those of Gymnasium's CartPole, Acrobot and
/// LunarLander.
const SMALL: usize = 8;

impl Settings {
    /// What these settings change of the defaults by the presets they name, the later the
    /// stronger.
    pub(super) fn overlays(&self, task: &Task) -> Vec<Overlay> {
        let mut overlays = Vec::new();
        let is_cloning = self.algorithm == BEHAVIOR_CLONING;
        match (self.profile, &task.observations) {
            (Profile::Auto | Profile::Quick, _) => {
                if is_cloning && self.model.kind == ModelKind::Perceptron {
                    overlays.push(PERCEPTRON);
                }
            }
            (Profile::Paper, ObservationSpace::Pixels { .. }) => overlays.push(PIXELS_PAPER),
            (Profile::Paper, ObservationSpace::Vectors { .. }) => overlays.push(VECTORS_PAPER),
        }
        overlays.extend(
            AlgorithmConfig::ALL
                .iter()
                .filter_map(|&(name, preset)| (name == self.algorithm).then_some((preset, name))),
        );
        overlays
    }
}

/// The defaults of `task`, then `overlays`, then `words`. What an overlay's section `vectors` says
/// counts for tasks that show vectors, its section `paper` in that profile, and its section `quick`
/// in the others.
pub(super) fn layers(
    task: &Task,
    words: &[String],
    overlays: &[Overlay],
    profile: Profile,
) -> Result<Keys> {
    let stacked = |mut keys: Keys| -> Result<Keys> {
        keys.extend(of_task(task)?);
        for (document, name) in overlays {
            let all = keys::flatten(&document.parse().context(*name)?);
            let sections = ["quick.", "vectors.", "paper."];
            let part = |section: &str| {
                let mine = |key: &String| {
                    match sections.iter().find(|own| key.starts_with(**own)) {
                        Some(own) => key.strip_prefix(own).filter(|_| *own == section),
                        None => Some(key.as_str()).filter(|_| section.is_empty()),
                    }
                    .map(str::to_owned)
                };
                all.iter().filter_map(|(key, value)| Some((mine(key)?, value.clone()))).collect()
            };
            let [own, quick, vectors, paper]: [Keys; 4] =
                ["", "quick.", "vectors.", "paper."].map(part);
            keys.extend(own);
            if profile != Profile::Paper {
                keys.extend(quick);
            }
            if let ObservationSpace::Vectors { .. } = task.observations {
                keys.extend(vectors);
            }
            if profile == Profile::Paper {
                keys.extend(paper);
            }
        }
        // Whatever a preset plays.
        if !suites::of(task)?.has_environments() {
            let (document, name) = NO_ENVIRONMENT;
            keys.extend(keys::flatten(&document.parse().context(name)?));
        }
        keys::apply(&mut keys, words)?;
        Ok(keys)
    };
    let mut keys = all_keys()?;
    // The defaults of options are those of the variants that were chosen.
    let asked = stacked(keys.clone())?;
    for section in ["head", "attention"] {
        let own = variants::chosen(section, &asked, task)?.keys;
        keys.extend(own.into_iter().map(|(key, default, _)| (key, default)));
    }
    stacked(keys)
}

/// What is otherwise for tasks like `task`.
fn of_task(task: &Task) -> Result<Keys> {
    let mut keys = Keys::new();
    let mut overlays = match task.observations {
        ObservationSpace::Pixels { .. } => vec![PIXELS],
        ObservationSpace::Vectors { .. } => vec![VECTORS],
    };
    match (&task.observations, &task.actions) {
        (_, ActionSpace::Continuous { .. }) => overlays.push(CONTINUOUS),
        (ObservationSpace::Vectors { width }, _) if *width <= SMALL => overlays.push(SMALL_VECTORS),
        _ => {}
    }
    if task.return_units == ReturnUnits::Raw && task.targets == Targets::default() {
        overlays.push(OWN_RETURNS);
    }
    for (document, name) in overlays {
        keys.extend(keys::flatten(&document.parse().context(name)?));
    }
    Ok(keys)
}

/// Which dataset of `task` is meant where nobody says one.
///
/// # Errors
/// When the defaults cannot be read.
pub(super) fn default_dataset(task: &Task) -> Result<String> {
    let mut keys = keys::flatten(&DEFAULTS.parse().context("the defaults")?);
    keys.extend(of_task(task)?);
    Ok(keys::text(&keys, "dataset"))
}

/// Every key with its default, those of all algorithms, heads and attentions among them.
pub(super) fn all_keys() -> Result<Keys> {
    let mut keys = keys::flatten(&DEFAULTS.parse().context("the defaults")?);
    for (name, preset) in AlgorithmConfig::ALL {
        let own = keys::flatten(&preset.parse().context(*name)?);
        keys.extend(own.into_iter().filter(|(key, _)| variants::is_of(key, name)));
    }
    for (key, default, _) in variants::all()?.into_iter().flat_map(|variant| variant.keys) {
        keys.entry(key).or_insert(default);
    }
    Ok(keys)
}

/// What `--help` shows: every key with its default and the reason for it.
pub fn help() -> String {
    // The documents are the program's own, and a test reads what is made of them.
    lines_of_help().unwrap_or_else(|error| error.to_string())
}

fn lines_of_help() -> Result<String> {
    let own = AlgorithmConfig::ALL.iter().map(|(name, preset)| {
        let help = keys::help(preset);
        let lines: Vec<&str> = help.lines().collect();
        let own = lines.chunks(2).filter(|pair| variants::is_of(pair[0].trim(), name));
        own.flatten().map(|line| format!("{line}\n")).collect::<String>()
    });
    let otherwise = [
        ("a task that shows vectors", VECTORS.0),
        ("a task that shows pictures", PIXELS.0),
        ("a task that shows at most 8 numbers and takes one of a list of actions", SMALL_VECTORS.0),
        ("a task with real-valued actions", CONTINUOUS.0),
        ("a task whose returns no reference has scaled (gymnasium=…, own=…)", OWN_RETURNS.0),
        ("algorithm=behavior_cloning model.kind=perceptron, quick profile", PERCEPTRON.0),
        ("profile=paper, a task that shows pictures", PIXELS_PAPER.0),
        ("profile=paper, a task that shows vectors", VECTORS_PAPER.0),
    ];
    let last = [("a task without an environment (own=…)".to_owned(), NO_ENVIRONMENT.0)];
    let otherwise = otherwise.into_iter().map(|(of, preset)| (of.to_owned(), preset));
    let by_algorithm =
        AlgorithmConfig::ALL.iter().map(|(name, preset)| (format!("algorithm={name}"), *preset));
    let mut lines = keys::help(DEFAULTS) + &variants::help()? + &own.collect::<String>();
    lines += "\nDefaults that are otherwise, the later the stronger:\n";
    for (of, preset) in otherwise.chain(by_algorithm).chain(last) {
        let changed = keys::flatten(&preset.parse()?);
        let is_own =
            |key: &str| AlgorithmConfig::ALL.iter().any(|(name, _)| variants::is_of(key, name));
        let [mut always, mut of_quick, mut of_vectors, mut of_paper] = [const { Vec::new() }; 4];
        for (key, value) in changed.iter().filter(|(key, _)| !is_own(key)) {
            let word = |key| format!("{}={}", keys::short(key), keys::plain(value));
            if let Some(key) = key.strip_prefix("quick.") {
                of_quick.push(word(key));
            } else if let Some(key) = key.strip_prefix("vectors.") {
                of_vectors.push(word(key));
            } else if let Some(key) = key.strip_prefix("paper.") {
                of_paper.push(word(key));
            } else {
                always.push(word(key));
            }
        }
        let ways = [
            (of.clone(), always),
            (format!("{of}, quick profile"), of_quick),
            (format!("{of}, with vectors"), of_vectors),
            (format!("{of}, profile=paper"), of_paper),
        ];
        for (of, words) in ways {
            if !words.is_empty() {
                lines += &format!("  {of}:\n      {}\n", words.join(" "));
            }
        }
    }
    Ok(lines)
}
