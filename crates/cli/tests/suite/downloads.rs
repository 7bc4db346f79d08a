//! Download of a published dataset from a local server, and training on it.

mod network;

use std::{fs, io::Write, path::PathBuf, process::Command};

use overtone_testkit::dopamine::Recorder;
use overtone_testkit::web_server::{WebServer, answer_head};

use crate::desk::{Desk, ProgramOutput, names, project, said};

/// A datasets directory with only the dataset cards, in which a game's run has two files; and a
/// mirror's directory for each, as [`WebServer::of_folder`] serves it.
struct Mirror {
    desk: Desk,
    games: PathBuf,
    robots: PathBuf,
}

impl Mirror {
    fn new() -> Self {
        let desk = Desk::new();
        let datasets = desk.path("datasets");
        fs::create_dir_all(&datasets).unwrap();
        for card in ["dqn-replay.toml", "d4rl.toml"] {
            let text = fs::read_to_string(project().join("datasets").join(card)).unwrap();
            let text = text.replace("files = 50\nslots_per_file = 1000000", "files = 2");
            let text = text.replace("files = 2\n", "files = 2\nslots_per_file = 400\n");
            fs::write(datasets.join(card), text).unwrap();
        }
        let (games, robots) = (desk.path("mirror/dqn"), desk.path("mirror/d4rl"));
        let mut recorder = Recorder::new(&games, "Seaquest", 400);
        while recorder.files < 2 {
            recorder.episode(45);
        }
        fs::create_dir_all(&robots).unwrap();
        let starter = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
        fs::copy(starter, robots.join("hopper_medium-v2.hdf5")).unwrap();
        Self { desk, games, robots }
    }

    /// The program with the words of `line` and this datasets directory, without a proxy and with
    /// the system's authorities.
    fn command(&self, line: &str) -> Command {
        let mut command = self.desk.command(line);
        for proxy in ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] {
            command.env_remove(proxy).env_remove(proxy.to_lowercase());
        }
        command.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
        command.env("OVERTONE_DATASETS", self.desk.path("datasets"));
        command
    }

    fn run(&self, line: &str) -> ProgramOutput {
        said(self.command(line).output().unwrap())
    }

    #[track_caller]
    fn succeeds(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{line}\n{}", said.stdout);
        said.stdout
    }
}

#[test]
fn a_game_is_fetched_checked_and_trained_on() {
    let mirror = Mirror::new();
    let server = WebServer::of_folder(mirror.games.clone(), 100);
    let line = format!("download game=seaquest from=http://{}", server.address);
    // The plan does not download anything.
    let text = mirror.succeeds(&format!("{line} plan=true"));
    for part in ["data: The DQN Replay Dataset", "Seaquest, run 1, 2 of 2 files", "licence: See"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("plan: 12 of 12 files to fetch, "), "{text}");
    assert!(text.contains(" free)") && text.contains(" at 10 MB/s"), "{text}");
    assert_eq!(server.starts("GET").len(), 0);
    assert!(!mirror.desk.path("datasets/published").exists());
    // Each file's first answer breaks off after 100 bytes.
    let text = mirror.succeeds(&line);
    let run = "datasets/published/dqn-replay/Seaquest/1";
    let path = mirror.desk.path(run);
    assert!(text.contains(&format!("saved to {}", path.display())), "{text}");
    assert!(text.contains("use it:   overtone train game=seaquest"), "{text}");
    let logs = mirror.desk.path(run).join("replay_logs");
    let original = mirror.games.join("Seaquest/1/replay_logs");
    assert_eq!(names(&logs), names(&original));
    for name in names(&logs) {
        let same = fs::read(logs.join(&name)).unwrap() == fs::read(original.join(&name)).unwrap();
        assert!(same, "{name}");
    }
    assert!(server.starts("GET").contains(&100));
    // Again: nothing to do.
    let asked = server.requests.lock().unwrap().len();
    assert!(mirror.succeeds(&line).contains("plan: all 12 files are in "));
    assert_eq!(server.requests.lock().unwrap().len(), asked);
    // It passes the check, and training uses it.
    let lint = mirror.run(&format!("data lint {}", path.display()));
    assert_eq!(lint.code, Some(0), "{}", lint.stdout);
    assert!(lint.stdout.contains("compared with dqn-replay.toml"), "{}", lint.stdout);
    let tiny = crate::desk::TINY.replace("data.transitions=1500", "data.transitions=300");
    let text = mirror.succeeds(&format!("train {tiny}"));
    assert!(text.contains("data: the published DQN Replay Dataset in "), "{text}");
    // An incomplete dataset is not used.
    let last = "$store$_observation_ckpt.1.gz";
    fs::rename(logs.join(last), logs.join(format!("{last}.partial"))).unwrap();
    mirror.run(&format!("train {tiny}")).refused();
}

