//! Comparison with the reference's recorded numbers: logits, and the losses of ten steps.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use overtone_core::{ActionSpace, seed};
use overtone_model::{
    Acted, Contexts, DecisionTransformer, DecisionTransformerConfig, HeadConfig, Init, Observed,
    PositionsConfig,
    burn::tensor::{DType, Device, Int, Tensor, TensorData},
    contexts::timesteps_from,
    device::is_cpu,
    head::{ActionOrder, FourierHeadConfig, LinearConfig, OrderConfig},
    published,
    weights::{self, NamedTensors},
};
use overtone_train::{AdamW, AdamWConfig, Decayed, Schedule, optimizer::scalar};
use safetensors::SafeTensors;
use serde_json::Value;

use super::{report::Row, synthetic::frames};

/// Absolute tolerances of logits on the CPU for linear and Fourier head, as in the golden tests.
const CPU_LOGITS: [f64; 2] = [2e-5, 2e-4];
/// Absolute tolerances of logits on a GPU, which can round the factors of `f32` products to 11 bits.
const GPU_LOGITS: [f64; 2] = [5e-3, 5e-2];
/// Relative tolerances of the losses of ten steps, on the CPU and on a GPU.
const LOSSES: [f64; 2] = [1e-4, 5e-3];
const N_STEPS: usize = 10;

/// Compares the device with the golden files in `folder`.
///
/// # Errors
/// When a golden file exists but cannot be read.
pub fn check(folder: &Path, device: &Device) -> Result<Vec<Row>> {
    let file = |name: &str| folder.join(format!("dt_atari_{name}"));
    if !file("weights.safetensors").is_file() {
        return Ok(Row::skipped(format!("no golden files in {}", folder.display())));
    }
    let read = |name: &str| {
        let path = file(name);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (inputs, expected) = (read("inputs.safetensors")?, read("expected.json")?);
    let case = Case {
        weights: weights::load(&file("weights.safetensors"))?,
        inputs: SafeTensors::deserialize(&inputs).context("golden inputs")?,
        expected: serde_json::from_slice(&expected).context("golden numbers")?,
        device: device.clone().autodiff(),
    };
    let outputs = weights::load(&file("outputs.safetensors"))?;
    let on_gpu = usize::from(!is_cpu(device));
    let logit_tolerances = [CPU_LOGITS, GPU_LOGITS][on_gpu];
    let mut rows = Vec::new();
    for (head, tolerance) in ["linear", "fourier8"].into_iter().zip(logit_tolerances) {
        let model = case.model(head)?;
        let got = model.logits(&case.batch(0)?).context("no logits")?.into_data();
        let stored = outputs.get(&format!("{head}/f32/logits")).context("no golden logits")?;
        let expected = case.by_action(head, stored)?;
        let (n, n_expected) = (got.num_elements(), expected.len());
        ensure!(n == n_expected, "{head} head: {n} logits, {n_expected} golden ones");
        let apart = expected.into_iter().zip(got.iter::<f64>());
        let apart = apart.map(|(expected, got)| (expected - got).abs());
        rows.push(Row::compared(format!("logits, {head} head"), largest(apart), tolerance));
    }
    let apart = case.train("linear")?;
    rows.push(Row::compared("losses of ten steps".into(), apart, LOSSES[on_gpu]));
    Ok(rows)
}

/// The largest number; NaN if one of them is NaN.
pub fn largest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |largest, x| if x > largest || x.is_nan() { x } else { largest })
}

struct Case<'a> {
    weights: NamedTensors,
    inputs: SafeTensors<'a>,
    expected: Value,
    device: Device,
}

