//! Acting with a model: what agents remember, contexts of it, and actions drawn from what the model
//! says.

mod frame_memory;
pub mod history;
mod model_policy;
mod recent;
pub mod turns;

pub use history::{ContextShape, History, Past};
pub use model_policy::ModelPolicy;
