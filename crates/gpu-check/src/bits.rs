//! Repetition: two trainings with the same seed end with the same bits, recorded or not.

use anyhow::Result;
use overtone_model::{DecisionTransformerConfig, burn::tensor::Device, weights::NamedTensors};
use overtone_train::Precision;

use super::{
    Scale,
    random_run::{Run, Setting},
    row::Row,
    synthetic::{self, Named},
};

const STEPS: usize = 50;
/// The fifth is replayed.
const STEPS_OF_TINY: usize = 5;

/// Trains each model three times: twice alike, and once without recording.
///
/// # Errors
/// When a model or its data cannot be made.
pub fn check(scale: &Scale, device: &Device) -> Result<Vec<Row>> {
    let steps = if scale.is_full { STEPS } else { STEPS_OF_TINY };
    let frames = synthetic::config(scale.layers, 30, false, false);
    let fourier = synthetic::config(scale.layers, 30, true, false);
    let vectors = DecisionTransformerConfig::gym(1000);
    let space = overtone_core::ObservationSpace::Vectors { width: 11 };
    let models = [
        ("frames, softmax", frames, synthetic::frames()),
        ("frames, Fourier attention", fourier, synthetic::frames()),
        ("vectors", vectors, space),
    ];
    let precisions = [Precision::Bf16, Precision::F32];
    let precisions = if scale.is_full { &precisions[..] } else { &precisions[..1] };
    let mut rows = Vec::new();
    for &precision in precisions {
        let setting = Setting { batch: scale.batch, precision, device };
        let kind = format!("{precision:?}").to_lowercase();
        let transformers = || -> Result<Vec<Named>> {
            let models = models.iter().cloned();
            models
                .map(|(name, model, space)| Ok((name, Run::new(model, space, setting)?)))
                .collect()
        };
        let runs = || -> Result<Vec<Named>> {
            Ok(transformers()?.into_iter().chain(synthetic::values(setting)?).collect())
        };
        let trained = |is_recorded: bool| -> Result<Vec<(&str, NamedTensors)>> {
            let trained = runs()?.into_iter().map(|(name, mut run)| {
                if !is_recorded {
                    run.record(false);
                }
                for _ in 0..steps {
                    run.step()?;
                }
                Ok((name, run.weights()))
            });
            trained.collect()
        };
        let first = trained(true)?;
        for (is_recorded, how) in [(true, "again"), (false, "without recording")] {
            for ((name, first), (_, then)) in first.iter().zip(trained(is_recorded)?) {
                rows.push(Row {
                    what: format!("{name}, {kind}: {steps} steps {how}"),
                    passed: Some(then == *first),
                    note: "the same bits".into(),
                    ..Row::default()
                });
            }
        }
    }
    Ok(rows)
}
