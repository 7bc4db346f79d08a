//! [`MinariWriter`]: a recording as one file of our own, which Minari opens.
//!
//! The file is Minari's HDF5, a group for each episode. Its description (`metadata.json`) keeps
//! everything except Minari's own keys under `overtone`: the task, the simulation settings, and the
//! SHA-256 of the contents. The file holds the same, so that it can be used alone.

pub(crate) mod about;
mod metadata;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::{fs, io};

use hdf5_pure::{
    AttrValue, EnumTypeBuilder, File, FileAccessProperties, FileCreateProperties, FileLocking,
    SyncPolicy, make_i8_type,
};
use overtone_core::picture::{FRAME, SIDE};
use overtone_core::{Episode, Outcome};
use sha2::{Digest, Sha256};

use crate::describe::minari_id::MinariId;
use crate::error::{DataError, Fault};
use crate::hex::{hash_reals, hex};
use crate::outcome_code::outcome_code;
use crate::read::array_names::LOG_PROBS_IN_INFOS;
use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::columns::Columns;
use crate::read::minari_spaces::METADATA;
use crate::read::optional_arrays::OptionalArrays;
use crate::sample::dataset::Dataset;
use crate::write::about::{About, Written};

/// Compression level of pictures: a higher one takes longer and saves little.
const DEFLATE: u32 = 4;
/// Pictures of a piece: 450 kB before they are compressed.
const PIECE: usize = 64;
/// Bytes of episodes that are held until they are written together: each write replaces the list of
/// all episodes.
const HELD: usize = 64 << 20;

/// One episode to be written.
#[derive(Clone, Debug)]
pub struct WrittenEpisode {
    /// The observation before each action and, in one more row, the one after the last action.
    pub observations: ObservationColumn,
    /// The actions.
    pub actions: ActionColumn,
    /// `[steps]`, raw.
    pub rewards: Vec<f32>,
    /// `[steps]`, log-probabilities of the actions, as in [`Columns`]; `None` if unknown.
    pub behavior_log_probs: Option<Vec<f32>>,
    /// Optional arrays.
    pub optional: OptionalArrays,
    /// The reason for its end; `None` if the recording's end cut it.
    pub outcome: Option<Outcome>,
    /// The seed of its environment, if known.
    pub seed: Option<u64>,
}

/// Writes a recording episode by episode; its path stays empty until [`MinariWriter::finish`].
pub struct MinariWriter<'a> {
    about: About<'a>,
    to: PathBuf,
    /// The temporary folder or file.
    beside: PathBuf,
    /// `None` after it was finished.
    file: Option<File>,
    is_folder: bool,
    /// Whether an unfinished recording is kept.
    is_kept: bool,
    hash: Sha256,
    transitions: u64,
    episodes: u64,
    /// Bytes of the episodes that are not written yet.
    held: usize,
}

/// The path that `to` means: the folder of a Minari id, else a path.
///
/// # Errors
/// If it begins like a Minari id but is not valid.
pub fn place_of(to: &str) -> Result<PathBuf, DataError> {
    match MinariId::of(to)? {
        Some(id) => id.folder(),
        None => Ok(to.into()),
    }
}

/// Refuses an existing path.
///
/// # Errors
/// If the path exists.
pub fn check_free(to: &Path) -> Result<(), DataError> {
    if to.exists() {
        return Err(Fault::NoLog(
            "something is there already: give another place, or move it away".into(),
        )
        .at(to));
    }
    Ok(())
}

impl<'a> MinariWriter<'a> {
    /// Begins a recording at `to`: a file if that ends in `.hdf5` or `.h5`, else a folder in
    /// Minari's layout.
    ///
    /// # Errors
    /// If the path exists, or cannot be written.
    pub fn create(to: &Path, about: About<'a>) -> Result<Self, DataError> {
        check_free(to)?;
        let is_folder = !to.extension().is_some_and(|ending| ending == "hdf5" || ending == "h5");
        if let Some(above) = to.parent().filter(|above| !above.as_os_str().is_empty()) {
            fs::create_dir_all(above).map_err(DataError::io(above, "make"))?;
        }
        let beside = free_beside(to);
        let path = if is_folder { beside.join("data/main_data.hdf5") } else { beside.clone() };
        if is_folder {
            let folder = beside.join("data");
            fs::create_dir_all(&folder).map_err(DataError::io(&folder, "make"))?;
        }
        // Other programs do not use this name, so a lock is not needed; a program started meanwhile
        // would keep a lock longer than the file is open.
        let access = FileAccessProperties::new()
            .with_locking(FileLocking::Disabled)
            .with_sync_policy(SyncPolicy::OnClose);
        let file = File::create_with_options(&path, FileCreateProperties::new(), access)
            .map_err(|error| failed(to, &error))?;
        Ok(Self {
            about,
            to: to.to_path_buf(),
            beside,
            file: Some(file),
            is_folder,
            is_kept: false,
            hash: Sha256::new(),
            transitions: 0,
            episodes: 0,
            held: 0,
        })
    }

