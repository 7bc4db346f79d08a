//! [`Agent`]: an exported agent and the window of its episode.

use std::path::Path;

use crate::{
    error::{Error, damaged},
    graph::Graph,
    json::Json,
    math, ops,
    random::Generator,
    tensor::{Data, Tensor},
};

/// An action in the environment's units.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// An index, from 0.
    Index(usize),
    /// A number for each dimension.
    Numbers(Vec<f32>),
}

/// The temperature of an agent that takes the best action or a random one.
const RANDOM: f32 = 1e30;

/// Size of the largest action that may be taken in place of the agent's, as a multiple of its
/// bounds, or of 1 for smaller and missing bounds. A far larger number overflows in the graph, at
/// every step until it leaves the window.
const FARTHEST: f64 = 1e6;

/// How a discrete action is chosen from its scores.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Draw {
    Best,
    /// The best one, or with this probability one of all.
    Greedy(f64),
    /// From the softmax at this temperature.
    Softmax(f32),
}

/// An exported agent, and the window of its episode. One agent plays one episode at a time.
#[derive(Clone, Debug)]
pub struct Agent {
    graph: Graph,
    /// In the order of the graph's inputs.
    window: Vec<Tensor>,
    is_discrete: bool,
    n_actions: usize,
    /// Actions of one output, to be played one after the other.
    chunk_size: usize,
    /// Size of the largest number that may be taken in each dimension of a continuous action.
    largest: Vec<f64>,
    target_return: f32,
    delayed_reward: bool,
    clip_rewards: bool,
    draw: Draw,
    needs_action_mask: bool,
    /// The actions that are allowed at the next step; `None`: all.
    allowed: Option<Vec<bool>>,
    /// Of the current episode; `None` before the first.
    episode: Option<Episode>,
}

#[derive(Clone, Debug)]
struct Episode {
    generator: Generator,
    return_to_go: f32,
    n_seen: i64,
    /// The rest of a chunk of actions.
    planned: Vec<f32>,
}

