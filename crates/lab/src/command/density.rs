//! `overtone-lab density`.

use anyhow::Result;
use overtone_eval::table::Table;
use overtone_lab::{
    density,
    toy::findings::jobs,
    toy::timing::{HEADS, STEPS, seconds_per_epoch},
};

use super::{Options, toy::settings, with_bar};

/// The options.
pub const OPTIONS: Options = Options {
    name: "density",
    full: r#"
# A smaller setting, below.
quick = false
# Which of gaussian, gmm2 and beta.
datasets = "gaussian,gmm2,beta"
# Draws of each dataset: the paper's, with the same rows.
data_seeds = "1,2,3,42"
# Runs of each head on each draw. The paper has one; runs on the same rows differ as much as
# runs on other rows, so one says little.
weight_seeds = "1,2,3"
# N of the Fourier heads, each with γ = 0 and γ = 1e-6: the paper's.
frequencies = "2,4,6,8,10,12,14,16,18,20"
# As in the paper.
epochs = 500
# Epochs between looks at the test set.
evaluate_every = 10
# Measure how long an epoch takes, and nothing else.
timing = false
# Folder of the page, its tables and plots.
out = "runs/lab/density"
"#,
    quick: r#"
# One run of each head on each draw.
weight_seeds = "1"
# Few, ends and middle.
frequencies = "2,6,12,20"
# Fewer than the paper's, so not its numbers: the linear head has hardly begun to overfit, and
# the Fourier heads still improve.
epochs = 150
"#,
};

/// `overtone-lab density [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let settings = settings(&asked)?;
    if asked.is("timing") {
        say!("{}", timing(settings.epochs.min(40)));
        return Ok(());
    }
    asked.check_writable()?;
    let found = with_bar("runs", jobs::<density::Metric>(&settings).len(), |tick| {
        density::run(&settings, tick)
    });
    say!("{}", found.headline_table());
    say!("{}", found.far_text());
    say!("{}", found.linear_text());
    asked.write(&found.page(&asked.command()))
}

/// Seconds of an epoch with every core busy; `scripts/peers/density.py` prints the same of
/// PyTorch.
fn timing(epochs: usize) -> Table {
    let mut table = Table::new(&["head", "ms per epoch of a run", "µs per step of a run"]);
    for kind in HEADS {
        let seconds = seconds_per_epoch(kind, epochs);
        table.row(vec![
            kind.to_string(),
            format!("{:.3}", 1e3 * seconds),
            format!("{:.2}", 1e6 * seconds / STEPS as f64),
        ]);
    }
    table
}
