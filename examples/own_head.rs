//! A Fourier head on your own network. The answer to `x` is near bin 3 half of the time and near
//! bin 12 otherwise. A mean would lie between the two; a density shows both.
//!
//! `cargo run --release -p overtone-examples --bin own_head`

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Int, Tensor, TensorData, activation::gelu},
};
use overtone_model::head::{FourierHead, FourierHeadConfig};
use overtone_train::{AdamW, AdamWConfig, optimizer::scalar};

#[derive(Module, Debug)]
struct Network {
    layer: Linear,
    head: FourierHead,
}

fn main() {
    let device = Device::flex().autodiff();
    device.seed(1);
    // 12 frequencies; γ makes the density smooth.
    let head = FourierHeadConfig { gamma: 1e-6, ..FourierHeadConfig::new(12) };
    let mut network = Network {
        layer: LinearConfig::new(1, 32).init(&device),
        head: head.seeded(32, 16, &device, 1),
    };

    let n = 256;
    let x: Vec<f32> = (0..n).map(|i| i as f32 / n as f32).collect();
    let bins: Vec<i32> = (0..n).map(|i| if i % 2 == 0 { 3 } else { 12 } + i / 2 % 3 - 1).collect();
    let x = Tensor::<2>::from_data(TensorData::new(x, [n as usize, 1]), &device);
    let bins = Tensor::<1, Int>::from_data(TensorData::from(&bins[..]), &device);

    let mut optimizer = AdamW::new(AdamWConfig::default());
    for step in 0..=300 {
        let loss = network.head.mean_loss(gelu(network.layer.forward(x.clone())), bins.clone());
        if step % 100 == 0 {
            println!("step {step}: loss {:.3}", scalar(loss.clone().inner()));
        }
        network = optimizer.step(network, loss.backward(), 1e-2).0;
    }
    let density = &network.head.densities(gelu(network.layer.forward(x.narrow(0, 99, 1))))[0];
    for bin in [3, 8, 12] {
        println!("density in bin {bin}: {:.2}", density.pdf(-1.0 + (2 * bin + 1) as f64 / 16.0));
    }
}
