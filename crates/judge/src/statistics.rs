//! Means, their errors, and quantiles of their distributions.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The mean of some numbers and its standard error (0 for one number).
pub(crate) fn mean_and_error(numbers: &[f64]) -> [f64; 2] {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    [mean, (squares / (n - 1.0).max(1.0) / n).sqrt()]
}

/// Half the width of a central interval at `level` of the normal distribution, in standard errors.
pub(crate) fn normal(level: f64) -> f64 {
    Normal::standard().inverse_cdf(f64::midpoint(level, 1.0))
}

/// Half the width of a central interval at `level` of Student's t distribution, in standard errors,
/// for a deviation from `n` numbers. Infinite for fewer than two.
pub(crate) fn student(n: usize, level: f64) -> f64 {
    StudentsT::new(0.0, 1.0, n as f64 - 1.0)
        .map_or(f64::INFINITY, |distribution| distribution.inverse_cdf(f64::midpoint(level, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_error_by_hand() {
        // Squares 4 + 0 + 4 = 8, variance 4, of the mean 4/3.
        assert_eq!(mean_and_error(&[1.0, 3.0, 5.0]), [3.0, (4.0f64 / 3.0).sqrt()]);
        assert_eq!(mean_and_error(&[7.0]), [7.0, 0.0]);
    }

    /// Tables of the distributions, to three digits.
    #[test]
    fn quantiles_of_tables() {
        let close = |got: f64, table: f64| assert!((got - table).abs() < 6e-4, "{got}, {table}");
        for (n, at_95, at_99) in
            [(2, 12.706, 63.657), (3, 4.303, 9.925), (5, 2.776, 4.604), (11, 2.228, 3.169)]
        {
            close(student(n, 0.95), at_95);
            close(student(n, 0.99), at_99);
        }
        close(normal(0.95), 1.960);
        close(normal(0.99), 2.576);
        assert_eq!(student(1, 0.95), f64::INFINITY);
    }
}
