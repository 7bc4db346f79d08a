//! Power laws read off measurements: straight lines through logarithms, by least squares.

/// A straight line through points by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StraightLine {
    /// Its slope.
    pub(crate) slope: f64,
    /// Its value at 0.
    pub(crate) at_zero: f64,
    /// `Σ (x − x̄)²`; where it is 0, slope and value are no numbers.
    pub(crate) xx: f64,
}

impl StraightLine {
    /// Through these points.
    pub(crate) fn fit(points: &[[f64; 2]]) -> Self {
        let n = points.len() as f64;
        let mean = [0, 1].map(|axis| points.iter().map(|point| point[axis]).sum::<f64>() / n);
        let moment = |f: fn([f64; 2]) -> f64| -> f64 {
            points.iter().map(|point| f([point[0] - mean[0], point[1] - mean[1]])).sum()
        };
        let (xx, xy) = (moment(|[x, _]| x * x), moment(|[x, y]| x * y));
        let slope = xy / xx;
        Self { slope, at_zero: mean[1] - slope * mean[0], xx }
    }
}

/// `y = constant · x^exponent`, fitted to points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLaw {
    /// The slope of `ln y` over `ln x`.
    pub exponent: f64,
    /// Its standard error: of the straight line's slope, from what the line leaves over.
    /// It speaks of the line's straightness; neighbouring points on a smooth curve are not
    /// independent, so a curve that bends has an exponent farther off than this.
    pub standard_error: f64,
    /// `y` at `x = 1`.
    pub constant: f64,
}

impl PowerLaw {
    /// Fits the points whose coordinates are positive and finite; `None` for fewer than three
    /// of them, or when they all have the same `x`.
    ///
    /// ```
    /// use overtone_lab::PowerLaw;
    /// let law = PowerLaw::fit([[1.0, 5.0], [2.0, 20.0], [4.0, 80.0]]).unwrap();
    /// assert!((law.exponent - 2.0).abs() < 1e-12 && (law.constant - 5.0).abs() < 1e-12);
    /// ```
    pub fn fit(points: impl IntoIterator<Item = [f64; 2]>) -> Option<Self> {
        let logs: Vec<[f64; 2]> = points
            .into_iter()
            .filter(|point| point.iter().all(|&x| x > 0.0 && x.is_finite()))
            .map(|point| point.map(f64::ln))
            .collect();
        let StraightLine { slope, at_zero, xx } = StraightLine::fit(&logs);
        if logs.len() < 3 || xx <= 0.0 {
            return None;
        }
        let left: f64 = logs.iter().map(|[x, y]| (y - at_zero - slope * x).powi(2)).sum();
        let standard_error = (left / (logs.len() as f64 - 2.0) / xx).sqrt();
        Some(Self { exponent: slope, standard_error, constant: at_zero.exp() })
    }

    /// The exponent with its standard error, for a table.
    pub fn show(law: Option<Self>) -> String {
        law.map_or("-".into(), |law| format!("{:.2} ± {:.2}", law.exponent, law.standard_error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_and_its_error_are_those_of_a_straight_line() {
        // ln x = 0, 1, 2 and ln y = 0, 1, 0: slope 0, mean 1/3, left over 2/3; with one
        // degree of freedom and Σ(x − x̄)² = 2, the error is √(2/3 / 1 / 2).
        let e = std::f64::consts::E;
        let law = PowerLaw::fit([[1.0, 1.0], [e, e], [e * e, 1.0]]).unwrap();
        assert!(law.exponent.abs() < 1e-12, "{law:?}");
        assert!((law.standard_error - (1f64 / 3.0).sqrt()).abs() < 1e-12, "{law:?}");
        assert!((law.constant - (1f64 / 3.0).exp()).abs() < 1e-12, "{law:?}");
    }

    #[test]
    fn what_has_no_logarithm_is_left_out() {
        let points = [[1.0, 1.0], [2.0, 0.0], [2.0, 0.5], [3.0, f64::NAN], [4.0, 0.25]];
        let law = PowerLaw::fit(points).unwrap();
        assert!((law.exponent + 1.0).abs() < 1e-12 && law.standard_error < 1e-7, "{law:?}");
        assert_eq!(PowerLaw::fit(points[..3].to_vec()), None);
        assert_eq!(PowerLaw::fit([[2.0, 1.0], [2.0, 2.0], [2.0, 3.0]]), None);
        assert_eq!(PowerLaw::show(None), "-");
    }
}
