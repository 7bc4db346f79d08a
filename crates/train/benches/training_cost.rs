//! What a Fourier head and Fourier attention cost a whole training step (forward, backward,
//! clipping, AdamW, with dropout) and its memory, side by side, as one Markdown table:
//!
//! ```text
//! cargo bench --workspace --locked --features '' --bench training_cost
//! ```
//!
//! Every variant lives in a process of its own, so that its peak resident memory is its own.
//! The variants of a preset take turns, so that whatever else the machine does meets all of
//! them. Times are medians over rounds, with the least and the largest; a ratio is the median
//! over rounds of a variant's time divided by the first variant's in the same round.
//!
//! Before anything is timed, the fused operations' loss is compared with the plain ones'.

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Instant,
};

use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use overtone_core::seed::{self, Generator};
use overtone_model::{
    AttentionConfig, Conditioning, ContinuousDecisionTransformer, ContinuousInputs,
    ContinuousModelConfig, DecisionTransformer, FourierAttentionConfig, HeadConfig, Inputs,
    ModelConfig, RShape,
    decision_transformer::{DropoutSeed, FRAME, Form, Frames, STACK},
    head::{ActionOrder, ContinuousHeadConfig, FourierHeadConfig, FourierLikelihoodConfig},
};
use overtone_train::{AdamW, AdamWConfig, Decayed, optimizer::scalar};
use rand::RngExt;

const ROUNDS: usize = 9;
const WARM_UP_STEPS: usize = 2;
/// Frequencies of the Fourier heads: the paper's best on Seaquest.
const FREQUENCIES: usize = 14;
/// Says which variant a process is to train; absent in the process that compares them.
const VARIANT: &str = "OVERTONE_TRAINING_COST_VARIANT";

/// Sizes of a model and its batches.
#[derive(Clone, Copy, PartialEq)]
enum Preset {
    Atari,
    Gym,
    FourierFormer,
}

impl Preset {
    const ALL: [Self; 3] = [Self::Atari, Self::Gym, Self::FourierFormer];

    fn name(self) -> &'static str {
        match self {
            Self::Atari => "atari: 16 × 30 timesteps, 6 layers, 8 heads, width 128",
            Self::Gym => "gym: 64 × 20 timesteps, 3 layers, 1 head, width 128",
            Self::FourierFormer => "fourierformer: 64 × 20 timesteps, 3 layers, 4 heads, width 256",
        }
    }

    /// Few, so that variants take turns often.
    fn steps_a_round(self) -> usize {
        match self {
            Self::Atari | Self::FourierFormer => 2,
            Self::Gym => 6,
        }
    }
}

/// What differs between the rows of a preset.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Plain,
    FourierAttention,
    FourierHead,
}

impl Variant {
    const ALL: [Self; 3] = [Self::Plain, Self::FourierAttention, Self::FourierHead];

    fn name(self, preset: Preset) -> &'static str {
        match (self, preset) {
            (Self::Plain, Preset::Atari) => "linear head, softmax attention",
            (Self::Plain, _) => "tanh head, softmax attention",
            (Self::FourierAttention, Preset::Atari) => "linear head, Fourier attention",
            (Self::FourierAttention, _) => "tanh head, Fourier attention",
            (Self::FourierHead, _) => "Fourier head (14), softmax attention",
        }
    }

    fn attention(self) -> AttentionConfig {
        match self {
            Self::Plain | Self::FourierHead => AttentionConfig::Softmax,
            Self::FourierAttention => AttentionConfig::Fourier(FourierAttentionConfig {
                power: 4,
                r: RShape::Scalar,
                initial: 1.0,
                epsilon: 0.0,
            }),
        }
    }
}

fn main() {
    if let Ok(variant) = env::var(VARIANT) {
        let mut indices = variant.split(' ').map(|index| index.parse::<usize>());
        let mut next = || indices.next().and_then(Result::ok).expect("two indices");
        train_on_request(Preset::ALL[next()], Variant::ALL[next()]);
        return;
    }
    for (preset, variant) in Preset::ALL.iter().flat_map(|p| Variant::ALL.map(|v| (*p, v))) {
        let [fused, plain] =
            [Form::Auto, Form::Reference].map(|form| first_loss(preset, variant, form));
        assert!((fused - plain).abs() < 1e-3, "{}: {fused}, {plain}", variant.name(preset));
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    println!("{ROUNDS} rounds, {threads} threads\n");
    println!("| preset | | ms a step: median (range) | time | peak memory, MB | memory |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (preset_idx, preset) in Preset::ALL.into_iter().enumerate() {
        let mut trainers: Vec<Trainer> =
            (0..Variant::ALL.len()).map(|variant| Trainer::start(preset_idx, variant)).collect();
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
            let name = if row == 0 { preset.name() } else { "" };
            println!(
                "| {name} | {} | {:.0} ({least:.0}–{largest:.0}) | {:.2}× | {:.0} | {:.2}× |",
                variant.name(preset),
                1e3 * times[ROUNDS / 2],
                ratios[ROUNDS / 2],
                memory[row],
                memory[row] / memory[0],
            );
        }
    }
}

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut numbers = numbers.to_vec();
    numbers.sort_by(f64::total_cmp);
    numbers
}

