//! A video being recorded: the screen of an episode, and next to it the agent's action
//! distribution.

use std::io::Write;

use overtone_core::{ActionScale, Actions, decimal};
use overtone_eval::Moment;
use overtone_plot::{Animation, AnimationError, Bars, Caption, Image};

/// Writer of a video's pictures.
pub struct Reel<W: Write> {
    /// Started with the first picture, which sets the size of all pictures.
    animation: Option<Animation<W>>,
    file: Option<W>,
    title: String,
    names: Vec<String>,
    hundredths: u16,
    /// Whether the agent is conditioned on a return-to-go.
    pub is_conditioned: bool,
    /// Map from the bounds of continuous actions to [-1, 1]; `None` if these are the bounds.
    pub scale: Option<ActionScale>,
}

impl<W: Write> Reel<W> {
    /// A video written to `file`, with a title and a name for each action or motor. Each picture
    /// is visible for `hundredths` of a second.
    pub fn new(file: W, title: String, names: Vec<String>, hundredths: u16) -> Self {
        let (animation, file) = (None, Some(file));
        Self { animation, file, title, names, hundredths, is_conditioned: true, scale: None }
    }

    /// Adds a picture of this moment.
    ///
    /// # Errors
    /// When the picture cannot be written.
    pub fn show(&mut self, screen: &Image, moment: &Moment<'_>) -> Result<(), AnimationError> {
        let mut lines = vec![
            self.title.clone(),
            format!("step {}", moment.step),
            format!("return so far {}", decimal(moment.raw_return, 1)),
        ];
        if self.is_conditioned {
            lines.push(format!("return-to-go {}", decimal(moment.return_to_go.into(), 1)));
        }
        let caption = Caption { width: 320, lines };
        let caption = Image::of_svg(&caption.to_svg(), 1.0);
        let bars = Image::of_svg(&self.bars(moment).to_svg(), 1.0);
        let height = screen.height().max(caption.height() + bars.height());
        let width = screen.width() + caption.width().max(bars.width());
        let mut picture = Image::filled(width, height, [255; 3]);
        picture.draw(screen, 0, (height - screen.height()) / 2);
        picture.draw(&caption, screen.width(), 0);
        picture.draw(&bars, screen.width(), caption.height());
        if let Some(file) = self.file.take() {
            self.animation = Some(Animation::new(file, [picture.width(), picture.height()])?);
        }
        match &mut self.animation {
            Some(animation) => animation.push(&picture, self.hundredths),
            // The file could not be started; that call returned the error.
            None => Ok(()),
        }
    }

    /// The finished file; `None` if no picture was added.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> Result<Option<W>, AnimationError> {
        self.animation.map(Animation::finish).transpose()
    }

    /// The action distribution with the sampled action marked, or the action alone.
    fn bars(&self, moment: &Moment<'_>) -> Bars {
        match (moment.actions, &moment.played) {
            (Actions::Discrete(actions), Some(played)) => Bars {
                title: "probability of each action".into(),
                bars: played
                    .actions
                    .iter()
                    .zip(played.probs)
                    .map(|(&action, &prob)| (self.name(action), prob))
                    .collect(),
                marked: played.actions.iter().position(|action| actions.first() == Some(action)),
                // Most are small.
                full: 0.5,
                signed: false,
            },
            (Actions::Discrete(actions), None) => {
                let taken = actions.first().copied();
                let n_actions = self.names.len().max(taken.map_or(0, |action| action + 1));
                let length = |action| if Some(action) == taken { 1.0 } else { 0.0 };
                Bars {
                    title: "action".into(),
                    bars: (0..n_actions)
                        .map(|action| (self.name(action), length(action)))
                        .collect(),
                    marked: taken,
                    full: 1.0,
                    signed: false,
                }
            }
            (Actions::Continuous { values, .. }, _) => {
                let mut values = values.clone();
                let title = match &self.scale {
                    Some(scale) => {
                        scale.to_unit(&mut values);
                        "action, between its bounds"
                    }
                    None => "action of each motor, from -1 to 1",
                };
                let values = values.iter().map(|&value| f64::from(value));
                Bars {
                    title: title.into(),
                    bars: values.enumerate().map(|(i, value)| (self.name(i), value)).collect(),
                    marked: None,
                    full: 1.0,
                    signed: true,
                }
            }
        }
    }

    fn name(&self, action: usize) -> String {
        self.names.get(action).cloned().unwrap_or_else(|| format!("{}", action + 1))
    }
}

#[cfg(test)]
mod tests {
    use overtone_core::{ActionSpace, Observations};

    use super::*;

    #[test]
    fn every_action_has_a_bar_and_the_taken_action_is_marked() {
        let names = vec!["left".to_owned(), "stay".to_owned(), "right".to_owned()];
        let reel = Reel::new(Vec::new(), "a task".into(), names, 5);
        let bars = reel.bars(&Moment {
            step: 0,
            raw_return: 0.0,
            return_to_go: 0.0,
            observation: Observations::Vectors(&[]),
            actions: &Actions::Discrete(vec![2]),
            played: None,
        });
        let expected = [("left", 0.0), ("stay", 0.0), ("right", 1.0)];
        assert_eq!(bars.bars, expected.map(|(name, length)| (name.to_owned(), length)));
        assert_eq!((bars.marked, bars.full), (Some(2), 1.0));
    }

    #[test]
    fn a_full_bar_is_a_bound() {
        let shown = |bound: f32| {
            let space = ActionSpace::Continuous { low: vec![-bound], high: vec![bound] };
            let mut reel = Reel::new(Vec::new(), "a task".into(), vec!["torque".into()], 5);
            reel.scale = ActionScale::of(&space);
            let moment = Moment {
                step: 0,
                raw_return: 0.0,
                return_to_go: 0.0,
                observation: Observations::Vectors(&[]),
                actions: &Actions::Continuous { width: 1, values: vec![1.0] },
                played: None,
            };
            let bars = reel.bars(&moment);
            (bars.title, bars.bars)
        };
        let torque = |value: f64| vec![("torque".to_owned(), value)];
        assert_eq!(shown(2.0), ("action, between its bounds".into(), torque(0.5)));
        assert_eq!(shown(1.0), ("action of each motor, from -1 to 1".into(), torque(1.0)));
    }
}
