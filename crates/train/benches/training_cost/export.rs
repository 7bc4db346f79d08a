//! Export of a model's weights, a batch and its loss, for another program that must reproduce the
//! loss.

use std::{collections::BTreeMap, fs, path::Path};

use overtone_model::{decision_transformer::Form, weights};

use crate::work::{Variant, Work};

/// Writes `weights.safetensors`, `batch.safetensors` (all of it as `f32`) and `loss.txt` into
/// `folder`. The loss is without dropout.
pub fn write(work: Work, folder: &Path) {
    fs::create_dir_all(folder).expect("the folder can be made");
    let (parameters, batch) = work.numbers();
    for (name, tensors) in [("weights", &parameters), ("batch", &batch)] {
        let path = folder.join(name).with_extension("safetensors");
        weights::save(tensors, &BTreeMap::new(), &path).expect("the tensors can be written");
    }
    let loss = work.loss(Variant::Plain, Form::Auto, None);
    fs::write(folder.join("loss.txt"), format!("{loss}\n")).expect("the loss can be written");
}
