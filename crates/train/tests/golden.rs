//! The reference implementations' numbers, file by file; see `crates/testkit/golden`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::{collections::BTreeMap, fs, path::Path};

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{DType, Device, Gradients, Int, Tensor, TensorData},
};
use overtone_core::seed;
use overtone_model::{
    AttentionConfig, Conditioning, DecisionTransformer, HeadConfig, Inputs, ModelConfig,
    decision_transformer::Frames,
    head::{ActionOrder, FourierHead, FourierHeadConfig, cross_entropy, fourier},
    published,
    weights::{self, FieldPath, NamedTensors},
};
use overtone_testkit::{
    Golden, assert_close,
    golden::{self, Array},
};
use overtone_train::{
    AdamW, AdamWConfig, Schedule,
    optimizer::{decays, scalar},
};
use serde_json::Value;

/// Logits, losses and gradients of `f64` files, relative to the reference. Largest seen:
/// 4e-13 (logits), 2e-12 (gradients).
const DOUBLE: f64 = 1e-9;
/// Logits in `f32`, absolute, away from zeros of a density. Largest seen: 3e-6.
const SINGLE_LOGITS: f64 = 2e-5;
/// Losses in `f32`, relative.
const SINGLE_LOSS: f64 = 1e-5;
/// Losses of the first ten steps in `f32`, relative, linear head.
const SINGLE_TRAJECTORY: f64 = 1e-4;

#[test]
fn the_folder_holds_golden_files() {
    let found: usize =
        golden::PATTERNS.iter().map(|(prefix, suffix)| golden::files(prefix, suffix).len()).sum();
    assert!(found > 0, "no golden file at all in {}", golden::folder().display());
}

// ---------------------------------------------------------------- Fourier heads

#[test]
fn fourier_heads() {
    for path in golden::files("fourier_head_", ".safetensors") {
        println!("checking {}", path.display());
        let file = Golden::read(&path);
        for dtype in [DType::F64, DType::F32] {
            check_fourier_head(&file, dtype);
        }
    }
}

fn check_fourier_head(file: &Golden, dtype: DType) {
    let double = dtype == DType::F64;
    let device = Device::flex().autodiff();
    let (n, m) = (file.scalar("N") as usize, file.scalar("m") as usize);
    let config = FourierHeadConfig { gamma: file.scalar("gamma"), ..FourierHeadConfig::new(n) };
    let weight = file.get("weight"); // [2(N+1), n], PyTorch's layout
    let d_model = weight.shape[1];
    let head = FourierHead::init(&config, d_model, m, &device, &mut seed::generator(0, "init"));
    let weights = NamedTensors::from([
        ("weight".into(), weight.transposed().data(dtype)),
        ("bias".into(), file.get("bias").data(dtype)),
    ]);
    let head = weights::import(head, &weights).unwrap();
    let x = file.get("x").tensor::<2>(&device, dtype).require_grad();
    let targets = file.get("y").ints::<1>(&device);

    let suffix = if double { "" } else { "_f32ref" };
    let (relative, absolute) = if double { (DOUBLE, 1e-12) } else { (0.0, 2e-4) };
    let output = head.forward(x.clone());
    let logits = file.get(&format!("logits{suffix}"));
    assert_close("logits", &values(output.logits.clone()), &logits.values, relative, absolute);

    // The reference's regulariser uses the coefficients before normalisation.
    let regularization = output.regularization.unwrap().mean();
    let ce = cross_entropy(output.logits, targets.clone()).mean();
    let loss = ce.clone() + regularization.clone();
    let tolerance = if double { DOUBLE } else { SINGLE_LOSS };
    for (name, got) in [("ce", ce), ("reg", regularization), ("loss", loss.clone())] {
        let expected = [file.scalar(&format!("{name}{suffix}"))];
        assert_close(name, &[scalar(got.inner())], &expected, tolerance, 0.0);
    }
    if !double {
        return;
    }
    let check_gradients = |loss: Tensor<1>, x: &Tensor<2>, head: &FourierHead, suffix: &str| {
        let gradients = loss.backward();
        let of = |name: &str| file.try_get(&format!("{name}{suffix}"));
        let grad_x = values(x.grad(&gradients).unwrap());
        let grad_weight = values(head.weight.val().grad(&gradients).unwrap());
        let grad_bias = values(head.bias.val().grad(&gradients).unwrap());
        if let (Some(x), Some(weight), Some(bias)) =
            (of("grad_x"), of("grad_weight"), of("grad_bias"))
        {
            check_scaled("grad_x", &grad_x, &x.values);
            check_scaled("grad_weight", &grad_weight, &weight.transposed().values);
            check_scaled("grad_bias", &grad_bias, &bias.values);
        }
    };
    check_gradients(loss, &x, &head, "");
    let x = file.get("x").tensor::<2>(&device, dtype).require_grad();
    let ce = cross_entropy(head.forward(x.clone()).logits, targets).mean();
    check_gradients(ce, &x, &head, "_ce");

    // The coefficients' own roughness, from the definition: Σ k²|c_k|².
    let (re, im) = (file.get("coeff_re"), file.get("coeff_im"));
    let by_definition: Vec<f64> = re
        .values
        .chunks(n + 1)
        .zip(im.values.chunks(n + 1))
        .map(|(re, im)| {
            (0..=n).map(|k| (k * k) as f64 * (re[k] * re[k] + im[k] * im[k])).sum::<f64>()
        })
        .collect();
    let coefficients =
        x.inner().matmul(head.weight.val().inner()) + head.bias.val().inner().unsqueeze::<2>();
    assert_close(
        "roughness",
        &values(fourier::roughness(coefficients)),
        &by_definition,
        DOUBLE,
        0.0,
    );
}

