//! [`Steps`]: a batch of single steps on the device, as input of value-based algorithms.

use std::borrow::Cow;

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::{Normalization, normalization};
use overtone_data::{Batch, BatchActions, BatchObservations, Transitions};
use overtone_model::{Inputs, Sections};
use overtone_train::StepFigures;

use super::network::constant_like;

/// Added to standard deviations of normalized observations, as in TD3+BC.
const DEVIATION: f32 = 1e-3;

/// Conversion of [normalized](Normalization::apply) observations to the inputs of a network.
///
/// Training and acting use the same conversion, so both see the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Rescaling {
    /// For each dimension; empty if nothing changes.
    factors_and_shifts: Vec<(f32, f32)>,
}

impl Rescaling {
    /// Conversion to `(o − mean) / (std + 1e-3)`, or back to the environment's own units. Without a
    /// normalization, observations do not change.
    pub fn new(normalization: Option<&Normalization>, is_normalized: bool) -> Self {
        let columns = normalization
            .into_iter()
            .flat_map(|normalization| normalization.mean.iter().zip(&normalization.std));
        let of_column = |(mean, std): (&f32, &f32)| {
            let divided_by = std + normalization::EPSILON;
            if is_normalized { (divided_by / (std + DEVIATION), 0.0) } else { (divided_by, *mean) }
        };
        Self { factors_and_shifts: columns.map(of_column).collect() }
    }

    /// Converts the observations of a batch in place; frames do not change.
    pub fn apply_to(&self, batch: &mut Batch) {
        let next = batch.transitions.as_mut().map(|next| &mut next.next_observations);
        for observations in std::iter::once(&mut batch.observations).chain(next) {
            if let BatchObservations::Vectors(rows) = observations {
                self.apply(rows);
            }
        }
    }

    /// Converts one or more rows in place.
    pub fn apply(&self, observations: &mut [f32]) {
        let width = self.factors_and_shifts.len().max(1);
        for row in observations.chunks_exact_mut(width) {
            for (x, (factor, shift)) in row.iter_mut().zip(&self.factors_and_shifts) {
                *x = *x * factor + shift;
            }
        }
    }
}

/// Steps without gradients. A step does not count if the data ends after it although the task has not
/// ended, because it has no target value, or if its weight is 0.
#[derive(Clone, Debug)]
pub struct Steps {
    /// `[n, observation]`
    pub observations: Tensor<2>,
    /// `[n, action]`, in [-1, 1].
    pub actions: Tensor<2>,
    /// `[n, 1]`, the rewards of the [`m`](overtone_data::Lookahead) steps, divided by the return scale.
    pub rewards: Tensor<2>,
    /// `[n, 1]`: 0 if the task ended with the last of them, else `γ^(m − 1)`.
    pub continues: Tensor<2>,
    /// `[n, observation]`, `m` steps later; undefined if the task ended.
    pub next_observations: Tensor<2>,
    /// `[n, action]`: the recorded action at the next observation.
    pub next_actions: Tensor<2>,
    /// `[n, 1]`, the factor of each step's loss; `None`: all are 1.
    pub step_weights: Option<Tensor<2>>,
    /// `[n, 1]`, `n` divided by the number of steps that count, or 0 for steps that do not; `None`: all
    /// count.
    pub counts: Option<Tensor<2>>,
}

/// The rows of a batch that count as [`Steps`].
struct Counting<'a> {
    batch: &'a Batch,
    transitions: &'a Transitions,
    rescaling: &'a Rescaling,
    rows: Vec<usize>,
}

impl<'a> Counting<'a> {
    /// # Panics
    /// When the batch has no transitions: a caller's bug.
    fn of(batch: &'a Batch, rescaling: &'a Rescaling) -> Self {
        let Some(transitions) = &batch.transitions else {
            panic!("the batches have no transitions")
        };
        let time = batch.context_length;
        let is_real = |row: usize| row % time + batch.n_real[row / time] as usize >= time;
        let counts = |row: usize| batch.step_weights.get(row).is_none_or(|&weight| weight > 0.0);
        let has_target = |row: usize| transitions.terminated[row] || transitions.next_is_known[row];
        let rows = (0..batch.batch * time)
            .filter(|&row| is_real(row) && counts(row) && has_target(row))
            .collect();
        Self { batch, transitions, rescaling, rows }
    }

    fn n_rows(&self) -> usize {
        self.batch.batch * self.batch.context_length
    }

    /// Name, numbers and rescaling of each column of all rows.
    fn columns(&self) -> [Column<'a>; 6] {
        let Self { batch, transitions, rescaling, .. } = *self;
        let column = |name, numbers| Column { name, numbers, rescaling: None };
        let observed = |name, observations| Column {
            name,
            numbers: Cow::Borrowed(vectors(observations)),
            rescaling: Some(rescaling),
        };
        [
            observed("observations", &batch.observations),
            column("actions", Cow::Borrowed(numbers(&batch.actions))),
            column("rewards", Cow::Borrowed(&transitions.rewards)),
            column("continues", Cow::Owned(transitions.continues())),
            observed("next_observations", &transitions.next_observations),
            column("next_actions", Cow::Borrowed(numbers(&transitions.next_actions))),
        ]
    }
}

