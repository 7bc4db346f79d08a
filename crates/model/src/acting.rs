//! Acting with a model: the agents' histories, their contexts, and actions drawn from the model's
//! output.

mod frame_memory;
pub mod history;
mod model_policy;
mod recent;
pub mod turns;

pub use history::{ContextShape, History, PreviousActions};
pub use model_policy::ModelPolicy;
