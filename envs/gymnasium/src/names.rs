//! The environments of Gymnasium 1.4, for suggestions about misspelled names without Python.

/// The newest version of each environment.
pub const OWN: [&str; 27] = [
    "Acrobot-v1",
    "Ant-v5",
    "BipedalWalker-v3",
    "BipedalWalkerHardcore-v3",
    "Blackjack-v1",
    "CarRacing-v3",
    "CartPole-v1",
    "CliffWalking-v1",
    "CliffWalkingSlippery-v1",
    "FrozenLake-v1",
    "FrozenLake8x8-v1",
    "HalfCheetah-v5",
    "Hopper-v5",
    "Humanoid-v5",
    "HumanoidStandup-v5",
    "InvertedDoublePendulum-v5",
    "InvertedPendulum-v5",
    "LunarLander-v3",
    "LunarLanderContinuous-v3",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Pusher-v5",
    "Reacher-v5",
    "Swimmer-v5",
    "Taxi-v4",
    "Walker2d-v5",
];

#[cfg(all(test, feature = "python"))]
mod tests {
    use super::*;
    use crate::TaskName;
    use crate::python::{Resolved, resolve};

    #[test]
    fn each_is_the_newest_installed_version() {
        for name in OWN {
            let bare = name.rsplit_once("-v").unwrap().0;
            match resolve(&TaskName::parse(bare).unwrap()).unwrap() {
                Resolved::Name(resolved) => assert_eq!(resolved, name),
                Resolved::Known(_) => panic!("Gymnasium has no {name}"),
            }
        }
    }
}
