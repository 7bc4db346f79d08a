//! A study: settings, a run, and the tables and plots of its page.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use overtone_data::{DataError, datasets_folder};

use crate::data_file::DataFileError;
use crate::report::Report;

/// An experiment of a paper. Its fields are the options of its command: clap reads them, and
/// their docs are the help.
pub trait Study: clap::Args {
    /// The name of its command and of its page.
    const NAME: &'static str;
    /// Defaults of shared options, where they are not those of the option.
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[];
    /// What `quick=true` sets.
    const QUICK: &'static [&'static str] = &[];
    /// The measurements.
    type Results;

    /// How often [`Self::run`] reports progress.
    fn units(&self) -> usize;

    /// Measures everything on all cores and calls `tick` after each unit.
    ///
    /// # Errors
    /// When a setting is invalid or data is missing.
    fn run(&self, tick: &(dyn Fn() + Sync)) -> Result<Self::Results, StudyError>;

    /// The tables and plots, the most important table first.
    fn report(&self, results: &Self::Results) -> Report;
}

/// Why a study cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// An invalid setting.
    #[error("{key}={value}: {expected}")]
    Setting {
        /// The option.
        key: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        expected: String,
    },
    /// No folder of datasets.
    #[error(
        "there is no folder datasets; run in the project's folder, or name its datasets in \
         OVERTONE_DATASETS"
    )]
    NoDatasets,
    /// Another reason for which the folder of datasets is not found.
    #[error(transparent)]
    Datasets(DataError),
    /// A data file that cannot be read.
    #[error(transparent)]
    DataFile(#[from] DataFileError),
}

/// The error of an invalid setting.
pub fn invalid(key: &'static str, value: impl ToString, expected: impl Into<String>) -> StudyError {
    StudyError::Setting { key, value: value.to_string(), expected: expected.into() }
}

/// Refuses values that appear twice: two runs from one seed are equal, and would count as two.
///
/// # Errors
/// When a value appears twice.
pub fn check_distinct<T: ToString>(key: &'static str, values: &[T]) -> Result<(), StudyError> {
    let texts: Vec<String> = values.iter().map(T::to_string).collect();
    if texts.iter().collect::<BTreeSet<_>>().len() == texts.len() {
        Ok(())
    } else {
        Err(invalid(key, texts.join(","), "name each once"))
    }
}

/// Parser of a whole number in `range`.
pub fn whole(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// Parser of a number in `range`.
pub fn number(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("must be between {} and {}", range.start(), range.end())),
    }
}

/// The folder of datasets that comes with the project.
///
/// # Errors
/// When there is none.
pub fn datasets() -> Result<PathBuf, StudyError> {
    datasets_folder().map_err(|error| match error {
        DataError::Missing { .. } => StudyError::NoDatasets,
        error => StudyError::Datasets(error),
    })
}
