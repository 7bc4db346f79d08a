//! A model's input: a batch of contexts.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::{head::ActedRows, inputs::Inputs};

/// Pixels of one frame, height and width.
pub const FRAME: usize = 84;
/// Frames in an observation.
pub const STACK: usize = 4;

/// Timesteps of a context at which the model predicts actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// All, for training.
    All,
    /// The newest, for acting.
    Newest,
}

/// The observations of a batch of contexts.
#[derive(Clone, Debug)]
pub enum Observed {
    /// `[batch, time + 3, 84, 84]`: 8-bit grey pixels, each frame once; the observation of step `t`
    /// is frames `t .. t + 4`. Or `[batch · time, 4, 84, 84]`: each observation for itself, oldest
    /// frame first.
    Frames(Tensor<4, Int>),
    /// `[batch, time, width]`: vectors, normalized with the training data's statistics.
    Vectors(Tensor<3>),
    /// `[batch, time, d_model]`: observations that the model's encoder has embedded already. A
    /// policy keeps them, so that it encodes each frame once.
    Embedded(Tensor<3>),
}

/// The actions of a batch of contexts. No prediction reads the newest action.
#[derive(Clone, Debug)]
pub enum Acted {
    /// `[batch, time]`: environment action ids.
    Discrete(Tensor<2, Int>),
    /// `[batch, time, width]`, in [-1, 1].
    Continuous(Tensor<3>),
}

impl Acted {
    /// Batch and time.
    pub fn dims(&self) -> [usize; 2] {
        match self {
            Self::Discrete(ids) => ids.dims(),
            Self::Continuous(numbers) => {
                let [batch, time, _] = numbers.dims();
                [batch, time]
            }
        }
    }

    /// Every action, context by context.
    pub fn rows(&self) -> ActedRows {
        match self {
            Self::Discrete(ids) => {
                let [batch, time] = ids.dims();
                ActedRows::Discrete(ids.clone().reshape([batch * time]))
            }
            Self::Continuous(numbers) => {
                let [batch, time, width] = numbers.dims();
                ActedRows::Continuous(numbers.clone().reshape([batch * time, width]))
            }
        }
    }

    /// The newest action of each context.
    pub fn newest(&self) -> ActedRows {
        let [_, time] = self.dims();
        match self {
            Self::Discrete(ids) => Self::Discrete(ids.clone().narrow(1, time - 1, 1)).rows(),
            Self::Continuous(numbers) => {
                Self::Continuous(numbers.clone().narrow(1, time - 1, 1)).rows()
            }
        }
    }
}

/// A batch of contexts, each `time` steps long. Padded places can contain any finite values.
#[derive(Clone, Debug)]
pub struct Contexts {
    /// The observation of each step.
    pub observations: Observed,
    /// The action of each step.
    pub actions: Acted,
    /// `[batch, time]`: the return from each step on, including that step's reward. In data and
    /// histories it is divided by the task's scale. A [conditioner](crate::conditioning) converts
    /// it to the unit of the model.
    pub returns_to_go: Tensor<2>,
    /// `[batch · time]`, on the host: each step's timestep in its episode, from 0.
    pub timesteps: Vec<i32>,
    /// Padded timesteps at the start of each context.
    pub n_padding: Vec<usize>,
    /// `[batch · time]`, on the host: the factor of each step's loss, at least 0. Empty: all are 1.
    pub step_weights: Vec<f32>,
    /// `[batch, time, actions]`: 0 for an allowed discrete action, else
    /// [`NOT_ALLOWED`](crate::head::NOT_ALLOWED); `None`: all are allowed.
    pub penalties: Option<Tensor<3>>,
    /// `[batch]`: the index of each context's [top percent](crate::conditioning::top_percent) in
    /// the model's list; `None` for a context that was drawn from all episodes. Empty: all were.
    pub top_percent_idx: Vec<Option<u8>>,
    /// What a model makes of the last four on the host, if it was sent to the device beforehand.
    /// They may be empty then.
    pub stored: Option<Stored>,
}

/// Values that depend on timesteps, padding and top percents, on the device: the part of a recorded
/// step's inputs that [`ModelConfig::send`](crate::ModelConfig::send) sends.
#[derive(Clone, Debug)]
pub struct Stored {
    /// `[batch · time]`: the weight of each timestep in the loss.
    pub weights: Tensor<1>,
    /// `[batch]`: the same of newest timesteps alone, if they are not equal (perceptron only).
    pub newest_weights: Option<Tensor<1>>,
    /// The same without contexts of a top percent, for a return model.
    pub return_weights: Option<Tensor<1>>,
    /// `[batch]`: the first token that is not padding (transformer only).
    pub first_token: Option<Tensor<1, Int>>,
    /// `[batch, time, 1]`: 1 at real timesteps, 0 at padding (perceptron only).
    pub real: Option<Tensor<3>>,
    /// `[batch · time]`: the row of each timestep in the model's table.
    pub timestep_rows: Option<Tensor<1, Int>>,
    /// `[batch]`: the row of each context in the model's table of positions in an episode.
    pub context_rows: Option<Tensor<1, Int>>,
    /// `[batch · tokens]`: the position of each token in its context, if there is padding.
    pub token_rows: Option<Tensor<1, Int>>,
    /// `[batch, time]`: factors of average returns.
    pub return_factors: Option<Tensor<2>>,
    /// `[batch, 1, 1 + top percents]`: 1 at what conditions a context, else 0.
    pub conditions: Option<Tensor<3>>,
    /// `[batch · time, 1]`: 1 in contexts that are conditioned on a return, else 0.
    pub has_return: Option<Tensor<2>>,
}

