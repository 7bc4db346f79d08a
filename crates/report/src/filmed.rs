//! Description of a video: a small file next to it (`video.gif.json` for `video.gif`) that names
//! the episode.

use std::path::{Path, PathBuf};

use overtone_core::Play;
use serde::{Deserialize, Serialize};

use overtone_eval::evaluation::CheckpointRef;
use overtone_eval::report_file::{read_json_if_any, write_json};
use overtone_eval::{Evaluation, PlayedEpisode, ReportError, Setting, Summary};

/// The contents of the file in an error.
const WHAT: &str = "the description of a video";

/// The episode that a video shows, and the agent that played it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filmed {
    /// File name of the evaluation that contains the episode.
    pub evaluation: String,
    /// Selection rule of the episode: `median`, `best`, `worst` or its number.
    pub chosen: String,
    /// The task.
    pub task: String,
    /// The evaluated weights.
    pub checkpoint: Option<CheckpointRef>,
    /// The protocol.
    pub protocol: Play,
    /// The episode as listed in the evaluation.
    pub episode: PlayedEpisode,
}

impl Filmed {
    /// Description of `episode` of `evaluation`, which is stored in `file`.
    pub fn new(evaluation: &Evaluation, file: &str, chosen: &str, episode: &PlayedEpisode) -> Self {
        let setting = &evaluation.setting;
        Self {
            evaluation: file.to_owned(),
            chosen: chosen.to_owned(),
            task: setting.task.title.clone(),
            checkpoint: setting.checkpoint.clone(),
            protocol: setting.protocol.clone(),
            episode: episode.clone(),
        }
    }

    /// Path of the description for the video at `video`.
    pub fn path(video: &Path) -> PathBuf {
        let mut path = video.as_os_str().to_owned();
        path.push(".json");
        PathBuf::from(path)
    }

    /// Writes the description next to the video at `video`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, video: &Path) -> Result<(), ReportError> {
        write_json(&Self::path(video), self, WHAT)
    }

    /// Reads the description of the video at `video`; `None` if that file does not exist.
    ///
    /// # Errors
    /// When the file exists but cannot be read or parsed.
    pub fn read(video: &Path) -> Result<Option<Self>, ReportError> {
        read_json_if_any(&Self::path(video), WHAT)
    }

    /// One line for people: `update 300, matched protocol, target 3600, episode 4 (median), raw
    /// return 512.3`. `evaluated` is the setting of the evaluation; it says what the agent was
    /// conditioned on.
    pub fn describe(&self, evaluated: Option<&Setting>) -> String {
        let PlayedEpisode { target_return, episode, raw_return, .. } = self.episode;
        let update = self.checkpoint.as_ref().map(|weights| format!("update {}, ", weights.step));
        let target = match evaluated.filter(|setting| setting.protocol == self.protocol) {
            Some(setting) => setting.condition(target_return),
            None => Some(target_return.to_string()),
        };
        let target = target.map_or_else(String::new, |target| format!(" target {target},"));
        let score = Summary::of(&[raw_return]).map(|summary| summary.with_spread());
        let chosen = match self.chosen.parse::<usize>() {
            Ok(_) => String::new(),
            Err(_) => format!(" ({})", self.chosen),
        };
        format!(
            "{}{} protocol,{target} episode {episode}{chosen}, raw return {}",
            update.unwrap_or_default(),
            self.protocol.name,
            score.unwrap_or_else(|| raw_return.to_string())
        )
    }
}
