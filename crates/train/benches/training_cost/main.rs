//! Cost of a Fourier head and of Fourier attention in a whole training step (forward, backward,
//! clipping, AdamW, with dropout): time and memory, as one Markdown table:
//! ```text
//! cargo bench --workspace --locked --features '' --bench training_cost
//! ```
//!
//! Every variant runs in its own process, so that its peak resident memory is its own. The variants
//! of a preset take turns, so that other load on the machine affects all of them. Times are medians
//! over rounds, with minimum and maximum. A ratio is the median over rounds of a variant's time
//! divided by the first variant's time in the same round.
//!
//! Before the timing, the loss of the fused operations is compared with the plain operations' loss.
//!
//! With `parts` or `growth`, it prints the parts of a step of the `atari` preset, or the growth of
//! its time with batch, context, frequencies and head width:
//!
//! ```text
//! cargo bench --workspace --locked --features '' --bench training_cost -- parts
//! cargo bench --workspace --locked --features '' --bench training_cost -- growth
//! ```
//!
//! With other arguments, it is one side of a comparison with other programs (`just bench-peers`):
//!
//! ```text
//! training_cost train PRESET BATCH VARIANT STEPS   a round of STEPS steps for each line it is sent
//! training_cost multiply STEPS                     the same, a step being one product of matrices
//! training_cost export PRESET BATCH FOLDER         weights, a batch, and the loss of the two
//! ```

mod export;
mod growth;
mod multiply;
mod parts;
mod process;
mod work;

use std::{env, path::Path, process::ExitCode, thread};

use overtone_model::decision_transformer::Form;
use process::Trainer;
use work::{Preset, Variant, Work};

const ROUNDS: usize = 25;

#[allow(clippy::print_stderr, reason = "a closed error stream loses only its last line")]
fn main() -> ExitCode {
    // `cargo bench` adds the flag `--bench`.
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match answer(&words) {
        Some(()) => ExitCode::SUCCESS,
        None => {
            eprintln!("training_cost: cannot understand `{}`", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

/// Executes the command in the arguments; `None` when it lacks an argument.
fn answer(words: &[&str]) -> Option<()> {
    match *words {
        ["train", preset, batch, variant, steps] => {
            let work = work_of(preset, batch)?;
            let variant = Variant::ALL.into_iter().find(|known| known.key() == variant)?;
            process::serve(work.training_step(variant), count(steps)?);
        }
        ["parts"] => parts::compare(16),
        ["growth"] => growth::compare(),
        ["multiply", steps] => process::serve(multiply::product(), count(steps)?),
        ["export", preset, batch, folder] => {
            export::write(work_of(preset, batch)?, Path::new(folder));
        }
        ["train" | "multiply" | "export", ..] => return None,
        // No argument, or the name of another program's benchmark (`just bench NAME`).
        _ => compare_variants(),
    }
    Some(())
}

fn work_of(preset: &str, batch: &str) -> Option<Work> {
    let preset = Preset::ALL.into_iter().find(|known| known.key() == preset)?;
    Some(Work { preset, batch: count(batch)? })
}

fn count(word: &str) -> Option<usize> {
    word.parse().ok().filter(|n| *n > 0)
}

/// Prints the table.
fn compare_variants() {
    for (preset, variant) in Preset::ALL.iter().flat_map(|p| Variant::ALL.map(|v| (*p, v))) {
        let few = Work { preset, batch: 2 };
        let [fused, plain] =
            [Form::Auto, Form::Reference].map(|form| few.loss(variant, form, Some(0)));
        assert!((fused - plain).abs() < 1e-3, "{}: {fused}, {plain}", name(variant, preset));
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    println!("{ROUNDS} rounds, {threads} threads\n");
    println!("| preset | | ms a step: median (range) | time | peak memory, MB | memory |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for preset in Preset::ALL {
        let work = Work { preset, batch: default_batch(preset) };
        let mut trainers =
            Variant::ALL.map(|variant| Trainer::start(work, variant, steps_a_round(preset)));
        let mut times = vec![Vec::new(); trainers.len()];
        for _ in 0..ROUNDS {
            for (trainer, times) in trainers.iter_mut().zip(&mut times) {
                times.push(trainer.round());
            }
        }
        let memory: Vec<f64> = trainers.into_iter().map(Trainer::finish).collect();
        for (row, variant) in Variant::ALL.into_iter().enumerate() {
            let ratios: Vec<f64> = times[row].iter().zip(&times[0]).map(|(a, b)| a / b).collect();
            let (times, ratios) = (sorted(&times[row]), sorted(&ratios));
            let [least, largest] = [times[0], times[ROUNDS - 1]].map(|s| 1e3 * s);
            println!(
                "| {} | {} | {:.0} ({least:.0}–{largest:.0}) | {:.2}× | {:.0} | {:.2}× |",
                if row == 0 { sizes(preset) } else { "" },
                name(variant, preset),
                1e3 * times[ROUNDS / 2],
                ratios[ROUNDS / 2],
                memory[row],
                memory[row] / memory[0],
            );
        }
    }
}

/// Few, so that variants take turns often.
fn steps_a_round(preset: Preset) -> usize {
    match preset {
        Preset::Atari | Preset::FourierFormer => 2,
        Preset::Gym => 6,
    }
}

fn default_batch(preset: Preset) -> usize {
    match preset {
        Preset::Atari => 16,
        Preset::Gym | Preset::FourierFormer => 64,
    }
}

fn sizes(preset: Preset) -> &'static str {
    match preset {
        Preset::Atari => "atari: 16 × 30 timesteps, 6 layers, 8 heads, width 128",
        Preset::Gym => "gym: 64 × 20 timesteps, 3 layers, 1 head, width 128",
        Preset::FourierFormer => "fourierformer: 64 × 20 timesteps, 3 layers, 4 heads, width 256",
    }
}

fn name(variant: Variant, preset: Preset) -> &'static str {
    match (variant, preset) {
        (Variant::Plain, Preset::Atari) => "linear head, softmax attention",
        (Variant::Plain, _) => "tanh head, softmax attention",
        (Variant::FourierAttention, Preset::Atari) => "linear head, Fourier attention",
        (Variant::FourierAttention, _) => "tanh head, Fourier attention",
        (Variant::FourierHead, _) => "Fourier head (14), softmax attention",
    }
}

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut numbers = numbers.to_vec();
    numbers.sort_by(f64::total_cmp);
    numbers
}
