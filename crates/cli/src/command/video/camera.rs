//! [`Camera`]: the frames of a video, from the suite's camera or from the agent's observations.
//!
//! The camera runs the episode in its own environment, with the agent's actions.

use anyhow::{Result, bail};
use overtone_core::{Actions, ObservationSpace, Observations, Play, Task};
use overtone_env::{self as env, Capsule, Picture};
use overtone_eval::Moment;
use overtone_plot::{Image, Limb, Sketch};
use overtone_settings::suites;

/// The source of a video's frames.
pub struct Camera {
    /// The suite's camera; without one, the agent's newest frame is enlarged.
    own: Option<Box<dyn env::Camera>>,
    /// The agent's observations.
    observations: ObservationSpace,
}

impl Camera {
    /// The camera for a task under a protocol.
    ///
    /// # Errors
    /// When the camera's environment cannot be opened.
    pub fn open(task: &Task, protocol: &Play) -> Result<Self> {
        let own = suites::of(task)?.camera(task, &protocol.simulation)?;
        Ok(Self { own, observations: task.observations.clone() })
    }

    /// Starts the episode of the environment's seed.
    pub fn reset(&mut self, seed: u64) -> Result<()> {
        if let Some(camera) = &mut self.own {
            camera.reset(seed)?;
        }
        Ok(())
    }

    /// Takes the agent's action.
    pub fn step(&mut self, actions: &Actions) -> Result<()> {
        if let Some(camera) = &mut self.own {
            camera.step(actions)?;
        }
        Ok(())
    }

    /// Names of a continuous action's numbers.
    pub fn action_names(&self) -> &[String] {
        self.own.as_ref().map_or(&[], |camera| camera.action_names())
    }

    /// The current frame.
    pub fn shot(&self, moment: &Moment<'_>) -> Result<Image> {
        let Some(camera) = &self.own else { return self.newest_frame(moment) };
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
            bail!("this task does not have images")
        };
        let [.., height, width] = shape[..] else { bail!("this task does not have images") };
        let newest = pixels.len().saturating_sub(height * width);
        let rgb = pixels[newest..].iter().flat_map(|&grey| [grey; 3]).collect();
        Ok(Image::new(width, height, rgb).enlarged([4, 4]))
    }
}

fn limb(Capsule { ends, radius }: Capsule) -> Limb {
    Limb { ends, radius }
}