/// Numbers of all rows of a batch.
struct Column<'a> {
    name: &'static str,
    numbers: Cow<'a, [f32]>,
    rescaling: Option<&'a Rescaling>,
}

impl Column<'_> {
    /// The numbers of these of all `n_rows` rows, and the width of a row.
    fn rows(&self, rows: impl Iterator<Item = usize>, n_rows: usize) -> (Vec<f32>, usize) {
        let width = self.numbers.len() / n_rows;
        let mut values = Vec::with_capacity(self.numbers.len());
        rows.for_each(|row| values.extend_from_slice(&self.numbers[row * width..][..width]));
        if let Some(rescaling) = self.rescaling {
            rescaling.apply(&mut values);
        }
        (values, width)
    }
}

impl Steps {
    /// The steps of all contexts of a batch that count; `None` if none does.
    ///
    /// # Panics
    /// When the batch has no transitions, or not vectors and continuous actions: a caller's bug.
    pub fn of(batch: &Batch, rescaling: &Rescaling, device: &Device) -> Option<Self> {
        let counting = Counting::of(batch, rescaling);
        let (n, n_rows) = (counting.rows.len(), counting.n_rows());
        if n == 0 {
            return None;
        }
        let matrix = |column: &Column<'_>| {
            let (values, width) = column.rows(counting.rows.iter().copied(), n_rows);
            Tensor::from_data(TensorData::new(values, [n, width]), device)
        };
        let columns = counting.columns();
        let [observations, actions, rewards, continues, next_observations, next_actions] =
            columns.each_ref().map(matrix);
        let step_weights = (!batch.step_weights.is_empty()).then(|| {
            let numbers = Cow::Borrowed(&batch.step_weights[..]);
            matrix(&Column { name: "step_weights", numbers, rescaling: None })
        });
        Some(Self {
            observations,
            actions,
            rewards,
            continues,
            next_observations,
            next_actions,
            step_weights,
            counts: None,
        })
    }

    /// Sends all steps of a batch for [`received`](Self::received), so that batches of one size have the
    /// same shapes. Returns the rows that count; if there is none, nothing was sent.
    ///
    /// # Panics
    /// As [`of`](Self::of).
    pub fn send(batch: &Batch, rescaling: &Rescaling, to: &mut Sections) -> Vec<usize> {
        let counting = Counting::of(batch, rescaling);
        let n = counting.n_rows();
        if counting.rows.is_empty() {
            return Vec::new();
        }
        for column in counting.columns() {
            let (values, width) = column.rows(0..n, n);
            to.floats(column.name, &[n, width], values);
        }
        let mut counts = vec![0.0; n];
        counting.rows.iter().for_each(|&row| counts[row] = n as f32 / counting.rows.len() as f32);
        to.floats("counts", &[n, 1], counts);
        if !batch.step_weights.is_empty() {
            to.floats("step_weights", &[n, 1], batch.step_weights.iter().copied());
        }
        counting.rows
    }

    /// Steps that were [sent](Self::send).
    ///
    /// # Panics
    /// When they were not sent.
    pub fn received(inputs: &Inputs) -> Self {
        let matrix = |name| inputs.plain_floats(name);
        let sent = |name| matrix(name).unwrap_or_else(|| panic!("{name} were not sent"));
        Self {
            observations: sent("observations"),
            actions: sent("actions"),
            rewards: sent("rewards"),
            continues: sent("continues"),
            next_observations: sent("next_observations"),
            next_actions: sent("next_actions"),
            step_weights: matrix("step_weights"),
            counts: Some(sent("counts")),
        }
    }

    /// The weight of each row in a mean, as a sum with these weights, `[n, 1]`; `None`: all are equal.
    pub fn weights(&self) -> Option<Tensor<2>> {
        let weights = match (&self.step_weights, &self.counts) {
            (Some(weights), Some(counts)) => weights.clone() * counts.clone(),
            (Some(factors), None) | (None, Some(factors)) => factors.clone(),
            (None, None) => return None,
        };
        let [n, _] = weights.dims();
        Some(weights / n as f64)
    }

    /// The mean of `rows` times the steps' weights, over the steps that count, `[1]`.
    ///
    /// # Shapes
    /// - `rows`: `[n, width]`
    pub fn mean(&self, rows: Tensor<2>) -> Tensor<1> {
        self.mean_of_counting(times(rows, &self.step_weights))
    }

    /// The mean of `rows` over the steps that count, without the steps' weights, `[1]`.
    pub fn mean_of_counting(&self, rows: Tensor<2>) -> Tensor<1> {
        times(rows, &self.counts).mean()
    }

    /// `R + γ^m (1 − done) v`, `[n, 1]`, from the values `v` of the next observations.
    pub fn returns(&self, next_values: Tensor<2>, gamma: f64) -> Tensor<2> {
        self.rewards.clone() + next_values * self.continues.clone() * gamma
    }
}

