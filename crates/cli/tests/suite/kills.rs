//! Processes that end before their work does.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    desk::{
        Desk, Running, checkpoint, copy, curves, interrupt, names, project, said, same_run, steps,
        wait_until,
    },
    runs::events_agree_with_metrics,
};

/// A run that takes a second or two.
const LONG: &str = "train.updates=160 train.log_every=1 train.checkpoint_every=5";
const UPDATES: u64 = 160;

fn newest(desk: &Desk, runs: &str) -> u64 {
    let names = names(&desk.path(runs));
    let run = names.first().map(|name| desk.path(runs).join(name));
    run.and_then(|run| steps(&run).last().copied()).unwrap_or(0)
}

/// A run that nothing interrupted.
fn undisturbed(desk: &Desk) -> PathBuf {
    desk.succeeds(&desk.tiny(&format!("{LONG} runs=whole")));
    desk.only_run("whole")
}

#[test]
fn killed_training_resumes_to_the_same_end() {
    let desk = Desk::new();
    let whole = undisturbed(&desk);
    // The same words resume the run, and so does `resume`: killed three times.
    let train = desk.tiny(LONG);
    for (line, from) in [(train.as_str(), 10), (train.as_str(), 40), ("resume", 80)] {
        let child = Running::start(desk.command(line));
        wait_until("checkpoints", || newest(&desk, "runs") >= from);
        child.kill();
    }
    let run = desk.only_run("runs");
    let killed_at = newest(&desk, "runs");
    assert!((80..UPDATES).contains(&killed_at), "{killed_at}");
    // The remains of a killed writer.
    let half = run.join("checkpoints/.step-00000123.1");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("model.safetensors"), "half").unwrap();

    let stdout = desk.succeeds("resume");
    assert!(stdout.contains(&format!("resuming after update {killed_at} from ")), "{stdout}");
    same_run(&run, &whole, UPDATES);
    let logged: Vec<u64> = curves(&run).iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(logged.into_iter().eq(1..=UPDATES), "a gap, or a step twice");
    assert!(!half.exists(), "a leftover stays");
    assert_eq!(steps(&run), [150, 155, 160]);
    events_agree_with_metrics(&run);
}

#[test]
fn killed_before_its_first_checkpoint() {
    let desk = Desk::new();
    let line = desk.tiny("train.updates=100000 train.checkpoint_every=100000");
    let child = Running::start(desk.command(&line));
    wait_until("a run", || !names(&desk.path("runs")).is_empty());
    let run = desk.only_run("runs");
    wait_until("its configuration", || run.join("config.toml").is_file());
    child.kill();
    desk.refuses("evaluate rollouts");
    // As short as the others, because only the start is tested.
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    fs::write(run.join("config.toml"), config.replace("updates = 100000", "updates = 4")).unwrap();
    let stdout = desk.succeeds("resume");
    assert!(stdout.contains("starting over from update 0"), "{stdout}");
    assert_eq!(steps(&run), [4]);
}

#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    let desk = Desk::new();
    let whole = undisturbed(&desk);
    let child = desk.command(&desk.tiny(LONG)).spawn().unwrap();
    wait_until("checkpoints", || newest(&desk, "runs") >= 10);
    interrupt(child.id());
    let said = said(child.wait_with_output().unwrap());
    // As for any interrupted program, so that scripts do not continue.
    assert_eq!(said.code, Some(130), "{said:?}");
    let run = desk.only_run("runs");
    let name = run.file_name().unwrap().to_string_lossy().into_owned();
    let how = format!("Interrupted. Resume with: overtone resume run=runs/{name}");
    assert!(said.stdout.ends_with(&format!("{how}\n")), "{said:?}");
    // The running step was finished and saved.
    let stopped: u64 = curves(&run).last().unwrap()[0].parse().unwrap();
    assert_eq!(newest(&desk, "runs"), stopped);
    assert!(stopped < UPDATES);
    desk.succeeds(&format!("resume run={name}"));
    same_run(&run, &whole, UPDATES);
}

#[test]
fn ctrl_c_ends_playing_as_it_ends_training() {
    let desk = Desk::new();
    let words = "env=hopper model.n_layers=1 model.d_model=16 train.batch_size=3 train.updates=2 \
                 evaluation.target=1800 evaluation.episodes=20000";
    let stopped = |line: &str, runs: &str| {
        let child = desk.command(&format!("{line} {words} runs={runs}")).spawn().unwrap();
        let runs = desk.path(runs);
        wait_until("a finished run", || {
            runs.is_dir() && names(&runs).iter().any(|run| runs.join(run).join("finished").exists())
        });
        // The evaluation takes minutes.
        std::thread::sleep(Duration::from_millis(300));
        interrupt(child.id());
        said(child.wait_with_output().unwrap())
    };
    let trained = stopped("train", "runs");
    assert_eq!(trained.code, Some(130), "{trained:?}");
    assert!(
        trained.stdout.contains("Interrupted. Resume with: overtone resume run="),
        "{trained:?}"
    );
    let study = stopped("study run name=long seed=1", "r");
    assert_eq!(study.code, Some(130), "{study:?}");
    assert!(study.stdout.contains("1 cell: 1 stopped"), "{study:?}");
    let how = "Interrupted. Resume with: overtone study resume long runs=r\n";
    assert!(study.stdout.contains(how), "{study:?}");
}

