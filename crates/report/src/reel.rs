//! A video under way: what is seen of an episode, and beside it what the agent draws from.

use std::io::Write;

use overtone_core::Actions;
use overtone_eval::Moment;
use overtone_plot::{Animation, AnimationError, Bars, Caption, Image};

/// The pictures on their way into a file.
pub struct Reel<W: Write> {
    /// Begun with the first picture, which says how large all are.
    animation: Option<Animation<W>>,
    file: Option<W>,
    title: String,
    names: Vec<String>,
    hundredths: u16,
    /// Whether the agent is told the return that is still asked for.
    pub is_asked: bool,
}

impl<W: Write> Reel<W> {
    /// A video into `file`: its title, a name for each action or motor, and the hundredths of a
    /// second that a picture is seen.
    pub fn new(file: W, title: String, names: Vec<String>, hundredths: u16) -> Self {
        Self { animation: None, file: Some(file), title, names, hundredths, is_asked: true }
    }

    /// Adds a picture of this moment.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn show(&mut self, screen: &Image, moment: &Moment<'_>) -> Result<(), AnimationError> {
        let mut lines = vec![
            self.title.clone(),
            format!("step {}", moment.step),
            format!("return so far {:.1}", moment.raw_return),
        ];
        if self.is_asked {
            lines.push(format!("return still asked for {:.1}", moment.return_to_go));
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
            // The file could not be begun, which was said then.
            None => Ok(()),
        }
    }

    /// The whole file; `None` if no picture was added.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<Option<W>, AnimationError> {
        self.animation.map(Animation::finish).transpose()
    }

    /// What the agent draws from and what it drew, or its action.
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
            (Actions::Discrete(actions), None) => Bars {
                title: "action".into(),
                bars: actions.iter().map(|&action| (self.name(action), 1.0)).collect(),
                ..Bars::default()
            },
            (Actions::Continuous { values, .. }, _) => Bars {
                title: "action of each motor, from -1 to 1".into(),
                bars: values
                    .iter()
                    .enumerate()
                    .map(|(i, &value)| (self.name(i), f64::from(value)))
                    .collect(),
                marked: None,
                full: 1.0,
                signed: true,
            },
        }
    }

    fn name(&self, action: usize) -> String {
        self.names.get(action).cloned().unwrap_or_else(|| format!("{}", action + 1))
    }
}