    /// Writes the next episode.
    ///
    /// # Errors
    /// When its arrays do not belong together, or the disk is full.
    pub fn episode(&mut self, episode: &WrittenEpisode) -> Result<(), DataError> {
        let steps = episode.rewards.len();
        let rows = match &episode.observations {
            ObservationColumn::Vectors { width, values } => values.len() / (*width).max(1),
            ObservationColumn::Frames { pixels, .. } => pixels.len() / FRAME,
        };
        if steps == 0 || rows != steps + 1 || episode.actions.rows() != steps {
            return Err(Fault::Inconsistent(format!(
                "an episode of {steps} rewards has {rows} observations and {} actions",
                episode.actions.rows()
            ))
            .at(&self.to));
        }
        if let Some(got) = episode.behavior_log_probs.as_ref().map(Vec::len).filter(|n| *n != steps)
        {
            let reason = format!("an episode of {steps} rewards has {got} log-probabilities");
            return Err(Fault::Inconsistent(reason).at(&self.to));
        }
        let whole = Episode { start: 0, length: steps, outcome: Outcome::Truncated };
        if let Some(fault) = episode.optional.fault(&episode.actions, &[whole]) {
            return Err(fault.at(&self.to));
        }
        if let Some(file) = &self.file {
            self.held += rows * episode.observations.width() * 4;
            let is_full = self.held > HELD;
            stage(file, self.episodes, episode)
                .and_then(|()| if is_full { file.commit() } else { Ok(()) })
                .map_err(|error| failed(&self.to, &error))?;
            self.held *= usize::from(!is_full);
        }
        digest(&mut self.hash, episode);
        self.transitions += steps as u64;
        self.episodes += 1;
        Ok(())
    }

    /// Steps written so far.
    pub fn transitions(&self) -> u64 {
        self.transitions
    }

    /// Writes the description, waits until the disk has everything, and renames the recording to
    /// its final name.
    ///
    /// # Errors
    /// If the disk is full; then nothing is left. If another program took the path meanwhile; then
    /// both stay, and the error names the recording's path.
    pub fn finish(mut self) -> Result<Written, DataError> {
        let written = Written {
            path: self.to.clone(),
            transitions: self.transitions,
            episodes: self.episodes,
            content_hash: hex(&std::mem::take(&mut self.hash).finalize()),
        };
        let [whole, short] = metadata::texts(&self.about, &written, &self.to);
        if let Some(file) = self.file.take() {
            file.root()
                .set_attr(METADATA, AttrValue::U8Array(short.into_bytes()))
                .and_then(|()| file.commit())
                .and_then(|()| file.close())
                .map_err(|error| failed(&self.to, &error))?;
        }
        self.on_disk(&whole).map_err(DataError::io(&self.to, "write"))?;
        if let Err(source) = overtone_files::put_new(&self.beside, &self.to) {
            self.is_kept = self.beside.exists();
            let path = self.to.clone();
            return Err(match self.is_kept {
                true => DataError::Unnamed { path, kept: self.beside.clone(), source },
                false => DataError::Io { path, doing: "write", source },
            });
        }
        Ok(written)
    }

    /// Writes the description of a folder, and waits until the disk has all that was written.
    fn on_disk(&self, description: &str) -> io::Result<()> {
        if !self.is_folder {
            return overtone_files::sync(&self.beside);
        }
        let data = self.beside.join("data");
        overtone_files::replace(&data.join("metadata.json"), description.as_bytes())?;
        overtone_files::sync(&data.join("main_data.hdf5"))?;
        overtone_files::sync(&data)?;
        overtone_files::sync(&self.beside)
    }
}

impl Drop for MinariWriter<'_> {
    /// Half a recording is of no use, so it is deleted.
    fn drop(&mut self) {
        drop(self.file.take());
        if self.is_kept {
            return;
        }
        let _ = match self.is_folder {
            true => fs::remove_dir_all(&self.beside),
            false => fs::remove_file(&self.beside),
        };
    }
}

