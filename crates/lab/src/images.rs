//! Handwritten digits in patches with softmax and Fourier attention: the shape of FourierFormer's
//! experiment on ImageNet (Section 4.2, Table 2).

pub mod optdigits;

use overtone_eval::table::Table;

use crate::classifier::standard_error;
use crate::comparison::Comparison;
use crate::grid::Grid;
use crate::page::{Page, titled};

/// Images to be judged by.
const N_TEST: usize = 1797;

fn paper() -> Table {
    let mut table = Table::new(&["network", "top-1, %", "top-5, %"]);
    for row in [["DeiT-tiny, softmax", "72.23", "91.13"], ["DeiT-tiny, Fourier", "73.25", "91.66"]]
    {
        table.row(row.map(str::to_owned).to_vec());
    }
    table
}

/// The page.
pub fn page(grid: &Grid, patch: usize, found: &Comparison, command: &str) -> Page {
    let title = titled("Digits with softmax and Fourier attention", grid.seeds.len(), "seed");
    let mut page = Page::new("images", &title, command);
    page.text(&format!(
        "A small vision transformer reads {} patches of {patch} × {patch} pixels of 8 × 8 images of \
         handwritten digits (`datasets/lab/README.md`: 3823 to learn, {N_TEST} of other writers to be \
         judged by). {} It takes {}. An encoder without a class token: the mean over patches, a linear head. \
         Accuracy (top-1) is of the network after the last update; nothing was chosen by it.",
        (8 / patch).pow(2),
        grid.describe(),
        grid.length()
    ));
    page.heading("Accuracy");
    found.write(&mut page, "images", "Test accuracy while training");
    page.heading("The paper's Table 2");
    page.text(
        "ImageNet in 224 × 224 pixels, 12 layers of width 192, 300 epochs; means over 5 seeds \
         without a spread. Ours is thousands of times smaller: levels cannot be compared.",
    );
    page.table("images-paper", &paper());
    page.heading("What may be concluded, and what not");
    let first = found.ways.first().map_or(f64::NAN, |way| found.mean(way, 0).mean);
    page.text(&format!(
        "The lines under the table say which differences these seeds show for digits at this size \
         and these updates. The paper's gain is 1.02 points of 72; the first way's {first:.0} % \
         leave {:.0} points to gain.",
        100.0 - first
    ));
    page.text(&format!(
        "Nothing follows for natural images or large networks. An interval over seeds says how much \
         weights and batches matter; other writers would move an accuracy of {first:.0} % on \
         {N_TEST} digits by {:.1} (one standard error).",
        standard_error(first, N_TEST)
    ));
    page
}
