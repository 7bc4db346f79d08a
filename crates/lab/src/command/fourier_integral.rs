//! `overtone-lab fourier-integral`.

use anyhow::Result;
use overtone_lab::fourier_integral::{self, Settings};

use super::{Options, with_bar};

/// The options.
pub const OPTIONS: Options = Options {
    name: "fourier-integral",
    full: r#"
# Fewer points and draws: under a minute.
quick = false
# Seed of all points.
seed = 1
# How often each of the paper's examples is drawn anew; the paper has one draw.
draws = 5
# Points of a density, as in the paper.
density_points = 100000
# Points of the regression, as in the paper.
regression_points = 90000
# Test points, as in the paper.
test_points = 1000
# Radii from 1 to 32 by equal factors. The paper does not say its radius.
radii = 16
# A density's test points are uniform on ±this. The paper does not say; 3 standard deviations.
half_width = 3.0
# The regression's uniform test inputs lie within ±this; farther out there are hardly points.
regression_half_width = 2.0
# Between the coordinates in 2-D. The paper says that the covariance is dense, and no number.
correlation = 0.5
# Standard deviation of the noise on the regression's values. The paper does not say.
noise = 1.0
# Draws at each radius and number of points of the rates; their spread is what they show.
rate_draws = 20
# Numbers of points of the drawn rates in 1-D.
rate_points_1d = "1000,10000,100000"
# Numbers of points of the drawn rates in 2-D, where a grid has more places.
rate_points_2d = "1000,10000"
# Folder of the page, its tables and plots.
out = "runs/lab/fourier-integral"
"#,
    quick: r#"
# As many as a spread needs.
draws = 2
# A tenth of the paper's.
density_points = 10000
# A tenth of the paper's.
regression_points = 9000
# Each radius counts.
radii = 11
# As many as show the spread.
rate_draws = 5
# The largest takes most of the time.
rate_points_1d = "1000,10000"
# The largest takes most of the time.
rate_points_2d = "1000"
"#,
};

/// `overtone-lab fourier-integral [key=value…]`.
pub fn run(words: &[String]) -> Result<()> {
    let asked = OPTIONS.read(words)?;
    let whole = |key: &str, least: u64, most: u64| -> Result<usize> {
        Ok(asked.whole(key, least, most)? as usize)
    };
    let list = |key: &str| -> Result<Vec<usize>> {
        Ok(asked.list(key, 2, 10_000_000)?.into_iter().map(|n| n as usize).collect())
    };
    let settings = Settings {
        seed: asked.whole("seed", 0, u64::MAX)?,
        draws: whole("draws", 1, 1000)?,
        density_points: whole("density_points", 2, 10_000_000)?,
        regression_points: whole("regression_points", 2, 10_000_000)?,
        test_points: whole("test_points", 2, 100_000)?,
        n_radii: whole("radii", 2, 200)?,
        half_width: asked.number("half_width", 0.1, 10.0)?,
        regression_half_width: asked.number("regression_half_width", 0.1, 10.0)?,
        correlation: asked.number("correlation", -0.99, 0.99)?,
        noise: asked.number("noise", 0.0, 100.0)?,
        rate_draws: whole("rate_draws", 2, 1000)?,
        rate_points: [list("rate_points_1d")?, list("rate_points_2d")?],
    };
    asked.check_writable()?;
    let found = with_bar("parts", settings.units(), |tick| fourier_integral::run(&settings, tick));
    for sentence in found.example_text() {
        say!("{sentence}");
    }
    say!("{}", found.rate_table());
    say!("{}\n{}", found.rate_text(), found.drawn_text());
    asked.write(&found.page(&asked.command()))
}
