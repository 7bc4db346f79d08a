//! [`ExportError`]: why an agent has no graph.

/// Reasons why an agent has no graph.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A weight is missing: the weights belong to another agent.
    #[error("the weights do not fit the agent: `{name}` is missing")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A part of the agent that a graph cannot express.
    #[error("{what} cannot be exported to ONNX: {instead}")]
    Unsupported {
        /// The part.
        what: String,
        /// The reason, and what to do.
        instead: String,
    },
    /// The agent is not valid, or the acting mode does not fit it.
    #[error(transparent)]
    Agent(#[from] overtone_model::ModelError),
}
