//! [`Steps`]: a batch of single steps on the device, as input of value-based algorithms.

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::{Normalization, normalization};
use overtone_data::{Batch, BatchActions, BatchObservations};
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

/// Steps without gradients. A step is left out if the data ends after it although the task has not
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
    /// `[n, 1]`, the factor of each step's loss, above 0; `None`: all are 1.
    pub step_weights: Option<Tensor<2>>,
}

impl Steps {
    /// The steps of all contexts of a batch; `None` if all are left out.
    ///
    /// # Panics
    /// When the batch has no transitions, or not vectors and continuous actions: a caller's bug.
    pub fn of(batch: &Batch, rescaling: &Rescaling, device: &Device) -> Option<Self> {
        let Some(transitions) = &batch.transitions else {
            panic!("the batches have no transitions")
        };
        let time = batch.context_length;
        let is_real = |row: usize| row % time + batch.n_real[row / time] as usize >= time;
        let continues = |row: usize| transitions.next_is_known[row];
        let counts = |row: usize| batch.step_weights.get(row).is_none_or(|&weight| weight > 0.0);
        let has_target = |row: usize| transitions.terminated[row] || continues(row);
        let kept: Vec<usize> = (0..batch.batch * time)
            .filter(|&row| is_real(row) && counts(row) && has_target(row))
            .collect();
        if kept.is_empty() {
            return None;
        }
        let rows = batch.batch * time;
        let matrix = |values: &[f32], rescaling: Option<&Rescaling>| {
            let width = values.len() / rows;
            let mut rows = Vec::with_capacity(kept.len() * width);
            kept.iter().for_each(|&row| rows.extend_from_slice(&values[row * width..][..width]));
            if let Some(rescaling) = rescaling {
                rescaling.apply(&mut rows);
            }
            Tensor::from_data(TensorData::new(rows, [kept.len(), width]), device)
        };
        let continues = transitions.continues();
        Some(Self {
            observations: matrix(vectors(&batch.observations), Some(rescaling)),
            actions: matrix(numbers(&batch.actions), None),
            rewards: matrix(&transitions.rewards, None),
            continues: matrix(&continues, None),
            next_observations: matrix(vectors(&transitions.next_observations), Some(rescaling)),
            next_actions: matrix(numbers(&transitions.next_actions), None),
            step_weights: (!batch.step_weights.is_empty())
                .then(|| matrix(&batch.step_weights, None)),
        })
    }

    /// The mean of `rows` times the steps' weights, `[1]`.
    ///
    /// # Shapes
    /// - `rows`: `[n, width]`
    pub fn mean(&self, rows: Tensor<2>) -> Tensor<1> {
        match &self.step_weights {
            None => rows.mean(),
            Some(weights) => {
                let weights = constant_like(weights.clone(), &rows);
                (rows * weights).mean()
            }
        }
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
    use overtone_data::Transitions;

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
