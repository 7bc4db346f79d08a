//! The files of a small agent with continuous actions.

use overtone_agents::{Agent, AlgorithmConfig, DecisionTransformerOptions};
use overtone_core::{ActionSpace, ObservationSpace, Task, seed};
use overtone_model::{DecisionTransformerConfig, Init, Model, burn::tensor::Device, weights};

/// `agent.onnx` and `agent.json`.
pub fn files() -> (Vec<u8>, String) {
    let config = DecisionTransformerConfig {
        n_layers: 1,
        d_model: 16,
        context_length: 3,
        ..DecisionTransformerConfig::gym(50)
    };
    let algorithm = AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(config));
    let (observations, actions) = (ObservationSpace::Vectors { width: 4 }, ActionSpace::unit(2));
    let mut generator = seed::generator(2, "init");
    let mut init = Init::drawn(&Device::flex(), &mut generator);
    let model = algorithm.model().unwrap();
    let model = Model::init(&model, &observations, &actions, &mut init).unwrap();
    let agent = Agent {
        task: Task::own("small", observations, actions),
        dataset: String::new(),
        algorithm,
        normalization: None,
        return_scale: 1.0,
        delayed_reward: false,
        recording: None,
        needs_action_mask: false,
    };
    let play = agent.matched();
    let graph = overtone_onnx::export(&agent, &weights::export(&model), &play, "test").unwrap();
    let about = r#"{"format": 1, "target_return": 5, "delayed_reward": false,
        "clip_rewards": false, "choice": "mode", "greedy": 0, "temperature": 1}"#;
    (graph, about.into())
}
