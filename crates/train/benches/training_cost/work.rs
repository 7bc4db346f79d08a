//! The timed work: models and random batches of the presets' sizes, and one training step.

use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use overtone_core::{
    ActionSpace, ObservationSpace,
    seed::{self, Generator},
};
use overtone_model::{
    Acted, AttentionConfig, Contexts, DecisionTransformer, DecisionTransformerConfig, DropoutSeed,
    FourierKernel, HeadConfig, Init, Observed, RShape,
    contexts::{FRAME, STACK, timesteps_from},
    decision_transformer::Form,
    head::{ActionOrder, FourierHeadConfig, FourierLikelihoodConfig, LinearConfig, TanhConfig},
    weights::{self, NamedTensors},
};
use overtone_train::{AdamW, AdamWConfig, Decayed, optimizer::scalar};
use rand::RngExt;

/// Frequencies of the Fourier heads: the paper's best on Seaquest.
const FREQUENCIES: usize = 14;

/// Sizes of a model and of its contexts.
#[derive(Clone, Copy, PartialEq)]
pub enum Preset {
    /// 6 layers, 8 heads, width 128, 30 timesteps, 18 actions.
    Atari,
    /// 3 layers, 1 head, width 128, 20 timesteps.
    Gym,
    /// 3 layers, 4 heads, width 256, 20 timesteps.
    FourierFormer,
}

impl Preset {
    pub const ALL: [Self; 3] = [Self::Atari, Self::Gym, Self::FourierFormer];

    /// Its name on the command line.
    pub fn key(self) -> &'static str {
        match self {
            Self::Atari => "atari",
            Self::Gym => "gym",
            Self::FourierFormer => "fourierformer",
        }
    }
}

/// The difference between the rows of a preset.
#[derive(Clone, Copy, PartialEq)]
pub enum Variant {
    Plain,
    FourierAttention,
    FourierHead,
}

impl Variant {
    pub const ALL: [Self; 3] = [Self::Plain, Self::FourierAttention, Self::FourierHead];

    /// Its name on the command line.
    pub fn key(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::FourierAttention => "fourier-attention",
            Self::FourierHead => "fourier-head",
        }
    }

    fn attention(self) -> AttentionConfig {
        match self {
            Self::Plain | Self::FourierHead => AttentionConfig::SOFTMAX,
            Self::FourierAttention => fourier_attention(),
        }
    }
}

/// A preset's model with batches of a fixed number of contexts.
#[derive(Clone, Copy)]
pub struct Work {
    pub preset: Preset,
    pub batch: usize,
}

impl Work {
    /// A closure that takes one training step.
    pub fn training_step(self, variant: Variant) -> Box<dyn FnMut()> {
        let device = Device::flex().autodiff();
        match self.preset {
            Preset::Atari => Box::new(Atari::of(variant, self.batch).training_step()),
            Preset::Gym | Preset::FourierFormer => {
                let model = continuous_model(self.preset, variant, &device);
                let contexts = continuous_batch(&model, self.batch, &device);
                let loss = move |model: &DecisionTransformer, dropout| {
                    model.loss(&contexts, Some(dropout)).total
                };
                Box::new(repeated(model, 1e-4, Decayed::Everything, loss))
            }
        }
    }

    /// The loss of a first step; without `dropout`, the loss of the whole model. No gradient is
    /// computed, because the plain form would need gigabytes.
    pub fn loss(self, variant: Variant, form: Form, dropout: Option<u64>) -> f64 {
        let device = Device::flex();
        let dropout = dropout.map(|seed| DropoutSeed::new(seed, &device));
        scalar(match self.preset {
            Preset::Atari => {
                let atari = Atari::of(variant, self.batch);
                let model = DecisionTransformer { form, ..atari.model(&device) };
                model.loss(&atari.batch(&device), dropout).total
            }
            Preset::Gym | Preset::FourierFormer => {
                let model = continuous_model(self.preset, variant, &device);
                let contexts = continuous_batch(&model, self.batch, &device);
                let model = DecisionTransformer { form, ..model };
                model.loss(&contexts, dropout).total
            }
        })
    }

