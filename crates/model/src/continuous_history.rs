//! What agents with real-valued actions remember of their episodes, as a batch of contexts.

use burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_core::Window;

use crate::{continuous_decision_transformer::ContinuousInputs, error::ModelError};

/// What a model's contexts are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextShape {
    /// Timesteps the model sees.
    pub context_length: usize,
    /// Numbers in an observation.
    pub observation_width: usize,
    /// Numbers in an action.
    pub action_width: usize,
}

/// One agent's episode up to the observation it must act on, or the end of it: of a longer
/// one the model sees the last `context_length` timesteps.
#[derive(Clone, Copy, Debug)]
pub struct ContinuousHistory<'a> {
    /// `[n, observation_width]`, normalized as the training data was.
    pub observations: &'a [f32],
    /// `[n - 1, action_width]`: the action at the last observation is yet to come.
    pub actions: &'a [f32],
    /// `[n]`, divided by the task's scale as the training data was.
    pub returns_to_go: &'a [f32],
    /// The last observation's place in its episode, from 0; at least `n - 1`.
    pub timestep: usize,
}

impl ContinuousInputs {
    /// One context for each agent, as long as the longest history: the others are padded in
    /// front.
    ///
    /// The action that is yet to come is zero, as in the reference; no prediction reads it.
    ///
    /// # Errors
    /// When there is no history, or one is empty or does not fit itself or the model.
    pub fn of_histories(
        histories: &[ContinuousHistory<'_>],
        shape: ContextShape,
        (device, dtype): (&Device, DType),
    ) -> Result<Self, ModelError> {
        let (wide, narrow) = (shape.observation_width, shape.action_width);
        histories.iter().try_for_each(|history| history.check(wide, narrow))?;
        let longest = histories.iter().map(|history| history.returns_to_go.len()).max();
        let longest = longest.ok_or_else(|| ModelError::Input {
            what: "histories",
            got: "none".into(),
            expected: "at least one".into(),
        })?;
        let (batch, time) = (histories.len(), longest.min(shape.context_length));

        let mut observations = vec![0.0f32; batch * time * wide];
        let mut actions = vec![0.0f32; batch * time * narrow];
        let mut returns_to_go = vec![0.0f32; batch * time];
        let mut timesteps = vec![0i32; batch * time];
        let mut n_padding = Vec::with_capacity(batch);
        for (row, history) in histories.iter().enumerate() {
            let n = history.returns_to_go.len();
            let window = Window::ending_at(0, n - 1, time);
            let places = |width: usize| row * time * width..(row + 1) * time * width;
            let known = [history.actions, &vec![0.0; narrow]].concat();
            let first = history.timestep - (n - 1);
            let counted: Vec<i32> = (first..=history.timestep)
                .map(|timestep| i32::try_from(timestep).unwrap_or(i32::MAX))
                .collect();
            window.lay(history.observations, wide, 0.0, &mut observations[places(wide)]);
            window.lay(&known, narrow, 0.0, &mut actions[places(narrow)]);
            window.lay(history.returns_to_go, 1, 0.0, &mut returns_to_go[places(1)]);
            window.lay(&counted, 1, 0, &mut timesteps[places(1)]);
            n_padding.push(window.n_padding());
        }
        let floats = (device, dtype);
        Ok(Self {
            observations: Tensor::from_data(
                TensorData::new(observations, [batch, time, wide]),
                floats,
            ),
            actions: Tensor::from_data(TensorData::new(actions, [batch, time, narrow]), floats),
            returns_to_go: Tensor::from_data(TensorData::new(returns_to_go, [batch, time]), floats),
            timesteps: Tensor::from_data(TensorData::new(timesteps, [batch, time]), device),
            n_padding,
        })
    }
}

impl ContinuousHistory<'_> {
    fn check(&self, observation_width: usize, action_width: usize) -> Result<(), ModelError> {
        let n = self.returns_to_go.len();
        let wrong = |what, got: usize, expected: String| ModelError::Input {
            what,
            got: got.to_string(),
            expected,
        };
        if n == 0 {
            return Err(wrong("timesteps in a history", n, "at least 1".into()));
        }
        for (what, got, expected) in [
            ("numbers of observations", self.observations.len(), n * observation_width),
            ("numbers of actions", self.actions.len(), (n - 1) * action_width),
        ] {
            if got != expected {
                return Err(wrong(what, got, format!("{expected} for {n} timesteps")));
            }
        }
        if self.timestep < n - 1 {
            return Err(wrong("last timestep", self.timestep, format!("at least {}", n - 1)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(histories: &[ContinuousHistory<'_>]) -> Result<ContinuousInputs, ModelError> {
        let shape = ContextShape { context_length: 3, observation_width: 2, action_width: 1 };
        ContinuousInputs::of_histories(histories, shape, (&Device::flex(), DType::F32))
    }

    fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter().collect()
    }

    const FOUR_STEPS: ContinuousHistory<'_> = ContinuousHistory {
        observations: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        actions: &[0.1, 0.2, 0.3],
        returns_to_go: &[4.0, 3.0, 2.0, 1.0],
        timestep: 5,
    };
    const ONE_STEP: ContinuousHistory<'_> = ContinuousHistory {
        observations: &[9.0, 9.5],
        actions: &[],
        returns_to_go: &[7.0],
        timestep: 0,
    };

    #[test]
    fn the_last_timesteps_stand_on_the_right() {
        let both = inputs(&[FOUR_STEPS, ONE_STEP]).unwrap();
        let observations = [3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.5];
        assert_eq!(numbers(both.observations), observations);
        assert_eq!(numbers(both.actions), [0.2, 0.3, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(numbers(both.returns_to_go), [3.0, 2.0, 1.0, 0.0, 0.0, 7.0]);
        let timesteps: Vec<i32> = both.timesteps.into_data().iter().collect();
        assert_eq!(timesteps, [3, 4, 5, 0, 0, 0]);
        assert_eq!(both.n_padding, [0, 2]);
    }

    #[test]
    fn contexts_are_no_longer_than_they_must_be() {
        let one = inputs(&[ONE_STEP]).unwrap();
        assert_eq!(one.observations.dims(), [1, 1, 2]);
        assert_eq!(one.n_padding, [0]);
    }

    #[test]
    fn histories_that_do_not_fit_are_refused() {
        let refused = |history| inputs(&[ONE_STEP, history]).unwrap_err().to_string();
        for (history, expected) in [
            (
                ContinuousHistory { observations: &[1.0; 7], ..FOUR_STEPS },
                "numbers of observations: got 7, expected 8 for 4 timesteps",
            ),
            (
                ContinuousHistory { actions: &[0.0; 4], ..FOUR_STEPS },
                "numbers of actions: got 4, expected 3 for 4 timesteps",
            ),
            (
                ContinuousHistory { returns_to_go: &[], ..FOUR_STEPS },
                "timesteps in a history: got 0, expected at least 1",
            ),
            (
                ContinuousHistory { timestep: 2, ..FOUR_STEPS },
                "last timestep: got 2, expected at least 3",
            ),
        ] {
            assert_eq!(refused(history), expected);
        }
        assert!(inputs(&[]).is_err());
    }
}
