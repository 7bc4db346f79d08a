//! Adam, for modules that are not trained by the trainer.

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_kernels::{AdamW, AdamWState, Form, TensorSlot};
use overtone_model::weights;

fn flat(data: &TensorData) -> Tensor<1> {
    let numbers: Vec<f32> = data.iter().collect();
    Tensor::from_data(&numbers[..], &Device::flex())
}

/// `steps` steps of Adam on the loss of each step's own batch.
pub fn learn<M: Module>(
    mut model: M,
    steps: u64,
    learning_rate: f64,
    loss: impl Fn(&M, u64) -> Tensor<1>,
) -> M {
    let optimizer = AdamW { learning_rate, ..AdamW::default() };
    let parameters = weights::export(&model);
    let slot = |data| {
        let parameter = flat(data);
        let (first_moment, second_moment) = (parameter.zeros_like(), parameter.zeros_like());
        TensorSlot { parameter, first_moment, second_moment, weight_decay: 0.0 }
    };
    let mut state = AdamWState::new(parameters.values().map(slot).collect(), Form::Auto);
    for step in 1..=steps {
        let gradients = weights::export_gradients(&model, &loss(&model, step).backward());
        state.step(optimizer, step, None, gradients.values().map(flat).collect());
        let moved = parameters.iter().zip(state.parameters()).map(|((name, data), moved)| {
            let numbers: Vec<f32> = moved.into_data().iter().collect();
            (name.clone(), TensorData::new(numbers, data.shape().clone()))
        });
        model = weights::import(model, &moved.collect()).unwrap();
    }
    model
}
