//! Which episode a video shows: a small file beside it, `video.gif.json` beside `video.gif`.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::Play;
use serde::{Deserialize, Serialize};

use overtone_eval::evaluation::{CheckpointRef, write_json};
use overtone_eval::{Evaluation, PlayedEpisode, ReportError, Setting, Summary};

/// The episode of a video, and whose it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filmed {
    /// File name of the evaluation it is from.
    pub evaluation: String,
    /// How the episode was chosen: `median`, `best`, `worst` or its number.
    pub chosen: String,
    /// The task.
    pub task: String,
    /// The weights that were played.
    pub checkpoint: Option<CheckpointRef>,
    /// The protocol.
    pub protocol: Play,
    /// The episode, as the evaluation lists it.
    pub episode: PlayedEpisode,
}

impl Filmed {
    /// `episode` of `evaluation`, which is in a file of this name.
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

    /// Where it stands, of a video at `video`.
    pub fn path(video: &Path) -> PathBuf {
        let mut path = video.as_os_str().to_owned();
        path.push(".json");
        PathBuf::from(path)
    }

    /// Writes it for a video at `video`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, video: &Path) -> Result<(), ReportError> {
        let path = Self::path(video);
        write_json(&path, self, |source| ReportError::Filmed { path: path.clone(), source })
    }

    /// What a video at `video` shows; `None` where no file tells.
    ///
    /// # Errors
    /// When there is one that cannot be read or understood.
    pub fn read(video: &Path) -> Result<Option<Self>, ReportError> {
        let path = Self::path(video);
        let json = match fs::read(&path) {
            Ok(json) => json,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ReportError::File { path, source }),
        };
        serde_json::from_slice(&json)
            .map(Some)
            .map_err(|source| ReportError::Filmed { path, source })
    }

    /// In words: `update 300, matched protocol, target 3600, episode 4 (median), raw return
    /// 512.3`. What the agent was told, `played` says, the setting of the evaluation.
    pub fn describe(&self, played: Option<&Setting>) -> String {
        let PlayedEpisode { target_return, episode, raw_return, .. } = self.episode;
        let update = self.checkpoint.as_ref().map(|played| format!("update {}, ", played.step));
        let told = match played.filter(|setting| setting.protocol == self.protocol) {
            Some(setting) => setting.told(target_return),
            None => Some(target_return.to_string()),
        };
        let told = told.map_or_else(String::new, |told| format!(" target {told},"));
        let score = Summary::of(&[raw_return]).map(|summary| summary.with_spread());
        let chosen = match self.chosen.parse::<usize>() {
            Ok(_) => String::new(),
            Err(_) => format!(" ({})", self.chosen),
        };
        format!(
            "{}{} protocol,{told} episode {episode}{chosen}, raw return {}",
            update.unwrap_or_default(),
            self.protocol.name,
            score.unwrap_or_else(|| raw_return.to_string())
        )
    }
}
