//! Numbers as text: [`decimal`] and [`counted`].

/// A number with so many decimals, or with three significant digits if these would all be 0.
///
/// ```
/// use overtone_core::decimal;
/// assert_eq!([-0.0, 0.25, -12.0].map(|number| decimal(number, 1)), ["0.0", "0.2", "-12.0"]);
/// assert_eq!(decimal(0.00002, 1), "2.00e-5");
/// ```
pub fn decimal(number: f64, decimals: usize) -> String {
    let smallest = 0.1f64.powi(decimals as i32);
    if number == 0.0 {
        // Without the sign of a negative zero.
        format!("{:.decimals$}", 0.0)
    } else if number.abs() < smallest {
        format!("{number:.2e}")
    } else {
        format!("{number:.decimals$}")
    }
}

/// A count with its noun, whose plural takes an s.
///
/// ```
/// use overtone_core::counted;
/// assert_eq!([0, 1, 2].map(|n| counted(n, "row")), ["0 rows", "1 row", "2 rows"]);
/// ```
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
