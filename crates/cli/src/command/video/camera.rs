//! What is seen of an episode: a game's screens in colour, a robot's figure.
//!
//! The camera goes through the episode beside the agent, in an environment of its own.

use anyhow::{Result, bail};
use overtone_core::{Actions, Observations, Play, protocol::Simulation};
use overtone_env::VectorEnv;
use overtone_eval::Moment;
use overtone_mujoco::{Capsule, Figure, MujocoVectorEnv, Task};
use overtone_plot::{Image, Limb, Sketch};

/// Where pictures come from.
pub enum Camera {
    /// An emulator's screens.
    #[cfg(feature = "python")]
    Colour(overtone_ale::ColourScreens),
    /// What the agent sees, enlarged: the released protocol's emulator shows nothing else.
    Grey,
    /// A robot and its figure.
    Robot(Box<(MujocoVectorEnv, Figure)>),
}

impl Camera {
    /// The camera for a task played so.
    pub fn open(task: &str, protocol: &Play) -> Result<Self> {
        match protocol {
            #[cfg(feature = "python")]
            Play::Atari(protocol) => {
                let recorded = overtone_core::protocol::Resize::MaxThenArea;
                if protocol.emulation.resize != recorded {
                    return Ok(Self::Grey);
                }
                let screens = overtone_ale::ColourScreens::new(task.parse()?, &protocol.emulation)?;
                Ok(Self::Colour(screens))
            }
            #[cfg(not(feature = "python"))]
            Play::Atari(_) => Ok(Self::Grey),
            Play::Continuous(protocol) => {
                let task: Task = task.parse()?;
                let Simulation { revision, .. } = protocol.simulation;
                let env = overtone_mujoco::open(task, &protocol.simulation, 1)?;
                Ok(Self::Robot(Box::new((env, Figure::load(task, revision)?))))
            }
        }
    }

    /// Begins the episode of the environment's seed.
    pub fn reset(&mut self, seed: u64) -> Result<()> {
        match self {
            #[cfg(feature = "python")]
            Self::Colour(screens) => screens.reset(seed)?,
            Self::Grey => {}
            Self::Robot(robot) => robot.0.reset(&[0], &[seed])?,
        }
        Ok(())
    }

    /// Takes the agent's action.
    pub fn step(&mut self, actions: &Actions) -> Result<()> {
        match (self, actions) {
            #[cfg(feature = "python")]
            (Self::Colour(screens), Actions::Discrete(actions)) => {
                let [action] = actions[..] else { bail!("one agent takes one action") };
                screens.step(action)?;
            }
            (Self::Robot(robot), actions) => {
                robot.0.step(&[0], actions)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The names of a robot's motors.
    pub fn motors(&self) -> &[String] {
        match self {
            Self::Robot(robot) => robot.1.motors(),
            _ => &[],
        }
    }

    /// What is seen now.
    pub fn shot(&self, moment: &Moment<'_>) -> Result<Image> {
        match self {
            #[cfg(feature = "python")]
            Self::Colour(screens) => {
                let [height, width] = overtone_ale::ColourScreens::SIZE;
                Ok(Image::new(width, height, screens.screen().to_vec()).enlarged([2, 2]))
            }
            Self::Grey => {
                let Observations::Pixels(pixels) = moment.observation else {
                    bail!("there is no picture of this task")
                };
                const SIDE: usize = 84;
                let newest = pixels.len().saturating_sub(SIDE * SIDE);
                let rgb = pixels[newest..].iter().flat_map(|&grey| [grey; 3]).collect();
                Ok(Image::new(SIDE, SIDE, rgb).enlarged([4, 4]))
            }
            Self::Robot(robot) => {
                let (env, figure) = &**robot;
                let (positions, _) = env.state(0);
                let sketch = Sketch {
                    // Metres; the robot runs through the picture's middle.
                    centre: [positions[0], 0.75],
                    height: 2.6,
                    limbs: figure.capsules(positions).into_iter().map(limb).collect(),
                };
                Ok(Image::of_svg(&sketch.to_svg(), 1.0))
            }
        }
    }
}

fn limb(Capsule { ends, radius }: Capsule) -> Limb {
    Limb { ends, radius }
}
