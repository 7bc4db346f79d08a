//! `train algorithm=best`: trains several algorithms, each in a run of its own, and keeps the run
//! and the acting mode that selection episodes choose.

use anyhow::{Context, Result, bail, ensure};
use overtone_agents::{AlgorithmKind, has_rare_rewards};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_settings::{AutoOr, Choosable, Resume, RunConfig, suites};
use overtone_train::{Checkpoint, RunDir};

use super::{
    evaluate::{self, ChooseOptions, OwnChoice},
    prepare::prepare,
    train::{auto_profile, check_evaluation, is_finished, plan, same_settings},
};
use crate::{interrupt, processes};

/// The value of `algorithm=`.
const BEST: &str = "best";

/// Context of an error in the settings.
const SEVERAL: &str = "algorithm=best trains several algorithms with the same settings";

/// Whether `words` choose the best of several algorithms.
pub fn is_best(words: &[String]) -> bool {
    let algorithm = words.iter().rev().find_map(|word| word.strip_prefix("algorithm="));
    algorithm == Some(BEST)
}

/// The algorithms for such actions, and data with or without rare rewards, in the order of training.
/// The first one is always the same.
fn members(actions: &ActionSpace, rewards_are_rare: bool) -> &'static [AlgorithmKind] {
    use AlgorithmKind::{DecisionTransformer, DiscreteCql, Iql, Rebrac, Rvs};
    match (actions, rewards_are_rare) {
        (ActionSpace::Continuous { .. }, true) => &[DecisionTransformer, Iql, Rebrac],
        (ActionSpace::Continuous { .. }, _) => &[DecisionTransformer, Rvs, Rebrac],
        (ActionSpace::Discrete { .. }, _) => &[DecisionTransformer, Rvs, DiscreteCql],
    }
}

/// `overtone train algorithm=best key=value…`; returns the exit code. The same command resumes.
///
/// # Errors
/// When the task cannot be played, or the training or the choice fails.
pub fn train(words: &[String]) -> Result<u8> {
    ensure!(
        processes::launched() == 1,
        "algorithm={BEST} trains in one process. Start one, or train each algorithm by itself"
    );
    let others = words.iter().filter(|word| !word.starts_with("algorithm=")).cloned();
    let others: Vec<String> = others.collect();
    let resolve = |algorithm: AlgorithmKind, words: &[String]| {
        let own = format!("algorithm={}", algorithm.name());
        let words: Vec<String> = words.iter().cloned().chain([own]).collect();
        RunConfig::resolve(&words, auto_profile)
    };
    let settings = resolve(AlgorithmKind::DecisionTransformer, &others).context(SEVERAL)?;
    let (task, evaluation) = (settings.task()?, &settings.evaluation);
    ensure!(
        matches!(task.observations, ObservationSpace::Vectors { .. }),
        "algorithm={BEST}: algorithms were compared on vectors only, and {} has images. Train each \
         algorithm, then use `overtone evaluate choose run=A,B`",
        task.title
    );
    suites::check_environment(task)
        .with_context(|| format!("algorithm={BEST} chooses by episodes"))?;
    ensure!(
        evaluation.episodes > 0,
        "evaluation.episodes=0: algorithm={BEST} chooses by episodes. Leave the word out"
    );
    let plays = |word: &&String| word.starts_with("evaluation.every") && !word.ends_with("every=0");
    if let Some(word) = words.iter().find(plays) {
        bail!("{word}: algorithm={BEST} plays no episodes during training. Leave the word out");
    }
    let target = &evaluation.target;
    ensure!(!target.contains(','), "evaluation.target={target}: algorithm={BEST} needs one target");

    let usual = ChooseOptions::default();
    let candidates = |setting: Choosable, usual: String| match setting {
        Choosable::Chosen => usual,
        Choosable::Fixed(number) => number.to_string(),
    };
    let options = ChooseOptions {
        budget: evaluation.budget,
        // Returns of different algorithms spread differently, so one unlucky episode can hide the
        // best run (docs/how-to/which-algorithm.md).
        rule: "even".into(),
        temperatures: candidates(evaluation.temperature, usual.temperatures),
        return_quantiles: candidates(evaluation.return_quantile, usual.return_quantiles),
        target: target.clone(),
        seed: evaluate::choice_seed(evaluation),
        parallel: evaluation.parallel,
        device: settings.device.clone(),
        ..ChooseOptions::default()
    };

    // Only the best run is evaluated. Other settings of the evaluation find the same runs.
    let without = ["evaluation.episodes=0", "evaluation.every=0"].map(str::to_owned);
    let of_training = others.iter().filter(|word| !word.starts_with("evaluation."));
    let of_training: Vec<String> = of_training.cloned().chain(without).collect();
    let (mut all, mut n_modes) = (Vec::new(), 0);
    let first = prepare(&settings, settings.initial(None)?)?;
    let members = members(&task.actions, has_rare_rewards(first.data.dataset()));
    let mut first = Some(first);
    for member in members {
        let whole = resolve(*member, &others).context(SEVERAL)?;
        let prepared = match first.take() {
            Some(first) => first,
            None => prepare(&whole, whole.initial(None)?)?,
        };
        check_evaluation(&whole, &prepared)?;
        let no_choice = OwnChoice::default();
        n_modes += evaluate::candidate_modes(&prepared.agent, &no_choice, &options)?.0.len();
        all.push((*member, resolve(*member, &of_training)?));
    }
    if let AutoOr::Number(budget) = evaluation.budget {
        ensure!(
            budget as usize >= n_modes,
            "evaluation.budget={budget}: the algorithms have {n_modes} modes, and each plays an \
             episode. Set {n_modes} or more"
        );
    }
    let again = match settings.resume {
        Resume::Auto => "Repeat this command to train the other algorithms and to choose",
        Resume::Never => "With resume=auto, the same command resumes these runs",
    };
    let mut runs: Vec<RunDir> = Vec::new();
    for (place, (member, settings)) in (1..).zip(&all) {
        say!("\nalgorithm {place} of {}: {}", all.len(), member.name());
        let run = match trained(settings) {
            Some(run) => {
                say!("found a finished run of these settings: {}", run.path().display());
                run
            }
            None => {
                let work = plan(settings, None)?;
                let run = work.run.clone();
                match work.carry_out()? {
                    0 => run,
                    code => {
                        say!("{again}");
                        return Ok(code);
                    }
                }
            }
        };
        runs.push(run);
    }

    say!("\nchoosing the best of {} runs", runs.len());
    let stop = interrupt::listen()?;
    let played = evaluate::choose_among(runs, &options).and_then(|run| {
        let (checkpoint, _) = Checkpoint::newest(&run.checkpoints())?;
        evaluate::play(&run, &checkpoint, evaluation, &settings.device, &stop)
            .with_context(|| format!("evaluating {}", checkpoint.path.display()))
    });
    match played {
        Err(error) if interrupt::is_stop(&error) => {
            say!("Interrupted. {again}");
            Ok(interrupt::EXIT_CODE)
        }
        played => played.map(|()| 0),
    }
}

/// A finished run of exactly these settings, if they may resume one.
fn trained(settings: &RunConfig) -> Option<RunDir> {
    let is_open = settings.resume == Resume::Auto;
    let mut runs = is_open.then(|| same_settings(settings)).into_iter().flatten();
    runs.find(is_finished)
}