/// Writes all episodes of a recording in memory. `last` is the observation after the last action of
/// each episode, `[episodes]`; if unknown, the last observation is repeated.
///
/// # Errors
/// As [`MinariWriter`], `Fault::Inconsistent` if `last` does not fit this recording, and
/// [`DataError::Stopped`] if `progress`, which receives the number of steps written, breaks.
pub fn write_columns(
    log: &Columns,
    last: Option<&ObservationColumn>,
    to: &Path,
    about: About<'_>,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Written, DataError> {
    if let Some(last) = last {
        check_last(log, last)?;
    }
    let episode = |(at, (episode, &finished)): (usize, (&Episode, &bool))| {
        let rows = episode.range();
        let mut observations = log.observations.rows_at(rows.clone());
        let led = last.map_or_else(
            || log.observations.rows_at(rows.end - 1..rows.end),
            |last| last.rows_at(at..at + 1),
        );
        assert!(observations.extend(led), "`check_last` refuses observations of two forms");
        Ok(WrittenEpisode {
            observations,
            actions: log.actions.rows_at(rows.clone()),
            rewards: log.rewards[rows.clone()].to_vec(),
            behavior_log_probs: log
                .behavior_log_probs
                .as_ref()
                .map(|all| all[rows.clone()].to_vec()),
            optional: log.optional.rows_at(rows),
            outcome: finished.then_some(episode.outcome),
            seed: None,
        })
    };
    let episodes = log.episodes.iter().zip(&log.finished).enumerate().map(episode);
    write_all(episodes, to, about, progress)
}

/// Writes `episodes` one after the other.
fn write_all(
    episodes: impl Iterator<Item = Result<WrittenEpisode, DataError>>,
    to: &Path,
    about: About<'_>,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Written, DataError> {
    let mut writer = MinariWriter::create(to, about)?;
    for episode in episodes {
        writer.episode(&episode?)?;
        if progress(writer.transitions()).is_break() {
            return Err(DataError::Stopped);
        }
    }
    writer.finish()
}

/// The temporary path of a recording: next to the kept copy of one with the same name.
fn free_beside(to: &Path) -> PathBuf {
    let beside = overtone_files::beside(to);
    let numbered = |n: u32| {
        let mut name = beside.clone().into_os_string();
        name.push(format!("-{n}"));
        PathBuf::from(name)
    };
    let mut all = std::iter::once(beside.clone()).chain((2..).map(numbered));
    all.find(|path| !path.exists()).unwrap_or(beside)
}

/// Refuses rows that are not one for each episode of `log`, of the same form as its observations.
fn check_last(log: &Columns, last: &ObservationColumn) -> Result<(), DataError> {
    let wanted = log.episodes.len() * log.observations.width();
    let reason = match (&log.observations, last) {
        (
            ObservationColumn::Vectors { width, .. },
            ObservationColumn::Vectors { width: here, values },
        ) if width == here && values.len() == wanted => {
            let is_sound = values.iter().all(|number| number.is_finite());
            (!is_sound).then_some("a number of an episode's last observation is not finite")
        }
        (ObservationColumn::Frames { .. }, ObservationColumn::Frames { pixels })
            if pixels.len() == wanted =>
        {
            None
        }
        _ => Some("its last observations do not belong to its episodes"),
    };
    match reason {
        None => Ok(()),
        Some(reason) => Err(Fault::Inconsistent(reason.into()).at(&log.path)),
    }
}

/// Writes all episodes of a converted log of frames, one after the other. The log does not hold the
/// frame after an episode's last action: the last frame is repeated.
///
/// # Errors
/// As [`write_columns`], and when the frames cannot be read.
pub fn write_frames(
    log: &Dataset,
    to: &Path,
    about: About<'_>,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Written, DataError> {
    let (Some(frames), ActionColumn::Discrete { n_actions, values }) =
        (log.frames(), log.actions())
    else {
        return Err(Fault::NoLog("it is not a log of frames".into()).at(log.path()));
    };
    let episode = |episode: &Episode| {
        let rows = episode.range();
        let mut pixels = vec![0; (episode.length + 1) * FRAME];
        let (all, last) = pixels.split_at_mut(episode.length * FRAME);
        frames.read(rows.start, all)?;
        last.copy_from_slice(&all[all.len() - FRAME..]);
        let actions = values[rows.clone()].to_vec();
        Ok(WrittenEpisode {
            observations: ObservationColumn::Frames { pixels },
            actions: ActionColumn::Discrete { n_actions: *n_actions, values: actions },
            rewards: log.rewards()[rows].to_vec(),
            behavior_log_probs: None,
            optional: OptionalArrays::default(),
            outcome: Some(episode.outcome),
            seed: None,
        })
    };
    write_all(log.episodes().as_slice().iter().map(episode), to, about, progress)
}

