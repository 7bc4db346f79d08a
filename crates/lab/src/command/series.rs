//! `overtone-lab series`.

use std::path::Path;

use anyhow::{Result, bail};
use overtone_lab::{classifier, series};

use super::{
    Options,
    learning::{data_folder, grid_of},
    with_bar,
};

/// The options.
pub const OPTIONS: Options = Options {
    name: "series",
    full: r#"
# Fewer seeds and updates, one learning rate.
quick = false
# Sets of the UEA archive in datasets/lab, NAME_TRAIN.ts and NAME_TEST.ts.
sets = "JapaneseVowels,BasicMotions"
# The first is what others are compared with: softmax, fourierP/Rx, fourierP/Rx/vector.
attentions = "softmax,fourier4/R1,fourier4/R2"
# Each attention at each of them.
learning_rate = "0.001,0.003"
# Seeds of weights and batches.
seeds = "1,2,3,4"
# Width of a token.
d_model = 32
# Transformer blocks.
n_layers = 2
# Attention heads; must divide d_model. The paper has 8.
n_heads = 4
# Times that each series is learned from.
epochs = 20
# Series of a step.
batch = 16
# Of matrices.
weight_decay = 0.01
# Updates between looks at the test set, for the curves.
look_every = 25
# Folder of the page, its tables and plots.
out = "runs/lab/series"
"#,
    quick: r#"
# Two have a spread, if a wide one.
seeds = "1,2"
# One.
learning_rate = "0.003"
# Softmax and one other.
attentions = "softmax,fourier4/R1"
# Enough to be above chance.
epochs = 8
"#,
};

/// `overtone-lab series [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let epochs = asked.whole("epochs", 1, 100_000)? as usize;
    let batch = asked.whole("batch", 1, 4096)? as usize;
    let folder = data_folder()?;
    let sets = asked.names::<String>("sets")?;
    let mut all = Vec::new();
    for set in sets {
        if Path::new(&set).file_name() != Some(set.as_ref()) {
            bail!("sets={set}: a set is a name, and its files are in {}", folder.display());
        }
        let split = series::uea::read(&folder, &set)?;
        let updates = (epochs * split.train.lengths.len()).div_ceil(batch);
        all.push((set, split, grid_of(&asked, updates)?));
    }
    asked.check_writable()?;
    let n_runs = all.iter().map(|(_, _, grid)| grid.units()).sum();
    let found: Vec<series::Found> = with_bar("runs", n_runs, |tick| {
        let compare = |(set, split, grid): (String, classifier::Split, _)| {
            let comparison = classifier::compare(&grid, &split, tick);
            series::Found { set, n_test: split.test.lengths.len(), grid, comparison }
        };
        all.into_iter().map(compare).collect()
    });
    for series::Found { set, comparison, .. } in &found {
        say!("{set}\n{}", comparison.table());
    }
    asked.write(&series::page(&found, &asked.command()))
}
