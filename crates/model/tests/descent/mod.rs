//! Adam, for modules that are not trained by the trainer.

use std::collections::BTreeMap;

use burn::{
    module::Module,
    tensor::{Tensor, TensorData},
};
use overtone_kernels::{AdamW, Slot, adamw_step};
use overtone_model::weights::{self, NamedTensors};

/// `steps` steps of Adam on the loss of each step's own batch.
pub fn learn<M: Module>(
    mut model: M,
    steps: u64,
    learning_rate: f64,
    loss: impl Fn(&M, u64) -> Tensor<1>,
) -> M {
    let optimizer = AdamW { learning_rate, ..AdamW::default() };
    let mut moments: BTreeMap<String, [Vec<f32>; 2]> = BTreeMap::new();
    for step in 1..=steps {
        let gradients = weights::export_gradients(&model, &loss(&model, step).backward());
        let mut moved = NamedTensors::new();
        for (name, parameter) in weights::export(&model) {
            let gradient: Vec<f32> = gradients[&name].iter().collect();
            let zeros = || vec![0.0; gradient.len()];
            let [first_moment, second_moment] =
                moments.entry(name.clone()).or_insert_with(|| [zeros(), zeros()]);
            let mut values: Vec<f32> = parameter.iter().collect();
            let slot = Slot {
                parameter: &mut values,
                gradient: &gradient,
                first_moment,
                second_moment,
                weight_decay: 0.0,
            };
            adamw_step(optimizer, step, 1.0, vec![slot]);
            moved.insert(name, TensorData::new(values, parameter.shape().clone()));
        }
        model = weights::import(model, &moved).unwrap();
    }
    model
}
