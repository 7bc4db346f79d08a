//! Which files a dataset's description names, and from where; a set that is not whole.

use std::fs;
use std::path::Path;

use overtone_data::download::DownloadError;
use overtone_data::error::Fault;
use overtone_data::{DataError, DatasetCard, locate};

use crate::starter::datasets;
use crate::tasks;

#[test]
fn a_mirror_has_the_same_files() {
    let games = DatasetCard::load(&datasets().join("dqn-replay.toml")).unwrap();
    let at = |base: &str| games.clone().from_mirror(base);
    let remote = at("http://127.0.0.1:8000/dqn/").unwrap().remote("Seaquest", "1", &[0]).unwrap();
    assert_eq!(remote.hosts, ["127.0.0.1:8000"]);
    let first = "http://127.0.0.1:8000/dqn/Seaquest/1/replay_logs/add_count_ckpt.0.gz";
    assert_eq!(remote.files[0].url, first);
    let robots = DatasetCard::load(&datasets().join("d4rl.toml")).unwrap();
    let remote = robots.from_mirror("https://Mirror.org").unwrap().remote("hopper", "medium", &[]);
    assert_eq!(remote.unwrap().files[0].url, "https://Mirror.org/hopper_medium-v2.hdf5");
    for bad in ["", "mirror.org", "ftp://mirror.org", "http://user@mirror.org", "http://", "/x"] {
        assert!(matches!(at(bad), Err(DownloadError::Address { .. })), "{bad}");
    }
}

#[test]
fn a_set_that_is_not_whole_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    for card in ["dqn-replay.toml", "d4rl.toml"] {
        fs::copy(datasets().join(card), dir.path().join(card)).unwrap();
    }
    let refused = |located: Result<(), DataError>, name: &str| {
        let error = located.unwrap_err();
        assert!(matches!(error, DataError::At { fault: Fault::Unfinished, .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    };
    let logs = dir.path().join("published/dqn-replay/Seaquest/1/replay_logs");
    fs::create_dir_all(&logs).unwrap();
    let game = || locate(&tasks::seaquest(), "1", None, dir.path()).map(drop);
    game().unwrap();
    fs::write(logs.join("$store$_action_ckpt.3.gz.partial"), "").unwrap();
    refused(game(), "$store$_action_ckpt.3.gz: its download is not finished");
    // One that another process made whole meanwhile.
    fs::write(logs.join("$store$_action_ckpt.3.gz"), "").unwrap();
    game().unwrap();
    let file = dir.path().join("published/d4rl/hopper_medium-v2.hdf5.partial");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "").unwrap();
    let robot = locate(&tasks::hopper(), "medium", None, dir.path()).map(drop);
    refused(robot, "hopper_medium-v2.hdf5: its download is not finished");
}

#[test]
fn addresses_in_the_descriptions() {
    let card = |name: &str| DatasetCard::load(&datasets().join(name)).unwrap();
    let games = card("dqn-replay.toml");
    let remote = games.remote("Seaquest", "1", &[48, 49]).unwrap();
    assert_eq!(
        (remote.files.len(), remote.hosts.as_slice()),
        (12, &["storage.googleapis.com".to_owned()][..])
    );
    let reward = remote.files.iter().find(|file| file.url.contains("reward_ckpt.49")).unwrap();
    assert_eq!(
        reward.url,
        "https://storage.googleapis.com/atari-replay-datasets/dqn/Seaquest/1/replay_logs/\
         %24store%24_reward_ckpt.49.gz"
    );
    let path = "published/dqn-replay/Seaquest/1/replay_logs/$store$_reward_ckpt.49.gz";
    assert_eq!((reward.path.as_path(), reward.optional), (Path::new(path), false));
    assert_eq!(remote.files.iter().filter(|file| file.optional).count(), 2);
    for (game, run, number) in
        [("Pong/..", "1", 0), ("Seaquest", "../2", 0), ("Seaquest", "6", 0), ("Seaquest", "1", 50)]
    {
        let error = games.remote(game, run, &[number]).unwrap_err();
        assert!(matches!(error, DownloadError::Unlisted { .. }), "{error}");
    }
    let mut none = games.clone();
    none.counts.get_mut("each").unwrap().files = Some(0);
    let error = none.remote("Seaquest", "1", &[0]).unwrap_err().to_string();
    assert!(error.contains("no file"), "{error}");
    let robots = card("d4rl.toml");
    let remote = robots.remote("hopper", "medium_replay", &[]).unwrap();
    let file = "hopper_medium_replay-v2.hdf5";
    assert_eq!(
        remote.files[0].url,
        format!("http://rail.eecs.berkeley.edu/datasets/offline_rl/gym_mujoco_v2/{file}")
    );
    assert_eq!(remote.files[0].path, Path::new("published/d4rl").join(file));
    assert!(matches!(robots.remote("ant", "medium", &[]), Err(DownloadError::Unlisted { .. })));
    let starter = card("starter-mujoco.toml");
    let error = starter.remote("hopper", "medium", &[]).unwrap_err();
    assert!(matches!(error, DownloadError::NoAddress { .. }), "{error}");
}

#[test]
fn sizes_and_hashes_of_a_description() {
    let text = fs::read_to_string(datasets().join("d4rl.toml")).unwrap();
    let known =
        "\n[download.files.\"published/d4rl/hopper_medium-v2.hdf5\"]\nbytes = 7\nsha256 = \"ab\"\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d4rl.toml");
    fs::write(&path, text + known).unwrap();
    let card = DatasetCard::load(&path).unwrap();
    let remote = card.remote("hopper", "medium", &[]).unwrap();
    assert_eq!((remote.files[0].bytes, remote.files[0].sha256.as_deref()), (Some(7), Some("ab")));
    assert_eq!(card.remote("hopper", "expert", &[]).unwrap().files[0].bytes, None);
}
