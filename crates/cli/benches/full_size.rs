//! The data path at full size: training on 500,000 transitions of a DQN-replay log of 600,000 slots
//! in six files (4.2 GB inflated). It needs 4 GB of disk and `just setup`.
//!
//! ```text
//! cargo bench --workspace --locked --features '' --bench full_size
//! cargo bench … --bench full_size -- dir=DIRECTORY parts=prepare,train,batches
//! ```
//!
//! The log repeats the real recording of the Seaquest starter set, so it compresses like a real
//! one. Its files have 100,000 slots, as the published Decision Transformer reads from each
//! published file. With `dir` the log and the converted data are kept there and used again;
//! otherwise the directory is temporary.
//!
//! - `prepare`: reading, hashing, converting and flushing 500,000 transitions, compared with
//!   `numpy.load` of the gzip files, which does not write, in one process and in one process per
//!   core; alternating.
//! - `train`: `overtone train` from the log, then again on converted data that is not in memory:
//!   waiting time for data, and peak memory. Resident memory includes pages of mapped files
//!   (`VmHWM`); the process's own memory (`RssAnon`) is printed next to it.
//! - `batches`: batches of 64 contexts per second, as tensors, compared with NumPy; alternating.

use std::{
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use overtone_core::picture::FRAME;
use overtone_data::{
    ActionColumn, Dataset, Loader, LoaderConfig, Origin, Preparation, ReplayLog, Sampling,
    Selection, WindowSampler,
};
use overtone_model::burn::tensor::Device;
use overtone_testkit::long_log::Recording;
use overtone_train::TrainingData;

const FILES: u32 = 6;
const SLOTS: usize = 100_000;
const TRANSITIONS: usize = 500_000;
const ROUNDS: usize = 3;
/// Optimizer steps of 16 contexts.
const UPDATES: usize = 60;
/// Contexts of a batch that is only assembled.
const BATCH: usize = 64;
const OUR_BATCHES: usize = 300;
/// Set for a child process that converts, to its directory.
const CONVERT: &str = "OVERTONE_FULL_SIZE_CONVERT";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    if let Some(folder) = env::var_os(CONVERT) {
        let start = Instant::now();
        let dataset = plan(Path::new(&folder))?.ensure(&mut |_, _| {})?;
        println!("{} {}", start.elapsed().as_secs_f64(), dataset.content_hash());
        return Ok(());
    }
    let option = |name: &str| env::args().find_map(|arg| arg.strip_prefix(name).map(String::from));
    let temporary = tempfile::tempdir()?;
    let folder = option("dir=").map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let parts = option("parts=").unwrap_or_else(|| "prepare,train,batches".into());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    if !game(&folder).is_dir() {
        let start = Instant::now();
        record(&folder)?;
        println!("the log was written in {:.0} s", start.elapsed().as_secs_f64());
    }
    let plan = plan(&folder)?;
    println!("{plan}; {threads} threads, {ROUNDS} rounds; median (least–largest)");
    if !plan.ready {
        plan.check_disk()?;
    }
    for part in parts.split(',') {
        match part {
            "prepare" => prepare(&folder, &plan, threads)?,
            "train" => train(&folder, &plan)?,
            "batches" => batches(&plan)?,
            other => return Err(format!("no part is called {other}").into()),
        }
    }
    Ok(())
}

fn game(folder: &Path) -> PathBuf {
    folder.join("Seaquest")
}

fn plan(folder: &Path) -> Result<Preparation> {
    let log = ReplayLog::open(&game(folder))?;
    let selection = Selection::uniform(TRANSITIONS);
    Ok(Preparation::new(log, Origin::other(), selection, 123, &folder.join("cache"))?)
}

