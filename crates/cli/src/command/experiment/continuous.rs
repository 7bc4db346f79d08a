//! Runs on a robot.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result};
use overtone_core::Task;
use overtone_data::{Dataset, Kind, LocatedContinuous, datasets_folder, locate_continuous};
use overtone_env::find_task;
use overtone_model::Conditioning;
use overtone_mujoco::Mujoco;
use overtone_train::ContinuousLearner;

use super::Experiment;
use crate::{
    settings::{ContinuousSettings, ModelKind, Profile},
    suites,
};

impl Experiment for ContinuousSettings {
    type Algorithm = ContinuousLearner;

    fn task(&self) -> String {
        let dataset = Path::new(&self.dataset).file_stem().unwrap_or_default().to_string_lossy();
        let env = self.env.to_lowercase();
        match dataset.to_lowercase().strip_prefix(&format!("{env}_")) {
            Some(rest) => format!("{env}-{rest}"),
            None => format!("{env}-{dataset}"),
        }
    }

    fn model_name(&self) -> String {
        self.model_name()
    }

    fn describe_model(&self) -> String {
        let context = self.model.context_length;
        let head = self.head_name();
        match (self.model.kind, self.model.conditioning) {
            (ModelKind::Mlp, _) => {
                format!("a perceptron cloning behaviour, {head} head, context {context}")
            }
            (ModelKind::Transformer, conditioning) => {
                let attention = self.attention.name();
                let clones = match conditioning {
                    Conditioning::Return => "",
                    Conditioning::None => "cloning behaviour, ",
                };
                format!("{clones}{head} head, {attention} attention, context {context}")
            }
        }
    }

    fn describe_profile(&self) -> String {
        let (updates, batch) = (self.train.updates, self.train.batch_size);
        match self.profile {
            Profile::Paper => format!("paper ({updates} updates of {batch} contexts)"),
            _ => format!(
                "quick, {updates} updates of {batch} contexts, for a first look. The paper's \
                 profile is 100,000 updates: profile=paper"
            ),
        }
    }

    fn is_published(&self) -> bool {
        find(self).is_ok_and(|located| located.origin.kind == Kind::Published)
    }

    fn check_playable(&self) -> Result<()> {
        let task = task(self)?;
        if self.evaluation.episodes == 0 {
            return Ok(());
        }
        suites::of(task)?.check(task).context(crate::command::evaluate::NOT_PLAYABLE)
    }

    fn algorithm(&self) -> Result<ContinuousLearner> {
        let task = task(self)?;
        let located = find(self)?;
        say!("{located}");
        let data = Dataset::open(&located.path, &self.options(located.origin.clone()))?;
        let counts = data.counts();
        say!(
            "dataset: {} transitions in {} episodes ({} cut off and left out, {} not among the \
             best); content {}",
            counts.rows,
            counts.episodes,
            counts.fragment_rows,
            counts.filtered_rows,
            &data.content_hash()[..16]
        );
        for odd in data.odd() {
            say!("odd: {odd} (`data lint` says where and what to do)");
        }
        super::say_held_out(data.split(), data.episodes());
        let recording = located.origin.recording.clone();
        let simulation = recording.as_ref().unwrap_or(&task.simulation);
        let horizon = suites::of(task)?.horizon(task, simulation);
        let horizon = horizon.context("the longest episode of the task is not known")?;
        data.check_spaces(&task.title, &task.observations, &task.actions)?;
        let (wide, narrow) = (task.observations.size(), task.actions.size());
        Ok(ContinuousLearner {
            model: self.model_config(wide, narrow, horizon)?,
            dataset: Arc::new(data),
            env: task.title.clone(),
            dataset_name: located.dataset,
            return_scale: self.data.return_scale,
            delayed_reward: self.data.delayed_reward,
            recording,
        })
    }
}

/// What `settings` are about.
fn task(settings: &ContinuousSettings) -> Result<&'static Task> {
    Ok(find_task(&Mujoco, &settings.env)?)
}

/// Where the data of `settings` is.
fn find(settings: &ContinuousSettings) -> Result<LocatedContinuous> {
    let path = match (settings.data.path.as_os_str().is_empty(), &settings.dataset) {
        (true, file) if file.contains('/') || file.ends_with(".hdf5") => Some(Path::new(file)),
        (true, _) => None,
        (false, _) => Some(&*settings.data.path),
    };
    Ok(locate_continuous(&settings.env, &settings.dataset, path, &datasets_folder()?)?)
}
