//! What is seen of an episode: what the suite's camera shows, or what the agent sees.
//!
//! The camera goes through the episode beside the agent, in an environment of its own.

use anyhow::{Result, bail};
use overtone_core::{Actions, ObservationSpace, Observations, Play, Task};
use overtone_env::{self as env, Capsule, Picture};
use overtone_eval::Moment;
use overtone_plot::{Image, Limb, Sketch};

use crate::suites;

/// Where pictures come from.
pub struct Camera {
    /// The suite's; without one the agent's newest frame is shown, enlarged.
    beside: Option<Box<dyn env::Camera>>,
    /// What the agent sees.
    observations: ObservationSpace,
}

impl Camera {
    /// The camera for a task played so.
    ///
    /// # Errors
    /// When what it shows cannot be simulated.
    pub fn open(task: &Task, protocol: &Play) -> Result<Self> {
        let beside = suites::of(task)?.camera(task, &protocol.simulation)?;
        Ok(Self { beside, observations: task.observations.clone() })
    }

    /// Begins the episode of the environment's seed.
    pub fn reset(&mut self, seed: u64) -> Result<()> {
        if let Some(camera) = &mut self.beside {
            camera.reset(seed)?;
        }
        Ok(())
    }

    /// Takes the agent's action.
    pub fn step(&mut self, actions: &Actions) -> Result<()> {
        if let Some(camera) = &mut self.beside {
            camera.step(actions)?;
        }
        Ok(())
    }

    /// Names of a real-valued action's numbers.
    pub fn action_names(&self) -> &[String] {
        self.beside.as_ref().map_or(&[], |camera| camera.action_names())
    }

    /// What is seen now.
    pub fn shot(&self, moment: &Moment<'_>) -> Result<Image> {
        let Some(camera) = &self.beside else { return self.newest_frame(moment) };
        Ok(match camera.picture() {
            Picture::Screen { size: [width, height], rgb } => {
                Image::new(width, height, rgb).enlarged([2, 2])
            }
            Picture::Limbs { centre, height, capsules } => {
                let limbs = capsules.into_iter().map(limb).collect();
                Image::of_svg(&Sketch { centre, height, limbs }.to_svg(), 1.0)
            }
        })
    }

    fn newest_frame(&self, moment: &Moment<'_>) -> Result<Image> {
        let (ObservationSpace::Pixels { shape }, Observations::Pixels(pixels)) =
            (&self.observations, moment.observation)
        else {
            bail!("there is no picture of this task")
        };
        let [.., height, width] = shape[..] else { bail!("there is no picture of this task") };
        let newest = pixels.len().saturating_sub(height * width);
        let rgb = pixels[newest..].iter().flat_map(|&grey| [grey; 3]).collect();
        Ok(Image::new(width, height, rgb).enlarged([4, 4]))
    }
}

fn limb(Capsule { ends, radius }: Capsule) -> Limb {
    Limb { ends, radius }
}
