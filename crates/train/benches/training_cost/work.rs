//! What is timed: models and random batches of the presets' sizes, and one training step.

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

    /// What a command line calls it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Atari => "atari",
            Self::Gym => "gym",
            Self::FourierFormer => "fourierformer",
        }
    }
}

/// What differs between the rows of a preset.
#[derive(Clone, Copy, PartialEq)]
pub enum Variant {
    Plain,
    FourierAttention,
    FourierHead,
}

impl Variant {
    pub const ALL: [Self; 3] = [Self::Plain, Self::FourierAttention, Self::FourierHead];

    /// What a command line calls it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::FourierAttention => "fourier-attention",
            Self::FourierHead => "fourier-head",
        }
    }

    fn attention(self) -> AttentionConfig {
        match self {
            Self::Plain | Self::FourierHead => AttentionConfig::Softmax,
            Self::FourierAttention => fourier_attention(),
        }
    }
}

/// A preset's model on batches of so many contexts.
#[derive(Clone, Copy)]
pub struct Work {
    pub preset: Preset,
    pub batch: usize,
}

impl Work {
    /// Takes one training step whenever it is called.
    pub fn training_step(self, variant: Variant) -> Box<dyn FnMut()> {
        let device = Device::flex().autodiff();
        match self.preset {
            Preset::Atari => Box::new(Atari::of(variant, self.batch).training_step()),
            Preset::Gym | Preset::FourierFormer => {
                let model = continuous_model(self.preset, variant, &device);
                let inputs = continuous_batch(&model.config, self.batch, &device);
                let loss = move |model: &ContinuousDecisionTransformer, dropout| {
                    model.loss(&inputs, Some(dropout)).total
                };
                Box::new(repeated(model, 1e-4, Decayed::Everything, loss))
            }
        }
    }

    /// The loss of a first step; without `dropout`, that of the whole model. Nothing is
    /// differentiated: the plain form would need gigabytes.
    pub fn loss(self, variant: Variant, form: Form, dropout: Option<u64>) -> f64 {
        let (device, dropout) = (Device::flex(), dropout.map(DropoutSeed));
        scalar(match self.preset {
            Preset::Atari => {
                let atari = Atari::of(variant, self.batch);
                let (frames, inputs) = atari.batch(&device);
                let model = DecisionTransformer { form, ..atari.model(&device) };
                model.loss(frames, &inputs, dropout).total
            }
            Preset::Gym | Preset::FourierFormer => {
                let model = continuous_model(self.preset, variant, &device);
                let inputs = continuous_batch(&model.config, self.batch, &device);
                let model = ContinuousDecisionTransformer { form, ..model };
                model.loss(&inputs, dropout).total
            }
        })
    }

    /// The plain variant's first weights, and its batch with all numbers as `f32`.
    pub fn numbers(self) -> (NamedTensors, NamedTensors) {
        let device = Device::flex();
        let (parameters, batch) = match self.preset {
            Preset::Atari => {
                let atari = Atari::of(Variant::Plain, self.batch);
                let (frames, inputs) = atari.batch(&device);
                let (Frames::Windows(frames) | Frames::Stacks(frames)) = frames;
                let batch = vec![
                    ("frames", frames.into_data()),
                    ("actions", inputs.actions.into_data()),
                    ("returns_to_go", inputs.returns_to_go.into_data()),
                    ("global_timesteps", inputs.global_timesteps.into_data()),
                ];
                (weights::export(&atari.model(&device)), batch)
            }
            Preset::Gym | Preset::FourierFormer => {
                let model = continuous_model(self.preset, Variant::Plain, &device);
                let inputs = continuous_batch(&model.config, self.batch, &device);
                let batch = vec![
                    ("observations", inputs.observations.into_data()),
                    ("actions", inputs.actions.into_data()),
                    ("returns_to_go", inputs.returns_to_go.into_data()),
                    ("timesteps", inputs.timesteps.into_data()),
                ];
                (weights::export(&model), batch)
            }
        };
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

/// The `atari` preset, whose sizes may be changed.
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
            Variant::Plain | Variant::FourierAttention => HeadConfig::Linear,
            Variant::FourierHead => fourier_head(FREQUENCIES),
        };
        Self { batch, context: 30, n_heads: 8, attention: variant.attention(), head }
    }

    /// Takes one training step whenever it is called.
    pub fn training_step(&self) -> impl FnMut() + use<> {
        let device = Device::flex().autodiff();
        let (frames, inputs) = self.batch(&device);
        let loss = move |model: &DecisionTransformer, dropout| {
            model.loss(frames.clone(), &inputs, Some(dropout)).total
        };
        repeated(self.model(&device), 0.1, Decayed::Matrices, loss)
    }

    fn model(&self, device: &Device) -> DecisionTransformer {
        let config = ModelConfig {
            n_layers: 6,
            n_heads: self.n_heads,
            d_model: 128,
            context_length: self.context,
            n_actions: 18,
            max_timestep: 4_000,
            dropout: 0.1,
            conditioning: Conditioning::Return,
            attention: self.attention,
            head: self.head.clone(),
        };
        let mut generator = seed::generator(1, "init");
        let model = DecisionTransformer::init(&config, device, &mut generator);
        model.expect("a model")
    }

    fn batch(&self, device: &Device) -> (Frames, Inputs) {
        let (batch, time) = (self.batch, self.context);
        let mut generator = seed::generator(7, "batch");
        let shape = [batch, time + STACK - 1, FRAME, FRAME];
        let pixels: Vec<u8> =
            (0..shape.iter().product::<usize>()).map(|_| generator.random()).collect();
        let actions: Vec<i32> = (0..batch * time).map(|_| generator.random_range(0..18)).collect();
        let frames = TensorData::new(pixels, shape);
        let frames = Tensor::<4, Int>::from_data(frames, (device, DType::U8));
        let timesteps = TensorData::new(vec![9i32; batch], [batch]);
        let inputs = Inputs {
            actions: Tensor::from_data(TensorData::new(actions, [batch, time]), device),
            returns_to_go: random([batch, time], &mut generator, device),
            global_timesteps: Tensor::from_data(timesteps, device),
            n_padding: vec![0; batch],
        };
        (Frames::Windows(frames), inputs)
    }
}

/// The Atari Fourier head.
pub fn fourier_head(frequencies: usize) -> HeadConfig {
    HeadConfig::Fourier(FourierHeadConfig {
        gamma: 1e-6,
        action_order: Some(ActionOrder::atari()),
        ..FourierHeadConfig::new(frequencies)
    })
}

/// The FourierFormer paper's attention: power 4, one `R` a layer.
pub fn fourier_attention() -> AttentionConfig {
    AttentionConfig::Fourier(FourierAttentionConfig {
        power: 4,
        r: RShape::Scalar,
        initial: 1.0,
        epsilon: 0.0,
    })
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
