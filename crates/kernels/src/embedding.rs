//! Lookup of rows in a table: `y_i = table[rows_i]`, with the gradient `Σ_{i: rows_i = t} dy_i` of
//! row `t`.

#[cfg(feature = "cube")]
mod cube;

use burn::tensor::{Int, Tensor};

/// These rows of a table.
///
/// # Shapes
/// - `table`: `[n_rows, width]`; `rows`: `[n]`; result: `[n, width]`
pub fn embedding(table: Tensor<2>, rows: Tensor<1, Int>) -> Tensor<2> {
    #[cfg(feature = "cube")]
    if cube::is_possible(&table, &rows) {
        return cube::embedding(table, rows);
    }
    table.select(0, rows)
}
