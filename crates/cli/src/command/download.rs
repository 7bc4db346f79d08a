//! `overtone download`: a published dataset, into the datasets directory.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use overtone_console::{progress, quoted};
use overtone_core::Task;
use overtone_data::{
    DatasetCard, Kind, MinariId, Selection, datasets_folder,
    download::{DownloadOptions, DownloadPlan, DownloadProgress, Remote, shards, size},
    folder_of, minari_folder,
};
use overtone_env::Suite;
use overtone_settings::{options, suites};

use super::first_of;

overtone_model::options! {
    /// Options of `download`.
    pub struct DownloadWords {
        /// One of the 60 games of the DQN Replay Dataset: seaquest, pong, ms_pacman, … Set this,
        /// env, or a dataset of Minari's.
        pub game: String = String::new(),
        /// One of the game's five runs, 1 to 5; training uses 1 by default.
        pub run: String = "1".into(),
        /// Number of the run's 50 files, with a million slots each; 0: all of them, as the paper
        /// profile needs for both selections.
        pub files: u32 = 0,
        /// The files, if not all, for this data.selection in training: uniform (evenly spaced) or
        /// released (the last ones).
        pub selection: String = "uniform".into(),
        /// A robot of D4RL: hopper, halfcheetah or walker2d.
        pub env: String = String::new(),
        /// The robot's dataset: random, medium, expert, medium_replay, full_replay or
        /// medium_expert; or, without game and env, a dataset of Minari's hub:
        /// minari:mujoco/hopper/medium-v0.
        pub dataset: String = "medium".into(),
        /// A mirror: the address of the directory with Seaquest/1/replay_logs/… or
        /// hopper_medium-v2.hdf5, or of a mirror of huggingface.co for Minari's datasets. Empty:
        /// the public address in the dataset card; for Minari's HF_ENDPOINT, else huggingface.co.
        pub from: String = String::new(),
        /// Parallel downloads; more would burden a public server.
        pub parallel: usize = 4,
        /// true: print the plan, and download nothing.
        pub plan: bool = false,
    }
}

/// Interval of progress lines without a terminal for a bar.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Keys that select files of a log.
const OF_LOGS: [&str; 3] = ["run", "files", "selection"];

/// The address of Minari's hub.
const HUB: &str = "https://huggingface.co";

/// A planned download.
struct PlannedDownload {
    /// The dataset in one sentence, with its license terms.
    title: String,
    licence: String,
    remote: Remote,
    /// The directory of its files.
    folder: PathBuf,
    /// The path of the dataset in that directory.
    path: PathBuf,
    /// The words after `train` that use the dataset.
    train: String,
}

/// `overtone download key=value…`.
pub fn run(words: &[String]) -> Result<()> {
    let (words, task) = overtone_settings::named_tasks(words, None)?;
    let wanted: DownloadWords = options::read(&words)?;
    let parallel = wanted.parallel;
    ensure!((1..=16).contains(&parallel), "parallel={parallel}: expected 1 to 16");
    let options = DownloadOptions { parallel, ..DownloadOptions::default() };
    let planned = match (MinariId::of(&wanted.dataset)?, task) {
        (Some(id), None) => {
            if let Some(word) = first_of(&words, &OF_LOGS) {
                bail!(
                    "{word} applies only to games. Leave it out: a dataset of Minari's is \
                     downloaded as a whole"
                );
            }
            of_minari(&id, &wanted, &options)?
        }
        (Some(id), Some(_)) => {
            bail!("dataset=minari:{id} already names its task. Leave out the task")
        }
        (None, None) => bail!(
            "no dataset is set. Use game=seaquest (or another of the 60 games of DQN-replay); or \
             env=hopper, halfcheetah or walker2d with dataset=medium; or \
             dataset=minari:mujoco/hopper/medium-v0"
        ),
        (None, Some(task)) => files_of(task, &wanted, &words, &datasets_folder()?)?,
    };
    say!("data: {}", planned.title);
    say!("licence: {}", planned.licence);
    say!("from: {}", planned.remote.hosts.join(", "));
    let plan = DownloadPlan::new(planned.remote, &planned.folder, options)?;
    say!("plan: {plan}");
    if wanted.plan {
        for file in &plan.files {
            let bytes = file.bytes.map_or("?".into(), size);
            say!("{bytes:>11}  {}", file.remote.path.display());
        }
    }
    plan.check_disk()?;
    if wanted.plan {
        return Ok(());
    }
    if !plan.ready() {
        fetch(&plan)?;
    }
    let path = planned.folder.join(planned.path);
    say!("saved to {}", path.display());
    say!("check it: overtone data lint {}", quoted(&path));
    say!("use it:   overtone train {}", planned.train);
    Ok(())
}

