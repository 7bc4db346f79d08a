//! `overtone-lab language`.

use anyhow::{Result, bail};
use overtone_lab::language::{self, Settings};

use super::{
    Options,
    learning::{data_folder, grid},
    with_bar,
};

/// The options.
pub const OPTIONS: Options = Options {
    name: "language",
    full: r#"
# Fewer seeds and updates, two kinds of attention.
quick = false
# The first is what others are compared with: softmax, fourierP/Rx, fourierP/Rx/vector. Powers, an
# R at the start and one R for each dimension, as in the paper's Tables 7 and 8, but around a first
# R of 1: the paper's own setting is fourier4/R2.
attentions = "softmax,fourier2/R1,fourier4/R1,fourier6/R1,fourier4/R0.5,fourier4/R2,fourier4/R3,fourier4/R1/vector"
# Each attention at each of them.
learning_rate = "0.003"
# Seeds of weights and batches.
seeds = "1,2,3,4"
# Characters of a window; the paper has 256 words.
context = 64
# Windows of the validation text.
windows = 300
# Width of a token.
d_model = 64
# Transformer blocks; the paper has 16.
n_layers = 2
# Attention heads; must divide d_model. The paper has 8.
n_heads = 4
# Optimizer steps: about one pass over the text.
updates = 1000
# Windows of a step.
batch = 16
# Of matrices.
weight_decay = 0.01
# Updates between looks at the validation text, for the curves.
look_every = 200
# Folder of the page, its tables and plots.
out = "runs/lab/language"
"#,
    quick: r#"
# Two have a spread, if a wide one.
seeds = "1,2"
# Softmax and one other; the paper's first R is 2, not 1.
attentions = "softmax,fourier4/R1"
# Enough to be below the frequencies of characters.
updates = 100
# Twice.
look_every = 50
# Fewer.
windows = 100
"#,
};

/// `overtone-lab language [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let settings = Settings {
        grid: grid(&asked)?,
        context: asked.whole("context", 2, 4096)? as usize,
        windows: asked.whole("windows", 1, 100_000)? as usize,
    };
    let text = language::text::read(&data_folder()?.join("shakespeare.txt"))?;
    if settings.context >= text.validation.len() {
        bail!("context={}: the validation text is shorter", settings.context);
    }
    let fit = language::text::n_windows(&text.validation, settings.context);
    if settings.windows > fit {
        let (windows, context) = (settings.windows, settings.context);
        bail!("windows={windows}: of context={context}, {fit} fit into the validation text");
    }
    asked.check_writable()?;
    let found =
        with_bar("runs", settings.grid.units(), |tick| language::run(&settings, &text, tick));
    say!("{}", found.table());
    asked.write(&language::page(&settings, &found, &asked.command()))
}
