//! `overtone data`.

use std::path::Path;

use anyhow::Result;
use overtone_data::{Family, continuous::locate::ENVIRONMENTS, family_of, inspect_continuous};
use overtone_eval::Convention;

/// `overtone data inspect PATH [--json]`.
pub fn inspect(path: &Path, json: bool) -> Result<()> {
    match family_of(path)? {
        Family::Atari => show(&overtone_data::inspect(path)?, json),
        Family::Continuous => {
            let inspection = inspect_continuous(path)?;
            let pair = robot_in(path).filter(|_| inspection.episodes > 0);
            let pair = pair.and_then(|robot| Convention::D4rl.pair(robot));
            let normalized = pair.map(|pair| pair.normalize(inspection.returns.spread.mean));
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

/// The robot that a path names: D4RL's files and ours begin with it, Minari's lie in folders
/// that do.
fn robot_in(path: &Path) -> Option<&'static str> {
    let names = path.iter().rev().map(|part| part.to_string_lossy().to_lowercase());
    let robot = |name: String| ENVIRONMENTS.iter().find(|env| name.starts_with(env.name));
    names.filter_map(robot).map(|env| env.name).next()
}

fn show<T: serde::Serialize + std::fmt::Display>(inspection: &T, json: bool) -> Result<()> {
    match json {
        true => say!("{}", serde_json::to_string_pretty(inspection)?),
        false => say!("{inspection}"),
    }
    Ok(())
}
