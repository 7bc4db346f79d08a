//! The list of all suites, and tasks by name. All knowledge about a task is in its suite.

mod own;
mod recorded;

use anyhow::{Context, Result, bail};
use overtone_core::{
    Simulation, Task,
    names::{find, nearest, plain},
};
use overtone_data::{Form, MinariId, RecordedEnv, RecordedTask};
use overtone_env::{Suite, TaskError, UnknownTask};

use self::own::Own;

pub use self::recorded::{Data, as_trained, describe, with_data};

/// All suites that have environments.
pub const SUITES: [&dyn Suite; 3] =
    [&overtone_ale::Ale, &overtone_mujoco::Mujoco, &overtone_gymnasium::Gymnasium];

/// All suites, including the one of datasets without an environment.
fn all() -> impl Iterator<Item = &'static dyn Suite> {
    SUITES.into_iter().chain([&Own as &dyn Suite])
}

/// The tasks in the suites' tables.
pub fn tasks() -> impl Iterator<Item = &'static Task> {
    SUITES.into_iter().flat_map(Suite::tasks)
}

/// The suite of `task`.
///
/// # Errors
/// When this program does not have the suite.
pub fn of(task: &Task) -> Result<&'static dyn Suite> {
    let found = all().find(|suite| suite.name() == task.suite);
    found.with_context(|| {
        format!("{}: this program does not have the suite `{}`", task.id(), task.suite)
    })
}

/// Checks that a task has an environment.
///
/// # Errors
/// When the task is data without an environment.
pub fn check_environment(task: &Task) -> Result<()> {
    let suite = of(task)?;
    match suite.has_environments() {
        true => Ok(()),
        false => Ok(suite.check(task)?),
    }
}

/// The suite whose short form of `task=` is this key: `game` in `game=seaquest`.
pub fn by_key(key: &str) -> Option<&'static dyn Suite> {
    all().find(|suite| suite.key() == key)
}

/// Examples of tasks of every suite: `game=seaquest, … (104 games); or env=hopper, …`.
pub fn examples() -> String {
    let of_suite = |suite: &dyn Suite| {
        let (names, all) = (suite.examples(), suite.tasks().len());
        let more = match all > names.len() {
            true => format!(", … ({all} {})", suite.nouns()[1]),
            false => String::new(),
        };
        format!("{}={}{more}", suite.key(), names.join(", "))
    };
    all().map(of_suite).collect::<Vec<_>>().join("; or ")
}

/// The task with this name in its suite, such as `seaquest`, in any spelling.
///
/// # Errors
/// When no suite has it: the error of a suite with a similar name.
pub fn named(name: &str) -> Result<&'static Task> {
    let mut refusal = None;
    for suite in SUITES {
        match suite.task(name) {
            Ok(task) => return Ok(task),
            Err(TaskError::Unknown(unknown)) if unknown.nearest.is_none() => {}
            Err(error) => {
                refusal.get_or_insert(error);
            }
        }
    }
    match refusal {
        Some(error) => Err(error.into()),
        None => bail!("unknown task `{name}`. Use {}", examples()),
    }
}

