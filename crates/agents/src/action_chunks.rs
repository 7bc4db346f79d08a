//! [`OneByOne`]: an agent that chooses several actions at once, and plays them one after the other.

use std::collections::VecDeque;

use overtone_core::{
    Actions, ObservationSpace, Observations, Policy, PolicyError, Task, Turn,
    protocol::ActionChoice,
};
use overtone_model::acting::turns;

/// The actions of a policy of chunks, one by one. The policy chooses a new chunk when the last one is
/// over, or an episode starts. Observations and other actions in between change nothing.
pub struct OneByOne {
    policy: Box<dyn Policy>,
    observations: ObservationSpace,
    /// Numbers of one action.
    width: usize,
    /// By agent, the numbers of the actions that are still to be played; `None` before its first
    /// episode.
    planned: Vec<Option<VecDeque<f32>>>,
}

impl OneByOne {
    /// Actions of `task` from `policy`, whose actions are chunks of them.
    pub fn new(task: &Task, policy: Box<dyn Policy>) -> Self {
        let observations = task.observations.clone();
        Self { policy, observations, width: task.actions.size(), planned: Vec::new() }
    }

    /// Chooses new chunks for the agents of `turns` whose chunk is over.
    fn plan(&mut self, turns: &[Turn], observations: &[f32]) -> Result<(), PolicyError> {
        let (mut over, mut seen) = (Vec::new(), Vec::new());
        for (turn, observation) in
            turns.iter().zip(observations.chunks_exact(self.observations.size()))
        {
            let planned = self.planned.get(turn.agent).and_then(Option::as_ref);
            if turn.start.is_some() || planned.is_none_or(VecDeque::is_empty) {
                over.push(*turn);
                seen.extend_from_slice(observation);
            }
        }
        let chunks = self.policy.act(&over, Observations::Vectors(&seen))?;
        let Actions::Continuous { width, values } = chunks else {
            return Err("a chunk of discrete actions".into());
        };
        let chunks = values.chunks_exact(width).map(|chunk| chunk.iter().copied().collect());
        turns::replace(&mut self.planned, &over, chunks.collect());
        Ok(())
    }
}

impl Policy for OneByOne {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let plays = |agent: usize| self.planned.get(agent).is_some_and(Option::is_some);
        turns::check(turns, observations, &self.observations, plays)?;
        let numbers = turns::normalized(turns, observations, None)?;
        self.plan(turns, &numbers)?;
        let width = self.width;
        let mut values = Vec::with_capacity(turns.len() * width);
        for turn in turns {
            if let Some(planned) = &mut self.planned[turn.agent] {
                values.extend(planned.drain(..width));
            }
        }
        Ok(Actions::Continuous { width, values })
    }

    fn allow(&mut self, allowed: Vec<bool>) -> Result<(), PolicyError> {
        self.policy.allow(allowed)
    }

    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        self.policy.choose(choice)
    }
}
