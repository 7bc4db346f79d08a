//! `overtone download`: a published dataset, fetched into the folder of datasets.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use overtone_console::quoted;
use overtone_core::Task;
use overtone_data::{
    DatasetCard, Kind, MinariId, Selection, datasets_folder,
    download::{DownloadOptions, DownloadPlan, DownloadProgress, Remote, shards, size},
    folder_of, minari_folder,
};
use overtone_env::Suite;

use super::said;
use crate::{
    keys::{self, Keys, text},
    progress,
    suites::{self, SUITES},
};

/// Every option with its default and reason.
pub const OPTIONS: &str = r#"
# A game of the DQN Replay Dataset, which has 60: seaquest, pong, ms_pacman, … This, env, or a dataset of Minari's must be given.
game = ""
# Which of the game's five runs, 1 to 5; training takes 1 unless told otherwise.
run = "1"
# How many of the run's 50 files, a million slots each; 0: all of them, which both rules of the paper profile draw from.
files = 0
# Which files, if not all, by data.selection in training: uniform (spread evenly from the first to the last) or released (the last ones).
selection = "uniform"
# A robot of D4RL: hopper, halfcheetah or walker2d.
env = ""
# Which of the robot's recordings: random, medium, expert, medium_replay, full_replay or medium_expert; or, without game and env, one of Minari's hub: minari:mujoco/hopper/medium-v0.
dataset = "medium"
# A mirror to fetch from: the address of the folder that holds Seaquest/1/replay_logs/… or hopper_medium-v2.hdf5, or of a mirror of huggingface.co for Minari's; empty: the public address in the dataset's description, and for Minari's HF_ENDPOINT, else huggingface.co.
from = ""
# Files at a time; more is not kind to a public server.
parallel = 4
# true: say what would be fetched, and fetch nothing.
plan = false
"#;

/// How often it is told how far the work is where there is no terminal for a bar.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Keys that say which files of a log.
const OF_LOGS: [&str; 3] = ["run", "files", "selection"];

/// Where Minari's hub is.
const HUB: &str = "https://huggingface.co";

/// What is to be fetched.
struct Wanted {
    /// The dataset in one sentence, and its terms.
    title: String,
    licence: String,
    remote: Remote,
    /// The folder that its files go to.
    folder: PathBuf,
    /// Where it will be, below that.
    path: PathBuf,
    /// The words after `train` that use it.
    train: String,
}

/// `overtone download key=value…`.
pub fn run(options: &[String]) -> Result<()> {
    let mut keys = keys::given(OPTIONS, &[])?;
    let words = suites::in_short_form(options)?;
    for word in &words {
        let (key, name) = keys::split(word)?;
        if let (Some(suite), None) = (suites::by_key(&key), keys.get(&key)) {
            bail!("{}/{name}: this suite has no published data to download", suite.name());
        }
    }
    keys::apply(&mut keys, &words)?;
    let options = DownloadOptions {
        parallel: usize::try_from(whole(&keys, "parallel", 1, 16)?)?,
        ..DownloadOptions::default()
    };
    let asked = SUITES.into_iter().filter(|suite| !text(&keys, suite.key()).is_empty());
    let minari = MinariId::of(&text(&keys, "dataset"))?;
    let wanted = match (minari, asked.collect::<Vec<_>>().as_slice()) {
        (Some(id), []) => {
            if let Some(word) = said(&words, &OF_LOGS) {
                bail!("{word} is for games; a dataset of Minari's is fetched as a whole");
            }
            of_minari(&id, &keys, &options)?
        }
        (Some(id), _) => bail!("dataset=minari:{id} is all that is needed: leave out the task"),
        (None, []) => bail!(
            "which data? Say game=seaquest (or another of the 60 games of DQN-replay); or \
             env=hopper, halfcheetah or walker2d with dataset=medium; or \
             dataset=minari:mujoco/hopper/medium-v0"
        ),
        (None, [suite]) => files_of(*suite, &keys, &words, &datasets_folder()?)?,
        (None, _) => bail!("game=… and env=… are two downloads: give one of them"),
    };
    say!("data: {}", wanted.title);
    say!("licence: {}", wanted.licence);
    say!("from: {}", wanted.remote.hosts.join(", "));
    let plan = DownloadPlan::new(wanted.remote, &wanted.folder, options)?;
    say!("plan: {plan}");
    if text(&keys, "plan") == "true" {
        for file in &plan.files {
            let bytes = file.bytes.map_or("?".into(), size);
            say!("{bytes:>11}  {}", file.remote.path.display());
        }
    }
    plan.check_disk()?;
    if text(&keys, "plan") == "true" {
        return Ok(());
    }
    if !plan.ready() {
        fetch(&plan)?;
    }
    let path = wanted.folder.join(wanted.path);
    say!("it is in {}", path.display());
    say!("check it: overtone data lint {}", quoted(&path));
    say!("use it:   overtone train {}", wanted.train);
    Ok(())
}

/// The files of a dataset on Minari's hub.
fn of_minari(id: &MinariId, keys: &Keys, options: &DownloadOptions) -> Result<Wanted> {
    let hub = match text(keys, "from") {
        from if from.is_empty() => {
            let said = env::var("HF_ENDPOINT").ok().filter(|said| !said.is_empty());
            said.unwrap_or_else(|| HUB.into())
        }
        from => from,
    };
    Ok(Wanted {
        title: format!("Minari's {id}"),
        licence: format!("as {} says", id.page(&hub)),
        remote: id.remote(&hub, options)?,
        folder: minari_folder()?,
        path: id.to_string().into(),
        train: format!("dataset=minari:{id}"),
    })
}

