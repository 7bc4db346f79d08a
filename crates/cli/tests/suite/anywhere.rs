//! The program in a directory outside of the project.

use std::{fs, process::Command};

use crate::desk::{Desk, ProgramOutput, TINY, names, project, said};

/// The program with the words of `line`, without a project and a cache directory.
fn command(desk: &Desk, line: &str) -> Command {
    let mut command = desk.command(line);
    command.env_remove("OVERTONE_DATASETS").env_remove("XDG_CACHE_HOME");
    command.env("HOME", desk.path("home"));
    command
}

fn run(desk: &Desk, line: &str) -> ProgramOutput {
    said(command(desk, line).output().unwrap())
}

#[track_caller]
fn succeeds(said: &ProgramOutput) {
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
}

#[test]
fn own_data_is_trained_on_from_any_folder() {
    let desk = Desk::new();
    let file = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    let line = format!(
        "train env=hopper dataset={} evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
         model.context_length=4 train.batch_size=4 train.updates=2",
        file.display()
    );
    succeeds(&run(&desk, &line));
    // Only the run: vectors are not converted.
    assert_eq!(names(&desk.path("")), ["runs"]);
    desk.only_run("runs");
    let said = run(&desk, "resume");
    succeeds(&said);
}

#[test]
fn converted_data_goes_to_the_users_caches() {
    let desk = Desk::new();
    let log = project().join("datasets/starter/Seaquest");
    let tiny = TINY.replace("data.transitions=1500", "data.transitions=300");
    let line = format!("train {tiny} resume=never dataset={}", log.display());
    succeeds(&run(&desk, &line));
    assert_eq!(names(&desk.path("")), ["home", "runs"]);
    let converted = names(&desk.path("home/.cache/overtone"));
    assert!(!converted.is_empty());
    let said = said(command(&desk, &line).env("XDG_CACHE_HOME", desk.path("x")).output().unwrap());
    succeeds(&said);
    assert_eq!(names(&desk.path("x/overtone")), converted);
    // A directory with this name alone is not a project's.
    fs::create_dir_all(desk.path("datasets/own")).unwrap();
    succeeds(&run(&desk, &line));
    assert_eq!(names(&desk.path("datasets")), ["own"]);
    // In a directory below a project's, the project's is used.
    fs::write(
        desk.path("datasets/d4rl.toml"),
        fs::read(project().join("datasets/d4rl.toml")).unwrap(),
    )
    .unwrap();
    fs::create_dir(desk.path("below")).unwrap();
    let output = command(&desk, &line).current_dir(desk.path("below")).output().unwrap();
    succeeds(&crate::desk::said(output));
    assert_eq!(names(&desk.path("datasets/cache")), converted);
    assert_eq!(names(&desk.path("below")), ["runs"]);
}

/// As in the Python package: training on the starter sets works in any directory, and writes
/// nothing next to them.
#[test]
fn starter_sets_come_with_an_installed_package() {
    let desk = Desk::new();
    let package = desk.path("package");
    fs::create_dir_all(package.join("starter/mujoco")).unwrap();
    let from = project().join("datasets");
    for file in ["d4rl.toml", "starter-mujoco.toml", "starter/mujoco/hopper_switching.hdf5"] {
        fs::copy(from.join(file), package.join(file)).unwrap();
    }
    fs::create_dir(desk.path("user")).unwrap();
    let run = |line: &str| {
        let mut command = command(&desk, line);
        command.env("OVERTONE_PACKAGED_DATASETS", &package).current_dir(desk.path("user"));
        said(command.output().unwrap())
    };
    let line = "train env=hopper evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
                model.context_length=4 train.batch_size=4 train.updates=2";
    let trained = run(line);
    succeeds(&trained);
    let path = package.join("starter/mujoco/hopper_switching.hdf5");
    let announced = format!("the starter set in {}", path.display());
    assert!(trained.stdout.contains(&announced), "{}", trained.stdout);

    // Downloads go to the user's cache, and have priority over starter sets.
    let published = desk.path("home/.cache/overtone/published/d4rl");
    fs::create_dir_all(&published).unwrap();
    let fetched = published.join("hopper_medium-v2.hdf5");
    fs::copy(from.join("starter/mujoco/hopper_medium.hdf5"), &fetched).unwrap();
    let trained = run(&format!("{line} dataset=medium"));
    succeeds(&trained);
    let path = fetched.canonicalize().unwrap();
    assert!(trained.stdout.contains("D4RL"), "{}", trained.stdout);
    assert!(trained.stdout.contains(&path.display().to_string()), "{}", trained.stdout);
    assert_eq!(names(&package), ["d4rl.toml", "starter", "starter-mujoco.toml"]);
    assert_eq!(names(&desk.path("user")), ["runs"]);
}

#[test]
fn missing_data_is_reported_in_one_sentence() {
    let desk = Desk::new();
    run(&desk, "train env=hopper evaluation.episodes=0").refused();
    run(&desk, "train game=seaquest evaluation.episodes=0").refused();
    run(&desk, "download env=hopper").refused();
    let line = "train env=hopper evaluation.episodes=0 dataset=/nowhere/a.hdf5";
    run(&desk, line).refused();
    run(&desk, "resume").refused();
    assert_eq!(names(&desk.path("")), [""; 0]);
}
