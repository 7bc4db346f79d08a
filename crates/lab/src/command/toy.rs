//! What `overtone-lab density` and `overtone-lab likelihood` share.

use anyhow::Result;
use overtone_lab::toy::study::Settings;

use super::Asked;

/// Which runs, and how long.
pub fn settings(asked: &Asked) -> Result<Settings> {
    let size = |key, most| Ok::<_, anyhow::Error>(asked.whole(key, 1, most)? as usize);
    // The highest frequency must be below the number of bins, 50.
    let frequencies = asked.list("frequencies", 1, 49)?;
    Ok(Settings {
        datasets: asked.names("datasets")?,
        data_seeds: asked.list("data_seeds", 0, u64::MAX)?,
        weight_seeds: asked.list("weight_seeds", 0, u64::MAX)?,
        frequencies: frequencies.into_iter().map(|n| n as usize).collect(),
        epochs: size("epochs", 100_000)?,
        evaluate_every: size("evaluate_every", 100_000)?,
    })
}
