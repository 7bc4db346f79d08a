//! The Atari Decision Transformer.

use std::fs;

use burn::tensor::{DType, Device, Gradients, Int, Tensor, TensorData};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{
    Acted, Contexts, DecisionTransformer, DecisionTransformerConfig, HeadConfig, Init, Observed,
    PositionsConfig,
    contexts::timesteps_from,
    head::{ActionOrder, FourierHeadConfig, LinearConfig, OrderConfig},
    matrices, published, weights,
};
use overtone_testkit::{
    assert_close,
    golden::{self, Array},
};
use overtone_train::{Decayed, Schedule, optimizer::scalar};
use serde_json::Value;

use crate::{
    DOUBLE, SINGLE_LOGITS, SINGLE_LOSS, SINGLE_TRAJECTORY,
    case::{
        Case, Step, check_gradients, check_norms, check_scaled, check_trajectory,
        in_published_layout, train, values,
    },
};

#[test]
fn action_permutation() {
    for path in golden::files("atari_action_permutation", ".json") {
        let json: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let bins = json["ale_to_fourier"].as_array().unwrap().iter().map(integer);
        assert_eq!(ActionOrder::atari().bin_of(), bins.collect::<Vec<usize>>());
    }
}

#[test]
fn atari_decision_transformers() {
    for weights in golden::files("dt_atari", "_weights.safetensors") {
        println!("checking {}", weights.display());
        let case = Atari(Case::read(&weights));
        let heads: Vec<&String> =
            case.0.expected.as_object().unwrap().keys().filter(|key| *key != "config").collect();
        assert!(!heads.is_empty());
        for head in heads {
            case.check_double(head);
            case.check_single(head);
        }
    }
}

struct Atari(Case);

impl Atari {
    fn config(&self, head: &str) -> DecisionTransformerConfig {
        let integer = |key| self.0.integer(key);
        let n_actions = integer("vocab");
        DecisionTransformerConfig {
            n_layers: integer("n_layer"),
            n_heads: integer("n_head"),
            d_model: integer("n_embd"),
            context_length: integer("context"),
            positions: PositionsConfig::LocalAndGlobal { max_timestep: integer("max_timestep") },
            dropout: 0.0,
            head: match head.strip_prefix("fourier") {
                None => HeadConfig::Linear(LinearConfig {}),
                Some(frequencies) => HeadConfig::Fourier(FourierHeadConfig {
                    // γ is 0: the reference never adds its regulariser.
                    action_order: if n_actions == 18 {
                        ActionOrder::atari().into()
                    } else {
                        Default::default()
                    },
                    ..FourierHeadConfig::new(frequencies.parse().unwrap())
                }),
            },
            ..DecisionTransformerConfig::atari(0)
        }
    }

    /// The model with the file's weights.
    fn model(&self, head: &str, dtype: DType) -> DecisionTransformer {
        let config = self.config(head);
        let device = Device::flex().autodiff();
        let generator = &mut seed::generator(0, "init");
        let observations = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
        let actions = ActionSpace::numbered(self.0.integer("vocab"));
        let init = &mut Init::drawn(&device, generator);
        let model = DecisionTransformer::init(&config, &observations, &actions, init).unwrap();
        let theirs =
            self.published_arrays(head).map(|(name, array)| (name, array.data(dtype))).collect();
        weights::import(model, &published::atari(&config, &theirs).unwrap()).unwrap()
    }

    /// Published names and weights of the model with this head.
    fn published_arrays(&self, head: &str) -> impl Iterator<Item = (String, &Array)> {
        let prefix = format!("{head}_head.");
        self.0.weights.iter().filter_map(move |(name, array)| match name.strip_prefix(&prefix) {
            Some(rest) => Some((format!("head.{rest}"), array)),
            None => (!name.contains("_head.")).then(|| (name.to_owned(), array)),
        })
    }

    /// The batch of step `s` of the file's training run.
    fn batch(&self, s: usize, dtype: DType) -> Contexts {
        let states = self.0.inputs.get("states_u8");
        let [rows, time] = [states.shape[0], states.shape[1]];
        let vocab = self.0.number("vocab");
        let actions: Vec<f64> =
            self.0.inputs.get("actions").values.iter().map(|a| (a + s as f64) % vocab).collect();
        let returns: Vec<f64> =
            self.0.inputs.get("rtgs").values.iter().map(|r| r + (s % 3) as f64).collect();
        let timesteps = self.0.inputs.get("timesteps").values.clone();
        self.context(&states.values, rows, time, &actions, &returns, &timesteps, dtype)
    }

