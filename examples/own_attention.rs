//! Fourier attention in your own network, which predicts the previous one of five symbols.
//!
//! `cargo run --release -p overtone-examples --bin own_attention`

use burn::{
    module::Module,
    nn::{Embedding, EmbeddingConfig, Linear, LinearConfig},
    tensor::{Device, Int, Tensor},
};
use overtone_model::{FourierAttention, FourierAttentionConfig, head::cross_entropy};
use overtone_train::{AdamW, AdamWConfig, optimizer::scalar};

const TIME: usize = 9;

#[derive(Module, Debug)]
struct Network {
    symbols: Embedding,
    places: Embedding,
    attention: FourierAttention,
    output: Linear,
}

impl Network {
    fn logits(&self, symbols: Tensor<2, Int>) -> Tensor<3> {
        let places = Tensor::arange(0..TIME as i64, &symbols.device()).unsqueeze::<2>();
        let x = self.symbols.forward(symbols) + self.places.forward(places);
        self.output.forward(x.clone() + self.attention.forward(x))
    }
}

fn main() {
    let device = Device::flex().autodiff();
    device.seed(1);
    let attention = FourierAttentionConfig::new(32, 4).with_causal(true).with_dropout(0.0);
    let mut network = Network {
        symbols: EmbeddingConfig::new(5, 32).init(&device),
        places: EmbeddingConfig::new(TIME, 32).init(&device),
        attention: attention.init(&device),
        output: LinearConfig::new(32, 5).init(&device),
    };
    let i = Tensor::<1, Int>::arange(0..32 * TIME as i64, &device);
    let symbols = (i.clone() * i.clone() * 7 + i / 3).remainder_scalar(5).reshape([32, TIME]);
    let before = symbols.clone().narrow(1, 0, TIME - 1).flatten(0, 1);
    let mut optimizer = AdamW::new(AdamWConfig::default());
    for step in 0..=200 {
        let logits = network.logits(symbols.clone()).narrow(1, 1, TIME - 1).flatten(0, 1);
        let loss = cross_entropy(logits, before.clone()).mean();
        if step % 50 == 0 {
            println!("step {step}: loss {:.3}", scalar(loss.clone().inner()));
        }
        network = optimizer.step(network, loss.backward(), 1e-2).0;
    }
}