impl Agent {
    /// The agent in a directory with `agent.onnx` and `agent.json`.
    ///
    /// # Errors
    /// When a file is missing, damaged or of another version.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).map_err(|error| damaged(format!("{}: {error}", path.display())))
        };
        let about = String::from_utf8(read("agent.json")?);
        let about = about.map_err(|_| damaged("agent.json is not UTF-8"))?;
        Self::load(&read("agent.onnx")?, &about)
    }

    /// The agent of the contents of `agent.onnx` and `agent.json`.
    ///
    /// # Errors
    /// When one is damaged or of another version.
    pub fn load(graph: &[u8], about: &str) -> Result<Self, Error> {
        let about = Json::read(about)?;
        let format = about.number("format")?;
        if format != 1.0 {
            return Err(damaged(format!(
                "agent.json has format {format}, expected 1: another version of Overtone wrote it"
            )));
        }
        let graph = Graph::read(graph)?;
        let window = empty(&graph)?;
        let is_known = |name: &str| {
            ["observations", "actions", "returns_to_go", "timesteps", "mask"].contains(&name)
        };
        if let Some(input) = graph.inputs.iter().find(|input| !is_known(&input.name)) {
            return Err(damaged(format!("agent.onnx: unknown input `{}`", input.name)));
        }
        let (is_discrete, n_outputs) = match (&*graph.output.name, &graph.output.dims[..]) {
            ("logits", [n]) if *n > 0 => (true, *n),
            ("action", [n]) if *n > 0 => (false, *n),
            _ => return Err(damaged("agent.onnx: unknown output")),
        };
        let chunk_size = match about.get("chunk_size") {
            None => 1,
            Some(_) => about.number("chunk_size")? as usize,
        };
        if chunk_size == 0 || (chunk_size > 1 && is_discrete) || n_outputs % chunk_size != 0 {
            return Err(damaged("agent.json: `chunk_size` does not fit the graph's output"));
        }
        let n_actions = n_outputs / chunk_size;
        let (greedy, temperature) = (about.number("greedy")?, about.number("temperature")? as f32);
        let draw = match about.get("choice") {
            Some(Json::Text(choice)) if choice == "mode" => Draw::Best,
            Some(Json::Text(choice)) if choice == "sample" => {
                if temperature >= RANDOM {
                    // At such a temperature every action is equally likely.
                    Draw::Greedy(1.0 - greedy)
                } else if temperature > 0.0 {
                    Draw::Softmax(temperature)
                } else {
                    return Err(damaged("agent.json: `temperature` is not above 0"));
                }
            }
            _ => return Err(damaged("agent.json: `choice` is neither `mode` nor `sample`")),
        };
        Ok(Self {
            graph,
            window,
            is_discrete,
            n_actions,
            chunk_size,
            largest: (0..n_actions).map(|dimension| largest(&about, dimension)).collect(),
            target_return: about.number("target_return")? as f32,
            delayed_reward: about.flag("delayed_reward")?,
            clip_rewards: about.flag("clip_rewards")?,
            draw,
            needs_action_mask: about.get("needs_action_mask").is_some()
                && about.flag("needs_action_mask")?,
            allowed: None,
            episode: None,
        })
    }

    /// Whether actions are indices.
    pub fn is_discrete(&self) -> bool {
        self.is_discrete
    }

    /// Number of discrete actions, or of an action's dimensions.
    pub fn n_actions(&self) -> usize {
        self.n_actions
    }

    /// Numbers of one observation.
    pub fn observation_size(&self) -> usize {
        let observations = self.graph.inputs.iter().find(|input| input.name == "observations");
        observations.map_or(0, |input| input.dims.iter().skip(1).product())
    }

    /// Whether observations are pixels: whole numbers from 0 to 255.
    fn sees_bytes(&self) -> bool {
        let mut inputs = self.graph.inputs.iter();
        inputs.any(|input| input.name == "observations" && input.elem_type == 2)
    }

    /// Takes the most probable action at each step, or draws as in `agent.json`.
    pub fn deterministic(&mut self) {
        self.draw = Draw::Best;
    }

    /// Starts an episode. `target_return`: the return that the agent is conditioned on; `None`: the
    /// one of `agent.json`.
    ///
    /// # Errors
    /// When the target is not finite.
    pub fn begin(&mut self, seed: u64, target_return: Option<f32>) -> Result<(), Error> {
        let return_to_go = target_return.unwrap_or(self.target_return);
        if !return_to_go.is_finite() {
            return Err(Error::Call(format!("target_return={return_to_go}: expected a number")));
        }
        self.window = empty(&self.graph)?;
        let generator = Generator::of_policy(seed);
        self.episode = Some(Episode { generator, return_to_go, n_seen: 0, planned: Vec::new() });
        Ok(())
    }

    /// Allows only these discrete actions at the next step: a flag for each.
    ///
    /// # Errors
    /// When actions are continuous, the flags do not fit, or none is true.
    pub fn allow(&mut self, allowed: &[bool]) -> Result<(), Error> {
        if !self.is_discrete {
            return Err(Error::Call("only discrete actions can have a mask".into()));
        }
        let (n, expected) = (allowed.len(), self.n_actions);
        if n != expected || !allowed.contains(&true) {
            let what = format!("a mask of {n} actions, expected {expected}, one of them allowed");
            return Err(Error::Call(what));
        }
        self.allowed = Some(allowed.to_vec());
        Ok(())
    }

    /// The action for an observation in the environment's units; pixels are whole numbers from 0 to
    /// 255. `reward` is the reward of the last action; the first step ignores it.
    ///
    /// # Errors
    /// When the episode was not [begun](Self::begin), the observation has another size, or a number
    /// is not finite, or the agent needs a mask and [`allow`](Self::allow) gave none. The agent then
    /// acts as if there had been no call.
    pub fn act(&mut self, observation: &[f32], reward: f32) -> Result<Action, Error> {
        let size = self.observation_size();
        if observation.len() != size {
            let n = observation.len();
            return Err(Error::Call(format!("an observation of {n} numbers, expected {size}")));
        }
        if !reward.is_finite() || observation.iter().any(|x| !x.is_finite()) {
            return Err(Error::Call("the observation or the reward is not a finite number".into()));
        }
        let is_byte = |x: &f32| (0.0..=255.0).contains(x) && x.fract() == 0.0;
        if self.sees_bytes() && !observation.iter().all(is_byte) {
            return Err(Error::Call("a pixel is not a whole number from 0 to 255".into()));
        }
        let Some(episode) = &self.episode else {
            return Err(Error::Call("begin() starts an episode; call it first".into()));
        };
        if self.needs_action_mask && self.allowed.is_none() {
            return Err(Error::Call(
                "this agent was trained with masks of actions; call allow() before each act()"
                    .into(),
            ));
        }
        let mut return_to_go = episode.return_to_go;
        if episode.n_seen > 0 && !self.delayed_reward {
            return_to_go -= if self.clip_rewards { reward.clamp(-1.0, 1.0) } else { reward };
        }
        if !return_to_go.is_finite() {
            return Err(Error::Call("the return-to-go is not finite after this reward".into()));
        }
        let mut window = self.window.clone();
        for (tensor, input) in window.iter_mut().zip(&self.graph.inputs) {
            let row = |data: Data| {
                let n = data.len();
                Tensor::new(vec![n], data)
            };
            let row = match (&*input.name, input.elem_type) {
                ("observations", 2) => {
                    row(Data::U8(observation.iter().map(|&x| x as u8).collect()))
                }
                ("observations", _) => row(Data::F32(observation.to_vec())),
                ("returns_to_go", _) => row(Data::F32(vec![return_to_go])),
                ("timesteps", _) => row(Data::I64(vec![episode.n_seen])),
                ("mask", _) => row(Data::F32(vec![1.0])),
                (_, 7) => row(Data::I64(vec![0])),
                _ => row(Data::F32(vec![0.0; self.n_actions])),
            };
            ops::push(tensor, &row?)?;
        }
        let mut numbers = episode.planned.clone();
        if numbers.is_empty() {
            numbers = self.graph.run(window.clone())?.f32s()?.to_vec();
            let is_whole = numbers.len() == self.n_actions * self.chunk_size;
            if !is_whole || numbers.iter().any(|x| !x.is_finite()) {
                return Err(Error::not_finite());
            }
        }
        let planned = numbers.split_off(self.n_actions);
        let mut generator = episode.generator.clone();
        let action = if self.is_discrete {
            Action::Index(self.draw.index(&numbers, self.allowed.as_deref(), &mut generator))
        } else {
            Action::Numbers(numbers)
        };
        replace_newest(&mut window, &self.graph, &action)?;
        let episode = Episode { generator, return_to_go, n_seen: episode.n_seen + 1, planned };
        (self.window, self.episode, self.allowed) = (window, Some(episode), None);
        Ok(action)
    }

    /// Replaces the last action by the one that was taken.
    ///
    /// # Errors
    /// When the agent has not acted in this episode, or the action does not fit it.
    pub fn took(&mut self, action: &Action) -> Result<(), Error> {
        if self.episode.as_ref().is_none_or(|episode| episode.n_seen == 0) {
            return Err(Error::Call("act() chooses an action; call it before took()".into()));
        }
        let fits = match action {
            Action::Index(index) => self.is_discrete && *index < self.n_actions,
            Action::Numbers(numbers) => {
                !self.is_discrete
                    && numbers.len() == self.n_actions
                    && numbers
                        .iter()
                        .zip(&self.largest)
                        .all(|(&x, &largest)| f64::from(x).abs() <= largest)
            }
        };
        if !fits {
            return Err(Error::Call("an action that does not fit the agent".into()));
        }
        replace_newest(&mut self.window, &self.graph, action)
    }
}

