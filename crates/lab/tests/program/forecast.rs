//! `overtone-lab forecast`.

use std::fs;

use crate::desk;

/// Eight trainings of two steps.
const TINY: &str = "forecast seeds=4,5 bins=32 frequencies=6 gamma=0 context=14 horizon=3 d_model=8 \
                    n_layers=1 n_heads=2 training_series=4 test_series=4 steps=2 batch=2 samples=2";

#[test]
fn a_tiny_run_is_tabled_plotted_and_repeatable() {
    let desk = desk();
    let said = desk.succeeds(TINY);
    for part in ["Seasonal naive", "Fourier-6", "mixed", "runs/lab/forecast"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let folder = desk.path("runs/lab/forecast");
    let page = fs::read_to_string(folder.join("forecast.md")).unwrap();
    for part in ["just lab forecast batch=2", "seeds 4, 5", "public domain", "not the paper's"] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    assert!(!page.contains("NaN"), "{page}");
    for named in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(folder.join(named).is_file(), "{named} is not there");
    }
    let runs = fs::read_to_string(folder.join("forecast-runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 1 + 4 * 2 * 2);
    desk.succeeds(&format!("{TINY} out=again"));
    assert_eq!(fs::read_to_string(desk.path("again/forecast-runs.csv")).unwrap(), runs);
    assert_eq!(fs::read_to_string(desk.path("again/forecast.md")).unwrap(), page);
}

#[test]
fn nonsense_is_refused() {
    let desk = desk();
    desk.refuses("forecast series=absent", &["absent.toml"]);
    desk.refuses("forecast context=512 horizon=128 series=el-nino bins=4", &["bins=4"]);
    desk.refuses("forecast n_heads=5", &["n_heads", "divide"]);
    desk.refuses("forecast sparse=0.001", &["binning.sparse"]);
    desk.refuses("forecast context=12", &["context=12", "more than 12"]);
    desk.refuses("forecast frequencies=60 bins=32", &["frequencies=60", "between 1 and 31"]);
    desk.refuses("forecast frequencies=8,8", &["frequencies=8,8", "once"]);
    desk.refuses("forecast frequencies=8,x", &["frequencies=8,x"]);
    desk.refuses("forecast stpes=3", &["`stpes`", "`steps`"]);
}
