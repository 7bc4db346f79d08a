//! A replayed policy sees the recording: its observations, rewards and actions.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use overtone_core::{
    Actions, BinOrder, Episode, Observations, Outcome, Play, Played, Policy, PolicyError,
    Simulation, Turn,
    protocol::{ActionChoice, ReturnUnits},
};
use overtone_data::{
    ActionColumn, Columns, Dataset, DatasetOptions, Fragment, ObservationColumn, Stored,
};
use overtone_judge::{Forced, ForcedActions, ReplayError};

/// Two episodes, of three steps and of one, with the observation `10 · row`.
fn recording(actions: ActionColumn) -> Dataset {
    let episode = |start, length| Episode { start, length, outcome: Outcome::Terminated };
    let columns = Columns {
        path: "recording".into(),
        format: "recording",
        observations: ObservationColumn::Vectors { width: 1, values: vec![0.0, 10.0, 20.0, 30.0] },
        actions,
        rewards: vec![1.0, 5.0, 2.0, 4.0],
        behavior_log_probs: None,
        optional: Default::default(),
        episodes: vec![episode(0, 3), episode(3, 1)],
        finished: vec![true; 2],
        mixture: Default::default(),
        odd: Vec::new(),
        stored: Stored::default(),
    };
    let options = DatasetOptions { fragment: Fragment::Keep, ..DatasetOptions::default() };
    Dataset::of(columns, &options).unwrap()
}

/// Remembers what it saw and was told; takes action 1, with the probabilities .25 and .75.
#[derive(Default)]
struct Notes {
    seen: Vec<(usize, f32, f32, bool)>,
    told: Vec<Actions>,
    width: usize,
}

impl Policy for Notes {
    fn act(&mut self, turns: &[Turn], shown: Observations<'_>) -> Result<Actions, PolicyError> {
        let Observations::Vectors(shown) = shown else { return Err("pixels".into()) };
        let seen = turns.iter().zip(shown);
        self.seen.extend(seen.map(|(turn, x)| (turn.agent, *x, turn.reward, turn.start.is_some())));
        Ok(match self.width {
            0 => Actions::Discrete(vec![1; turns.len()]),
            width => Actions::Continuous { width, values: vec![0.5; turns.len() * width] },
        })
    }

    fn took(&mut self, _: &[Turn], actions: &Actions) -> Result<(), PolicyError> {
        self.told.push(actions.clone());
        Ok(())
    }

    fn played(&self) -> Option<Played<'_>> {
        // The second bin is action 0.
        let probs = &[0.75, 0.25, 0.75, 0.25];
        Some(Played { probs, actions: &[1, 0], order: BinOrder::Head })
    }
}

fn play(action_choice: ActionChoice) -> Play {
    let return_units = ReturnUnits::Clipped;
    Play { action_choice, return_units, ..Play::matched(Simulation::default()) }
}

#[test]
fn a_policy_sees_the_recording() {
    let data = recording(ActionColumn::Discrete { n_actions: 2, values: vec![0, 1, 1, 0] });
    let mut policy = Notes::default();
    let drawn = play(ActionChoice::Sample);
    let forced = Forced::replay(&mut policy, &drawn, 9.0, &data, None, 1).unwrap();
    let expected =
        [(0, 0.0, 0.0, true), (1, 30.0, 0.0, true), (0, 10.0, 1.0, false), (0, 20.0, 1.0, false)];
    assert_eq!(policy.seen, expected);
    let told = [vec![0, 0], vec![1], vec![1]].map(Actions::Discrete);
    assert_eq!(policy.told, told);
    // Rewards are clipped, as in play.
    assert_eq!(forced.returns_to_go, [9.0, 8.0, 7.0, 9.0]);
    let values = [0.25, 0.75].repeat(4);
    assert_eq!(forced.actions, ForcedActions::Probabilities { n: 2, values });

    let mode = play(ActionChoice::Mode);
    let forced = Forced::replay(&mut policy, &mode, 9.0, &data, None, 1).unwrap();
    assert_eq!(forced.actions.values(), [0.0, 1.0].repeat(4));
    let delayed = Play { delayed_reward: true, ..mode };
    let forced = Forced::replay(&mut policy, &delayed, 9.0, &data, None, 1).unwrap();
    assert_eq!(forced.returns_to_go, [9.0; 4]);
}

#[test]
fn other_actions_are_refused() {
    let three = recording(ActionColumn::Discrete { n_actions: 3, values: vec![0, 1, 2, 0] });
    let replay = |policy: &mut Notes, data| {
        Forced::replay(policy, &play(ActionChoice::Sample), 1.0, data, None, 1)
    };
    let refused = replay(&mut Notes::default(), &three);
    assert!(matches!(refused, Err(ReplayError::OtherActions)), "{refused:?}");
    let vectors = recording(ActionColumn::Continuous { width: 1, values: vec![0.1; 4] });
    let forced = replay(&mut Notes { width: 1, ..Notes::default() }, &vectors).unwrap();
    assert_eq!(forced.actions, ForcedActions::Vectors { width: 1, values: vec![0.5; 4] });
    let refused = replay(&mut Notes { width: 2, ..Notes::default() }, &vectors);
    assert!(matches!(refused, Err(ReplayError::OtherActions)), "{refused:?}");
}