// ---------------------------------------------------------------- Atari Decision Transformer

#[test]
fn action_permutation() {
    let path = golden::folder().join("atari_action_permutation.json");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("absent: {}", path.display());
        return;
    };
    let json: Value = serde_json::from_str(&text).unwrap();
    let bins: Vec<usize> = json["ale_to_fourier"].as_array().unwrap().iter().map(integer).collect();
    assert_eq!(ActionOrder::atari().bin_of(), bins);
}

#[test]
fn atari_decision_transformers() {
    for weights in golden::files("dt_atari", "_weights.safetensors") {
        println!("checking {}", weights.display());
        let case = Case::read(&weights);
        let heads: Vec<&String> =
            case.expected.as_object().unwrap().keys().filter(|key| *key != "config").collect();
        assert!(!heads.is_empty());
        for head in heads {
            case.check_double(head);
            case.check_single(head);
        }
    }
}

struct Case {
    weights: Golden,
    inputs: Golden,
    outputs: Golden,
    expected: Value,
}

impl Case {
    fn read(weights: &Path) -> Self {
        let name = weights.file_name().unwrap().to_string_lossy().into_owned();
        let beside =
            |suffix: &str| weights.with_file_name(name.replace("_weights.safetensors", suffix));
        let text = fs::read_to_string(beside("_expected.json")).unwrap();
        Self {
            weights: Golden::read(weights),
            inputs: Golden::read(&beside("_inputs.safetensors")),
            outputs: Golden::read(&beside("_outputs.safetensors")),
            expected: serde_json::from_str(&text).unwrap(),
        }
    }

    fn number(&self, key: &str) -> f64 {
        self.expected["config"][key].as_f64().unwrap_or_else(|| panic!("config has no {key}"))
    }

    fn config(&self, head: &str) -> ModelConfig {
        let integer = |key| self.number(key) as usize;
        let n_actions = integer("vocab");
        ModelConfig {
            n_layers: integer("n_layer"),
            n_heads: integer("n_head"),
            d_model: integer("n_embd"),
            context_length: integer("context"),
            n_actions,
            max_timestep: integer("max_timestep"),
            dropout: 0.0,
            conditioning: Conditioning::Return,
            attention: AttentionConfig::Softmax,
            head: match head.strip_prefix("fourier") {
                None => HeadConfig::Linear,
                Some(frequencies) => HeadConfig::Fourier(FourierHeadConfig {
                    // γ is 0: the reference never adds its regulariser.
                    action_order: (n_actions == 18).then(ActionOrder::atari),
                    ..FourierHeadConfig::new(frequencies.parse().unwrap())
                }),
            },
        }
    }

