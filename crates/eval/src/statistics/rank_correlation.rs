//! Spearman's rank correlation.

/// Spearman's rank correlation of pairs: the correlation of their ranks, in [-1, 1]. Equal numbers
/// share the mean of their ranks. `None` if all numbers of one side are equal, or with fewer than
/// two pairs.
///
/// ```
/// use overtone_eval::statistics::spearman;
/// assert_eq!(spearman(&[[1.0, 20.0], [2.0, 30.0], [3.0, 10.0]]), Some(-0.5));
/// ```
pub fn spearman(pairs: &[[f64; 2]]) -> Option<f64> {
    let [x, y] = [0, 1].map(|side| ranks(pairs, side));
    // Ranks are 1 to n in any order, so their mean is known.
    let middle = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    let scale = (product(&x, &x) * product(&y, &y)).sqrt();
    (scale > 0.0).then(|| product(&x, &y) / scale)
}

/// The ranks of one side from 1. A number's rank is one more than the count of smaller numbers,
/// plus half of the other equal ones.
fn ranks(pairs: &[[f64; 2]], side: usize) -> Vec<f64> {
    let rank = |pair: &[f64; 2]| {
        let smaller = pairs.iter().filter(|other| other[side] < pair[side]).count();
        let equal = pairs.iter().filter(|other| other[side] == pair[side]).count();
        smaller as f64 + (equal as f64 + 1.0) / 2.0
    };
    pairs.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_order_counts() {
        let rising = [[1.0, -5.0], [2.0, 0.0], [30.0, 1e9]];
        assert_eq!(spearman(&rising), Some(1.0));
        assert_eq!(spearman(&rising.map(|[x, y]| [x, -y])), Some(-1.0));
        assert_eq!(spearman(&rising.map(|[x, y]| [y, x])), Some(1.0));
    }

    #[test]
    fn equal_numbers_share_a_rank() {
        // Ranks 1.5, 1.5, 3, 4 and 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
        let correlation = spearman(&[[7.0, 1.0], [7.0, 2.0], [8.0, 3.0], [9.0, 4.0]]).unwrap();
        assert!((correlation - 4.5 / 22.5_f64.sqrt()).abs() < 1e-15, "{correlation}");
    }

    #[test]
    fn equal_sides_and_single_pairs_have_no_order() {
        assert_eq!(spearman(&[[1.0, 2.0], [1.0, 3.0]]), None);
        assert_eq!(spearman(&[[1.0, 2.0]]), None);
        assert_eq!(spearman(&[]), None);
    }
}