impl Stored {
    /// The values among the inputs of a step.
    pub fn of(inputs: &Inputs) -> Option<Self> {
        Some(Self {
            weights: inputs.floats("weights")?,
            newest_weights: inputs.floats("newest_weights"),
            return_weights: inputs.floats("return_weights"),
            first_token: inputs.ints("first_token"),
            real: inputs.floats("real"),
            timestep_rows: inputs.ints("timestep_rows"),
            context_rows: inputs.ints("context_rows"),
            token_rows: inputs.ints("token_rows"),
            return_factors: inputs.floats("return_factors"),
            conditions: inputs.floats("conditions"),
            has_return: inputs.floats("has_return"),
        })
    }
}

/// Timesteps, padding and top percents of contexts, on the host.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// As [`Contexts::timesteps`].
    pub timesteps: &'a [i32],
    /// As [`Contexts::n_padding`].
    pub n_padding: &'a [usize],
    /// As [`Contexts::step_weights`].
    pub step_weights: &'a [f32],
    /// As [`Contexts::top_percent_idx`].
    pub top_percent_idx: &'a [Option<u8>],
}

impl Places<'_> {
    /// Timesteps of a context.
    pub fn time(&self) -> usize {
        self.timesteps.len() / self.n_padding.len().max(1)
    }

    /// `[batch]`: the timestep of each context's first real place.
    pub fn first_timesteps(&self) -> Vec<i32> {
        let time = self.time();
        let rows = self.timesteps.chunks_exact(time).zip(self.n_padding);
        rows.map(|(row, &n_padding)| row[n_padding.min(time - 1)]).collect()
    }
}

/// The weights of timesteps in a loss, on the host: `factors / n_counted`.
///
/// The divisor is not the sum of the factors, which would cancel them in a batch of equal ones.
pub(crate) struct LossWeights {
    /// 0 for padding.
    pub factors: Vec<f32>,
    /// The number of factors above 0, at least 1.
    pub n_counted: f32,
}

impl LossWeights {
    /// The weights of all timesteps, `[batch · time]`, with these factors (empty: all 1).
    pub fn of_all(n_padding: &[usize], step_weights: &[f32], time: usize) -> Self {
        Self::of(real_mask(n_padding, time), step_weights.iter())
    }

    /// The weights of the newest timestep of each context, `[batch]`.
    pub fn of_newest(batch: usize, step_weights: &[f32]) -> Self {
        let time = (step_weights.len() / batch.max(1)).max(1);
        Self::of(vec![1.0; batch], step_weights.iter().skip(time - 1).step_by(time))
    }

    fn of<'a>(mut factors: Vec<f32>, step_weights: impl Iterator<Item = &'a f32>) -> Self {
        factors.iter_mut().zip(step_weights).for_each(|(factor, weight)| *factor *= weight);
        let n_counted = factors.iter().filter(|&&factor| factor > 0.0).count().max(1) as f32;
        Self { factors, n_counted }
    }

    /// The weights.
    pub fn on_host(self) -> impl Iterator<Item = f32> {
        self.factors.into_iter().map(move |factor| factor / self.n_counted)
    }

    fn on(self, device: &Device, dtype: DType) -> Tensor<1> {
        let factors = TensorData::from(&self.factors[..]);
        Tensor::from_data(factors, (device, dtype)) / f64::from(self.n_counted)
    }
}

impl Contexts {
    /// Batch and time.
    pub fn dims(&self) -> [usize; 2] {
        self.actions.dims()
    }

    /// The [penalties](Self::penalties) of all actions, context by context, or of the newest of each
    /// context: `[rows, actions]`.
    pub(crate) fn penalties_of(&self, steps: Steps) -> Option<Tensor<2>> {
        let penalties = self.penalties.clone()?;
        let [_, time, _] = penalties.dims();
        Some(match steps {
            Steps::All => penalties.flatten(0, 1),
            Steps::Newest => penalties.narrow(1, time - 1, 1).squeeze_dim::<2>(1),
        })
    }