#[test]
fn some_files_of_a_game() {
    let mirror = Mirror::new();
    let server = WebServer::of_folder(mirror.games.clone(), usize::MAX);
    let line = format!("download game=Seaquest files=1 from=http://{}/", server.address);
    assert!(mirror.succeeds(&line).contains("1 of 2 files"));
    let logs = mirror.desk.path("datasets/published/dqn-replay/Seaquest/1/replay_logs");
    assert_eq!(names(&logs).len(), 6);
    assert!(names(&logs).iter().all(|name| name.ends_with("_ckpt.1.gz")), "{:?}", names(&logs));
    // Run 2 does not exist.
    let words = format!("{line} run=2 parallel=1");
    mirror.run(&words).refused();
}

#[test]
fn a_robot_is_fetched_and_trained_on() {
    let mirror = Mirror::new();
    let server = WebServer::of_folder(mirror.robots.clone(), 1_000_000);
    let from = format!("from=http://{}", server.address);
    let text = mirror.succeeds(&format!("download env=hopper dataset=medium {from}"));
    assert!(text.contains("plan: 1 of 1 files to fetch, 4 MB"), "{text}");
    assert_eq!(server.starts("GET"), [0, 1_000_000]);
    let file = mirror.desk.path("datasets/published/d4rl/hopper_medium-v2.hdf5");
    let original = mirror.robots.join("hopper_medium-v2.hdf5");
    assert!(fs::read(&file).unwrap() == fs::read(original).unwrap());
    let text = mirror.succeeds(
        "train env=hopper dataset=medium evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
         model.context_length=4 train.batch_size=4 train.updates=2",
    );
    assert!(text.contains("data: D4RL's hopper-medium as published, in "), "{text}");
}

#[test]
fn invalid_downloads_are_refused() {
    let mirror = Mirror::new();
    let refuses = |words: &str| {
        mirror.run(&format!("download {words}")).refused();
    };
    refuses("");
    refuses("game=seaquest env=hopper");
    refuses("game=seaqest");
    refuses("env=ant");
    refuses("env=hopper dataset=medum");
    refuses("game=seaquest run=../1");
    refuses("env=hopper files=3");
    refuses("game=seaquest dataset=medium");
    refuses("dataset=minari:mujoco/hopper/medium-v0 run=2");
    refuses("gymnasium=CartPole-v1");
    refuses("game=seaquest files=3");
    refuses("game=seaquest parallel=0");
    refuses("game=seaquest selection=all");
    refuses("game=seaquest from=mirror.org");
    refuses("gam=seaquest");
    // Nothing is written, and only the mirror gets requests.
    let elsewhere = WebServer::of_folder(mirror.games.clone(), usize::MAX);
    let to = format!("Location: http://{}/a", elsewhere.address);
    let server = WebServer::start(move |_, stream| {
        let headers = [to.clone(), "Content-Length: 0".into()];
        answer_head(stream, "302 Found", &headers);
    });
    let words = format!("game=seaquest parallel=1 from=http://{}", server.address);
    refuses(&words);
    assert_eq!(elsewhere.requests.lock().unwrap().len(), 0);
    assert_eq!(names(&mirror.desk.path("datasets")), ["d4rl.toml", "dqn-replay.toml"]);
    let help = mirror.succeeds("download --help");
    for key in ["game", "run", "files", "selection", "env", "dataset", "from", "parallel", "plan"] {
        assert!(help.contains(&format!("  {key}=")), "{key}: {help}");
    }
}

#[test]
fn a_page_in_place_of_a_dataset_is_not_kept() {
    let mirror = Mirror::new();
    fs::write(mirror.robots.join("hopper_medium-v2.hdf5"), "<!doctype html><html>").unwrap();
    let server = WebServer::of_folder(mirror.robots.clone(), usize::MAX);
    let said =
        mirror.run(&format!("download env=hopper dataset=medium from=http://{}", server.address));
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(
        said.stderr.contains("answers with a web page in place of the file"),
        "{}",
        said.stderr
    );
    let kept = mirror.desk.path("datasets/published/d4rl");
    assert_eq!(names(&kept), [""; 0]);
}

#[test]
fn fetched_bytes_of_an_unknown_size_are_counted() {
    let mirror = Mirror::new();
    let content = fs::read(mirror.robots.join("hopper_medium-v2.hdf5")).unwrap();
    let server = WebServer::start(move |request, stream| {
        answer_head(stream, "200 OK", &["Transfer-Encoding: chunked".into()]);
        if request.method == "GET" {
            let _ = stream.write_all(format!("{:x}\r\n", content.len()).as_bytes());
            let _ = stream.write_all(&content);
            let _ = stream.write_all(b"\r\n0\r\n\r\n");
        }
    });
    let from = format!("from=http://{}", server.address);
    let text = mirror.succeeds(&format!("download env=hopper dataset=medium {from}"));
    assert!(text.contains("of unknown size"), "{text}");
    assert!(text.contains("downloaded ") && !text.contains("downloaded 0 bytes"), "{text}");
}