/// Writes the log, of the starter set's episodes.
fn record(folder: &Path) -> Result<()> {
    let cache = folder.join("starter");
    let log = ReplayLog::open(&project().join("datasets/starter/Seaquest"))?;
    let all = Selection::uniform(usize::MAX);
    let starter = Preparation::new(log, Origin::other(), all, 1, &cache)?.ensure(&mut |_, _| {})?;
    let mut recording = Recording::default();
    let store = starter.frames().ok_or("no frames")?;
    let ActionColumn::Discrete { values, .. } = starter.actions() else {
        return Err("no game".into());
    };
    for episode in starter.episodes().as_slice() {
        let mut frames = vec![0; episode.length * FRAME];
        store.read(episode.start, &mut frames)?;
        let rows = episode.range();
        let actions: Vec<u8> = values[rows.clone()].iter().map(|&action| action as u8).collect();
        recording.push(&frames, &actions, &starter.rewards()[rows]);
    }
    recording.write(folder, "Seaquest", SLOTS, FILES);
    Ok(fs::remove_dir_all(cache)?)
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn python(words: &[&str]) -> Command {
    let mut command = Command::new(project().join(".venv/bin/python"));
    command.arg(project().join("scripts/peers/replay.py")).args(words);
    command
}

fn prepare(folder: &Path, plan: &Preparation, threads: usize) -> Result<()> {
    let logs = game(folder).join("1/replay_logs");
    let files: Vec<String> = (0..FILES)
        .map(|file| logs.join(format!("$store$_observation_ckpt.{file}.gz")))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let mut rows: [Vec<[f64; 2]>; 3] = Default::default();
    let mut hash = String::new();
    for _ in 0..ROUNDS {
        if plan.store.exists() {
            fs::remove_file(&plan.store)?;
        }
        let mut convert = Command::new(env::current_exe()?);
        convert.env(CONVERT, folder);
        let ours = watch(vec![convert])?;
        let (seconds, content) = ours.said[0].trim().split_once(' ').ok_or("no seconds")?;
        rows[0].push([seconds.parse()?, ours.peak_mb]);
        hash = content.to_owned();
        for (row, processes) in [(1, 1), (2, threads)] {
            let shares = (0..processes).map(|process| {
                let share = files.iter().skip(process).step_by(processes);
                python(
                    &["inflate"].into_iter().chain(share.map(String::as_str)).collect::<Vec<_>>(),
                )
            });
            let peer = watch(shares.collect())?;
            rows[row].push([peer.seconds, peer.peak_mb]);
        }
    }
    println!("\ncontent {hash}, estimate of the plan {:.0} MB\n", plan.memory_bytes as f64 / 1e6);
    println!("| preparing | seconds | ratio | peak memory, MB |\n| --- | --- | --- | --- |");
    let names = [
        "Overtone: inflated, hashed, written, flushed",
        "`np.load` of each gzip file, one process",
        "the same, one process a core",
    ];
    for (name, row) in names.iter().zip(&rows) {
        let [seconds, memory] = [0, 1].map(|i| row.iter().map(|r| r[i]).collect::<Vec<_>>());
        let ratios = row.iter().zip(&rows[0]).map(|(a, b)| a[0] / b[0]).collect::<Vec<_>>();
        println!(
            "| {name} | {} | {}× | {:.0} |",
            range(&seconds),
            range(&ratios),
            largest(&memory)
        );
    }
    Ok(())
}

fn train(folder: &Path, plan: &Preparation) -> Result<()> {
    println!(
        "\n| `overtone train`, {UPDATES} updates | seconds of training | waited for data | peak resident, MB | of it its own | of mapped files |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for name in ["from the log on", "converted data, not in memory"] {
        if name == "from the log on" {
            if plan.store.exists() {
                fs::remove_dir_all(folder.join("cache"))?;
            }
        } else {
            let stores = fs::read_dir(folder.join("cache"))?;
            let store = stores.flatten().next().ok_or("nothing was converted")?.path();
            let store = store.join("frames.safetensors");
            watch(vec![python(&["forget", &store.to_string_lossy()])])?;
        }
        let runs = tempfile::tempdir()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_overtone"));
        command
            .args(["train", "game=seaquest", "device=cpu", "profile=quick", "resume=never"])
            .args(["evaluation.episodes=0", &format!("train.updates={UPDATES}")])
            .arg(format!("data.path={}", game(folder).display()))
            .arg(format!("data.transitions={TRANSITIONS}"))
            .arg(format!("data.cache={}", folder.join("cache").display()))
            .arg(format!("runs={}", runs.path().display()))
            .env("OVERTONE_DATASETS", project().join("datasets"));
        let watched = watch(vec![command])?;
        let run = fs::read_dir(runs.path())?.flatten().next().ok_or("no run")?.path();
        let metrics = fs::read_to_string(run.join("metrics.csv"))?;
        let last = |column: &str| -> Result<f64> {
            let at = metrics
                .lines()
                .next()
                .and_then(|header| header.split(',').position(|name| name.trim() == column));
            let value = at.and_then(|at| metrics.lines().last()?.split(',').nth(at));
            Ok(value.ok_or(column.to_owned())?.trim().parse()?)
        };
        println!(
            "| {name} | {:.0} | {:.2} % | {:.0} | {:.0} | {:.0} |",
            last("seconds")?,
            100.0 * last("waited_share")?,
            watched.peak_mb,
            watched.anonymous_mb,
            watched.file_mb,
        );
    }
    Ok(())
}

fn batches(plan: &Preparation) -> Result<()> {
    let dataset = Arc::new(plan.ensure(&mut |_, _| {})?);
    // Into the system's cache with all of it: copying is compared here, not disks.
    io::copy(&mut fs::File::open(&plan.store)?, &mut io::sink())?;
    let store = plan.store.to_string_lossy().into_owned();
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        rates[0].push(our_batches(dataset.clone())?);
        for (row, form, count) in [(1, "frames", "100"), (2, "reference", "5")] {
            let words = ["batches", &store, "--form", form, "--count", count];
            let said = watch(vec![python(&words)])?.said;
            let rate = said[0].split(['{', '}', ':']).nth(2).ok_or("no rate")?;
            rates[row].push(rate.trim().parse()?);
        }
    }
    println!("\n| batches of {BATCH} × 30 | a second | Overtone is |\n| --- | --- | --- |");
    let names = [
        "Overtone, one thread, as tensors",
        "NumPy, bytes, every frame once",
        "NumPy, float32 stacks, as the published dataset",
    ];
    for (name, row) in names.iter().zip(&rates) {
        let ratios = rates[0].iter().zip(row).map(|(a, b)| a / b).collect::<Vec<_>>();
        println!("| {name} | {} | {}× |", range(row), range(&ratios));
    }
    Ok(())
}