    #[allow(clippy::too_many_arguments)]
    fn context(
        &self,
        states: &[f64],
        rows: usize,
        time: usize,
        actions: &[f64],
        returns: &[f64],
        timesteps: &[f64],
        dtype: DType,
    ) -> Contexts {
        let device = Device::flex().autodiff();
        let pixels: Vec<u8> = states.iter().map(|&pixel| pixel as u8).collect();
        let ints = |values: &[f64]| values.iter().map(|&v| v as i32).collect::<Vec<_>>();
        let frames = Tensor::<4, Int>::from_data(
            TensorData::new(pixels, [rows * time, 4, 84, 84]),
            (&device, DType::U8),
        );
        let actions = TensorData::new(ints(actions), [rows, time]);
        let n_padding = vec![0; rows];
        Contexts {
            observations: Observed::Frames(frames),
            actions: Acted::Discrete(Tensor::from_data(actions, &device)),
            returns_to_go: Tensor::from_data(
                TensorData::new(returns.to_vec(), [rows, time]),
                (&device, dtype),
            ),
            timesteps: timesteps_from(&ints(timesteps), &n_padding, time),
            n_padding,
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        }
    }

    /// Reference logits are by bin; ours by environment action.
    fn by_action(&self, head: &str, logits: &[f64]) -> Vec<f64> {
        match self.config(head).head {
            HeadConfig::Fourier(FourierHeadConfig {
                action_order: OrderConfig::BinOf(order),
                ..
            }) => logits
                .chunks(order.bin_of().len())
                .flat_map(|row| order.bin_of().iter().map(|&bin| row[bin]).collect::<Vec<_>>())
                .collect(),
            _ => logits.to_vec(),
        }
    }

    fn check_logits(&self, head: &str, key: &str, got: Tensor<3>, relative: f64, absolute: f64) {
        let expected = self.by_action(head, &self.0.outputs.get(key).values);
        assert_close(key, &values(got), &expected, relative, absolute);
    }

    fn check_double(&self, head: &str) {
        let dtype = DType::F64;
        let expected = &self.0.expected[head]["f64"];
        let model = self.model(head, dtype);
        let contexts = self.batch(0, dtype);
        let prefix = format!("{head}/f64");
        let logits = model.logits(&contexts).unwrap();
        self.check_logits(head, &format!("{prefix}/logits"), logits, DOUBLE, 1e-12);

        let loss = model.loss(&contexts, None);
        let value = scalar(loss.total.clone().inner());
        assert_close("loss", &[value], &[expected["loss"].as_f64().unwrap()], DOUBLE, 0.0);
        self.check_gradients(head, &model, loss.total.backward(), &expected["grad_norms"]);
        self.check_evaluation_style(head, &model, dtype);
        self.check_decay_groups(head, &model);

        let (trained, steps) = self.train(head, model, dtype);
        check_trajectory(&steps, &expected["traj"]);
        let contexts = self.batch(0, dtype);
        let last = scalar(trained.loss(&contexts, None).total.inner());
        let expected_last = expected["final_loss_on_batch0"].as_f64().unwrap();
        assert_close("final loss", &[last], &[expected_last], 1e-8, 0.0);
        let logits = trained.logits(&contexts).unwrap();
        self.check_logits(head, &format!("{prefix}/final_logits"), logits, 1e-7, 1e-8);
    }

    fn check_single(&self, head: &str) {
        let dtype = DType::F32;
        let model = self.model(head, dtype);
        let contexts = self.batch(0, dtype);
        let linear = head == "linear";
        // A Fourier head's logits lose digits at zeros of the density.
        let tolerance = if linear { SINGLE_LOGITS } else { 2e-4 };
        let logits = model.logits(&contexts).unwrap();
        self.check_logits(head, &format!("{head}/f32/logits"), logits, 0.0, tolerance);
        let expected = &self.0.expected[head]["f32"];
        let loss = scalar(model.loss(&contexts, None).total.inner());
        assert_close("loss", &[loss], &[expected["loss"].as_f64().unwrap()], SINGLE_LOSS, 0.0);
        if linear {
            let (_, steps) = self.train(head, model, dtype);
            let trajectory = expected["traj"].as_array().unwrap();
            for (step, entry) in steps.iter().zip(trajectory).take(10) {
                let expected = [entry["loss"].as_f64().unwrap()];
                assert_close("f32 loss", &[step.loss], &expected, SINGLE_TRAJECTORY, 0.0);
            }
        }
    }

