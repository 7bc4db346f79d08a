//! Every sentence about what is played otherwise than trained, as users read it.

use overtone_core::Play;
use overtone_core::protocol::{
    ActionChoice, ContinuousProtocol, Emulation, FedBackActions, GlobalTimestep, Protocol, Resize,
    ReturnUnits, Revision, Simulation, Trained,
};

/// Two protocols of games that have no setting in common.
fn games() -> [Play; 2] {
    let matched = Protocol::matched(&Emulation::dqn_replay());
    let other = Protocol {
        name: "other".into(),
        emulation: Emulation {
            sticky_probability: 0.1,
            frame_skip: 3,
            resize: Resize::BilinearThenMax,
            max_noops: 7,
            max_frames: 1000,
            terminal_on_life_loss: true,
            double_reset: true,
        },
        return_units: ReturnUnits::Raw,
        integer_returns: true,
        fed_back_actions: FedBackActions::HeadBins,
        global_timestep: GlobalTimestep::Current,
        temperature: 0.5,
    };
    [matched, other].map(Play::Atari)
}

/// The same of robots.
fn robots() -> [Play; 2] {
    let matched = ContinuousProtocol {
        name: "matched".into(),
        simulation: Simulation::d4rl(),
        action_choice: ActionChoice::Mode,
        return_scale: 1000.0,
        delayed_reward: false,
    };
    let other = ContinuousProtocol {
        name: "other".into(),
        simulation: Simulation { revision: Revision::V5, max_steps: 10 },
        action_choice: ActionChoice::Sample,
        return_scale: 300.0,
        delayed_reward: true,
    };
    [matched, other].map(Play::Continuous)
}

/// What is said of an agent that every setting matters to, or of one that only those matter to
/// which matter to all.
fn told(trained: &Play, played: &Play, all_matter: bool, targets: &[f32]) -> String {
    let agent = Trained {
        play: trained.clone(),
        returns: Some([0.0, 40.5]),
        reads_returns: all_matter,
        own_action_order: all_matter,
        has_density: all_matter,
        revisions_differ: all_matter,
    };
    let told = agent.deviations(played, targets).into_iter().map(|deviation| {
        let idle = deviation.idle.map(|idle| format!("  changes nothing: {idle}\n"));
        format!("{}\n{}", deviation.difference, idle.unwrap_or_default())
    });
    let targets = agent.differences(trained, targets).into_iter().map(|found| format!("{found}\n"));
    told.chain(targets).collect()
}

#[test]
fn sentences_stay_what_they_are() {
    let mut sentences = String::new();
    for [one, other] in [games(), robots()] {
        sentences += &format!("{} to {}\n", one.name(), other.name());
        sentences += &told(&one, &other, true, &[32.5, 41.0, -1.0]);
        sentences += &format!("\n{} to {}\n", other.name(), one.name());
        sentences += &told(&other, &one, true, &[32.5]);
        sentences += "\nwhole numbers\n";
        sentences += &told(&one, &other, true, &[32.0]);
        sentences += "\nan agent that few settings matter to\n";
        sentences += &told(&one, &other, false, &[32.0, 41.0]);
        sentences += "\n";
    }
    assert!(sentences == include_str!("differences.txt"), "now:\n{sentences}");
}