    /// The plain variant's initial weights, and its batch with all numbers as `f32`.
    pub fn numbers(self) -> (NamedTensors, NamedTensors) {
        let device = Device::flex();
        let (model, contexts) = match self.preset {
            Preset::Atari => {
                let atari = Atari::of(Variant::Plain, self.batch);
                (atari.model(&device), atari.batch(&device))
            }
            Preset::Gym | Preset::FourierFormer => {
                let model = continuous_model(self.preset, Variant::Plain, &device);
                let contexts = continuous_batch(&model, self.batch, &device);
                (model, contexts)
            }
        };
        let parameters = weights::export(&model);
        let first = contexts.first_timesteps();
        let global = TensorData::new(first, [self.batch]);
        let timesteps = TensorData::new(contexts.timesteps.clone(), contexts.dims());
        let observations = match contexts.observations {
            Observed::Frames(frames) => ("frames", frames.into_data()),
            Observed::Vectors(vectors) | Observed::Embedded(vectors) => {
                ("observations", vectors.into_data())
            }
        };
        let batch = [
            observations,
            match contexts.actions {
                Acted::Discrete(ids) => ("actions", ids.into_data()),
                Acted::Continuous(numbers) => ("actions", numbers.into_data()),
            },
            ("returns_to_go", contexts.returns_to_go.into_data()),
            match self.preset {
                Preset::Atari => ("global_timesteps", global),
                Preset::Gym | Preset::FourierFormer => ("timesteps", timesteps),
            },
        ];
        let batch = batch.into_iter().map(|(name, data)| (name.into(), data.convert::<f32>()));
        (parameters, batch.collect())
    }
}

fn repeated<M: Module>(
    mut model: M,
    weight_decay: f64,
    decayed: Decayed,
    loss: impl Fn(&M, DropoutSeed) -> Tensor<1>,
) -> impl FnMut() {
    let mut adam =
        AdamW::new(AdamWConfig { beta_2: 0.95, weight_decay, decayed, ..AdamWConfig::default() });
    let device = Device::flex().autodiff();
    move || {
        let loss = loss(&model, DropoutSeed::new(adam.n_steps(), &device));
        let value = scalar(loss.clone().inner());
        let (moved, norm) = adam.step(model.clone(), loss.backward(), 1e-4);
        assert!(value.is_finite() && scalar(norm).is_finite());
        model = moved;
    }
}

/// The `atari` preset, with sizes that can be changed.
#[derive(Clone)]
pub struct Atari {
    pub batch: usize,
    pub context: usize,
    pub n_heads: usize,
    pub attention: AttentionConfig,
    pub head: HeadConfig,
}

impl Atari {
    pub fn of(variant: Variant, batch: usize) -> Self {
        let head = match variant {
            Variant::Plain | Variant::FourierAttention => HeadConfig::Linear(LinearConfig {}),
            Variant::FourierHead => fourier_head(FREQUENCIES),
        };
        Self { batch, context: 30, n_heads: 8, attention: variant.attention(), head }
    }

    /// A closure that takes one training step.
    pub fn training_step(&self) -> impl FnMut() + use<> {
        let device = Device::flex().autodiff();
        let contexts = self.batch(&device);
        let loss =
            move |model: &DecisionTransformer, dropout| model.loss(&contexts, Some(dropout)).total;
        repeated(self.model(&device), 0.1, Decayed::Matrices, loss)
    }

    fn model(&self, device: &Device) -> DecisionTransformer {
        let config = DecisionTransformerConfig {
            n_heads: self.n_heads,
            context_length: self.context,
            attention: self.attention,
            head: self.head.clone(),
            ..DecisionTransformerConfig::atari(4_000)
        };
        let observations = ObservationSpace::Pixels { shape: vec![STACK, FRAME, FRAME] };
        model(&config, &observations, &ActionSpace::numbered(18), device)
    }

