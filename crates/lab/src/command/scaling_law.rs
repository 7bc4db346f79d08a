//! `overtone-lab scaling-law`.

use anyhow::{Result, bail};
use overtone_lab::scaling_law::{self, Settings};

use super::{Options, with_bar};

/// The options.
pub const OPTIONS: Options = Options {
    name: "scaling-law",
    full: r#"
# Fewer bins and smaller heads: seconds.
quick = false
# Bins, the theorem's m: many, so that there are frequencies that are many and far below m/2.
bins = 4096
# Least value of every target density (the uniform one's is 0.5): the divergence of a fit weighs
# errors by one over the density.
floor = 0.05
# Exponents of smoothness are read off from this number of frequencies on: from there the widest
# blur removes all that the frequencies above it hold.
from = 16
# … to this one: up to there, the narrowest blur hardly removes anything.
to = 128
# The largest head that is optimized.
most_fitted = 64
# Folder of the page, its tables and plots.
out = "runs/lab/scaling-law"
"#,
    quick: r#"
# Fewer frequencies far below half of it.
bins = 1024
# The same place beside the bins.
from = 6
# The same place beside the bins.
to = 32
# The largest takes most of the time.
most_fitted = 32
"#,
};

/// `overtone-lab scaling-law [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let bins = asked.whole("bins", 64, 16_384)?;
    if bins % 2 == 1 {
        bail!("bins={bins}: must be even");
    }
    let from = asked.whole("from", 1, bins / 16)?;
    let settings = Settings {
        bins: bins as usize,
        floor: asked.number("floor", 0.001, 0.4)?,
        from: from as usize,
        to: asked.whole("to", 2 * from, bins / 8)? as usize,
        most_fitted: asked.whole("most_fitted", 4, bins / 8)? as usize,
    };
    let Settings { from, to, .. } = settings;
    let read_off = settings.frequencies().into_iter().filter(|n| (from..=to).contains(n)).count();
    if read_off < 3 {
        bail!(
            "to={to}: from={from} up to there are {read_off} numbers of frequencies, and an \
             exponent takes three"
        );
    }
    asked.check_writable()?;
    let found = with_bar("targets", settings.units(), |tick| scaling_law::run(&settings, tick));
    say!("{}", found.smoothness_table());
    say!("{}", found.fit_table());
    say!("{}\n{}\n{}", found.verdict(), found.directions(), found.negative());
    asked.write(&found.page(&asked.command()))
}
