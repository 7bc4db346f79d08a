//! The Decision Transformer on Gym.

use burn::tensor::{DType, Device};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{
    Acted, ContextShape, Contexts, DecisionTransformer, DecisionTransformerConfig, History, Init,
    Model, Observed, PositionsConfig, PreviousActions, Steps, decision_transformer::Form,
    published, weights,
};
use overtone_testkit::{
    assert_close,
    golden::{self, Array},
};
use overtone_train::{Decayed, Schedule, optimizer::scalar};

use crate::{
    DOUBLE, SINGLE_LOGITS, SINGLE_LOSS, SINGLE_TRAJECTORY,
    case::{
        Case, Step, check_gradients, check_norms, check_trajectory, in_published_layout, train,
    },
};

#[test]
fn gym_decision_transformers() {
    for weights in golden::files("dt_gym", "_weights.safetensors") {
        println!("checking {}", weights.display());
        let case = Gym(Case::read(&weights));
        case.check_double();
        for form in [Form::Auto, Form::Reference] {
            case.check_single(form);
        }
    }
}

struct Gym(Case);

impl Gym {
    fn config(&self) -> DecisionTransformerConfig {
        let horizon = self.0.integer("max_ep_len");
        DecisionTransformerConfig {
            n_layers: self.0.integer("n_layer"),
            n_heads: self.0.integer("n_head"),
            d_model: self.0.integer("hidden"),
            context_length: self.0.integer("K"),
            positions: PositionsConfig::Timestep { horizon, std: 1.0 },
            dropout: 0.0,
            ..DecisionTransformerConfig::gym(horizon)
        }
    }

    /// The model with the file's weights.
    fn model(&self, dtype: DType, form: Form) -> DecisionTransformer {
        let config = self.config();
        let device = Device::flex().autodiff();
        let mut generator = seed::generator(0, "init");
        let observations = ObservationSpace::Vectors { width: self.0.integer("state_dim") };
        let actions = ActionSpace::unit(self.0.integer("act_dim"));
        let init = &mut Init::drawn(&device, &mut generator);
        let model = DecisionTransformer::init(&config, &observations, &actions, init).unwrap();
        let theirs = self.published_arrays().map(|(name, array)| (name, array.data(dtype)));
        let ours = published::gym(&config, &theirs.collect()).unwrap();
        let model = weights::import(model, &ours).unwrap();
        DecisionTransformer { form, ..model }
    }

    fn published_arrays(&self) -> impl Iterator<Item = (String, &Array)> {
        self.0.weights.iter().map(|(name, array)| (name.to_owned(), array))
    }

    /// Padded timesteps of each context; the file's mask is 1 where a timestep is real.
    fn n_padding(&self) -> Vec<usize> {
        let mask = self.0.inputs.get("mask");
        let padding = |row: &[f64]| row.iter().filter(|&&real| real == 0.0).count();
        mask.values.chunks(mask.shape[1]).map(padding).collect()
    }

    /// The batch of step `s` of the file's training run: the actions of real timesteps, one after
    /// the other, shifted by `s` places.
    fn batch(&self, s: usize, dtype: DType) -> Contexts {
        let device = Device::flex().autodiff();
        let inputs = &self.0.inputs;
        let actions = inputs.get("actions");
        let width = actions.shape[2];
        let rows: Vec<&[f64]> = actions.values.chunks(width).collect();
        let mask = &inputs.get("mask").values;
        let real: Vec<usize> = (0..rows.len()).filter(|&row| mask[row] == 1.0).collect();
        let mut moved = rows.clone();
        for (i, &row) in real.iter().enumerate() {
            moved[real[(i + s) % real.len()]] = rows[row];
        }
        let actions = Array { values: moved.concat(), ..actions.clone() };
        Contexts {
            observations: Observed::Vectors(inputs.get("states").tensor(&device, dtype)),
            actions: Acted::Continuous(actions.tensor(&device, dtype)),
            returns_to_go: inputs
                .get("returns_to_go")
                .tensor::<3>(&device, dtype)
                .squeeze_dim::<2>(2),
            timesteps: inputs.get("timesteps").values.iter().map(|&t| t as i32).collect(),
            n_padding: self.n_padding(),
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        }
    }

    /// The actions predicted for the real timesteps of the first batch, against `key`.
    fn check_predictions(
        &self,
        model: &DecisionTransformer,
        key: &str,
        (relative, absolute): (f64, f64),
    ) {
        let dtype = model.blocks[0].norm_1_weight.val().dtype();
        let hidden = model.hidden(&self.batch(0, dtype), Steps::All, None);
        let [batch, time, d_model] = hidden.dims();
        let hidden = hidden.reshape([batch * time, d_model]);
        let got = model.head.decide(hidden).numbers().unwrap().modes();
        let expected = &self.0.outputs.get(key).values;
        let width = model.actions.size();
        for (row, &real) in self.0.inputs.get("mask").values.iter().enumerate() {
            let numbers = row * width..(row + 1) * width;
            if real == 1.0 {
                assert_close(key, &got[numbers.clone()], &expected[numbers], relative, absolute);
            }
        }
    }

