//! The agents' histories of their episodes, as a batch of contexts.

use burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_core::{ActionSpace, ObservationSpace, Window};

use crate::contexts::{Acted, Contexts, Observed};

/// Form of a model's contexts.
#[derive(Clone, Copy, Debug)]
pub struct ContextShape<'a> {
    /// Number of timesteps that the model sees.
    pub context_length: usize,
    /// The form of the observations.
    pub observations: &'a ObservationSpace,
    /// The form of the actions.
    pub actions: &'a ActionSpace,
}

/// One agent's episode up to the observation that it must act on, or the end of it. Of a longer
/// episode, the model sees the last `context_length` timesteps.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    /// `[n, width]`, normalized with the training data's statistics; empty for pixel observations,
    /// which are passed embedded.
    pub observations: &'a [f32],
    /// The previous actions; the action at the last observation is not known yet.
    pub actions: PreviousActions<'a>,
    /// `[n]`, divided by the task's scale, as in the training data.
    pub returns_to_go: &'a [f32],
    /// The timestep of the last observation in its episode, from 0; at least `n - 1`.
    pub timestep: usize,
}

/// Previous actions.
#[derive(Clone, Copy, Debug)]
pub enum PreviousActions<'a> {
    /// `[n - 1]` environment action ids.
    Discrete(&'a [i32]),
    /// `[n - 1, width]` numbers in [-1, 1].
    Continuous(&'a [f32]),
}

impl Contexts {
    /// One context for each agent, as long as the longest history; shorter ones are padded in
    /// front. `embedded` are observations that the model's encoder has embedded already,
    /// `[agents, time, d_model]`.
    ///
    /// The unknown newest action is zero, as in the references; no prediction reads it.
    ///
    /// # Panics
    /// When there is no history, or a history is empty, inconsistent, or does not fit the model: a
    /// caller's bug.
    pub fn of_histories(
        histories: &[History<'_>],
        shape: ContextShape<'_>,
        embedded: Option<Tensor<3>>,
        (device, dtype): (&Device, DType),
    ) -> Self {
        let wide = if embedded.is_some() { 0 } else { shape.observations.size() };
        histories.iter().for_each(|history| history.check(wide, shape.actions));
        let longest = histories.iter().map(|history| history.returns_to_go.len()).max();
        let longest = longest.expect("at least one history");
        let (batch, time) = (histories.len(), longest.min(shape.context_length));
        let windows: Vec<Window> = histories
            .iter()
            .map(|history| Window::ending_at(0, history.returns_to_go.len() - 1, time))
            .collect();

        let floats = |values: Vec<f32>, width: usize| {
            Tensor::<3>::from_data(TensorData::new(values, [batch, time, width]), (device, dtype))
        };
        let observations = match embedded {
            Some(embedded) => Observed::Embedded(embedded),
            None => {
                let seen = histories.iter().map(|history| history.observations.to_vec());
                Observed::Vectors(floats(rows_of_windows(&windows, seen, wide, 0.0), wide))
            }
        };
        let width = shape.actions.size();
        let actions = match shape.actions {
            ActionSpace::Discrete { .. } => {
                let ids = histories.iter().map(|history| match history.actions {
                    PreviousActions::Discrete(ids) => [ids, &[0]].concat(),
                    PreviousActions::Continuous(_) => unreachable!("histories were checked"),
                });
                let ids = TensorData::new(rows_of_windows(&windows, ids, 1, 0), [batch, time]);
                Acted::Discrete(Tensor::from_data(ids, device))
            }
            ActionSpace::Continuous { .. } => {
                let numbers = histories.iter().map(|history| match history.actions {
                    PreviousActions::Continuous(numbers) => [numbers, &vec![0.0; width]].concat(),
                    PreviousActions::Discrete(_) => unreachable!("histories were checked"),
                });
                Acted::Continuous(floats(rows_of_windows(&windows, numbers, width, 0.0), width))
            }
        };
        let returns_to_go = histories.iter().map(|history| history.returns_to_go.to_vec());
        let returns_to_go = floats(rows_of_windows(&windows, returns_to_go, 1, 0.0), 1);
        let timesteps = histories.iter().map(|history| {
            let first = history.timestep - (history.returns_to_go.len() - 1);
            let timesteps = first..=history.timestep;
            timesteps.map(|timestep| i32::try_from(timestep).unwrap_or(i32::MAX)).collect()
        });
        Self {
            observations,
            actions,
            returns_to_go: returns_to_go.squeeze_dim::<2>(2),
            timesteps: rows_of_windows(&windows, timesteps, 1, 0),
            n_padding: windows.iter().map(Window::n_padding).collect(),
            step_weights: Vec::new(),
            penalties: None,
            top_percent_idx: Vec::new(),
            stored: None,
        }
    }
}

/// Columns of `width` values per timestep as rows of one batch, each cut and padded by its window.
fn rows_of_windows<T: Copy>(
    windows: &[Window],
    columns: impl Iterator<Item = Vec<T>>,
    width: usize,
    padding: T,
) -> Vec<T> {
    let each = windows.first().map_or(0, |window| window.context_length) * width;
    let mut rows = vec![padding; windows.len() * each];
    for ((window, column), out) in windows.iter().zip(columns).zip(rows.chunks_exact_mut(each)) {
        window.lay(&column, width, padding, out);
    }
    rows
}

impl History<'_> {
    fn check(&self, observation_width: usize, actions: &ActionSpace) {
        let n = self.returns_to_go.len();
        assert!(n > 0 && self.timestep >= n - 1, "{n} timesteps up to {}", self.timestep);
        assert_eq!(self.observations.len(), n * observation_width, "numbers of observations");
        let (got, width) = match (self.actions, actions) {
            (PreviousActions::Discrete(ids), ActionSpace::Discrete { .. }) => (ids.len(), 1),
            (PreviousActions::Continuous(numbers), ActionSpace::Continuous { .. }) => {
                (numbers.len(), actions.size())
            }
            (got, expected) => panic!("actions {got:?} of {}", expected.describe()),
        };
        assert_eq!(got, (n - 1) * width, "numbers of actions");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(histories: &[History<'_>]) -> Contexts {
        let (observations, actions) =
            (&ObservationSpace::Vectors { width: 2 }, &ActionSpace::unit(1));
        let shape = ContextShape { context_length: 3, observations, actions };
        Contexts::of_histories(histories, shape, None, (&Device::flex(), DType::F32))
    }

    fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter().collect()
    }

    fn vectors(contexts: &Contexts) -> Vec<f32> {
        let Observed::Vectors(vectors) = &contexts.observations else { panic!("vectors") };
        numbers(vectors.clone())
    }

    const FOUR_STEPS: History<'_> = History {
        observations: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        actions: PreviousActions::Continuous(&[0.1, 0.2, 0.3]),
        returns_to_go: &[4.0, 3.0, 2.0, 1.0],
        timestep: 5,
    };
    const ONE_STEP: History<'_> = History {
        observations: &[9.0, 9.5],
        actions: PreviousActions::Continuous(&[]),
        returns_to_go: &[7.0],
        timestep: 0,
    };

    #[test]
    fn the_last_timesteps_are_on_the_right() {
        let both = inputs(&[FOUR_STEPS, ONE_STEP]);
        let observations = [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.5];
        assert_eq!(vectors(&both), observations);
        let Acted::Continuous(actions) = both.actions else { panic!("numbers") };
        assert_eq!(numbers(actions), [0.2, 0.3, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(numbers(both.returns_to_go), [3.0, 2.0, 1.0, 0.0, 0.0, 7.0]);
        assert_eq!(both.timesteps, [3, 4, 5, 0, 0, 0]);
        assert_eq!(both.n_padding, [0, 2]);
    }

    #[test]
    fn contexts_are_no_longer_than_they_must_be() {
        let one = inputs(&[ONE_STEP]);
        assert_eq!((one.dims(), vectors(&one)), ([1, 1], vec![9.0, 9.5]));
        assert_eq!(one.n_padding, [0]);
    }

    #[test]
    #[should_panic(expected = "numbers of actions")]
    fn histories_that_do_not_fit_are_refused() {
        inputs(&[
            ONE_STEP,
            History { actions: PreviousActions::Continuous(&[0.0; 4]), ..FOUR_STEPS },
        ]);
    }

    /// Pixels are passed embedded, and discrete actions as ids.
    #[test]
    fn embedded_observations_and_ids_are_laid_alike() {
        let (observations, actions) =
            (&ObservationSpace::Pixels { shape: vec![4, 84, 84] }, &ActionSpace::numbered(9));
        let shape = ContextShape { context_length: 2, observations, actions };
        let history = |actions, returns_to_go, timestep| History {
            observations: &[],
            actions: PreviousActions::Discrete(actions),
            returns_to_go,
            timestep,
        };
        let both = [history(&[7, 8], &[3.0, 2.0, 1.0], 2), history(&[], &[5.0], 0)];
        let embedded = Tensor::zeros([2, 2, 6], &Device::flex());
        let options = (&Device::flex(), DType::F32);
        let contexts = Contexts::of_histories(&both, shape, Some(embedded), options);
        assert!(matches!(contexts.observations, Observed::Embedded(_)));
        let Acted::Discrete(ids) = contexts.actions else { panic!("ids") };
        assert_eq!(ids.into_data().iter::<i32>().collect::<Vec<_>>(), [8, 0, 0, 0]);
        assert_eq!((contexts.timesteps, contexts.n_padding), (vec![1, 2, 0, 0], vec![0, 1]));
    }
}