impl Case<'_> {
    fn number(&self, key: &str) -> Result<f64> {
        self.expected["config"][key].as_f64().with_context(|| format!("no golden config.{key}"))
    }

    fn config(&self, head: &str) -> Result<DecisionTransformerConfig> {
        let integer = |key| self.number(key).map(|number| number as usize);
        Ok(DecisionTransformerConfig {
            n_layers: integer("n_layer")?,
            n_heads: integer("n_head")?,
            d_model: integer("n_embd")?,
            context_length: integer("context")?,
            positions: PositionsConfig::LocalAndGlobal { max_timestep: integer("max_timestep")? },
            dropout: 0.0,
            head: match head.strip_prefix("fourier") {
                None => HeadConfig::Linear(LinearConfig {}),
                Some(frequencies) => HeadConfig::Fourier(FourierHeadConfig {
                    action_order: ActionOrder::atari().into(),
                    ..FourierHeadConfig::new(frequencies.parse()?)
                }),
            },
            ..DecisionTransformerConfig::atari(0)
        })
    }

    fn model(&self, head: &str) -> Result<DecisionTransformer> {
        let config = self.config(head)?;
        let own = format!("{head}_head.");
        let theirs = self.weights.iter().filter_map(|(name, data)| match name.strip_prefix(&own) {
            Some(rest) => Some((format!("head.{rest}"), data.clone())),
            None => (!name.contains("_head.")).then(|| (name.clone(), data.clone())),
        });
        let ours = published::atari(&config, &theirs.collect())?;
        let generator = &mut seed::generator(0, "init");
        let actions = ActionSpace::numbered(self.number("vocab")? as usize);
        let init = &mut Init::drawn(&self.device, generator);
        let model = DecisionTransformer::init(&config, &frames(), &actions, init)?;
        Ok(weights::import(model, &ours)?)
    }

    /// The batch of step `step` in the file's training run.
    fn batch(&self, step: usize) -> Result<Contexts> {
        let bytes = |name: &str| Ok::<_, anyhow::Error>(self.inputs.tensor(name)?.data().to_vec());
        let words = |name: &str| {
            let bytes = bytes(name)?;
            Ok::<_, anyhow::Error>(bytes.as_chunks::<4>().0.to_vec())
        };
        let ints = |name: &str| {
            let words = words(name)?.into_iter();
            Ok::<_, anyhow::Error>(words.map(i32::from_le_bytes).collect::<Vec<_>>())
        };
        let shape = self.inputs.tensor("states_u8")?.shape().to_vec();
        let [rows, time] = [shape[0], shape[1]];
        let vocab = self.number("vocab")? as i32;
        let actions: Vec<i32> =
            ints("actions")?.into_iter().map(|action| (action + step as i32) % vocab).collect();
        let returns = words("rtgs")?.into_iter().map(f32::from_le_bytes);
        let returns: Vec<f32> = returns.map(|to_go| to_go + (step % 3) as f32).collect();
        let device = &self.device;
        let frames = TensorData::new(bytes("states_u8")?, [rows * time, 4, 84, 84]);
        let frames = Tensor::<4, Int>::from_data(frames, (device, DType::U8));
        let actions = Tensor::from_data(TensorData::new(actions, [rows, time]), device);
        let n_padding = vec![0; rows];
        Ok(Contexts {
            observations: Observed::Frames(frames),
            actions: Acted::Discrete(actions),
            returns_to_go: Tensor::from_data(TensorData::new(returns, [rows, time]), device),
            timesteps: timesteps_from(&ints("timesteps")?, &n_padding, time),
            n_padding,
            top_percent_idx: Vec::new(),
            stored: None,
        })
    }

    /// The reference's logits, reordered from bins to environment actions.
    fn by_action(&self, head: &str, logits: &TensorData) -> Result<Vec<f64>> {
        let logits: Vec<f64> = logits.iter().collect();
        Ok(match self.config(head)?.head {
            HeadConfig::Fourier(FourierHeadConfig {
                action_order: OrderConfig::BinOf(order),
                ..
            }) => logits
                .chunks(order.bin_of().len())
                .flat_map(|row| order.bin_of().iter().map(|&bin| row[bin]).collect::<Vec<_>>())
                .collect(),
            _ => logits,
        })
    }

    /// The largest relative difference from the losses of the file's training run.
    fn train(&self, head: &str) -> Result<f64> {
        let betas = &self.expected["config"]["betas"];
        let beta = |i: usize| betas[i].as_f64().context("no golden betas");
        let mut adam = AdamW::new(AdamWConfig {
            beta_1: beta(0)?,
            beta_2: beta(1)?,
            epsilon: self.number("eps")?,
            weight_decay: self.number("weight_decay")?,
            decayed: Decayed::Matrices,
            clip_norm: self.number("clip")?,
        });
        let schedule = Schedule::ReferenceCosine {
            learning_rate: self.number("lr")?,
            warmup_tokens: self.number("warmup_tokens")?,
            final_tokens: self.number("final_tokens")?,
        };
        let expected = self.expected[head]["f32"]["traj"].as_array().context("no golden losses")?;
        let mut model = self.model(head)?;
        let mut tokens = 0;
        let mut apart = Vec::new();
        for (step, entry) in expected.iter().enumerate().take(N_STEPS) {
            let contexts = self.batch(step)?;
            let loss = model.loss(&contexts, None).total;
            let value = scalar(loss.clone().inner());
            let expected = entry["loss"].as_f64().context("no golden loss")?;
            apart.push((value - expected).abs() / expected);
            let rate = schedule.at(step as u64, tokens);
            model = adam.step(model.clone(), loss.backward(), rate).0;
            let [rows, time] = contexts.dims();
            tokens += (rows * time) as u64;
        }
        Ok(largest(apart.into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_the_largest() {
        assert_eq!(largest([0.5, 2.0, 1.0].into_iter()), 2.0);
        assert!(largest([5.0, f64::NAN, 1e-6].into_iter()).is_nan());
    }
}
