//! The numbers of the Fourier head's paper (Tables 3 and 8).

use overtone_eval::table::Table;

use super::Variant;

/// A row of Table 8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Frequencies; `None` for the linear head.
    pub frequencies: Option<usize>,
    /// γ.
    pub gamma: f64,
    /// Whether bins are of mixed precision. The linear head's are uniform (its released
    /// configuration); the paper finds that it does not matter there.
    pub mixed: bool,
    /// MASE over the seasonal naive forecast's, geometric mean over 20 datasets.
    pub mase: f64,
    /// WQL likewise.
    pub wql: f64,
    /// Smoothness with 4096 bins, and its standard deviation over distributions.
    pub smoothness: [f64; 2],
}

const fn fourier(n: usize, gamma: f64, mixed: bool, numbers: [f64; 4]) -> Row {
    let [mase, wql, smoothness, sd] = numbers;
    Row { frequencies: Some(n), gamma, mixed, mase, wql, smoothness: [smoothness, sd] }
}

/// Table 8; its first and fifth rows are Table 3.
pub const TABLE_8: [Row; 7] = [
    Row {
        frequencies: None,
        gamma: 0.0,
        mixed: false,
        mase: 0.883,
        wql: 0.750,
        smoothness: [0.1689, 0.1087],
    },
    fourier(64, 1e-6, true, [0.875, 0.798, 0.0032, 0.0012]),
    fourier(128, 1e-6, true, [0.872, 0.767, 0.0068, 0.0035]),
    fourier(256, 1e-6, true, [0.859, 0.755, 0.0139, 0.0087]),
    fourier(550, 1e-6, true, [0.852, 0.749, 0.0283, 0.0224]),
    fourier(550, 0.0, true, [0.861, 0.753, 0.0286, 0.0219]),
    fourier(550, 1e-6, false, [0.873, 0.747, 0.0395, 0.0252]),
];

/// The paper's row of a variant, if it has one.
pub fn row_of(variant: &Variant) -> Option<&'static Row> {
    TABLE_8.iter().find(|row| {
        let gamma = variant.fourier.map_or(0.0, |(_, gamma)| gamma);
        row.frequencies == variant.fourier.map(|(n, _)| n)
            && row.gamma == gamma
            && row.mixed == variant.mixed
    })
}

/// All rows.
pub fn table() -> Table {
    let mut table = Table::new(&["head", "bins", "γ", "MASE", "WQL", "smoothness", "sd"]);
    for row in &TABLE_8 {
        let variant =
            Variant { fourier: row.frequencies.map(|n| (n, row.gamma)), mixed: row.mixed };
        table.row(vec![
            variant.head(),
            variant.bins().into(),
            variant.gamma(),
            format!("{:.3}", row.mase),
            format!("{:.3}", row.wql),
            format!("{:.4}", row.smoothness[0]),
            format!("{:.4}", row.smoothness[1]),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_variant() {
        let of = |fourier, mixed| row_of(&Variant { fourier, mixed }).map(|row| row.mase);
        assert_eq!(of(None, false), Some(0.883));
        assert_eq!(of(None, true), None);
        assert_eq!(of(Some((128, 1e-6)), true), Some(0.872));
        assert_eq!(of(Some((128, 0.0)), true), None);
        assert_eq!(of(Some((550, 0.0)), true), Some(0.861));
        assert_eq!(of(Some((550, 1e-6)), false), Some(0.873));
        assert!(table().to_markdown().contains("| Fourier-256 | mixed | 1e-6 | 0.859 |"));
    }
}
