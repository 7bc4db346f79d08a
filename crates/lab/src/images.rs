//! Handwritten digits in patches with softmax and Fourier attention: the shape of FourierFormer's
//! experiment on ImageNet (Section 4.2, Table 2).

pub mod optdigits;

use crate::classifier;
use crate::comparison::Comparison;

use crate::grid::Grid;
use crate::report::Report;
use crate::study::{Study, StudyError, datasets, invalid, whole};

/// Handwritten digits with softmax and Fourier attention (FourierFormer: Table 2)
#[derive(Clone, Debug, clap::Args)]
pub struct Images {
    /// Pixels of a patch's side: 1, 2, 4 or 8.
    #[arg(long, default_value = "2", value_parser = whole(1..=8))]
    pub patch: usize,
    /// Optimizer steps.
    #[arg(long, default_value = "600", value_parser = whole(1..=1_000_000))]
    pub updates: usize,
    /// What is compared.
    #[command(flatten)]
    pub grid: Grid,
}

impl Study for Images {
    const NAME: &'static str = "images";
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("learning_rate", "0.002,0.005")];
    const QUICK: &'static [&'static str] =
        &["seeds=1,2", "learning_rate=0.005", "attentions=softmax,fourier4/R1", "updates=100"];
    type Results = Comparison;

    fn units(&self) -> usize {
        self.grid.units()
    }

    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Comparison, StudyError> {
        self.grid.check()?;
        if !8usize.is_multiple_of(self.patch) {
            return Err(invalid("patch", self.patch, "must divide 8, the images' side"));
        }
        let split = optdigits::read(&datasets()?.join("lab"), self.patch)?;
        Ok(classifier::compare(&self.grid, self.updates, &split, tick))
    }

    fn report(&self, comparison: &Comparison) -> Report {
        let mut report = Report::default();
        comparison.add(&mut report, Self::NAME, "Test accuracy while training");
        report
    }
}
