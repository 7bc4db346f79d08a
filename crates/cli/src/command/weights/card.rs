//! The model cards of exported agents.

use overtone_agents::Agent;
use overtone_core::ActionScale;
use overtone_eval::Setting;
use overtone_eval::table::{Table, or_dash};
use overtone_eval::{Evaluation, summary::estimate};
use overtone_train::{RunDir, TrainState};

/// The card of an agent in transformers' format, which is conditioned on returns or, with
/// `top_percent` above 0, ignores them.
pub fn for_transformers(agent: &Agent, state: &TrainState, top_percent: f32) -> String {
    let returns = format!(
        "Returns-to-go and rewards are divided by {}. Returns in its data: {}.",
        agent.return_scale,
        of_data(state)
    );
    let delayed = match agent.delayed_reward {
        true => {
            "  All reward comes with an episode's last step, so the return-to-go stays constant."
        }
        false => "",
    };
    let units = ActionScale::of(&agent.task.actions).map_or_else(String::new, |scale| {
        format!(
            "  The environment's actions are in {}: scale the model's output linearly, and pass \
             past actions to the model between -1 and 1.",
            scale.describe()
        )
    });
    let condition = match top_percent {
        0.0 => returns + delayed,
        percent => format!(
            "It is conditioned on the top {percent} % of its data and ignores returns: pass \
             returns-to-go of 0. Returns in its data: {}.",
            of_data(state)
        ),
    };
    format!(
        "---\nlibrary_name: transformers\npipeline_tag: reinforcement-learning\ntags:\n- \
         decision-transformer\n- offline-reinforcement-learning\n---\n\n# {task}\n\n{what}, trained \
         by Overtone for {steps} updates.\n\n\
         - Observations are normalized before the model sees them: `(observation - mean) / (std + 1e-6)`, \
         both in `overtone.json` under `state.agent.normalization`; a number with `std` 0 becomes 0.\n\
         - {condition}\n\
         - Context: {context} timesteps. Actions are between -1 and 1.{units}\n\
         - Data: content SHA-256 {hash}.\n\n\
         `overtone import from=THIS_DIRECTORY` imports it as a run. These files do not contain a score: evaluate the run.\n",
        task = agent.task.id(),
        what = agent.algorithm.describe(),
        steps = state.step,
        context = agent.algorithm.model().map_or(0, |model| model.context_length()),
        hash = state.dataset_hash,
    )
}

/// The card of an agent in Overtone's format; `returns` are the lines about its returns.
pub fn own(agent: &Agent, state: &TrainState, returns: &str) -> String {
    let dataset = match agent.dataset.as_str() {
        "" => String::new(),
        name => format!("{name}, "),
    };
    let began = state.init_source.as_ref().map_or(String::new(), |began| {
        format!(
            "- Initialised from `{}` after update {}, SHA-256 {}.\n",
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
         ## Use\n\n`overtone import THIS_DIRECTORY` imports it as a run with the same evaluation episodes. `overtone.json` contains the settings, the normalization of observations and the scale of returns; `model.safetensors` contains the policy's weights.\n",
        task = agent.task.id(),
        what = agent.algorithm.describe(),
        steps = state.step,
        kind = state.dataset_kind,
        hash = state.dataset_hash,
        of_data = of_data(state),
        seed = state.seed,
    )
}

/// The card of a graph; `returns` are the lines about its returns.
pub fn onnx(agent: &Agent, state: &TrainState, returns: &str) -> String {
    let own = own(agent, state, returns);
    let (before, _) = own.split_once("## Use\n").unwrap_or((&own, ""));
    let before = before.replace("library_name: overtone", "library_name: onnx");
    format!(
        "{before}## Use\n\n`python play.py ENVIRONMENT` plays it with onnxruntime, numpy and \
         Gymnasium. In a program, use its class `Agent`. `agent.onnx` reads raw observations and \
         writes actions in the environment's units; `agent.json` contains the target return and \
         how an action is chosen.\n"
    )
}

/// The returns of this checkpoint in the run's evaluations as a table, or a note without
/// evaluations.
pub fn returns(run: &RunDir, state: &TrainState) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for path in Evaluation::files(run.path()).unwrap_or_default() {
        let Ok(evaluation) = Evaluation::read(&path) else { continue };
        let played = evaluation.setting.checkpoint.as_ref().map(|checkpoint| checkpoint.step);
        if played != Some(state.step) {
            continue;
        }
        for target in &evaluation.targets {
            let normalized = target.normalized.as_ref();
            let setting = &evaluation.setting;
            let row = vec![
                setting.simulator.clone(),
                protocol_of(setting),
                or_dash(setting.condition(target.target_return)),
                target.raw_return.with_spread(),
                or_dash(normalized.map(|score| format!("{:.1}", score.mean))),
                or_dash(target.success.map(|rate| estimate(&rate, 2))),
                target.raw_return.n.to_string(),
                evaluation.seed.to_string(),
            ];
            // The last checkpoint may also be the best one, with a report under each name.
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    if rows.is_empty() {
        return "Not evaluated.\n".into();
    }
    let header =
        ["environment", "protocol", "target", "raw return", "normalized", "success [interval]"];
    let mut table = Table::new(header.into_iter().chain(["episodes", "seed"]));
    rows.into_iter().for_each(|row| table.row(row));
    let table = table.without_dashes();
    format!(
        "Mean raw return ± standard deviation over episodes, of this one training seed.\n\n{}",
        table.to_markdown()
    )
}

/// `matched, temperature 0.5`
fn protocol_of(setting: &Setting) -> String {
    let (protocol, used_settings) = (&setting.protocol, setting.used_settings);
    let temperature =
        used_settings.temperature.then(|| format!("temperature {}", protocol.acting.temperature));
    let quantile = used_settings
        .return_quantile
        .then(|| format!("return quantile {}", protocol.acting.return_quantile));
    let all = std::iter::once(protocol.name.clone()).chain(temperature).chain(quantile);
    all.collect::<Vec<_>>().join(", ")
}

fn of_data(state: &TrainState) -> String {
    match state.episode_returns.ends() {
        Some([lowest, highest]) => format!("{lowest} to {highest}"),
        None => "unknown".into(),
    }
}
