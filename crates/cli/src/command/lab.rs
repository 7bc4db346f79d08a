//! `overtone lab`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use overtone_eval::{Pooled, Smoothness, smoothness::spectral_entropy, table::Table};
use overtone_lab::{
    pmf_file,
    smoothness::{self, Settings},
};

use crate::keys::{self, Keys};

/// Every option of `lab smoothness` with its default and reason.
pub const SMOOTHNESS: &str = r#"
# Seed of the noise.
seed = 1
# Noises of each colour, as many as in the paper.
trials = 1000
# Bins of each noise. The paper does not say; this gives its numbers.
length = 4096
# Folder of the tables and plots.
out = "runs/lab/smoothness"
"#;

/// `overtone lab smoothness [FILE | key=value…]`.
pub fn smoothness(words: &[String]) -> Result<()> {
    if let Some(file) = words.iter().find(|word| !word.contains('=') || Path::new(word).is_file()) {
        if words.len() > 1 {
            bail!("{file}: a file is measured alone, without options or other files");
        }
        return measure(Path::new(file));
    }
    let mut keys = keys::flatten(&SMOOTHNESS.parse()?);
    keys::apply(&mut keys, words)?;
    let settings = Settings {
        seed: within(&keys, "seed", 0, u64::MAX)?,
        trials: within(&keys, "trials", 1, 1_000_000)? as usize,
        length: within(&keys, "length", 2, 65_536)? as usize,
    };
    let out = PathBuf::from(keys.get("out").map(keys::plain).unwrap_or_default());
    if out.as_os_str().is_empty() {
        bail!("out=: say a folder");
    }
    let command = format!(
        "just lab smoothness seed={} trials={} length={}",
        settings.seed, settings.trials, settings.length
    );
    let found = smoothness::run(settings);
    say!("{}", found.noise_table(false));
    for far in found.far_from_paper() {
        say!("outside one of the paper's standard deviations: {far}");
    }
    say!("{}", found.square_wave_text());
    found.write(&out, &command).with_context(|| format!("cannot write to {}", out.display()))?;
    say!("tables and plots: {}", out.display());
    Ok(())
}

/// A whole number of `keys`, checked.
fn within(keys: &Keys, key: &str, least: u64, most: u64) -> Result<u64> {
    let number = keys.get(key).and_then(toml::Value::as_integer).unwrap_or(0);
    match u64::try_from(number) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ if most == u64::MAX => bail!("{key}={number}: must be {least} or more"),
        _ => bail!("{key}={number}: must be between {least} and {most}"),
    }
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
        row.extend(pooled.each_ref().map(|pooled| match pooled.sd() {
            Some(sd) => format!("{:.6} ± {sd:.6}", pooled.mean),
            None => format!("{:.6}", pooled.mean),
        }));
        table.row(row);
    }
    say!("{table}");
    say!(
        "lower is smoother; numbers for different counts of bins cannot be compared; \
         ± is the sample standard deviation (ddof 1) over all distributions; entropy in bits"
    );
    Ok(())
}
