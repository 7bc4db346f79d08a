//! What the commands that train networks away from reinforcement learning share.

use std::path::PathBuf;

use anyhow::{Result, bail};
use overtone_lab::{
    grid::Grid,
    learning::Training,
    transformer::{Kind, Size},
};

use super::{Asked, datasets};

/// The folder of the lab's data, which comes with the project.
pub fn data_folder() -> Result<PathBuf> {
    Ok(datasets()?.join("lab"))
}

/// Of the network.
pub fn size(asked: &Asked) -> Result<Size> {
    let whole = |key, most| Ok::<_, anyhow::Error>(asked.whole(key, 1, most)? as usize);
    let (d_model, n_heads) = (whole("d_model", 1024)?, whole("n_heads", 64)?);
    if !d_model.is_multiple_of(n_heads) {
        bail!("n_heads={n_heads}: must divide d_model={d_model}");
    }
    Ok(Size { d_model, n_heads, n_layers: whole("n_layers", 24)? })
}

/// How long: as many updates as the option says.
pub fn updates(asked: &Asked) -> Result<usize> {
    Ok(asked.whole("updates", 1, 1_000_000)? as usize)
}

/// How long, and how fast: at the first of the learning rates.
pub fn training(asked: &Asked, updates: usize) -> Result<Training> {
    let whole = |key, most| Ok::<_, anyhow::Error>(asked.whole(key, 1, most)? as usize);
    Ok(Training {
        updates,
        batch: whole("batch", 4096)?,
        learning_rate: rates(asked)?[0],
        weight_decay: asked.number("weight_decay", 0.0, 10.0)?,
        look_every: whole("look_every", 1_000_000)?,
    })
}

fn rates(asked: &Asked) -> Result<Vec<f64>> {
    let rates = asked.names::<f64>("learning_rate")?;
    match rates.iter().find(|rate| !(**rate > 0.0 && **rate <= 1.0)) {
        Some(rate) => bail!("learning_rate={rate}: must be above 0 and at most 1"),
        None => Ok(rates),
    }
}

/// Kinds of attention and learning rates, and `updates`.
pub fn grid(asked: &Asked) -> Result<Grid> {
    grid_of(asked, updates(asked)?)
}

/// Kinds of attention and learning rates, for so many updates.
pub fn grid_of(asked: &Asked, updates: usize) -> Result<Grid> {
    Ok(Grid {
        kinds: asked.names::<Kind>("attentions")?,
        rates: rates(asked)?,
        seeds: asked.list("seeds", 0, u64::MAX)?,
        size: size(asked)?,
        training: training(asked, updates)?,
    })
}
