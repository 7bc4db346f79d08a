//! All frames of a dataset on the device, so that a batch is only row indices.
//!
//! A batch of 128 contexts of 30 timesteps has 30 MB of frames, but only 60 KB of row indices.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_data::FrameStore;
use overtone_model::decision_transformer::{FRAME, STACK};

use crate::error::TrainError;

const PIXELS: usize = FRAME * FRAME;

/// Frames per transfer, 58 MB: the host memory needed in addition to the dataset.
const CHUNK: usize = 8192;

/// Every frame of a dataset, as bytes on a device.
#[derive(Clone, Debug)]
pub struct FrameBank {
    /// `[1 + frames, 84 · 84]`, the first one black.
    frames: Tensor<2, Int>,
}

impl FrameBank {
    /// Size of a dataset's frames in bytes.
    pub fn bytes(store: &FrameStore) -> usize {
        (1 + store.rows()) * PIXELS
    }

    /// Copies all frames to the device.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn upload(store: &FrameStore, device: &Device) -> Result<Self, TrainError> {
        let n = store.rows();
        let mut frames = Tensor::<2, Int>::zeros([1 + n, PIXELS], (device, DType::U8));
        for first in (0..n).step_by(CHUNK) {
            let n_here = CHUNK.min(n - first);
            let mut pixels = vec![0; n_here * PIXELS];
            store.read(first, &mut pixels)?;
            let data = TensorData::new(pixels, [n_here, PIXELS]);
            let chunk = Tensor::from_data(data, (device, DType::U8));
            frames = frames.slice_assign([1 + first..1 + first + n_here, 0..PIXELS], chunk);
        }
        Ok(Self { frames })
    }

    /// The observations of a batch of `[contexts, timesteps]`, gathered from these rows. The rows
    /// of each context are consecutive.
    pub fn stacks(&self, frame_rows: &[i64], [_, time]: [usize; 2]) -> Tensor<4, Int> {
        let places: Vec<i32> = Self::places(frame_rows, time).collect();
        self.gather(Tensor::from_data(&places[..], &self.frames.device()))
    }

    /// The rows of the frames of every observation among the frames on the device, for `frame_rows`
    /// as in [`stacks`](Self::stacks).
    pub fn places(frame_rows: &[i64], time: usize) -> impl Iterator<Item = i32> {
        frame_rows
            .chunks_exact(time + STACK - 1)
            .flat_map(|window| window.windows(STACK))
            // Black frames have the row -1.
            .flat_map(|stack| stack.iter().map(|&row| (row + 1) as i32))
    }

    /// The observations at these [`places`](Self::places), `[4 n]`.
    pub fn gather(&self, places: Tensor<1, Int>) -> Tensor<4, Int> {
        let [n] = places.dims();
        let stacks = self.frames.clone().select(0, places);
        stacks.reshape([n / STACK, STACK, FRAME, FRAME])
    }
}
