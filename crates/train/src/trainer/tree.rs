//! Sums in a fixed order: a balanced binary tree over consecutive terms.
//!
//! `((t₀ + t₁) + (t₂ + t₃)) + …`, however the terms are distributed: with equally many terms on
//! each of 2ᵏ processes, every process holds a whole subtree. So the bits of a sum do not depend on
//! the number of processes.

/// A partial sum. For `n` terms so far, it stores at most `log₂ n + 1` sums.
pub struct TreeSum<T> {
    /// Sums of consecutive terms, each with the logarithm of their number, the earliest first.
    sums: Vec<(u32, T)>,
    add: fn(T, T) -> T,
}

impl<T> TreeSum<T> {
    /// An empty sum; `add` adds a later term to an earlier one.
    pub fn new(add: fn(T, T) -> T) -> Self {
        Self { sums: Vec::new(), add }
    }

    /// Adds the next term.
    pub fn push(&mut self, term: T) {
        let (mut height, mut term) = (0, term);
        while let Some((_, earlier)) = self.sums.pop_if(|(other, _)| *other == height) {
            term = (self.add)(earlier, term);
            height += 1;
        }
        self.sums.push((height, term));
    }

    /// The sum of all terms, whose number must be a power of two; `None` without terms.
    pub fn total(self) -> Option<T> {
        let add = self.add;
        self.sums.into_iter().map(|(_, sum)| sum).rev().reduce(|later, earlier| add(earlier, later))
    }
}

#[cfg(test)]
mod tests {
    use super::TreeSum;

    fn sum<T>(terms: impl IntoIterator<Item = T>, add: fn(T, T) -> T) -> Option<T> {
        let mut sum = TreeSum::new(add);
        terms.into_iter().for_each(|term| sum.push(term));
        sum.total()
    }

    #[test]
    fn terms_are_added_in_pairs() {
        let words = |n: u8| (b'a'..b'a' + n).map(|c| char::from(c).to_string());
        let add = |a: String, b: String| format!("({a}{b})");
        assert_eq!(sum(words(0), add), None);
        assert_eq!(sum(words(1), add).unwrap(), "a");
        assert_eq!(sum(words(4), add).unwrap(), "((ab)(cd))");
        assert_eq!(sum(words(8), add).unwrap(), "(((ab)(cd))((ef)(gh)))");
    }

    #[test]
    fn sums_of_subtrees_give_the_same_bits() {
        let terms: Vec<f32> = (0..64u32).map(|i| 1.0 / (i * i % 37 + 1) as f32).collect();
        let add = |a: f32, b: f32| a + b;
        let whole = sum(terms.iter().copied(), add).unwrap();
        assert_ne!(whole.to_bits(), terms.iter().sum::<f32>().to_bits(), "the order has an effect");
        for n in [2, 4, 8, 64] {
            let subtrees =
                terms.chunks(64 / n).map(|subtree| sum(subtree.iter().copied(), add).unwrap());
            assert_eq!(sum(subtrees, add).unwrap().to_bits(), whole.to_bits(), "{n} subtrees");
        }
    }
}
