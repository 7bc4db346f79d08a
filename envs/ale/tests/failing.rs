//! A ROM that disappears during a rollout. Loading it would end the whole process. The test uses a
//! child process, because the directory of ROMs is an environment variable.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use overtone_ale::{Emulation, Game, open};
use overtone_core::Actions;
use overtone_core::protocol::ReturnUnits;
use overtone_env::{EnvError, VectorEnv, virtual_envs};
use overtone_eval::{Plan, Player, RandomPolicy, Rollout, rollout_together};

fn game(name: &str) -> &'static Game {
    Game::named(name).unwrap()
}

/// Variable of the child process: the directory of the ROM that disappears.
const CHILD: &str = "OVERTONE_FAILING_CHILD";

/// The ROM in ale-py.
fn rom() -> PathBuf {
    let libraries = virtual_envs().into_iter().flat_map(|venv| fs::read_dir(venv.join("lib")));
    let pythons = libraries.flatten().map(|entry| entry.unwrap().path());
    let roms = pythons.map(|python| python.join("site-packages/ale_py/roms/seaquest.bin"));
    roms.into_iter().find(|rom| rom.is_file()).unwrap()
}

/// Plays six episodes in groups of two environments and one. With `remove_rom` the ROM disappears
/// during the first three.
fn play(emulation: &Emulation, rom: &Path, remove_rom: bool) -> Rollout {
    let mut envs: Vec<_> =
        [2, 1].map(|n| open(game("seaquest"), emulation, n).unwrap()).into_iter().collect();
    let mut policy = RandomPolicy::new(envs[0].action_space().clone(), 3);
    let (targets, return_units) = (vec![1.0], ReturnUnits::Clipped);
    let plan = Plan::new(6, targets, 1, return_units);
    let mut groups: Vec<&mut dyn VectorEnv> = Vec::new();
    envs.iter_mut().for_each(|env| groups.push(&mut **env));
    let mut players = [Player { policy: &mut policy, plan: &plan }];
    let rollouts = rollout_together(&mut groups, &mut players, &mut |progress| {
        // An episode has about 100 steps, and no further emulator starts before one ends.
        if remove_rom && progress.steps >= 150 && rom.exists() {
            assert_eq!(progress.episodes_done, 0);
            fs::remove_file(rom).unwrap();
        }
        ControlFlow::Continue(())
    });
    rollouts.unwrap().swap_remove(0)
}

/// The code of the child process.
#[test]
#[ignore = "the child process of another test"]
fn child() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let copy = Path::new(&folder).join("seaquest.bin");
    for emulation in [Emulation::dqn_replay(), Emulation::released()] {
        let emulation = Emulation { max_frames: 400, ..emulation };
        fs::copy(rom(), &copy).unwrap();
        let sound = play(&emulation, &copy, false);
        assert_eq!((sound.episodes.len(), sound.failed.len()), (6, 0));

        let played = play(&emulation, &copy, true);
        // The three running episodes continue. The others cannot start.
        assert_eq!((played.episodes.len(), played.failed.len()), (3, 3), "{played:?}");
        assert_eq!(played.episodes, sound.episodes[..3]);
        let reason = &played.failed[0].reason;
        assert!(reason.starts_with("the ROM of Seaquest is missing"), "{reason}");

        // After the file is restored, the emulator is restarted and works again.
        fs::copy(rom(), &copy).unwrap();
        let mut env = open(game("seaquest"), &emulation, 2).unwrap();
        env.reset(&[0, 1], &[3, 4]).unwrap();
        fs::write(&copy, "no game").unwrap();
        let error = env.reset(&[0], &[5]).unwrap_err();
        assert!(error.to_string().contains("the ROM of Seaquest changed"), "{error}");
        assert!(matches!(&error, EnvError::Partly { failures, .. } if failures[0].env == 0));
        let action = |n| Actions::Discrete(vec![2; n]);
        let error = env.step(&[0], &action(1)).unwrap_err();
        assert!(matches!(error, EnvError::NoEpisode { env: 0 }));
        env.step(&[1], &action(1)).unwrap();
        fs::copy(rom(), &copy).unwrap();
        env.reset(&[0], &[5]).unwrap();
        env.step(&[1, 0], &action(2)).unwrap();
    }
    println!("result: done");
}

#[test]
fn a_missing_rom_fails_only_the_episodes_that_have_not_started() {
    let folder = std::env::temp_dir().join(format!("overtone-failing-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::copy(rom(), folder.join("seaquest.bin")).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--ignored"])
        .env("ALE_ROMS_DIR", &folder)
        .env(CHILD, &folder)
        .output()
        .unwrap();
    let printed = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && printed[0].contains("result: done"), "{printed:?}");
    fs::remove_dir_all(folder).unwrap();
}