    /// `[batch]`: the timestep of each context's first real place.
    pub fn first_timesteps(&self) -> Vec<i32> {
        let Self { timesteps, n_padding, step_weights, top_percent_idx, .. } = self;
        Places { timesteps, n_padding, step_weights, top_percent_idx }.first_timesteps()
    }

    /// The [weight of each timestep](Self::timestep_weights), 0 in contexts of a top percent, so
    /// that the mean is over all episodes: `[batch · time]`.
    pub fn return_weights(&self, device: &Device, dtype: DType) -> Tensor<1> {
        if let Some(Stored { return_weights: Some(weights), .. }) = &self.stored {
            return weights.clone();
        }
        let weights = self.timestep_weights(device, dtype);
        if self.top_percent_idx.iter().all(Option::is_none) {
            return weights;
        }
        let [_, time] = self.dims();
        let of_all = TensorData::new(of_all(&self.top_percent_idx, time), weights.dims());
        weights * Tensor::from_data(of_all, (device, dtype))
    }

    /// The weight of each timestep in the loss, `[batch · time]`: its
    /// [factor](Self::step_weights), divided by the number of real timesteps whose factor is above
    /// 0; zero for padding.
    pub fn timestep_weights(&self, device: &Device, dtype: DType) -> Tensor<1> {
        if let Some(stored) = &self.stored {
            return stored.weights.clone();
        }
        let [_, time] = self.dims();
        LossWeights::of_all(&self.n_padding, &self.step_weights, time).on(device, dtype)
    }

    /// The same in a loss of the newest timestep of each context, `[batch]`.
    pub fn newest_weights(&self, device: &Device, dtype: DType) -> Tensor<1> {
        if let Some(Stored { newest_weights: Some(weights), .. }) = &self.stored {
            return weights.clone();
        }
        let [batch, _] = self.dims();
        LossWeights::of_newest(batch, &self.step_weights).on(device, dtype)
    }
}

/// For each timestep of each context, `[batch · time]`: 1 if it was drawn from all episodes, 0 if
/// from a top percent.
pub(crate) fn of_all(top_percent_idx: &[Option<u8>], time: usize) -> Vec<f32> {
    top_percent_idx.iter().flat_map(|best| vec![f32::from(best.is_none()); time]).collect()
}

/// For each timestep of each context, `[batch · time]`: 1 if it is real, 0 if it is padding.
///
/// `n_padding` counts the padded timesteps at the start of each context.
pub fn real_mask(n_padding: &[usize], time: usize) -> Vec<f32> {
    n_padding.iter().flat_map(|&pad| (0..time).map(move |place| f32::from(place >= pad))).collect()
}

/// Timesteps of contexts with these first timesteps, `[batch · time]`; 0 in padded places.
pub fn timesteps_from(first: &[i32], n_padding: &[usize], time: usize) -> Vec<i32> {
    let row = |(&first, &n_padding): (&i32, &usize)| {
        (0..time).map(move |place| match place.checked_sub(n_padding) {
            Some(step) => first.saturating_add(step as i32),
            None => 0,
        })
    };
    first.iter().zip(n_padding).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_timesteps_have_equal_weights() {
        let device = Device::flex();
        let numbers = |tensor: Tensor<1>| tensor.into_data().iter().collect::<Vec<f32>>();
        let all = |n_padding: &[usize], step_weights: &[f32], time| {
            LossWeights::of_all(n_padding, step_weights, time)
        };
        let got = numbers(all(&[0, 2, 1], &[], 3).on(&device, DType::F64));
        let sixth = (1.0f64 / 6.0) as f32;
        assert_eq!(got, [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0].map(|x| x * sixth));
        assert_eq!(
            numbers(all(&[2], &[], 2).on(&device, DType::F32)),
            [0.0, 0.0],
            "all is padding"
        );
        // Three of five real timesteps count.
        let factors = [1.5, 0.0, 3.0, 9.0, 9.0, 0.0, 9.0, 6.0, 0.0];
        let weights: Vec<f32> = all(&[0, 2, 1], &factors, 3).on_host().collect();
        assert_eq!(weights, [0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
        let newest: Vec<f32> = LossWeights::of_newest(3, &factors).on_host().collect();
        assert_eq!(newest, [3.0, 0.0, 0.0]);
    }

    #[test]
    fn a_context_s_first_timestep_is_that_of_its_first_real_place() {
        let device = Device::flex();
        let contexts = Contexts {
            observations: Observed::Vectors(Tensor::zeros([2, 3, 1], &device)),
            actions: Acted::Discrete(Tensor::zeros([2, 3], &device)),
            returns_to_go: Tensor::zeros([2, 3], &device),
            timesteps: timesteps_from(&[7, 4], &[0, 1], 3),
            n_padding: vec![0, 1],
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        };
        assert_eq!(contexts.timesteps, [7, 8, 9, 0, 4, 5]);
        assert_eq!(contexts.first_timesteps(), [7, 4]);
    }
}