/// Figures of a step without any target: every row is the last one of a truncated episode.
pub fn nothing_learned(device: &Device, n_others: usize) -> StepFigures {
    let zero = || Tensor::zeros([1], device);
    let others = vec![Tensor::full([1], f32::NAN, device); n_others];
    StepFigures { loss: zero(), grad_norm: zero(), others }
}

/// A step's `grad_norm`; NaN if one of the `others`, each `[1]`, is not finite. The training loop
/// checks only the loss and this norm, and ends the run if one of them is not finite.
pub fn where_finite<const N: usize>(grad_norm: Tensor<1>, others: [Tensor<1>; N]) -> Tensor<1> {
    let others = others.into_iter();
    // `0 · x` is NaN if x is not finite, else a zero.
    others.fold(grad_norm, |norm, other| norm + other * 0.0)
}

fn times(rows: Tensor<2>, factors: &Option<Tensor<2>>) -> Tensor<2> {
    match factors {
        None => rows,
        Some(factors) => {
            let factors = constant_like(factors.clone(), &rows);
            rows * factors
        }
    }
}

fn vectors(observations: &BatchObservations) -> &[f32] {
    match observations {
        BatchObservations::Vectors(values) => values,
        BatchObservations::Frames { .. } => panic!("steps of vectors: checked before"),
    }
}

fn numbers(actions: &BatchActions) -> &[f32] {
    match actions {
        BatchActions::Continuous(values) => values,
        BatchActions::Discrete(_) => panic!("continuous actions: checked before"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rescaling_by_hand() {
        let normalization = Normalization { mean: vec![3.0, -1.0], std: vec![0.5, 0.0] };
        // The second dimension has no spread, so its value has no effect.
        let mut seen = [4.0, -0.999, 3.0, 7.0];
        normalization.apply(&mut seen);
        let (mut normalized, mut raw) = (seen, seen);
        Rescaling::new(Some(&normalization), true).apply(&mut normalized);
        Rescaling::new(Some(&normalization), false).apply(&mut raw);
        for (got, expected) in normalized.iter().zip([1.0 / 0.501, 0.0, 0.0, 0.0]) {
            assert!((got - expected).abs() < 1e-6, "{normalized:?}");
        }
        for (got, expected) in raw.iter().zip([4.0, -1.0, 3.0, -1.0]) {
            assert!((got - expected).abs() < 1e-6, "{raw:?}");
        }
        let mut same = [5.0];
        Rescaling::new(None, true).apply(&mut same);
        assert_eq!(same, [5.0]);
    }

    #[test]
    fn a_norm_stays_to_the_bit_where_the_others_are_finite() {
        let number = |x: f32| Tensor::<1>::from_data([x], &Device::flex());
        let norm = |others: [f32; 2]| {
            let norm: f32 = where_finite(number(0.1), others.map(number)).into_scalar();
            norm
        };
        assert_eq!(norm([-3.0, 1e30]).to_bits(), 0.1f32.to_bits());
        for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(norm([broken, 1.0]).is_nan() && norm([1.0, broken]).is_nan(), "{broken}");
        }
    }

    /// Three steps: one has a next step, one is truncated, one ends the task.
    fn batch(ended: [bool; 3], known: [bool; 3]) -> Batch {
        Batch {
            batch: 3,
            context_length: 1,
            n_real: vec![1; 3],
            observations: BatchObservations::Vectors(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            actions: BatchActions::Continuous(vec![0.1, 0.2, 0.3]),
            transitions: Some(Transitions {
                rewards: vec![10.0, 20.0, 30.0],
                discounts: vec![1.0; 3],
                terminated: ended.into(),
                next_is_known: known.into(),
                next_observations: BatchObservations::Vectors(vec![3.0, 4.0, 0.0, 0.0, 0.0, 0.0]),
                next_actions: BatchActions::Continuous(vec![0.2, 0.0, 0.0]),
                next_allowed_actions: Vec::new(),
            }),
            ..Batch::default()
        }
    }

    #[test]
    fn a_truncated_step_is_left_out() {
        let (device, same) = (Device::flex(), Rescaling::new(None, true));
        let ended = batch([false, false, true], [true, false, false]);
        let steps = Steps::of(&ended, &same, &device).unwrap();
        let values = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
        assert_eq!(values(steps.observations.clone()), [1.0, 2.0, 5.0, 6.0]);
        assert_eq!(values(steps.actions.clone()), [0.1, 0.3]);
        assert_eq!(values(steps.next_observations.clone()), [3.0, 4.0, 0.0, 0.0]);
        assert_eq!(values(steps.next_actions.clone()), [0.2, 0.0]);
        // 10 + 0.5 · 4, and nothing after the end.
        let next = Tensor::from_data([[4.0f32], [8.0]], &device);
        assert_eq!(values(steps.returns(next, 0.5)), [12.0, 30.0]);
        assert!(Steps::of(&batch([false; 3], [false; 3]), &same, &device).is_none());
    }
}