/// Adds an episode to the file's next commit.
fn stage(file: &File, number: u64, episode: &WrittenEpisode) -> Result<(), hdf5_pure::Error> {
    let steps = episode.rewards.len();
    let rows = |n: usize, width: usize| [n as u64, width as u64];
    // Booleans in h5py's form.
    let flag = EnumTypeBuilder::with_base(make_i8_type());
    let flag = flag.raw_value("FALSE", &[0]).raw_value("TRUE", &[1]).build()?;
    file.root().create_group_with(&format!("episode_{number}"), |group| {
        group.set_attr("id", AttrValue::U64(number));
        group.set_attr("total_steps", AttrValue::U64(steps as u64));
        if let Some(seed) = episode.seed {
            group.set_attr("seed", AttrValue::U64(seed));
        }
        group.create_dataset("observations", |array| {
            match &episode.observations {
                ObservationColumn::Vectors { width, values } => {
                    array.with_f32_data(values).with_shape(&rows(steps + 1, *width))
                }
                ObservationColumn::Frames { pixels, .. } => {
                    let shape = |n: usize| [n as u64, SIDE as u64, SIDE as u64];
                    let array = array.with_u8_data(pixels).with_shape(&shape(steps + 1));
                    array.with_chunks(&shape(PIECE.min(steps + 1))).with_deflate(DEFLATE)
                }
            };
        });
        group.create_dataset("actions", |array| {
            match &episode.actions {
                ActionColumn::Discrete { values, .. } => {
                    array.with_i64_data(&values.iter().map(|&x| i64::from(x)).collect::<Vec<_>>())
                }
                ActionColumn::Continuous { width, values } => {
                    array.with_f32_data(values).with_shape(&rows(steps, *width))
                }
            };
        });
        group.create_dataset("rewards", |array| {
            array.with_f32_data(&episode.rewards);
        });
        let log_probs = episode.behavior_log_probs.clone();
        let log_probs = log_probs.map(|log_probs| (LOG_PROBS_IN_INFOS.into(), log_probs));
        let optional = episode.optional.numbers().into_iter();
        let optional = optional.map(|(name, numbers)| (format!("infos/{name}"), numbers));
        let infos: Vec<(String, Vec<f32>)> = log_probs.into_iter().chain(optional).collect();
        if !infos.is_empty() {
            group.create_group("infos");
        }
        for (name, numbers) in infos {
            group.create_dataset(&name, |array| {
                let width = numbers.len() / steps;
                let shape =
                    if width > 1 { rows(steps, width).to_vec() } else { vec![steps as u64] };
                array.with_f32_data(&numbers).with_shape(&shape);
            });
        }
        for (name, outcome) in
            [("terminations", Outcome::Terminated), ("truncations", Outcome::Truncated)]
        {
            let mut flags = vec![0; steps];
            flags[steps - 1] = u8::from(episode.outcome == Some(outcome));
            group.create_dataset(name, |array| {
                array.with_raw_data(flag.clone(), flags, steps as u64);
            });
        }
    })?;
    Ok(())
}

fn failed(path: &Path, error: &hdf5_pure::Error) -> DataError {
    Fault::Unwritten(error.to_string()).at(path)
}

/// Adds an episode to the hash of the contents, without log-probabilities: a hash is of what
/// training reads.
fn digest(hash: &mut Sha256, episode: &WrittenEpisode) {
    let number = |hash: &mut Sha256, number: usize| hash.update((number as u64).to_le_bytes());
    number(hash, episode.rewards.len());
    number(hash, episode.observations.width());
    match &episode.observations {
        ObservationColumn::Vectors { values, .. } => hash_reals(hash, values),
        ObservationColumn::Frames { pixels, .. } => hash.update(pixels),
    }
    match &episode.actions {
        ActionColumn::Discrete { values, .. } => {
            hash.update(values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>());
        }
        ActionColumn::Continuous { values, .. } => hash_reals(hash, values),
    }
    hash_reals(hash, &episode.rewards);
    hash.update([episode.outcome.map_or(u8::MAX, outcome_code)]);
    if episode.optional != OptionalArrays::default() {
        hash.update(episode.optional.hashed(String::new()));
    }
}