// ---------------------------------------------------------------- One process a variant

/// A process that trains one variant.
struct Trainer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Trainer {
    /// Starts this program again and waits until it is ready.
    fn start(preset_idx: usize, variant_idx: usize) -> Self {
        let mut process = Command::new(env::current_exe().expect("this program has a path"))
            .env(VARIANT, format!("{preset_idx} {variant_idx}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let requests = process.stdin.take().expect("piped");
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        let mut trainer = Self { process, requests, answers };
        trainer.answer();
        trainer
    }

    /// Seconds a step, averaged over a round.
    fn round(&mut self) -> f64 {
        writeln!(self.requests, "round").expect("the trainer lives");
        self.answer()
    }

    /// Ends the process; its peak resident memory in MB (10⁶ bytes).
    fn finish(self) -> f64 {
        let Self { mut process, requests, mut answers } = self;
        drop(requests);
        let kilobytes = read_number(&mut answers);
        process.wait().expect("the trainer ends");
        kilobytes * 1024.0 / 1e6
    }

    fn answer(&mut self) -> f64 {
        read_number(&mut self.answers)
    }
}

fn read_number(answers: &mut impl BufRead) -> f64 {
    let mut line = String::new();
    answers.read_line(&mut line).expect("the trainer answers");
    line.trim().parse().expect("the trainer answers with a number")
}

/// What a trainer's process does: a round for each line it is sent, and its peak memory at the
/// end.
fn train_on_request(preset: Preset, variant: Variant) {
    let mut step = training_step(preset, variant);
    (0..WARM_UP_STEPS).for_each(|_| step());
    println!("0");
    let n_steps = preset.steps_a_round();
    for line in io::stdin().lines() {
        line.expect("requests are lines");
        let start = Instant::now();
        (0..n_steps).for_each(|_| step());
        println!("{}", start.elapsed().as_secs_f64() / n_steps as f64);
    }
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|rest| rest.trim().strip_suffix(" kB")).expect("a peak");
    println!("{peak}");
}

// ---------------------------------------------------------------- Models and batches

fn training_step(preset: Preset, variant: Variant) -> Box<dyn FnMut()> {
    let device = Device::flex().autodiff();
    match preset {
        Preset::Atari => {
            let (frames, inputs) = atari_batch(16, &device);
            let loss = move |model: &DecisionTransformer, dropout| {
                model.loss(frames.clone(), &inputs, Some(dropout)).total
            };
            Box::new(repeated(atari_model(variant, &device), 0.1, Decayed::Matrices, loss))
        }
        Preset::Gym | Preset::FourierFormer => {
            let model = continuous_model(preset, variant, &device);
            let inputs = continuous_batch(&model.config, 64, &device);
            let loss = move |model: &ContinuousDecisionTransformer, dropout| {
                model.loss(&inputs, Some(dropout)).total
            };
            Box::new(repeated(model, 1e-4, Decayed::Everything, loss))
        }
    }
}

/// Takes one training step whenever it is called.
fn repeated<M: Module>(
    mut model: M,
    weight_decay: f64,
    decayed: Decayed,
    loss: impl Fn(&M, DropoutSeed) -> Tensor<1>,
) -> impl FnMut() {
    let mut adam = AdamW::new(AdamWConfig {
        beta_1: 0.9,
        beta_2: 0.95,
        epsilon: 1e-8,
        weight_decay,
        decayed,
        clip_norm: 1.0,
    });
    move || {
        let loss = loss(&model, DropoutSeed(adam.n_steps()));
        let value = scalar(loss.clone().inner());
        let (moved, norm) = adam.step(model.clone(), loss.backward(), 1e-4);
        assert!(value.is_finite() && scalar(norm).is_finite());
        model = moved;
    }
}

/// The loss of a first step on two contexts, for comparing forms. Nothing is differentiated:
/// the plain form would need gigabytes.
fn first_loss(preset: Preset, variant: Variant, form: Form) -> f64 {
    let (device, dropout) = (Device::flex(), Some(DropoutSeed(0)));
    scalar(match preset {
        Preset::Atari => {
            let (frames, inputs) = atari_batch(2, &device);
            let model = DecisionTransformer { form, ..atari_model(variant, &device) };
            model.loss(frames, &inputs, dropout).total
        }
        Preset::Gym | Preset::FourierFormer => {
            let model = continuous_model(preset, variant, &device);
            let model = ContinuousDecisionTransformer { form, ..model };
            model.loss(&continuous_batch(&model.config, 2, &device), dropout).total
        }
    })
}

fn atari_model(variant: Variant, device: &Device) -> DecisionTransformer {
    let config = ModelConfig {
        n_layers: 6,
        n_heads: 8,
        d_model: 128,
        context_length: 30,
        n_actions: 18,
        max_timestep: 4_000,
        dropout: 0.1,
        conditioning: Conditioning::Return,
        attention: variant.attention(),
        head: match variant {
            Variant::Plain | Variant::FourierAttention => HeadConfig::Linear,
            Variant::FourierHead => HeadConfig::Fourier(FourierHeadConfig {
                gamma: 1e-6,
                action_order: Some(ActionOrder::atari()),
                ..FourierHeadConfig::new(FREQUENCIES)
            }),
        },
    };
    let mut generator = seed::generator(1, "init");
    let model = DecisionTransformer::init(&config, device, &mut generator);
    model.expect("a model")
}

fn atari_batch(batch: usize, device: &Device) -> (Frames, Inputs) {
    let time = 30;
    let mut generator = seed::generator(7, "batch");
    let shape = [batch, time + STACK - 1, FRAME, FRAME];
    let pixels: Vec<u8> =
        (0..shape.iter().product::<usize>()).map(|_| generator.random()).collect();
    let actions: Vec<i32> = (0..batch * time).map(|_| generator.random_range(0..18)).collect();
    let frames = Tensor::<4, Int>::from_data(TensorData::new(pixels, shape), (device, DType::U8));
    let inputs = Inputs {
        actions: Tensor::from_data(TensorData::new(actions, [batch, time]), device),
        returns_to_go: random([batch, time], &mut generator, device),
        global_timesteps: Tensor::from_data(TensorData::new(vec![9i32; batch], [batch]), device),
        n_padding: vec![0; batch],
    };
    (Frames::Windows(frames), inputs)
}

/// Sizes of HalfCheetah's observations and actions.
fn continuous_model(
    preset: Preset,
    variant: Variant,
    device: &Device,
) -> ContinuousDecisionTransformer {
    let base = match preset {
        Preset::FourierFormer => ContinuousModelConfig::fourierformer(17, 6, 1000),
        Preset::Atari | Preset::Gym => ContinuousModelConfig::gym(17, 6, 1000),
    };
    let head = match variant {
        Variant::Plain | Variant::FourierAttention => ContinuousHeadConfig::Tanh,
        Variant::FourierHead => {
            let plain = FourierLikelihoodConfig::new(FREQUENCIES);
            ContinuousHeadConfig::Fourier(FourierLikelihoodConfig { gamma: 1e-6, ..plain })
        }
    };
    let config = ContinuousModelConfig { attention: variant.attention(), head, ..base };
    let mut generator = seed::generator(1, "init");
    let model = ContinuousDecisionTransformer::init(&config, device, &mut generator);
    model.expect("a model")
}

fn continuous_batch(
    config: &ContinuousModelConfig,
    batch: usize,
    device: &Device,
) -> ContinuousInputs {
    let time = config.context_length;
    let mut generator = seed::generator(7, "batch");
    let timesteps: Vec<i32> =
        (0..batch).flat_map(|row| (0..time).map(move |step| (15 * row + step) as i32)).collect();
    ContinuousInputs {
        observations: random([batch, time, config.observation_width], &mut generator, device),
        actions: random([batch, time, config.action_width], &mut generator, device),
        returns_to_go: random([batch, time], &mut generator, device),
        timesteps: Tensor::from_data(TensorData::new(timesteps, [batch, time]), device),
        n_padding: vec![0; batch],
    }
}

fn random<const D: usize>(
    shape: [usize; D],
    generator: &mut Generator,
    device: &Device,
) -> Tensor<D> {
    let n = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|_| generator.random_range(-1.0..1.0)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