/// The task with this id, such as `ale/seaquest`; the suite may be left out.
///
/// # Errors
/// When it does not exist.
pub fn by_id(id: &str) -> Result<&'static Task> {
    let Some((suite, name)) = id.split_once('/') else {
        return named(id).with_context(|| format!("task={id}"));
    };
    let found = all().find(|known| known.name() == suite);
    let names: Vec<&str> = all().map(Suite::name).collect();
    let found = found.with_context(|| {
        format!("task={id}: unknown suite `{suite}`; known are {}", names.join(", "))
    })?;
    match found.task(name) {
        Ok(task) => Ok(task),
        Err(TaskError::Unknown(unknown)) => match elsewhere(name, &unknown, found) {
            Some(other) => bail!("{unknown}; did you mean task={other}?"),
            None => Err(unknown.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The task of another suite than `suite` that is called `name`, or has a similar name if `asked`
/// does not have one. Versions may be left out.
fn elsewhere(name: &str, unknown: &UnknownTask, suite: &dyn Suite) -> Option<String> {
    let bare = |name: &str| match name.rsplit_once("-v") {
        Some((bare, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => {
            bare.to_owned()
        }
        _ => name.to_owned(),
    };
    let others = SUITES.into_iter().filter(|other| other.name() != suite.name());
    let known: Vec<(String, String)> = others
        .flat_map(|suite| {
            let id = |name: &str| (bare(name), format!("{}/{name}", suite.name()));
            suite.names().into_iter().map(id).collect::<Vec<_>>()
        })
        .collect();
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let similar = || unknown.nearest.is_none().then(|| nearest(&names, &bare(name))).flatten();
    let found = find(&names, &bare(name)).or_else(similar)?;
    known.iter().find(|(name, _)| name == found).map(|(_, id)| id.clone())
}

/// The task of a local dataset ([`of_data`]).
///
/// # Errors
/// When the dataset does not exist, does not name an environment, or no suite has it.
pub fn of_minari(id: &MinariId) -> Result<&'static Task> {
    let data = Data::at(id.find()?, Form::default());
    let task = of_data(&data).with_context(|| format!("reading the environment of {id}"))?;
    task.with_context(|| {
        format!(
            "{id} does not name its environment. Set the task with task=…, or with task=own/NAME \
             if there is no environment"
        )
    })
}

/// The task that `data` names, if any.
///
/// # Errors
/// When its description cannot be read, or no suite has the task.
pub fn of_data(data: &Data) -> Result<Option<&'static Task>> {
    let recorded = RecordedTask::of(&data.path)?;
    match (&recorded.task, &recorded.env) {
        (Some(id), _) => with_data(id, Some(data)).map(Some),
        (None, Some(env)) => of_env(env, data).map(Some),
        (None, None) => Ok(None),
    }
}

/// The task of a suite's table for an environment of Gymnasium's, without keyword arguments.
pub fn in_tables(env: &RecordedEnv) -> Option<&'static Task> {
    let name = plain(env.name_and_version().0);
    tasks().find(|task| env.kwargs.is_empty() && plain(&task.title) == name)
}

/// The task of the Gymnasium environment in which `data` was recorded.
fn of_env(env: &RecordedEnv, data: &Data) -> Result<&'static Task> {
    match in_tables(env) {
        Some(task) => Ok(task),
        None => with_data(&format!("gymnasium/{}", env.with_kwargs()), Some(data)),
    }
}

/// The simulation of `task` in `env`, if the task's suite knows and supports it.
fn simulation_of(task: &Task, env: &RecordedEnv) -> Option<Simulation> {
    let suite = of(task).ok()?;
    let simulation = suite.simulation_in(task, &env.with_kwargs(), env.max_episode_steps)?;
    suite.simulator(task, &simulation).ok()?;
    Some(simulation)
}

/// The simulation of `task` in a dataset's description: Overtone's, else from Gymnasium's.
pub fn recorded_simulation(task: &Task, recorded: &RecordedTask) -> Option<Simulation> {
    let own = recorded.simulation.clone();
    let own = own.filter(|_| recorded.task.as_deref() == Some(&task.id()));
    own.or_else(|| simulation_of(task, recorded.env.as_ref()?))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use overtone_core::{ActionSpace, ObservationSpace};

    use super::*;
    use crate::named_tasks;

    #[test]
    fn tasks_are_found_by_their_ids() {
        let found = |id: &str| match by_id(id) {
            Ok(task) => Ok(task.id()),
            Err(error) => Err(format!("{error:#}")),
        };
        for (id, expected) in [
            ("ale/BankHeist", "ale/bank_heist"),
            ("mujoco/hopper", "mujoco/hopper"),
            ("walker2d", "mujoco/walker2d"),
            ("MsPacman", "ale/ms_pacman"),
        ] {
            assert_eq!(found(id).unwrap(), expected);
        }
        let refused = |id: &str| found(id).unwrap_err();
        let seaquest = "unknown game `seaqest`: did you mean `seaquest`?";
        assert_eq!(refused("ale/seaqest"), seaquest);
        assert_eq!(refused("seaqest"), format!("task=seaqest: {seaquest}"));
        assert!(refused("ale/Combat").starts_with("game `combat`: "));
        let ant = "unknown robot `ant`; known are halfcheetah, hopper, walker2d; did you mean \
                   task=gymnasium/Ant-v5?";
        assert_eq!(refused("mujoco/ant"), ant);
        for (id, meant) in [
            ("mujoco/humanoid", "gymnasium/Humanoid-v5"),
            ("mujoco/pussher", "gymnasium/Pusher-v5"),
            ("mujoco/reacher-v4", "gymnasium/Reacher-v5"),
            ("mujoco/Pong", "ale/pong"),
            ("ale/cart_pole", "gymnasium/CartPole-v1"),
        ] {
            let error = refused(id);
            assert!(error.ends_with(&format!("did you mean task={meant}?")), "{error}");
        }
        assert_eq!(
            refused("atari/pong"),
            "task=atari/pong: unknown suite `atari`; known are ale, mujoco, gymnasium, own"
        );
        let known = "game=seaquest, gravitar, bank_heist, double_dunk, breakout, … (104 games); or";
        assert!(refused("zzz").contains(known), "{}", refused("zzz"));
        let words = ["task=", "seed=1"].map(str::to_owned);
        assert_eq!(named_tasks(&words, None).unwrap(), (vec!["seed=1".to_owned()], None));
    }

    /// A limit above the task's comes from the recorder; other environments have none.
    #[test]
    fn the_limit_that_an_environment_was_given_is_known() {
        let spaces = (
            ObservationSpace::Vectors { width: 4 },
            ActionSpace::Discrete { names: ["left", "right"].map(str::to_owned).to_vec() },
        );
        let known =
            overtone_gymnasium::Gymnasium.recorded("CartPole-v1", &spaces.0, &spaces.1, Some(500));
        let task = known.unwrap();
        let limit_of = |id: &str, max_episode_steps| {
            let env = RecordedEnv { id: id.into(), max_episode_steps, kwargs: BTreeMap::new() };
            let simulation = simulation_of(&task, &env)?;
            simulation.get("max_episode_steps").map(ToString::to_string)
        };
        for (limit, expected) in [
            (Some(40), Some("40")),
            (Some(500), Some("500")),
            (Some(1_000_000), None),
            (None, None),
        ] {
            assert_eq!(limit_of("CartPole-v1", limit).as_deref(), expected, "{limit:?}");
        }
        assert_eq!(limit_of("CartPole-v0", Some(40)), None);
        let hopper = by_id("mujoco/hopper").unwrap();
        let env = RecordedEnv {
            id: "Hopper-v5".into(),
            max_episode_steps: Some(2000),
            kwargs: BTreeMap::new(),
        };
        let simulation = simulation_of(hopper, &env).unwrap();
        assert_eq!(of(hopper).unwrap().horizon(hopper, &simulation), Some(2000));
    }

    #[test]
    fn every_task_is_found_and_no_name_is_two_tasks() {
        let mut ids = BTreeSet::new();
        for suite in SUITES {
            for task in suite.tasks() {
                assert_eq!(of(task).unwrap().name(), suite.name());
                assert!(ids.insert(task.id()));
                let settings = suite.settings().iter().map(|setting| setting.key);
                let known = |key: &str| task.simulation.get(key).is_some();
                assert!(
                    settings.clone().all(known)
                        && task.simulation.iter().count() == settings.count()
                );
                assert!(suite.simulator(task, &task.simulation).is_ok());
            }
        }
    }
}
