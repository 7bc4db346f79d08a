//! `overtone-lab images`.

use anyhow::{Result, bail};
use overtone_lab::{classifier, images};

use super::{
    Options,
    learning::{data_folder, grid},
    with_bar,
};

/// The options.
pub const OPTIONS: Options = Options {
    name: "images",
    full: r#"
# Fewer seeds and updates, one learning rate.
quick = false
# Pixels of a patch's side: 1, 2, 4 or 8.
patch = 2
# The first is what others are compared with: softmax, fourierP/Rx, fourierP/Rx/vector.
attentions = "softmax,fourier4/R1,fourier4/R2"
# Each attention at each of them.
learning_rate = "0.002,0.005"
# Seeds of weights and batches.
seeds = "1,2,3,4"
# Width of a token.
d_model = 32
# Transformer blocks.
n_layers = 2
# Attention heads; must divide d_model. The paper has 4.
n_heads = 4
# Optimizer steps.
updates = 600
# Images of a step.
batch = 32
# Of matrices.
weight_decay = 0.01
# Updates between looks at the test set, for the curves.
look_every = 100
# Folder of the page, its tables and plots.
out = "runs/lab/images"
"#,
    quick: r#"
# Two have a spread, if a wide one.
seeds = "1,2"
# One.
learning_rate = "0.005"
# Softmax and one other.
attentions = "softmax,fourier4/R1"
# Enough to be above chance.
updates = 100
"#,
};

/// `overtone-lab images [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let grid = grid(&asked)?;
    let patch = asked.whole("patch", 1, 8)? as usize;
    if !8usize.is_multiple_of(patch) {
        bail!("patch={patch}: must divide 8, the images' side");
    }
    let split = images::optdigits::read(&data_folder()?, patch)?;
    asked.check_writable()?;
    let found = with_bar("runs", grid.units(), |tick| classifier::compare(&grid, &split, tick));
    say!("{}", found.table());
    asked.write(&images::page(&grid, patch, &found, &asked.command()))
}
