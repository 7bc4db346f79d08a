//! `overtone-lab likelihood`.

use anyhow::Result;
use overtone_lab::{likelihood, toy::findings::jobs};

use super::{Options, toy::settings, with_bar};

/// The options.
pub const OPTIONS: Options = Options {
    name: "likelihood",
    full: r#"
# A smaller setting, below.
quick = false
# Which of gaussian, gmm2 and beta.
datasets = "gaussian,gmm2,beta"
# Draws of each dataset: the paper's, with the same rows.
data_seeds = "1,2,3,42"
# Runs of each head on each draw; the paper has one.
weight_seeds = "1,2,3"
# N of the Fourier heads, each with γ = 0 and γ = 1e-6: the paper's.
frequencies = "2,4,6,8,10,12,14,16,18,20"
# As in the paper; the learning rate falls over all of them.
epochs = 500
# Epochs between looks at the test set, on a million points: one look takes as long as several
# epochs.
evaluate_every = 50
# Folder of the page, its tables and plots.
out = "runs/lab/likelihood"
"#,
    quick: r#"
# One run of each head on each draw.
weight_seeds = "1"
# Few, ends and middle.
frequencies = "2,6,12,20"
# Fewer than the paper's; the learning rate falls over these.
epochs = 150
"#,
};

/// `overtone-lab likelihood [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let settings = settings(&asked)?;
    asked.check_writable()?;
    let found = with_bar("runs", jobs::<likelihood::Metric>(&settings).len(), |tick| {
        likelihood::run(&settings, tick)
    });
    say!("{}", found.headline_table());
    say!("{}", found.far_text());
    say!("{}", found.order_text());
    asked.write(&found.page(&asked.command()))
}