#[test]
fn ctrl_c_ends_a_conversion_and_nothing_is_left() {
    let desk = Desk::new();
    let log = project().join("datasets/starter/Seaquest");
    let mut command = desk.command(&format!("data convert {} new/seaquest", log.display()));
    let child = command.env("OVERTONE_DATASETS", desk.path("datasets")).spawn().unwrap();
    // Its inflated frames, and the partial output.
    for folder in ["datasets/cache", "new"] {
        wait_until(folder, || !names(&desk.path(folder)).is_empty());
    }
    interrupt(child.id());
    let said = said(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stderr.contains("stopped; nothing was kept"), "{said:?}");
    assert!(names(&desk.path("new")).is_empty() && names(&desk.path("datasets/cache")).is_empty());
}

#[test]
fn ctrl_c_ends_the_conversion_that_training_waits_for() {
    let desk = Desk::new();
    let log = project().join("datasets/starter/Seaquest");
    let line = format!("train game=seaquest data.path={} data.cache=cache", log.display());
    let child = desk.command(&line).spawn().unwrap();
    let partial = || {
        let folders =
            names(&desk.path("cache")).into_iter().map(|name| desk.path("cache").join(name));
        let mut files = folders.flat_map(|folder| names(&folder));
        files.any(|name| name.ends_with(".partial"))
    };
    wait_until("a conversion", || desk.path("cache").is_dir() && partial());
    interrupt(child.id());
    let said = said(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stderr.contains("stopped; no part of the prepared data was kept"), "{said:?}");
    assert!(!partial() && names(&desk.path("runs")).is_empty());
}

#[test]
fn one_process_trains_a_run() {
    let desk = Desk::new();
    let child = Running::start(desk.command(&desk.tiny("train.updates=100000")));
    wait_until("its configuration", || {
        names(&desk.path("runs")).iter().any(|run| {
            // The lock is taken before the configuration is written.
            desk.path("runs").join(run).join("config.toml").is_file()
        })
    });
    let said = desk.run("resume");
    said.refused();
    assert_eq!(said.stdout, "", "the data was read before");
    child.kill();
}

/// A run with checkpoints 2 and 4; `break_it` damages some of them.
fn broken(desk: &Desk, break_it: impl Fn(&Path)) -> PathBuf {
    desk.succeeds(&desk.tiny("train.checkpoint_every=2"));
    let run = desk.only_run("runs");
    copy(&run, &desk.path("whole"));
    fs::remove_file(run.join("finished")).unwrap();
    break_it(&run.join("checkpoints"));
    run
}

fn truncate(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
}

/// A damage to a file.
type Damage<'a> = &'a dyn Fn(&Path);

#[test]
fn a_broken_checkpoint_gives_way_to_the_one_before() {
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let at = bytes.len() - 100;
        bytes[at] ^= 4;
        fs::write(path, bytes).unwrap();
    };
    let breaks: [(&str, Damage); 4] = [
        ("model.safetensors", &truncate),
        ("optimizer.safetensors", &flip),
        ("state.json", &flip),
        ("model.safetensors", &|path| fs::remove_file(path).unwrap()),
    ];
    for (file, break_it) in breaks {
        let desk = Desk::new();
        let run =
            broken(&desk, |checkpoints| break_it(&checkpoints.join("step-00000004").join(file)));
        let said = desk.run("resume");
        assert_eq!(said.code, Some(0), "{said:?}");
        let warning = said.stderr.strip_prefix("warning: skipped a checkpoint: ").unwrap();
        assert_eq!(warning.lines().count(), 1, "{warning}");
        assert!(warning.contains(&format!("step-00000004/{file}")), "{warning}");
        assert!(said.stdout.contains("resuming after update 2"), "{said:?}");
        // It repeated the lost training, to the same bits.
        assert!(checkpoint(&run, 4) == checkpoint(&desk.path("whole"), 4));
    }
}

#[test]
fn without_a_whole_checkpoint_nothing_is_guessed() {
    let desk = Desk::new();
    let run = broken(&desk, |checkpoints| {
        for step in ["step-00000002", "step-00000004"] {
            truncate(&checkpoints.join(step).join("model.safetensors"));
        }
    });
    desk.refuses("evaluate rollouts episodes=1");
    desk.refuses("resume");
    // Training does not silently start over in that run either.
    let again = desk.tiny("train.checkpoint_every=2");
    desk.refuses(&again);
    assert_eq!(steps(&run), [2, 4]);
    desk.succeeds(&format!("{again} resume=never"));
    assert_eq!(names(&desk.path("runs")).len(), 2);
}

#[test]
fn killed_conversions_leave_nothing_that_lies() {
    let desk = Desk::new();
    let line = desk.tiny("data.transitions=20000 data.cache=cache");
    let find = |wanted: &dyn Fn(&str) -> bool| {
        let cache = desk.path("cache");
        let folders = names(&cache).into_iter().map(move |name| cache.join(name));
        folders.flat_map(|folder| names(&folder)).any(|name| wanted(&name))
    };
    let partial = |name: &str| name.ends_with(".partial");
    for _ in 0..2 {
        let child = Running::start(desk.command(&line));
        wait_until("a conversion", || find(&partial));
        child.kill();
        assert!(find(&partial) && !find(&|name| name == "frames.safetensors"), "not killed in it");
    }
    let dataset =
        |text: &str| text.lines().find(|line| line.starts_with("dataset: ")).map(str::to_owned);
    let after = dataset(&desk.succeeds(&line));
    assert!(!find(&partial), "a leftover stays");
    let clean = dataset(&desk.succeeds(&line.replace("data.cache=cache", "data.cache=clean")));
    assert!(after.is_some() && after == clean, "{after:?} {clean:?}");
}