    fn check_double(&self) {
        let dtype = DType::F64;
        let expected = &self.0.expected["f64"];
        let model = self.model(dtype, Form::Auto);
        self.check_predictions(&model, "f64/action_preds", (DOUBLE, 1e-12));

        let loss = model.loss(&self.batch(0, dtype), None);
        let value = scalar(loss.total.clone().inner());
        assert_close("loss", &[value], &[expected["loss"].as_f64().unwrap()], DOUBLE, 0.0);
        let gradients = weights::export_gradients(&model, &loss.total.backward());
        let in_published_layout = |ours: &weights::NamedTensors| {
            let import = |theirs: &_| published::gym(&self.config(), theirs);
            in_published_layout(self.published_arrays(), import, ours)
        };
        let theirs = in_published_layout(&gradients);
        check_norms(&theirs, expected["grad_norms"].as_object().unwrap());
        check_gradients(&theirs, &self.0.outputs, "f64/grad::");
        self.check_acting(&model, 1e-6);

        let (trained, steps) = self.train(model, dtype);
        check_trajectory(&steps, &expected["traj"]);
        let last = scalar(trained.loss(&self.batch(0, dtype), None).total.inner());
        let expected_last = expected["final_loss"].as_f64().unwrap();
        assert_close("final loss", &[last], &[expected_last], 1e-8, 0.0);
        self.check_predictions(&trained, "f64/final_action_preds", (1e-7, 1e-8));
        let theirs = in_published_layout(&weights::export(&trained));
        let unused = expected["no_grad_params"].as_array().unwrap();
        let norms = expected["final_param_norms"].as_object().unwrap().iter();
        check_norms(&theirs, norms.filter(|(name, _)| !unused.contains(&(*name).clone().into())));
    }

    fn check_single(&self, form: Form) {
        let dtype = DType::F32;
        let expected = &self.0.expected["f32"];
        let model = self.model(dtype, form);
        self.check_predictions(&model, "f32/action_preds", (0.0, SINGLE_LOGITS));
        self.check_acting(&model, SINGLE_LOGITS);
        let loss = scalar(model.loss(&self.batch(0, dtype), None).total.inner());
        assert_close("loss", &[loss], &[expected["loss"].as_f64().unwrap()], SINGLE_LOSS, 0.0);

        let (trained, steps) = self.train(model, dtype);
        for (step, entry) in steps.iter().zip(expected["traj"].as_array().unwrap()) {
            let expected = [entry["loss"].as_f64().unwrap()];
            assert_close("f32 loss", &[step.loss], &expected, SINGLE_TRAJECTORY, 0.0);
        }
        self.check_predictions(&trained, "f32/final_action_preds", (0.0, SINGLE_LOGITS));
    }

    /// Calls as in the reference's evaluation: the first two steps of the first context with zeros
    /// for actions, and all four with the recorded actions.
    fn check_acting(&self, model: &DecisionTransformer, absolute: f64) {
        let single = |name: &str, n: usize| -> Vec<f32> {
            self.0.inputs.get(name).values[..n].iter().map(|&x| x as f32).collect()
        };
        let (wide, narrow) = (model.observations.size(), model.actions.size());
        let timesteps = single("timesteps", model.config.context_length);
        let call = |n: usize, actions: Vec<f32>| {
            let (observations, returns) = (single("states", n * wide), single("returns_to_go", n));
            (observations, actions, returns, timesteps[n - 1] as usize)
        };
        let calls = [call(2, vec![0.0; narrow]), call(4, single("actions", 3 * narrow))];
        let expected: Vec<f64> = ["f32/get_action_len2", "f32/get_action_len4"]
            .into_iter()
            .flat_map(|key| self.0.outputs.get(key).values.clone())
            .collect();
        let histories = calls.each_ref().map(|(observations, actions, returns_to_go, timestep)| {
            let actions = PreviousActions::Continuous(actions);
            History { observations, actions, returns_to_go, timestep: *timestep }
        });
        // Both agents at once: the shorter history is padded.
        let model = Model::Transformer(model.clone());
        let modes = |histories: &[History<'_>]| {
            let (observations, actions) = model.spaces();
            let context_length = model.context_length();
            let shape = ContextShape { context_length, observations, actions };
            let (device, dtype) = model.device();
            let contexts = Contexts::of_histories(histories, shape, None, (&device, dtype));
            model.decide(&contexts).numbers().unwrap().modes()
        };
        let both = modes(&histories);
        assert_close("actions of both", &both, &expected, 0.0, absolute);
        for (history, expected) in histories.into_iter().zip(expected.chunks(narrow)) {
            let alone = modes(&[history]);
            assert_close("action", &alone, expected, 0.0, absolute);
        }
    }

    /// The file's training run.
    fn train(&self, model: DecisionTransformer, dtype: DType) -> (DecisionTransformer, Vec<Step>) {
        let schedule = Schedule::Constant {
            learning_rate: self.0.number("lr"),
            warmup_updates: self.0.number("warmup_steps"),
        };
        let n_steps = self.0.expected["f64"]["traj"].as_array().unwrap().len();
        let n_labels = self.0.inputs.get("mask").values.iter().sum::<f64>() as usize;
        train(model, self.0.adam(Decayed::Everything), schedule, n_steps, |model, step| {
            (model.loss(&self.batch(step, dtype), None).total, n_labels)
        })
    }
}
