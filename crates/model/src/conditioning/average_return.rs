//! [`AverageReturn`]: the average return per remaining step.
//!
//! A return-to-go falls with every reward, so it reveals the time within an episode. If every good
//! episode has the same return, a model can read the time from it and memorise the recorded
//! trajectories. `R̂ₜ / (H − t)`, the input of RvS-R (Emmons et al. 2022), does not fall while
//! rewards come evenly. Here it is `R̂ₜ · H / (H − t)`, the same quantity in units of a whole
//! episode's return, because the scale that divides returns fits this unit.

use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

/// Options of the average return, which replaces returns-to-go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AverageReturn {
    /// `H`: the maximum number of steps of an episode.
    pub horizon: usize,
}

impl AverageReturn {
    /// `H / (H − t)`, the factor of the return-to-go at timestep `t`. From the last step on, one
    /// step remains.
    pub fn factor(self, timestep: i32) -> f32 {
        let horizon = self.horizon as f32;
        horizon / (horizon - timestep as f32).max(1.0)
    }

    /// Averages of the `returns_to_go` of these timesteps, row by row.
    ///
    /// # Shapes
    /// - `returns_to_go`, result: `[batch, time]`
    /// - `timesteps`: `batch · time` numbers
    pub fn of(self, returns_to_go: Tensor<2>, timesteps: &[i32]) -> Tensor<2> {
        let factors: Vec<f32> = timesteps.iter().map(|&timestep| self.factor(timestep)).collect();
        let factors = TensorData::new(factors, returns_to_go.dims());
        let (device, dtype) = (returns_to_go.device(), returns_to_go.dtype());
        returns_to_go * Tensor::from_data(factors, (&device, dtype))
    }
}