    /// The model with the file's weights.
    fn model(&self, head: &str, dtype: DType) -> DecisionTransformer {
        let config = self.config(head);
        let device = Device::flex().autodiff();
        let model =
            DecisionTransformer::init(&config, &device, &mut seed::generator(0, "init")).unwrap();
        let theirs =
            self.published_arrays(head).map(|(name, array)| (name, array.data(dtype))).collect();
        weights::import(model, &published::import(&config, &theirs).unwrap()).unwrap()
    }

    /// Published names and weights of the model with this head.
    fn published_arrays(&self, head: &str) -> impl Iterator<Item = (String, &Array)> {
        let own = format!("{head}_head.");
        self.weights.iter().filter_map(move |(name, array)| match name.strip_prefix(&own) {
            Some(rest) => Some((format!("head.{rest}"), array)),
            None => (!name.contains("_head.")).then(|| (name.to_owned(), array)),
        })
    }

    /// The batch of step `s` of the file's training run.
    fn batch(&self, s: u64, dtype: DType) -> (Frames, Inputs) {
        let states = self.inputs.get("states_u8");
        let [rows, time] = [states.shape[0], states.shape[1]];
        let vocab = self.number("vocab");
        let actions: Vec<f64> =
            self.inputs.get("actions").values.iter().map(|a| (a + s as f64) % vocab).collect();
        let returns: Vec<f64> =
            self.inputs.get("rtgs").values.iter().map(|r| r + (s % 3) as f64).collect();
        let timesteps = self.inputs.get("timesteps").values.clone();
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
    ) -> (Frames, Inputs) {
        let device = Device::flex().autodiff();
        let pixels: Vec<u8> = states.iter().map(|&pixel| pixel as u8).collect();
        let ints = |values: &[f64]| values.iter().map(|&v| v as i32).collect::<Vec<_>>();
        let frames = Tensor::<4, Int>::from_data(
            TensorData::new(pixels, [rows * time, 4, 84, 84]),
            (&device, DType::U8),
        );
        let inputs = Inputs {
            actions: Tensor::from_data(TensorData::new(ints(actions), [rows, time]), &device),
            returns_to_go: Tensor::from_data(
                TensorData::new(returns.to_vec(), [rows, time]),
                (&device, dtype),
            ),
            global_timesteps: Tensor::from_data(TensorData::new(ints(timesteps), [rows]), &device),
            n_padding: vec![0; rows],
        };
        (Frames::Stacks(frames), inputs)
    }

    /// Reference logits are by bin; ours by environment action.
    fn by_action(&self, head: &str, logits: &[f64]) -> Vec<f64> {
        match self.config(head).head {
            HeadConfig::Fourier(FourierHeadConfig { action_order: Some(order), .. }) => logits
                .chunks(order.bin_of().len())
                .flat_map(|row| order.bin_of().iter().map(|&bin| row[bin]).collect::<Vec<_>>())
                .collect(),
            _ => logits.to_vec(),
        }
    }

    fn check_logits(&self, head: &str, key: &str, got: Tensor<3>, relative: f64, absolute: f64) {
        let expected = self.by_action(head, &self.outputs.get(key).values);
        assert_close(key, &values(got), &expected, relative, absolute);
    }

    fn check_double(&self, head: &str) {
        let dtype = DType::F64;
        let expected = &self.expected[head]["f64"];
        let model = self.model(head, dtype);
        let (frames, inputs) = self.batch(0, dtype);
        let prefix = format!("{head}/f64");
        let logits = model.logits(frames.clone(), &inputs);
        self.check_logits(head, &format!("{prefix}/logits"), logits, DOUBLE, 1e-12);

        let loss = model.loss(frames, &inputs, None);
        let value = scalar(loss.total.clone().inner());
        assert_close("loss", &[value], &[expected["loss"].as_f64().unwrap()], DOUBLE, 0.0);
        self.check_gradients(head, &model, loss.total.backward(), &expected["grad_norms"]);
        self.check_evaluation_style(head, &model, dtype);
        self.check_decay_groups(head, &model);

        let (trained, losses) = self.train(head, model, dtype);
        for (step, entry) in losses.iter().zip(expected["traj"].as_array().unwrap()) {
            let of = |key: &str| entry[key].as_f64().unwrap();
            assert_close("trajectory loss", &[step.0], &[of("loss")], DOUBLE, 0.0);
            assert_close("learning rate", &[step.1], &[of("lr_used")], 1e-12, 0.0);
            assert_close("gradient norm", &[step.2], &[of("grad_norm_before_clip")], 1e-8, 0.0);
        }
        let (frames, inputs) = self.batch(0, dtype);
        let last = scalar(trained.loss(frames.clone(), &inputs, None).total.inner());
        let expected_last = expected["final_loss_on_batch0"].as_f64().unwrap();
        assert_close("final loss", &[last], &[expected_last], 1e-8, 0.0);
        let logits = trained.logits(frames, &inputs);
        self.check_logits(head, &format!("{prefix}/final_logits"), logits, 1e-7, 1e-8);
    }

