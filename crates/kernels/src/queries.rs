//! The tokens of a sequence at which attention computes its result.

use burn::tensor::Tensor;

/// Every `step`-th token of a sequence, from `first` on. Keys and values always come from
/// all tokens.
///
/// The last layer's result is only used at some tokens: a third of them when actions are predicted
/// in training, one during acting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queries {
    /// Must be smaller than `step`.
    pub first: usize,
    /// Must divide the number of tokens.
    pub step: usize,
}

impl Default for Queries {
    fn default() -> Self {
        Self::ALL
    }
}

impl Queries {
    /// All tokens.
    pub const ALL: Self = Self { first: 0, step: 1 };

    /// One token in sequences of `tokens` tokens.
    pub fn one(token: usize, tokens: usize) -> Self {
        Self { first: token, step: tokens }
    }

    /// Number of queries in a sequence.
    pub fn count(self, tokens: usize) -> usize {
        tokens / self.step
    }

    /// The token of the query with this index.
    #[inline(always)]
    pub(crate) fn token(self, query: usize) -> usize {
        self.first + query * self.step
    }

    /// The rows of the queries: `[batch, tokens, width]` → `[batch, count, width]`.
    pub fn of(self, tokens: Tensor<3>) -> Tensor<3> {
        if self == Self::ALL {
            return tokens;
        }
        let [batch, n_tokens, width] = tokens.dims();
        let count = self.count(n_tokens);
        tokens
            .reshape([batch, count, self.step, width])
            .narrow(2, self.first, 1)
            .reshape([batch, count, width])
    }

    /// The rows of the queries in whole sequences of rows of this width: the values themselves, or
    /// a copy in `memory` (see [`Self::memory`] for its size).
    pub(crate) fn pick<'a>(
        self,
        values: &'a [f32],
        width: usize,
        memory: &'a mut [f32],
    ) -> &'a [f32] {
        if self == Self::ALL {
            return values;
        }
        let rows = values[self.first * width..].chunks(self.step * width);
        for (into, row) in memory.chunks_exact_mut(width).zip(rows) {
            into.copy_from_slice(&row[..width]);
        }
        memory
    }

    /// Number of elements that [`Self::pick`] copies from `elements` elements.
    pub(crate) fn memory(self, elements: usize) -> usize {
        if self == Self::ALL { 0 } else { elements / self.step }
    }

    /// # Panics
    /// When these are not tokens of a sequence of `tokens` tokens.
    pub(crate) fn check(self, tokens: usize) {
        let Self { first, step } = self;
        assert!(
            step > 0 && first < step && tokens.is_multiple_of(step),
            "every {step}th token from {first} of {tokens}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_queries() {
        // Two sequences of four tokens of width 2.
        let values: Vec<f32> = (0..16).map(|i| i as f32).collect();
        let queries = Queries { first: 1, step: 2 };
        let mut memory = vec![0.0; queries.memory(16)];
        let picked = [2.0, 3.0, 6.0, 7.0, 10.0, 11.0, 14.0, 15.0];
        assert_eq!(queries.pick(&values, 2, &mut memory), picked);
        assert_eq!(Queries::one(3, 4).pick(&values, 2, &mut [0.0; 4]), [6.0, 7.0, 14.0, 15.0]);
        assert_eq!(Queries::ALL.pick(&values, 2, &mut []), values);
        assert_eq!([queries.count(4), queries.token(1), Queries::one(3, 4).count(4)], [2, 3, 1]);
    }
}
