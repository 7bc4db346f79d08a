//! Classification of time series with softmax and Fourier attention (FourierFormer, Section 4.3,
//! Table 3), on two small sets of the UEA archive.

pub mod uea;

use crate::classifier;
use crate::comparison::Comparison;

use crate::grid::Grid;
use crate::report::Report;
use crate::study::{Study, StudyError, check_distinct, datasets, whole};

/// Time series in classes with softmax and Fourier attention (FourierFormer: Table 3)
#[derive(Clone, Debug, clap::Args)]
pub struct SeriesStudy {
    /// Sets of the UEA archive in datasets/lab, NAME_TRAIN.ts and NAME_TEST.ts.
    #[arg(long, value_delimiter = ',', default_value = "JapaneseVowels,BasicMotions")]
    pub sets: Vec<String>,
    /// Times that each series is learned from.
    #[arg(long, default_value = "20", value_parser = whole(1..=100_000))]
    pub epochs: usize,
    /// What is compared.
    #[command(flatten)]
    pub grid: Grid,
}

impl Study for SeriesStudy {
    const NAME: &'static str = "series";
    const DEFAULTS: &'static [(&'static str, &'static str)] =
        &[("learning_rate", "0.001,0.003"), ("batch", "16"), ("evaluate_every", "25")];
    const QUICK: &'static [&'static str] =
        &["seeds=1,2", "learning_rate=0.003", "attentions=softmax,fourier4/R1", "epochs=8"];
    /// By set.
    type Results = Vec<Comparison>;

    fn units(&self) -> usize {
        self.sets.len() * self.grid.units()
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Vec<Comparison>, StudyError> {
        self.grid.check()?;
        check_distinct("sets", &self.sets)?;
        let folder = datasets()?.join("lab");
        let splits = self.sets.iter().map(|set| uea::read(&folder, set));
        let splits = splits.collect::<Result<Vec<_>, _>>()?;
        let compare = |split: &classifier::Split| {
            let n_series = self.epochs * split.train.lengths.len();
            let updates = n_series.div_ceil(self.grid.network.batch);
            classifier::compare(&self.grid, updates, split, tick)
        };
        Ok(splits.iter().map(compare).collect())
    }

    fn report(&self, comparisons: &Vec<Comparison>) -> Report {
        let mut report = Report::default();
        for (set, comparison) in self.sets.iter().zip(comparisons) {
            let name = format!("series-{}", set.to_lowercase());
            comparison.add(&mut report, &name, &format!("{set}: test accuracy while training"));
        }
        report
    }
}