/// The files of a dataset on Minari's hub.
fn of_minari(
    id: &MinariId,
    wanted: &DownloadWords,
    options: &DownloadOptions,
) -> Result<PlannedDownload> {
    let hub = match wanted.from.clone() {
        from if from.is_empty() => {
            let endpoint = env::var("HF_ENDPOINT").ok().filter(|address| !address.is_empty());
            endpoint.unwrap_or_else(|| HUB.into())
        }
        from => from,
    };
    Ok(PlannedDownload {
        title: format!("Minari's {id}"),
        licence: format!("as {} says", id.page(&hub)),
        remote: id.remote(&hub, options)?,
        folder: minari_folder()?,
        path: id.to_string().into(),
        train: format!("dataset=minari:{id}"),
    })
}

/// The files of a task that the suite's own key names.
fn files_of(
    task: &'static Task,
    wanted: &DownloadWords,
    words: &[String],
    datasets: &Path,
) -> Result<PlannedDownload> {
    let suite = suites::of(task)?;
    ensure!(
        options::has::<DownloadWords>(suite.key()),
        "{}: this suite does not have published data to download",
        task.id()
    );
    let mut cards = published(datasets)?.into_iter();
    let card = cards
        .find(|card| card.name_of(task).is_some())
        .with_context(|| format!("no dataset card in {} has {}", datasets.display(), task.name))?;
    // A log of many files is one of several runs.
    let address = card.download.as_ref().map_or("", |download| &download.address);
    if address.contains("{file}") {
        if let Some(word) = first_of(words, &["dataset"]) {
            bail!("{word}: the datasets of {} are numbered runs. Use run=1", task.title);
        }
        return log_files(suite, task, card, wanted, datasets);
    }
    if let Some(word) = first_of(words, &OF_LOGS) {
        bail!(
            "{word} applies only to games. Leave it out: a dataset of {} is one file",
            task.title
        );
    }
    let dataset = card.dataset(&wanted.dataset)?.to_owned();
    let name = card.name_of(task).unwrap_or_default().to_owned();
    let card = mirrored(card, &wanted.from)?;
    Ok(PlannedDownload {
        title: format!("{}: {name}, {dataset}", card.title),
        remote: card.remote(&name, &dataset, &[])?,
        folder: folder_of(Kind::Published, datasets)?,
        path: card.place(&name, &dataset),
        licence: card.licence,
        train: format!("{}={} dataset={dataset}", suite.key(), task.name),
    })
}

