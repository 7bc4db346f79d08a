//! `overtone-lab smoothness`.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Result, bail};
use overtone_eval::{Pooled, Smoothness, smoothness::spectral_entropy, table::Table};
use overtone_lab::{
    page::plus_minus,
    pmf_file,
    smoothness::{self, Settings},
};

use super::Options;

/// The options.
pub const OPTIONS: Options = Options {
    name: "smoothness",
    full: r#"
# Seed of the noise.
seed = 1
# Noises of each colour, as many as in the paper.
trials = 1000
# Bins of each noise. The paper does not say; this gives its numbers.
length = 4096
# Folder of the page, its tables and plots.
out = "runs/lab/smoothness"
"#,
    quick: "",
};

/// `overtone-lab smoothness [FILE | key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    if let Some(file) = words.iter().find(|word| !word.contains('=') || Path::new(word).is_file()) {
        if words.len() > 1 {
            bail!("{file}: a file is measured alone, without options or other files");
        }
        return measure(Path::new(file));
    }
    let asked = OPTIONS.read(words)?;
    let settings = Settings {
        seed: asked.whole("seed", 0, u64::MAX)?,
        trials: asked.whole("trials", 1, 1_000_000)? as usize,
        length: asked.whole("length", 2, 65_536)? as usize,
    };
    asked.check_writable()?;
    let found = smoothness::run(settings);
    say!("{}", found.noise_table(false));
    for far in found.far_from_paper() {
        say!("outside one of the paper's standard deviations: {far}");
    }
    say!("{}", found.square_wave_text());
    asked.write(&found.page(&asked.command()))
}

/// Prints the smoothness of every distribution of a file, and of all with as many bins.
fn measure(file: &Path) -> Result<()> {
    let pmfs = pmf_file::read(file)?;
    let mut by_bins: BTreeMap<usize, (Smoothness, [Pooled; 3])> = BTreeMap::new();
    let mut table = Table::new(&["distribution", "bins", "L2", "L1", "spectral entropy"]);
    for pmf in &pmfs {
        let m = pmf.probs.len();
        let (metric, pooled) =
            by_bins.entry(m).or_insert_with(|| (Smoothness::new(m), Default::default()));
        let probs = &pmf.probs;
        let values = [metric.l2(probs), metric.l1(probs), spectral_entropy(probs)];
        for (pooled, value) in pooled.iter_mut().zip(values) {
            pooled.add(value);
        }
        let mut row = vec![pmf.name.clone(), m.to_string()];
        row.extend(values.map(|value| format!("{value:.6}")));
        table.row(row);
    }
    for (m, (_, pooled)) in &by_bins {
        let mut row = vec![format!("all {}", pooled[0].n), m.to_string()];
        row.extend(pooled.each_ref().map(|pooled| plus_minus(pooled.mean, pooled.sd(), 6)));
        table.row(row);
    }
    say!("{table}");
    say!(
        "lower is smoother; numbers for different counts of bins cannot be compared; \
         ± is the sample standard deviation (ddof 1) over all distributions; entropy in bits"
    );
    Ok(())
}
