//! Training the toy networks: one epoch (125 steps on 32 rows) of each head, on one thread.
//!
//! Divide by 125 for a step. `scripts/peers/density.py` measures the same in PyTorch.

use divan::{Bencher, black_box};
use overtone_core::seed;
use overtone_lab::toy::data::Split;
use overtone_lab::toy::trainer::{LEARNING_RATE, Rows};
use overtone_lab::toy::{Dataset, HeadKind, Trainer};

fn main() {
    divan::main();
}

const HEADS: [HeadKind; 8] = [
    HeadKind::Linear,
    HeadKind::Gmm { components: 2 },
    HeadKind::Pointwise,
    HeadKind::Fourier { frequencies: 12, gamma: 0.0 },
    HeadKind::Fourier { frequencies: 12, gamma: 1e-6 },
    HeadKind::Fourier { frequencies: 20, gamma: 1e-6 },
    HeadKind::FourierLikelihood { frequencies: 12, gamma: 0.0 },
    HeadKind::GmmLikelihood { components: 2 },
];

/// One epoch over the 4,000 rows of the training set.
#[divan::bench(args = HEADS, sample_count = 20, sample_size = 5)]
fn epoch(bencher: Bencher<'_, '_>, kind: HeadKind) {
    let rows = Rows::<f32>::new(&Dataset::Gmm2.draw(42), &Split::default().train, kind);
    let mut trainer = Trainer::<f32>::new(kind, &mut seed::generator(1, "init"));
    let mut order = seed::generator(1, "sampling");
    let first = trainer.epoch(&rows, LEARNING_RATE, &mut order);
    let second = trainer.epoch(&rows, LEARNING_RATE, &mut order);
    assert!(second < first, "{kind} does not learn: {first}, then {second}");
    bencher.bench_local(|| black_box(trainer.epoch(&rows, LEARNING_RATE, &mut order)));
}