/// The files of the task that is asked for by a suite's own key.
fn files_of(
    suite: &'static dyn Suite,
    keys: &Keys,
    words: &[String],
    datasets: &Path,
) -> Result<Wanted> {
    let task = suite.task(&text(keys, suite.key()))?;
    let mut cards = published(datasets)?.into_iter();
    let card = cards
        .find(|card| card.name_of(task).is_some())
        .with_context(|| format!("no description in {} has {}", datasets.display(), task.name))?;
    // A log of many files is one of several runs.
    let address = card.download.as_ref().map_or("", |download| &download.address);
    if address.contains("{file}") {
        if let Some(word) = said(words, &["dataset"]) {
            bail!("{word}: the recordings of {} are runs; say run=1", task.title);
        }
        return log_files(suite, task, card, keys, datasets);
    }
    if let Some(word) = said(words, &OF_LOGS) {
        bail!("{word} is for games; a recording of {} is one file", task.title);
    }
    let dataset = card.dataset(&text(keys, "dataset"))?.to_owned();
    let name = card.name_of(task).unwrap_or_default().to_owned();
    let card = mirrored(card, keys)?;
    Ok(Wanted {
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
    keys: &Keys,
    datasets: &Path,
) -> Result<Wanted> {
    let run = text(keys, "run");
    // Not asked of the network, which would say no more than that there is none.
    if run.parse::<u32>().is_ok() && !card.datasets.contains(&run) {
        let (n, noun) = (card.datasets.len(), suite.nouns()[0]);
        let (first, last) = (card.datasets.first(), card.datasets.last());
        let (first, last) = (first.map_or("", |run| run), last.map_or("", |run| run));
        bail!("run={run}: a {noun} has {n} runs, {first} to {last}");
    }
    let n_files = card.counts_of(None).and_then(|counts| u32::try_from(counts.files?).ok());
    let n_files = n_files
        .with_context(|| format!("{}.toml does not say how many files a run has", card.name))?;
    let at_most = whole(keys, "files", 0, i64::from(n_files))?;
    let at_most = u32::try_from(at_most).ok().filter(|&files| files > 0);
    let selection = match text(keys, "selection").as_str() {
        "uniform" => Selection::uniform(0),
        "released" => Selection::RELEASED,
        other => bail!("selection={other}: there are uniform and released"),
    };
    let numbers = shards(&selection, n_files, at_most);
    let name = card.name_of(task).unwrap_or_default().to_owned();
    let card = mirrored(card, keys)?;
    let remote = card.remote(&name, &run, &numbers)?;
    let words = if run == "1" { String::new() } else { format!(" data.run={run}") };
    Ok(Wanted {
        title: format!("{}: {name}, run {run}, {} of {n_files} files", card.title, numbers.len()),
        remote,
        folder: folder_of(Kind::Published, datasets)?,
        path: card.place(&name, &run),
        licence: card.licence,
        train: format!("{}={}{words}", suite.key(), task.name),
    })
}

/// The description with the mirror's address, where one is given.
fn mirrored(card: DatasetCard, keys: &Keys) -> Result<DatasetCard> {
    Ok(match text(keys, "from").as_str() {
        "" => card,
        base => card.from_mirror(base)?,
    })
}

/// The descriptions of published datasets.
fn published(datasets: &Path) -> Result<Vec<DatasetCard>> {
    let mut cards = DatasetCard::load_all(datasets)?;
    cards.retain(|card| card.kind == Kind::Published);
    Ok(cards)
}

/// Fetches, and says how far it is: a bar on a terminal, else a line from time to time.
fn fetch(plan: &DownloadPlan) -> Result<()> {
    let there = plan.there();
    let bar = progress::download(there, there.saturating_add(plan.bytes));
    let began = Instant::now();
    let told = Mutex::new(began);
    plan.fetch(&|progress| {
        bar.set_length(progress.total.max(progress.bytes));
        bar.set_position(progress.bytes);
        if !bar.is_hidden() {
            bar.set_message(how_far(progress, there, began.elapsed()));
        } else if let Ok(mut told) = told.lock()
            && told.elapsed() >= TELL_EVERY
        {
            *told = Instant::now();
            say!("{}", how_far(progress, there, began.elapsed()));
        }
    })?;
    bar.finish_and_clear();
    let fetched = plan.bytes as f64 / began.elapsed().as_secs_f64().max(1e-3);
    say!("fetched {} at {}/s", size(plan.bytes), size(fetched as u64));
    Ok(())
}

/// How much is there, how fast it came since `first` bytes were, and how long it will take.
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

/// A whole number between `least` and `most`.
fn whole(keys: &Keys, key: &str, least: i64, most: i64) -> Result<i64> {
    match keys.get(key).and_then(toml::Value::as_integer) {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ => bail!("{key}={}: must be between {least} and {most}", text(keys, key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is() {
        let progress = DownloadProgress { bytes: 70_000_000, total: 19_070_000_000, files: 3 };
        let said = how_far(progress, 10_000_000, Duration::from_secs(6));
        // 60 MB in 6 s, and 19 GB to come: 1,900 s.
        assert_eq!(said, "70 MB of 19.1 GB, whole files: 3, 10 MB/s, about 32 min left");
        let nothing = how_far(progress, 70_000_000, Duration::from_secs(6));
        assert_eq!(nothing, "70 MB of 19.1 GB, whole files: 3");
    }
}