/// The files of one run of a log.
fn log_files(
    suite: &dyn Suite,
    task: &Task,
    card: DatasetCard,
    wanted: &DownloadWords,
    datasets: &Path,
) -> Result<PlannedDownload> {
    let run = &wanted.run;
    // Checked before any request, which could only report a missing file.
    if run.parse::<u32>().is_ok() && !card.datasets.contains(run) {
        let (n, noun) = (card.datasets.len(), suite.nouns()[0]);
        let (first, last) = (card.datasets.first(), card.datasets.last());
        let (first, last) = (first.map_or("", |run| run), last.map_or("", |run| run));
        bail!("run={run}: a {noun} has {n} runs, {first} to {last}");
    }
    let n_files = card.counts_of(None).and_then(|counts| u32::try_from(counts.files?).ok());
    let n_files = n_files.with_context(|| {
        format!("{}.toml does not contain the number of files of a run", card.name)
    })?;
    let files = wanted.files;
    ensure!(files <= n_files, "files={files}: expected 0 to {n_files}");
    let at_most = Some(files).filter(|&files| files > 0);
    let selection = match wanted.selection.as_str() {
        "uniform" => Selection::uniform(0),
        "released" => Selection::RELEASED,
        other => bail!("selection={other}: expected uniform or released"),
    };
    let numbers = shards(&selection, n_files, at_most);
    let name = card.name_of(task).unwrap_or_default().to_owned();
    let card = mirrored(card, &wanted.from)?;
    let remote = card.remote(&name, run, &numbers)?;
    let words = if run == "1" { String::new() } else { format!(" data.run={run}") };
    Ok(PlannedDownload {
        title: format!("{}: {name}, run {run}, {} of {n_files} files", card.title, numbers.len()),
        remote,
        folder: folder_of(Kind::Published, datasets)?,
        path: card.place(&name, run),
        licence: card.licence,
        train: format!("{}={}{words}", suite.key(), task.name),
    })
}

/// The dataset card with the mirror's address, if one is set.
fn mirrored(card: DatasetCard, from: &str) -> Result<DatasetCard> {
    Ok(match from {
        "" => card,
        base => card.from_mirror(base)?,
    })
}

/// The dataset cards of published datasets.
fn published(datasets: &Path) -> Result<Vec<DatasetCard>> {
    let mut cards = DatasetCard::load_all(datasets)?;
    cards.retain(|card| card.kind == Kind::Published);
    Ok(cards)
}

/// Downloads with progress: a bar on a terminal, else a line from time to time.
fn fetch(plan: &DownloadPlan) -> Result<()> {
    let there = plan.there();
    let bar = progress::download(there, there.saturating_add(plan.bytes));
    let began = Instant::now();
    let last_line = Mutex::new(began);
    plan.fetch(&|progress| {
        bar.set_length(progress.total.max(progress.bytes));
        bar.set_position(progress.bytes);
        if !bar.is_hidden() {
            bar.set_message(how_far(progress, there, began.elapsed()));
        } else if let Ok(mut last_line) = last_line.lock()
            && last_line.elapsed() >= LINE_EVERY
        {
            *last_line = Instant::now();
            say!("{}", how_far(progress, there, began.elapsed()));
        }
    })?;
    // A plan may not know the size.
    let fetched = bar.position().saturating_sub(there);
    bar.finish_and_clear();
    let rate = fetched as f64 / began.elapsed().as_secs_f64().max(1e-3);
    say!("downloaded {} at {}/s", size(fetched), size(rate as u64));
    Ok(())
}

/// Progress as text: bytes, the rate since `first` bytes, and the remaining time.
fn how_far(progress: DownloadProgress, first: u64, elapsed: Duration) -> String {
    let DownloadProgress { bytes, total, files } = progress;
    let rate = bytes.saturating_sub(first) as f64 / elapsed.as_secs_f64().max(1e-3);
    let so_far = format!("{} of {}, whole files: {files}", size(bytes), size(total));
    if rate < 1.0 {
        return so_far;
    }
    let left = total.saturating_sub(bytes) as f64 / rate / 60.0;
    format!("{so_far}, {}/s, about {} min left", size(rate as u64), left.ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is() {
        let progress = DownloadProgress { bytes: 70_000_000, total: 19_070_000_000, files: 3 };
        let progress_text = how_far(progress, 10_000_000, Duration::from_secs(6));
        // 60 MB in 6 s, and 19 GB to come: 1,900 s.
        assert_eq!(progress_text, "70 MB of 19.1 GB, whole files: 3, 10 MB/s, about 32 min left");
        let nothing = how_far(progress, 70_000_000, Duration::from_secs(6));
        assert_eq!(nothing, "70 MB of 19.1 GB, whole files: 3");
    }
}
