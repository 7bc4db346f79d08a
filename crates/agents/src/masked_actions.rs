//! [`masked`]: an agent that acts only with masks of actions, because it was trained with them.

use overtone_core::{
    Actions, Observations, Played, Policy, PolicyError, Turn, protocol::ActionChoice,
};

/// `policy`, which refuses to act without a mask if `needs_action_mask`: its scores of actions that
/// were never allowed were not trained.
pub fn masked(needs_action_mask: bool, policy: Box<dyn Policy>) -> Box<dyn Policy> {
    if needs_action_mask { Box::new(Masked { policy, is_allowed: false }) } else { policy }
}

struct Masked {
    policy: Box<dyn Policy>,
    /// Whether the next actions have a mask.
    is_allowed: bool,
}

impl Policy for Masked {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        if !std::mem::take(&mut self.is_allowed) && !turns.is_empty() {
            return Err(
                "this agent was trained with masks of actions and acts only with them. Use \
                        action_mask=, or an environment whose info has action_mask or \
                        admissible_actions"
                    .into(),
            );
        }
        self.policy.act(turns, observations)
    }

    fn allow(&mut self, allowed: Vec<bool>) -> Result<(), PolicyError> {
        self.policy.allow(allowed)?;
        self.is_allowed = true;
        Ok(())
    }

    fn took(&mut self, turns: &[Turn], actions: &Actions) -> Result<(), PolicyError> {
        self.policy.took(turns, actions)
    }

    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        self.policy.choose(choice)
    }

    fn played(&self) -> Option<Played<'_>> {
        self.policy.played()
    }
}
