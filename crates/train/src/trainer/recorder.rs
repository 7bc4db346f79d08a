//! Recording of steps: on a GPU, the work of a step is recorded once, and then replayed with other
//! inputs in one call.
//!
//! The first steps of a layout of inputs run ordinarily, so that memory is found and kernels are
//! compiled. The next one is recorded, which does not execute it, and then replayed. All of them
//! run [`Recorded::compute`], which writes its results over the old ones. An error ends recording,
//! and this step and all later ones run ordinarily.

use burn::backend::{Backend, BackendGraph, Dispatch};
use burn::tensor::{Device, Tensor};
use overtone_data::Batch;
use overtone_kernels::stored::copy_into;
use overtone_model::{Inputs, Sections};

use crate::{
    algorithm::{Recorded, StepAt, StepFigures},
    training_data::TrainingData,
};

/// Ordinary steps of a layout before the last one that warms up.
const ORDINARY: u64 = 2;

/// The most layouts that are recorded, each with the memory of a step: without and with padding.
const LAYOUTS: usize = 2;

/// Recorded steps of one training.
pub struct Recorder {
    /// Without autodiff, because burn's autodiff does not pass recording on to its device.
    device: Device,
    is_on: bool,
    /// Whether the device waits for the start of a recording.
    is_prepared: bool,
    recordings: Vec<Recording>,
    /// The result of a recording that was not reported yet.
    news: Option<Result<(), String>>,
}

/// The steps of one layout of inputs.
struct Recording {
    inputs: Inputs,
    n_steps: u64,
    /// The recorded step with its figures.
    graph: Option<(BackendGraph<Dispatch>, Tensor<1>)>,
}

impl Recorder {
    /// A recorder for a device, on by default if it is a CUDA device.
    pub fn new(device: &Device) -> Self {
        let device = device.clone().without_autodiff();
        let is_on = Dispatch::name(device.as_dispatch()).contains("cuda");
        Self { device, is_on, is_prepared: false, recordings: Vec::new(), news: None }
    }

    /// Records steps from now on, or does not.
    pub fn switch(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// Whether steps are replayed since the last call, or why they cannot be.
    pub fn news(&mut self) -> Option<Result<(), String>> {
        self.news.take()
    }

    /// One step; returns its figures, `[n]`. `None`: the step was not taken, because recording is
    /// off or this batch has no recorded step.
    pub fn step<S>(
        &mut self,
        algorithm: &dyn Recorded<S>,
        state: &mut S,
        batch: &Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> Option<Tensor<1>> {
        let mut sections = Sections::default();
        if !self.is_on || !algorithm.send(state, batch, data, at, &mut sections) {
            // A step elsewhere gives the state new memory.
            self.recordings.clear();
            return None;
        }
        match self.take(algorithm, state, data, sections) {
            Ok(figures) => {
                algorithm.counted(state);
                Some(figures)
            }
            Err(reason) => {
                self.is_on = false;
                self.recordings.clear();
                self.news = Some(Err(reason));
                None
            }
        }
    }

    fn take<S>(
        &mut self,
        algorithm: &dyn Recorded<S>,
        state: &mut S,
        data: &TrainingData,
        sections: Sections,
    ) -> Result<Tensor<1>, String> {
        let (layout, words) = sections.finish();
        let known = self.recordings.iter().position(|known| *known.inputs.layout() == layout);
        if let Some(i) = known
            && self.recordings[i].graph.is_some()
        {
            self.recordings[i].inputs.write(words);
            return self.replay(i);
        }
        // Earlier readers of the inputs and of the state run before these are overwritten.
        self.device.flush().map_err(|error| error.to_string())?;
        if let Some(i) = known {
            self.recordings[i].inputs.write(words);
            return self.warm_up(i, algorithm, state, data);
        }
        let inputs = Inputs::new(layout, words, &self.device);
        let figures = joined(algorithm.compute(state, &inputs, data));
        if self.recordings.len() < LAYOUTS {
            self.recordings.push(Recording { inputs, n_steps: 1, graph: None });
        }
        Ok(figures)
    }

    /// An ordinary step, or the recorded one after enough of them.
    fn warm_up<S>(
        &mut self,
        i: usize,
        algorithm: &dyn Recorded<S>,
        state: &mut S,
        data: &TrainingData,
    ) -> Result<Tensor<1>, String> {
        let device = self.device.as_dispatch();
        let recording = &mut self.recordings[i];
        recording.n_steps += 1;
        if recording.n_steps <= ORDINARY {
            return Ok(joined(algorithm.compute(state, &recording.inputs, data)));
        }
        if !self.is_prepared {
            Dispatch::graph_prepare(device).map_err(|error| error.to_string())?;
            self.is_prepared = true;
            return Ok(joined(algorithm.compute(state, &recording.inputs, data)));
        }
        self.is_prepared = false;
        // A recording that fails leaves the memory that it would have written unreadable.
        let copies: Vec<Tensor<1>> =
            algorithm.memory(state).into_iter().map(|memory| memory.clone() * 1.0).collect();
        let recorded = Dispatch::graph_start_capture(device).and_then(|()| {
            let figures = joined(algorithm.compute(state, &recording.inputs, data));
            Dispatch::graph_stop_capture(device).map(|graph| (graph, figures))
        });
        match recorded {
            Ok(graph) => {
                recording.graph = Some(graph);
                self.news = Some(Ok(()));
                self.replay(i)
            }
            Err(error) => {
                for (memory, copy) in algorithm.memory(state).into_iter().zip(copies) {
                    *memory = copy_into(memory.clone(), copy);
                }
                Err(error.to_string())
            }
        }
    }

    fn replay(&self, i: usize) -> Result<Tensor<1>, String> {
        let Some((graph, figures)) = &self.recordings[i].graph else {
            return Err("the step was not recorded".to_owned());
        };
        // SAFETY: the recorded kernels read and write the inputs and figures, which this recording
        // holds, the state, which keeps its memory while steps are only taken here, and memory of
        // the step itself, which the graph holds. All of it is used on this thread alone.
        let replayed = unsafe { Dispatch::graph_replay(self.device.as_dispatch(), graph) };
        replayed.map_err(|error| error.to_string())?;
        // The next replay overwrites them.
        Ok(figures.clone() * 1.0)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.is_prepared {
            // There is nothing to record. The error says the same.
            let _ = Dispatch::graph_stop_capture(self.device.as_dispatch());
        }
    }
}

/// The figures of a step in one tensor, `[n]`.
pub(super) fn joined(figures: StepFigures) -> Tensor<1> {
    let StepFigures { loss, grad_norm, others } = figures;
    let figures = [loss, grad_norm].into_iter().chain(others).collect();
    Tensor::cat(figures, 0)
}