    fn check_single(&self, head: &str) {
        let dtype = DType::F32;
        let model = self.model(head, dtype);
        let (frames, inputs) = self.batch(0, dtype);
        let linear = head == "linear";
        // A Fourier head's logits lose digits at zeros of the density.
        let tolerance = if linear { SINGLE_LOGITS } else { 2e-4 };
        let logits = model.logits(frames.clone(), &inputs);
        self.check_logits(head, &format!("{head}/f32/logits"), logits, 0.0, tolerance);
        let expected = &self.expected[head]["f32"];
        let loss = scalar(model.loss(frames, &inputs, None).total.inner());
        assert_close("loss", &[loss], &[expected["loss"].as_f64().unwrap()], SINGLE_LOSS, 0.0);
        if linear {
            let (_, losses) = self.train(head, model, dtype);
            let trajectory = expected["traj"].as_array().unwrap();
            for (step, entry) in losses.iter().zip(trajectory).take(10) {
                let expected = [entry["loss"].as_f64().unwrap()];
                assert_close("f32 loss", &[step.0], &expected, SINGLE_TRAJECTORY, 0.0);
            }
        }
    }

    /// `(loss, learning rate, gradient norm)` of each step of the file's training run.
    fn train(
        &self,
        head: &str,
        mut model: DecisionTransformer,
        dtype: DType,
    ) -> (DecisionTransformer, Vec<(f64, f64, f64)>) {
        let betas = &self.expected["config"]["betas"];
        let mut adam = AdamW::new(AdamWConfig {
            beta_1: betas[0].as_f64().unwrap(),
            beta_2: betas[1].as_f64().unwrap(),
            epsilon: self.number("eps"),
            weight_decay: self.number("weight_decay"),
            clip_norm: self.number("clip"),
        });
        let schedule = Schedule {
            learning_rate: self.number("lr"),
            warmup_tokens: self.number("warmup_tokens"),
            final_tokens: self.number("final_tokens"),
        };
        let n_steps = self.expected[head]["f64"]["traj"].as_array().unwrap().len() as u64;
        let mut tokens = 0;
        let steps = (0..n_steps)
            .map(|s| {
                let (frames, inputs) = self.batch(s, dtype);
                let [rows, time] = inputs.actions.dims();
                let loss = model.loss(frames, &inputs, None).total;
                let value = scalar(loss.clone().inner());
                let rate = schedule.at(tokens);
                let (moved, norm) = adam.step(model.clone(), loss.backward(), rate);
                model = moved;
                tokens += (rows * time) as u64;
                (value, rate, scalar(norm))
            })
            .collect();
        (model, steps)
    }

    /// Calls as the reference makes them while playing: a growing context whose last step
    /// has no action yet, and the current timestep.
    fn check_evaluation_style(&self, head: &str, model: &DecisionTransformer, dtype: DType) {
        let states = self.inputs.get("states_u8");
        let time = states.shape[1];
        let frame_values: usize = states.shape[2..].iter().product();
        for (row, length, timestep) in [(0, 1, 0.0), (0, 3, 2.0), (1, time, 9.0)] {
            let key = format!("{head}/f64/eval_T{length}_logits");
            if self.outputs.try_get(&key).is_none() {
                println!("absent: {key}");
                continue;
            }
            let at = row * time;
            let pixels = &states.values[at * frame_values..(at + length) * frame_values];
            let returns = &self.inputs.get("rtgs").values[at..at + length];
            let passed = &self.inputs.get("actions").values[at..at + length];
            // With as many actions as states, the first is dropped; else all but the last.
            let known = if length == time { &passed[1..] } else { &passed[..length - 1] };
            let actions: Vec<f64> = known.iter().copied().chain([0.0]).collect();
            let (frames, inputs) =
                self.context(pixels, 1, length, &actions, returns, &[timestep], dtype);
            self.check_logits(head, &key, model.logits(frames, &inputs), DOUBLE, 1e-12);
        }
    }

