//! `overtone data`: what a recording holds, and what is wrong with it.

use std::path::Path;

use anyhow::Result;
use overtone_data::{
    DatasetCard, Family, datasets_folder, family_of, inspect::ReadFrames, inspect_continuous,
    locate_columns::environment_of,
};

use crate::suites;

/// `overtone data inspect PATH [--json]`.
pub fn inspect(path: &Path, json: bool) -> Result<()> {
    match family_of(path)? {
        Family::Atari => show(&overtone_data::inspect(path)?, json),
        Family::Continuous => {
            let inspection = inspect_continuous(path)?;
            let robot = environment_of(path).filter(|_| inspection.episodes > 0);
            let task = robot.and_then(|robot| suites::named(robot.name).ok());
            let reference = task.and_then(|task| task.reference.as_ref());
            let normalized =
                reference.map(|scores| scores.normalize(inspection.returns.spread.mean));
            if !json {
                show(&inspection, false)?;
                if let Some(normalized) = normalized {
                    say!("{:<14} mean {normalized:.1} [D4RL: random 0, expert 100]", "normalized");
                }
                return Ok(());
            }
            let mut value = serde_json::to_value(&inspection)?;
            value["d4rl_normalized_return"] = normalized.into();
            say!("{}", serde_json::to_string_pretty(&value)?);
            Ok(())
        }
    }
}

/// `overtone data lint PATH [--json] [--card FILE] [--all-frames]`; gives the exit code.
pub fn lint(path: &Path, json: bool, card: Option<&Path>, all_frames: bool) -> Result<u8> {
    let card = match card {
        Some(card) => Some(DatasetCard::load(card)?),
        // Without the project's folder there is no description, and that is no error here.
        None => match datasets_folder() {
            Ok(datasets) => DatasetCard::of(path, &datasets)?,
            Err(_) => None,
        },
    };
    let frames = if all_frames { ReadFrames::Always } else { ReadFrames::IfSmall };
    let report = overtone_data::lint(path, card.as_ref(), frames)?;
    if !json {
        match &report.expected {
            Some(name) => say!("{}, compared with {name}.toml", path.display()),
            None => say!("{}, of which there is no description", path.display()),
        }
    }
    show(&report, json)?;
    Ok(report.exit_code())
}

fn show<T: serde::Serialize + std::fmt::Display>(inspection: &T, json: bool) -> Result<()> {
    match json {
        true => say!("{}", serde_json::to_string_pretty(inspection)?),
        false => say!("{inspection}"),
    }
    Ok(())
}