    /// The file's training run.
    fn train(
        &self,
        head: &str,
        model: DecisionTransformer,
        dtype: DType,
    ) -> (DecisionTransformer, Vec<Step>) {
        let schedule = Schedule::ReferenceCosine {
            learning_rate: self.0.number("lr"),
            warmup_tokens: self.0.number("warmup_tokens"),
            final_tokens: self.0.number("final_tokens"),
        };
        let n_steps = self.0.expected[head]["f64"]["traj"].as_array().unwrap().len();
        train(model, self.0.adam(Decayed::Matrices), schedule, n_steps, |model, step| {
            let contexts = self.batch(step, dtype);
            let [rows, time] = contexts.dims();
            (model.loss(&contexts, None).total, rows * time)
        })
    }

    /// Calls as in the reference's evaluation: a growing context whose last step has no action yet,
    /// and the current timestep.
    fn check_evaluation_style(&self, head: &str, model: &DecisionTransformer, dtype: DType) {
        let states = self.0.inputs.get("states_u8");
        let time = states.shape[1];
        let frame_values: usize = states.shape[2..].iter().product();
        for (row, length, timestep) in [(0, 1, 0.0), (0, 3, 2.0), (1, time, 9.0)] {
            let key = format!("{head}/f64/eval_T{length}_logits");
            if self.0.outputs.try_get(&key).is_none() {
                println!("absent: {key}");
                continue;
            }
            let at = row * time;
            let pixels = &states.values[at * frame_values..(at + length) * frame_values];
            let returns = &self.0.inputs.get("rtgs").values[at..at + length];
            let passed = &self.0.inputs.get("actions").values[at..at + length];
            // With as many actions as states, the first one is dropped; else all but the last.
            let known = if length == time { &passed[1..] } else { &passed[..length - 1] };
            let actions: Vec<f64> = known.iter().copied().chain([0.0]).collect();
            let contexts = self.context(pixels, 1, length, &actions, returns, &[timestep], dtype);
            self.check_logits(head, &key, model.logits(&contexts).unwrap(), DOUBLE, 1e-12);
        }
    }

    fn check_gradients(
        &self,
        head: &str,
        model: &DecisionTransformer,
        gradients: Gradients,
        norms: &Value,
    ) {
        let ours = weights::export_gradients(model, &gradients);
        let theirs = in_published_layout(
            self.published_arrays(head),
            |theirs| published::atari(&self.config(head), theirs),
            &ours,
        );
        check_norms(&theirs, norms.as_object().unwrap());
        check_gradients(&theirs, &self.0.outputs, &format!("{head}/f64/grad::"));
        let rows = self.0.outputs.get(&format!("{head}/f64/grad_rows::global_pos_emb"));
        let width = rows.shape[1];
        let timesteps = &self.0.inputs.get("timesteps").values;
        let got: Vec<f64> = timesteps
            .iter()
            .flat_map(|&t| &theirs["global_pos_emb"][t as usize * width..][..width])
            .copied()
            .collect();
        check_scaled("global_pos_emb rows", &got, &rows.values);
    }

    fn check_decay_groups(&self, head: &str, model: &DecisionTransformer) {
        let (mut counts, decayed) = ([0.0, 0.0], matrices::names(model));
        for (name, tensor) in weights::export(model) {
            counts[usize::from(!decayed.contains(&name))] += tensor.num_elements() as f64;
        }
        // The reference's unused token embedding does not decay either.
        counts[1] += self.0.weights.get("tok_emb.weight").values.len() as f64;
        let groups = &self.0.expected[head]["f64"]["param_groups"];
        let expected = [0, 1].map(|group| groups[group][1].as_f64().unwrap());
        assert_eq!(counts, expected, "elements with and without weight decay");
    }
}

fn integer(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}
