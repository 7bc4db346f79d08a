//! The model cards of agents that go out.

use overtone_agents::Agent;
use overtone_core::ActionScale;
use overtone_eval::{Evaluation, evaluation::Setting};
use overtone_train::{RunDir, TrainState};

/// The card of an agent as transformers has it, which is told returns or, with `top_percent` above
/// 0, heeds none.
pub fn for_transformers(agent: &Agent, state: &TrainState, top_percent: f32) -> String {
    let returns = format!(
        "Returns-to-go and rewards are divided by {}. Returns in its data: {}.",
        agent.return_scale,
        of_data(state)
    );
    let delayed = match agent.delayed_reward {
        true => {
            " All reward comes with an episode's last step, so the return-to-go stays what it was."
        }
        false => "",
    };
    let units = ActionScale::of(&agent.task.actions).map_or_else(String::new, |scale| {
        format!(
            " The environment takes them in {}: what the model gives goes there in proportion, what \
             it is shown of the past stays between -1 and 1.",
            scale.describe()
        )
    });
    let told = match top_percent {
        0.0 => returns + delayed,
        percent => format!(
            "It acts as in the best {percent} % of its data, whatever return it is told: returns-to-go \
             of 0 will do. Returns in its data: {}.",
            of_data(state)
        ),
    };
    format!(
        "---\nlibrary_name: transformers\npipeline_tag: reinforcement-learning\ntags:\n- \
         decision-transformer\n- offline-reinforcement-learning\n---\n\n# {task}\n\n{what}, trained \
         by Overtone for {steps} updates.\n\n\
         - Observations are normalized before the model sees them: `(observation - mean) / (std + 1e-6)`, \
         both in `overtone.json` under `state.agent.normalization`; a number with `std` 0 becomes 0.\n\
         - {told}\n\
         - Context: {context} timesteps. Actions are between -1 and 1.{units}\n\
         - Data: content SHA-256 {hash}.\n\n\
         `overtone import from=THIS_FOLDER` makes a run of it again. A score is no part of these \
         files: play it.\n",
        task = agent.task.id(),
        what = agent.algorithm.describe(),
        steps = state.step,
        context = agent.algorithm.model().map_or(0, |model| model.context_length()),
        hash = state.dataset_hash,
    )
}

/// The card of an agent in our own form; `returns` are lines about what it earned.
pub fn own(agent: &Agent, state: &TrainState, returns: &str) -> String {
    let dataset = match agent.dataset.as_str() {
        "" => String::new(),
        name => format!("{name}, "),
    };
    let began = state.began.as_ref().map_or(String::new(), |began| {
        format!(
            "- Began with the weights of `{}` after update {}, SHA-256 {}.\n",
            began.run, began.step, began.sha256
        )
    });
    format!(
        "---\nlibrary_name: overtone\npipeline_tag: reinforcement-learning\ntags:\n- \
         offline-reinforcement-learning\n---\n\n# {task}\n\n{what}, trained by Overtone for \
         {steps} updates.\n\n\
         - Data: {dataset}{kind}, content SHA-256 {hash}. Returns in it: {of_data}.\n\
         - Training seed: {seed}.\n{began}\n\
         ## Returns\n\n{returns}\n\
         ## Use\n\n`overtone import THIS_FOLDER` makes a run of it again, which plays the same \
         episodes. `overtone.json` holds the settings, the normalization of observations and the \
         scale of returns; `model.safetensors` the weights of what acts.\n",
        task = agent.task.id(),
        what = agent.algorithm.describe(),
        steps = state.step,
        kind = state.dataset_kind,
        hash = state.dataset_hash,
        of_data = of_data(state),
        seed = state.seed,
    )
}

/// What the run's evaluations say of this checkpoint, as lines of a table; or that there are none.
pub fn returns(run: &RunDir, state: &TrainState) -> String {
    let mut rows = String::new();
    for path in Evaluation::files(run.path()).unwrap_or_default() {
        let Ok(evaluation) = Evaluation::read(&path) else { continue };
        let played = evaluation.setting.checkpoint.as_ref().map(|checkpoint| checkpoint.step);
        if played != Some(state.step) {
            continue;
        }
        for target in &evaluation.targets {
            let sd = target.raw_return.sd.map_or(String::new(), |sd| format!(" ± {sd:.1}"));
            let normalized = target.normalized.as_ref();
            let normalized = normalized.map_or(String::new(), |score| format!("{:.1}", score.mean));
            let setting = &evaluation.setting;
            let row = format!(
                "| {} | {} | {} | {:.1}{sd} | {normalized} | {} | {} |\n",
                setting.simulator,
                played_by(setting),
                setting.told(target.target_return).unwrap_or_else(|| "-".into()),
                target.raw_return.mean,
                target.raw_return.n,
                evaluation.seed
            );
            // The last checkpoint may be the best one too, and have a report of each name.
            if !rows.contains(&row) {
                rows += &row;
            }
        }
    }
    match rows.as_str() {
        "" => "Not evaluated.\n".into(),
        rows => format!(
            "Mean raw return ± standard deviation over episodes, of this one training seed.\n\n\
             | played in | protocol | told | raw return | normalized | episodes | seed |\n\
             | --- | --- | --- | --- | --- | --- | --- |\n{rows}"
        ),
    }
}

/// `matched, temperature 0.5`
fn played_by(setting: &Setting) -> String {
    let (protocol, heeds) = (&setting.protocol, setting.heeds);
    let temperature =
        heeds.temperature.then(|| format!("temperature {}", protocol.acting.temperature));
    let quantile = heeds
        .return_quantile
        .then(|| format!("return quantile {}", protocol.acting.return_quantile));
    let all = std::iter::once(protocol.name.clone()).chain(temperature).chain(quantile);
    all.collect::<Vec<_>>().join(", ")
}

fn of_data(state: &TrainState) -> String {
    match state.episode_returns.ends() {
        Some([lowest, highest]) => format!("{lowest} to {highest}"),
        None => "not known".into(),
    }
}
