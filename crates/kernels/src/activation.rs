//! [`Activation`]: the nonlinearity of a perceptron.

/// The nonlinearity between the two layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// `x Φ(x)` with the exact normal distribution function, not its tanh approximation.
    #[default]
    Gelu,
    /// `max(x, 0)`
    Relu,
}
