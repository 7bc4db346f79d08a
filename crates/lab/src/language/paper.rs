//! FourierFormer's Tables 1, 7 and 8: perplexity on WikiText-103. Its own setting is power 4 and a
//! first `R` of 2 (Appendix A.1), around which Tables 7 and 8 vary one or the other.

use overtone_eval::table::Table;

/// Network, validation, test.
const ROWS: [[&str; 3]; 12] = [
    ["softmax (small)", "33.15", "34.29"],
    ["Fourier, power 2, R at first 2", "32.09", "33.10"],
    ["Fourier, power 4, R at first 2", "31.86", "32.85"],
    ["Fourier, power 6, R at first 2", "31.84", "32.81"],
    ["Fourier, power 4, R at first 0.1", "32.04", "33.01"],
    ["Fourier, power 4, R at first 1", "31.89", "32.87"],
    ["Fourier, power 4, R at first 2", "31.86", "32.85"],
    ["Fourier, power 4, R at first 3", "31.90", "32.88"],
    ["Fourier, power 4, R at first 4", "32.58", "33.65"],
    ["Fourier, power 4, R at first 2, one for each dimension", "31.82", "32.80"],
    ["softmax (medium)", "27.90", "29.60"],
    ["Fourier (medium)", "26.51", "28.01"],
];

/// All rows.
pub fn table() -> Table {
    let mut table = Table::new(&["network", "validation perplexity", "test perplexity"]);
    for row in ROWS {
        table.row(row.map(str::to_owned).to_vec());
    }
    table
}
