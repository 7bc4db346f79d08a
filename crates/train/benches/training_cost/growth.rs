//! Growth of the time of a training step of the `atari` preset with its sizes.

use std::time::Instant;

use crate::work::{Atari, Variant, fourier_attention, fourier_head};

const ROUNDS: usize = 7;

/// Prints the table: in each row, one size differs from the preset.
pub fn compare() {
    let base = Atari::of(Variant::Plain, 16);
    let fourier = Atari { attention: fourier_attention(), ..base.clone() };
    let mut rows: Vec<(String, Atari)> = vec![("the preset, batch 16".into(), base.clone())];
    rows.extend(
        [4, 8, 32].map(|batch| (format!("batch {batch}"), Atari { batch, ..base.clone() })),
    );
    rows.extend(
        [10, 20, 60]
            .map(|context| (format!("context {context}"), Atari { context, ..base.clone() })),
    );
    rows.extend([7, 14, 28, 56].map(|n| {
        (format!("Fourier head, {n} frequencies"), Atari { head: fourier_head(n), ..base.clone() })
    }));
    rows.extend([2, 4, 8, 16].map(|n_heads| {
        let d_head = 128 / n_heads;
        (format!("{n_heads} heads of {d_head}"), Atari { n_heads, ..base.clone() })
    }));
    rows.extend([2, 4, 8, 16].map(|n_heads| {
        let d_head = 128 / n_heads;
        let name = format!("Fourier attention, {n_heads} heads of {d_head}");
        (name, Atari { n_heads, ..fourier.clone() })
    }));
    let mut steps: Vec<_> = rows.iter().map(|(_, atari)| atari.training_step()).collect();
    steps.iter_mut().for_each(|step| step());
    let mut times = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for (step, times) in steps.iter_mut().zip(&mut times) {
            let start = Instant::now();
            step();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    println!("| | ms a step: median (range) | of the first row's time |");
    println!("| --- | ---: | ---: |");
    for ((name, _), row) in rows.iter().zip(&times) {
        let mut ratios: Vec<f64> = row.iter().zip(&times[0]).map(|(a, b)| a / b).collect();
        let mut row: Vec<f64> = row.iter().map(|seconds| 1e3 * seconds).collect();
        ratios.sort_by(f64::total_cmp);
        row.sort_by(f64::total_cmp);
        let [least, middle, largest] = [0, ROUNDS / 2, ROUNDS - 1].map(|i| row[i]);
        println!("| {name} | {middle:.0} ({least:.0}–{largest:.0}) | {:.2}× |", ratios[ROUNDS / 2]);
    }
}