    fn batch(&self, device: &Device) -> Contexts {
        let (batch, time) = (self.batch, self.context);
        let mut generator = seed::generator(7, "batch");
        let shape = [batch, time + STACK - 1, FRAME, FRAME];
        let pixels: Vec<u8> =
            (0..shape.iter().product::<usize>()).map(|_| generator.random()).collect();
        let actions: Vec<i32> = (0..batch * time).map(|_| generator.random_range(0..18)).collect();
        let frames = TensorData::new(pixels, shape);
        let frames = Tensor::<4, Int>::from_data(frames, (device, DType::U8));
        let actions = Tensor::from_data(TensorData::new(actions, [batch, time]), device);
        let n_padding = vec![0; batch];
        Contexts {
            observations: Observed::Frames(frames),
            actions: Acted::Discrete(actions),
            returns_to_go: random([batch, time], &mut generator, device),
            timesteps: timesteps_from(&vec![9; batch], &n_padding, time),
            n_padding,
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        }
    }
}

/// The Atari Fourier head.
pub fn fourier_head(frequencies: usize) -> HeadConfig {
    HeadConfig::Fourier(FourierHeadConfig {
        gamma: 1e-6,
        action_order: ActionOrder::atari().into(),
        ..FourierHeadConfig::new(frequencies)
    })
}

/// The FourierFormer paper's attention: power 4, one `R` per layer.
pub fn fourier_attention() -> AttentionConfig {
    AttentionConfig::Fourier(FourierKernel {
        power: 4,
        r: RShape::Scalar,
        initial: 1.0,
        epsilon: 0.0,
    })
}

/// Sizes of HalfCheetah's observations and actions.
fn continuous_model(preset: Preset, variant: Variant, device: &Device) -> DecisionTransformer {
    let base = match preset {
        // The sizes of Nguyen et al. (2022, appendix A.4) on Gym's locomotion tasks.
        Preset::FourierFormer => DecisionTransformerConfig {
            n_heads: 4,
            d_model: 256,
            ..DecisionTransformerConfig::gym(1000)
        },
        Preset::Atari | Preset::Gym => DecisionTransformerConfig::gym(1000),
    };
    let head = match variant {
        Variant::Plain | Variant::FourierAttention => HeadConfig::Tanh(TanhConfig {}),
        Variant::FourierHead => {
            let plain = FourierLikelihoodConfig::new(FREQUENCIES);
            HeadConfig::FourierLikelihood(FourierLikelihoodConfig { gamma: 1e-6, ..plain })
        }
    };
    let config = DecisionTransformerConfig { attention: variant.attention(), head, ..base };
    model(&config, &ObservationSpace::Vectors { width: 17 }, &ActionSpace::unit(6), device)
}

fn model(
    config: &DecisionTransformerConfig,
    observations: &ObservationSpace,
    actions: &ActionSpace,
    device: &Device,
) -> DecisionTransformer {
    let mut generator = seed::generator(1, "init");
    let init = &mut Init::drawn(device, &mut generator);
    DecisionTransformer::init(config, observations, actions, init).expect("a model")
}

fn continuous_batch(model: &DecisionTransformer, batch: usize, device: &Device) -> Contexts {
    let time = model.config.context_length;
    let mut generator = seed::generator(7, "batch");
    let timesteps: Vec<i32> =
        (0..batch).flat_map(|row| (0..time).map(move |step| (15 * row + step) as i32)).collect();
    let mut random = |width: usize| random([batch, time, width], &mut generator, device);
    Contexts {
        observations: Observed::Vectors(random(model.observations.size())),
        actions: Acted::Continuous(random(model.actions.size())),
        returns_to_go: random(1).squeeze_dim::<2>(2),
        timesteps,
        n_padding: vec![0; batch],
        step_weights: Vec::new(),
        penalties: None,
        top_percent_idx: Vec::new(),
        stored: None,
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
