//! The page about runs: its contents, its separate tables, and escaping of text from files.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod checkpoints;
mod comparisons;
mod contents;
mod estimates;
mod studies;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use overtone_ale::{Ale, Game};
use overtone_core::protocol::ReturnUnits;
use overtone_core::{Play, Task};
use overtone_env::{Corridor, Suite, VectorEnv};
use overtone_eval::statistics::Bootstrap;
use overtone_eval::{
    CheckpointRef, Evaluation, Plan, RandomPolicy, Setting, UsedSettings, rollout,
};
use overtone_report::page::{Page, RunFiles};
use tempfile::TempDir;

const QUICK: Bootstrap = Bootstrap { replications: 500, level: 0.95, seed: 1 };

/// An evaluation of random actions, attributed to the run's checkpoint at `step`.
fn evaluation(step: u64, seed: u64, protocol: Play) -> Evaluation {
    let return_units = ReturnUnits::Clipped;
    let plan = Plan::new(8, vec![16.0, 32.0], seed, return_units);
    let mut env = Corridor::new(4, 6, 12, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 4);
    let played = rollout(&mut env, &mut policy, &plan, &mut |_| ControlFlow::Continue(()));
    let setting = Setting {
        task: game("seaquest"),
        simulator: "a corridor".into(),
        rom_md5: Some("0123".into()),
        policy: "uniform random".into(),
        protocol,
        differences: Vec::new(),
        used_settings: UsedSettings::ALL,
        choice: None,
        checkpoint: Some(CheckpointRef { path: format!("checkpoints/step-{step}").into(), step }),
        dataset_hash: Some("beef".into()),
        command: format!("overtone evaluate rollouts checkpoint={step} seed={seed}"),
    };
    Evaluation::new(setting, &plan, played.unwrap()).unwrap()
}

fn game(name: &str) -> Task {
    Game::named(name).unwrap().task.clone()
}

fn matched() -> Play {
    game("seaquest").matched(None)
}

fn released() -> Play {
    Ale.contrast(&matched())
}

/// The directory of a run of 200 updates with two checkpoints and without an evaluation.
fn run(root: &TempDir, name: &str, seed: u64) -> PathBuf {
    let folder = root.path().join(name);
    for step in ["step-00000100", "step-00000200"] {
        fs::create_dir_all(folder.join("checkpoints").join(step)).unwrap();
    }
    let config = format!("game = \"seaquest\"\nseed = {seed}\n\n[train]\nupdates = 200\n");
    fs::write(folder.join("config.toml"), config).unwrap();
    let metrics = "step,loss,learning_rate,grad_norm\n100,2.5,1e-4,0.5\n200,1.5,2e-4,0.25\n";
    fs::write(folder.join("metrics.csv"), metrics).unwrap();
    folder
}

fn page(folders: &[&Path]) -> Page {
    let runs: Vec<RunFiles> =
        folders.iter().map(|folder| RunFiles::read(folder).unwrap()).collect();
    Page::new(&runs, &QUICK).unwrap()
}

fn file(page: &Page, name: &str) -> String {
    let files = page.files("report");
    let entry = files.into_iter().find(|(file, _)| file == name);
    String::from_utf8(entry.unwrap_or_else(|| panic!("no {name}")).1).unwrap()
}

/// The names of all tags. Panics if a tag is not closed or is closed by another tag.
#[track_caller]
fn tags(html: &str) -> Vec<String> {
    let (mut open, mut seen) = (Vec::new(), Vec::new());
    for part in html.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap();
        let name: String = tag.chars().take_while(|c| !c.is_whitespace() && *c != '/').collect();
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "closed"),
            None => {
                seen.push(name.clone());
                if !tag.ends_with('/') && !["!DOCTYPE", "meta", "img"].contains(&name.as_str()) {
                    open.push(name);
                }
            }
        }
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    seen
}
