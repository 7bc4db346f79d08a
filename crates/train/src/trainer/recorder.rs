//! Recording of steps: on a GPU, the work of a step is recorded once, and then replayed with other
//! inputs in one call.
//!
//! The first steps of a layout of inputs run ordinarily, so that memory is found and kernels are
//! compiled. The next one is recorded, which does not execute it, and then replayed. All of them
//! run [`Recorded::compute`], which writes its results over the old ones. After an error, this step
//! runs ordinarily, and recording starts over. A recorded step cannot use more memory than is held
//! already, so the first attempt may fail. The last error ends recording.
//!
//! Numbers that the host passes to a kernel are frozen in a recording, and CUDA also freezes what
//! it sends. Training on them would be wrong without any error. So the first replay with other
//! inputs than the recorded ones is compared with the ordinary step on the same inputs.

use burn::backend::{Backend, BackendGraph, Dispatch};
use burn::tensor::{Device, Tensor};
use overtone_data::Batch;
use overtone_kernels::stored::copy_into;
use overtone_model::{Inputs, Sections, device::is_cpu};

use crate::{
    algorithm::{Recorded, StepAt, StepFigures},
    training_data::TrainingData,
};

/// Ordinary steps of a layout before the last one that warms up.
const ORDINARY: u64 = 2;

/// The most layouts that are recorded, each with the memory of a step: without and with padding.
const LAYOUTS: usize = 2;

/// The most attempts to record.
const ATTEMPTS: u8 = 3;

/// The relative difference of figures between a replayed and an ordinary step: they differ at most
/// by the order of sums.
const TOLERANCE: f32 = 1e-4;

/// Recorded steps of one training.
pub struct Recorder {
    /// Without autodiff, because burn's autodiff does not pass recording on to its device.
    device: Device,
    is_on: bool,
    /// If the device waits for the start of a recording: whose, and copies of the state.
    prepared: Option<(usize, Vec<Tensor<1>>)>,
    n_errors: u8,
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
    /// Whether a replay was compared with an ordinary step.
    is_checked: bool,
}

impl Recorder {
    /// A recorder for a device, on by default if it is a CUDA device.
    pub fn new(device: &Device) -> Self {
        let device = device.clone().without_autodiff();
        let is_on = Dispatch::name(device.as_dispatch()).contains("cuda");
        Self { device, is_on, prepared: None, n_errors: 0, recordings: Vec::new(), news: None }
    }

    /// Records steps from now on, or does not.
    pub fn switch(&mut self, is_on: bool) {
        self.is_on = is_on && !is_cpu(&self.device);
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
            self.forget();
            return None;
        }
        match self.take(algorithm, state, data, sections) {
            Ok(figures) => {
                algorithm.counted(state, at);
                Some(figures)
            }
            Err(reason) => {
                self.forget();
                self.n_errors += 1;
                if self.n_errors == ATTEMPTS {
                    self.is_on = false;
                    self.news = Some(Err(reason));
                }
                None
            }
        }
    }

    /// Drops all recordings, and ends the wait for one.
    fn forget(&mut self) {
        self.recordings.clear();
        if self.prepared.take().is_some() {
            // There is nothing to record. The error says the same.
            let _ = Dispatch::graph_stop_capture(self.device.as_dispatch());
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
            return if self.recordings[i].is_checked {
                self.replay(i)
            } else {
                self.check(i, algorithm, state, data)
            };
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
            self.recordings.push(Recording { inputs, n_steps: 1, graph: None, is_checked: false });
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
        // Another layout has prepared the device: its own next step is recorded first.
        if self.prepared.as_ref().is_some_and(|(of, _)| *of != i) {
            return Ok(joined(algorithm.compute(state, &recording.inputs, data)));
        }
        let Some((_, copies)) = self.prepared.take() else {
            Dispatch::graph_prepare(device).map_err(|error| error.to_string())?;
            self.prepared = Some((i, copied(algorithm, state)));
            // The recording has more room than this step.
            let _spare = copied(algorithm, state);
            return Ok(joined(algorithm.compute(state, &recording.inputs, data)));
        };
        // A recording that fails leaves the memory that it would have written unreadable.
        let memory = algorithm.memory(state).into_iter();
        let copies: Vec<_> =
            copies.into_iter().zip(memory).map(|(copy, of)| copy_into(copy, of.clone())).collect();
        let recorded = Dispatch::graph_start_capture(device).and_then(|()| {
            let figures = joined(algorithm.compute(state, &recording.inputs, data));
            Dispatch::graph_stop_capture(device).map(|graph| (graph, figures))
        });
        match recorded {
            Ok(graph) => {
                recording.graph = Some(graph);
                self.replay(i)
            }
            Err(error) => {
                restore(algorithm, state, &copies);
                Err(error.to_string())
            }
        }
    }

    /// A replayed step, after the ordinary one from the same state. Both must have the same
    /// figures, and move the state by the same distances.
    fn check<S>(
        &mut self,
        i: usize,
        algorithm: &dyn Recorded<S>,
        state: &mut S,
        data: &TrainingData,
    ) -> Result<Tensor<1>, String> {
        self.device.flush().map_err(|error| error.to_string())?;
        let copies = copied(algorithm, state);
        let figures = joined(algorithm.compute(state, &self.recordings[i].inputs, data));
        let ordinary = measured(algorithm, state, &copies, figures);
        restore(algorithm, state, &copies);
        let figures = self.replay(i)?;
        let replayed = measured(algorithm, state, &copies, figures.clone());
        let is_equal = |(x, y): (&f32, &f32)| {
            (x - y).abs() <= TOLERANCE * x.abs().max(y.abs()) || x.is_nan() && y.is_nan()
        };
        if !ordinary.iter().zip(&replayed).all(is_equal) {
            restore(algorithm, state, &copies);
            let error = "a replayed step differs from the ordinary one";
            return Err(format!("{error}: {replayed:?} instead of {ordinary:?}"));
        }
        self.recordings[i].is_checked = true;
        self.news = Some(Ok(()));
        Ok(figures)
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
        self.forget();
    }
}

/// Copies of the memory that a step changes.
fn copied<S>(algorithm: &dyn Recorded<S>, state: &mut S) -> Vec<Tensor<1>> {
    algorithm.memory(state).into_iter().map(|memory| memory.clone() * 1.0).collect()
}

fn restore<S>(algorithm: &dyn Recorded<S>, state: &mut S, copies: &[Tensor<1>]) {
    for (memory, copy) in algorithm.memory(state).into_iter().zip(copies) {
        *memory = copy_into(memory.clone(), copy.clone());
    }
}

/// The figures of a step on the host, and the distances by which it moved the state.
fn measured<S>(
    algorithm: &dyn Recorded<S>,
    state: &mut S,
    copies: &[Tensor<1>],
    figures: Tensor<1>,
) -> Vec<f32> {
    let memory = algorithm.memory(state).into_iter().zip(copies);
    let distances = memory.map(|(memory, copy)| (memory.clone() - copy.clone()).abs().sum());
    let measured = std::iter::once(figures).chain(distances).collect();
    Tensor::cat(measured, 0).into_data().iter().collect()
}

/// The figures of a step in one tensor, `[n]`.
pub(super) fn joined(figures: StepFigures) -> Tensor<1> {
    let StepFigures { loss, grad_norm, others } = figures;
    let figures = [loss, grad_norm].into_iter().chain(others).collect();
    Tensor::cat(figures, 0)
}