    fn check_gradients(
        &self,
        head: &str,
        model: &DecisionTransformer,
        gradients: Gradients,
        norms: &Value,
    ) {
        let ours = export_gradients(model, gradients);
        let theirs = self.in_published_layout(head, &ours);
        for (name, norm) in norms.as_object().unwrap() {
            let got = theirs[name].iter().map(|g| g * g).sum::<f64>().sqrt();
            let expected = norm.as_f64().unwrap();
            // The key's bias has no effect on attention: its gradient is rounding alone.
            assert_close(name, &[got], &[expected], DOUBLE, 1e-13);
        }
        let prefix = format!("{head}/f64/grad::");
        for (key, array) in self.outputs.iter() {
            if let Some(name) = key.strip_prefix(&prefix) {
                check_scaled(key, &theirs[name], &array.values);
            }
        }
        let rows = self.outputs.get(&format!("{head}/f64/grad_rows::global_pos_emb"));
        let width = rows.shape[1];
        let timesteps = &self.inputs.get("timesteps").values;
        let got: Vec<f64> = timesteps
            .iter()
            .flat_map(|&t| &theirs["global_pos_emb"][t as usize * width..][..width])
            .copied()
            .collect();
        check_scaled("global_pos_emb rows", &got, &rows.values);
    }

    /// Our tensors, element by element in the published layout. The mapping is found by
    /// importing tensors whose values number their elements.
    fn in_published_layout(&self, head: &str, ours: &NamedTensors) -> BTreeMap<String, Vec<f64>> {
        let mut next = 0;
        let numbered: NamedTensors = self
            .published_arrays(head)
            .map(|(name, array)| {
                let ids: Vec<f64> = (next..next + array.values.len()).map(|i| i as f64).collect();
                next += ids.len();
                (name, TensorData::new(ids, array.shape.clone()))
            })
            .collect();
        let mut value_of = vec![0.0; next];
        for (name, ids) in published::import(&self.config(head), &numbered).unwrap() {
            for (id, value) in ids.iter::<f64>().zip(ours[&name].iter::<f64>()) {
                value_of[id as usize] = value;
            }
        }
        numbered
            .into_iter()
            .map(|(name, ids)| (name, ids.iter::<f64>().map(|id| value_of[id as usize]).collect()))
            .collect()
    }

    fn check_decay_groups(&self, head: &str, model: &DecisionTransformer) {
        let mut counts = [0.0, 0.0];
        for (name, tensor) in weights::export(model) {
            counts[usize::from(!decays(&name))] += tensor.num_elements() as f64;
        }
        // The reference's unused token embedding is not decayed either.
        counts[1] += self.weights.get("tok_emb.weight").values.len() as f64;
        let groups = &self.expected[head]["f64"]["param_groups"];
        let expected = [0, 1].map(|group| groups[group][1].as_f64().unwrap());
        assert_eq!(counts, expected, "elements with and without weight decay");
    }
}

fn export_gradients(model: &DecisionTransformer, gradients: Gradients) -> NamedTensors {
    struct Export {
        path: FieldPath,
        gradients: Gradients,
        tensors: NamedTensors,
    }
    impl ModuleVisitor for Export {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = param.val().grad(&self.gradients).expect("every parameter is used");
            self.tensors.insert(self.path.name(), gradient.into_data());
        }
        fn enter_module(&mut self, name: &str, container: &str) {
            self.path.enter(name, container);
        }
        fn exit_module(&mut self, _name: &str, container: &str) {
            self.path.exit(container);
        }
    }
    let mut visitor =
        Export { path: FieldPath::default(), gradients, tensors: NamedTensors::new() };
    model.visit(&mut visitor);
    visitor.tensors
}

/// Entries may differ by [`DOUBLE`] of the tensor's largest entry.
#[track_caller]
fn check_scaled(what: &str, got: &[f64], expected: &[f64]) {
    let scale = expected.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    assert_close(what, got, expected, 0.0, DOUBLE * scale.max(1e-9));
}

fn integer(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}