/// Size of the largest number that may be taken in a dimension, by the bounds in `agent.json`.
fn largest(about: &Json, dimension: usize) -> f64 {
    let bound = |key: &str| match about.get("actions")?.get(key)? {
        Json::List(bounds) => match bounds.get(dimension)? {
            // Libraries write a missing bound as infinity or as the largest `f32`.
            Json::Number(bound) if bound.abs() < 1e30 => Some(bound.abs()),
            _ => None,
        },
        _ => None,
    };
    FARTHEST * ["low", "high"].into_iter().filter_map(bound).fold(1.0, f64::max)
}

/// The window before an episode's first step.
fn empty(graph: &Graph) -> Result<Vec<Tensor>, Error> {
    graph.inputs.iter().map(|input| ops::zeros(&input.dims, input.elem_type)).collect()
}

/// Replaces the newest action of a window, if the graph reads actions.
fn replace_newest(window: &mut [Tensor], graph: &Graph, action: &Action) -> Result<(), Error> {
    let inputs = window.iter_mut().zip(&graph.inputs);
    for (tensor, _) in inputs.filter(|(_, input)| input.name == "actions") {
        match (&mut tensor.data, action) {
            (Data::I64(ids), Action::Index(index)) => {
                if let Some(last) = ids.last_mut() {
                    *last = *index as i64;
                }
            }
            (Data::F32(values), Action::Numbers(numbers)) if values.len() >= numbers.len() => {
                let start = values.len() - numbers.len();
                values[start..].copy_from_slice(numbers);
            }
            _ => return Err(Error::Call("an action that does not fit the agent".into())),
        }
    }
    Ok(())
}

impl Draw {
    /// The chosen action among the allowed ones.
    fn index(self, scores: &[f32], allowed: Option<&[bool]>, generator: &mut Generator) -> usize {
        let is_allowed = |action: &usize| allowed.is_none_or(|allowed| allowed[*action]);
        let choices: Vec<usize> = (0..scores.len()).filter(is_allowed).collect();
        let better = |best, next| if scores[next] > scores[best] { next } else { best };
        let best = choices.iter().copied().reduce(better).unwrap_or(0);
        match self {
            Self::Best => best,
            Self::Greedy(epsilon) => {
                // Both numbers are drawn at every step.
                let explores = generator.unit() < epsilon;
                let random = choices[generator.below(choices.len())];
                if explores { random } else { best }
            }
            Self::Softmax(temperature) => {
                let highest = scores[best];
                let weight = |&action: &usize| {
                    math::exp(f64::from(scores[action] - highest) / f64::from(temperature))
                };
                let weights: Vec<f64> = choices.iter().map(weight).collect();
                let draw = generator.unit() * weights.iter().sum::<f64>();
                let mut below = 0.0;
                let drawn = weights.iter().position(|weight| {
                    below += weight;
                    draw < below
                });
                choices[drawn.unwrap_or(choices.len() - 1)]
            }
        }
    }
}