/// Batches a second that reach the device, on the CPU.
fn our_batches(dataset: Arc<Dataset>) -> Result<f64> {
    let sampler = WindowSampler::new(dataset.index().clone(), Sampling::Uniform, 30, 1)?;
    let data = TrainingData::new(dataset.clone(), 1.0);
    let mut loader =
        Loader::new(dataset, sampler, LoaderConfig { threads: 1, ..LoaderConfig::new(BATCH) })?;
    let device = Device::flex();
    let mut start = Instant::now();
    let warm_up = 20;
    for batch in 0..warm_up + OUR_BATCHES {
        if batch == warm_up {
            start = Instant::now();
        }
        let mut batch = loader.next()?;
        drop(data.contexts(&mut batch, &device));
        loader.recycle(batch);
    }
    Ok(OUR_BATCHES as f64 / start.elapsed().as_secs_f64())
}

/// Measurements of processes that ran at the same time.
struct Watched {
    seconds: f64,
    /// Sum of the processes' peak resident memory, in MB.
    peak_mb: f64,
    anonymous_mb: f64,
    file_mb: f64,
    /// Output of each process.
    said: Vec<String>,
}

/// Runs `commands` at the same time, and samples their memory every few milliseconds.
fn watch(commands: Vec<Command>) -> Result<Watched> {
    let start = Instant::now();
    let children: Vec<_> = commands
        .into_iter()
        .map(|mut command| command.stdout(Stdio::piped()).spawn())
        .collect::<io::Result<_>>()?;
    let watchers: Vec<_> = children
        .into_iter()
        .map(|mut child| {
            thread::spawn(move || -> io::Result<_> {
                let mut peaks = [0.0f64; 3];
                while child.try_wait()?.is_none() {
                    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
                    for (peak, field) in peaks.iter_mut().zip(["VmHWM:", "RssAnon:", "RssFile:"]) {
                        *peak = peak.max(mb(&status, field));
                    }
                    thread::sleep(Duration::from_millis(5));
                }
                Ok((peaks, child.wait_with_output()?))
            })
        })
        .collect();
    let mut watched =
        Watched { seconds: 0.0, peak_mb: 0.0, anonymous_mb: 0.0, file_mb: 0.0, said: Vec::new() };
    for watcher in watchers {
        let ([peak, anonymous, file], output) =
            watcher.join().map_err(|_| "a watching thread panicked")??;
        if !output.status.success() {
            return Err(format!("a process ended with {}", output.status).into());
        }
        watched.peak_mb += peak;
        watched.anonymous_mb += anonymous;
        watched.file_mb += file;
        watched.said.push(String::from_utf8(output.stdout)?);
    }
    watched.seconds = start.elapsed().as_secs_f64();
    Ok(watched)
}

/// A field of `/proc/<process>/status`, in MB.
fn mb(status: &str, field: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kb.unwrap_or(0.0) * 1024.0 / 1e6
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// `median (least–largest)`.
fn range(values: &[f64]) -> String {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let digits = if values[0] < 10.0 { 2 } else { 0 };
    let [median, least, most] = [values.len() / 2, 0, values.len() - 1].map(|i| values[i]);
    format!("{median:.digits$} ({least:.digits$}–{most:.digits$})")
}
