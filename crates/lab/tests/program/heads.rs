//! `overtone-lab`.

use std::fs;

use overtone_testkit::desk::project;

use crate::desk;

#[test]
fn smoothness_of_noise_is_tabled_plotted_and_repeatable() {
    let desk = desk();
    let first = desk.succeeds("smoothness trials=3 length=64 seed=4");
    for part in ["brown", "0.0034", "By L²", "runs/lab/smoothness"] {
        assert!(first.contains(part), "no {part:?} in {first}");
    }
    let page = fs::read_to_string(desk.path("runs/lab/smoothness/smoothness.md")).unwrap();
    assert!(page.contains("just lab smoothness length=64 seed=4 trials=3"), "{page}");
    desk.succeeds("smoothness trials=3 length=64 seed=4 out=again");
    assert_eq!(fs::read_to_string(desk.path("again/smoothness.md")).unwrap(), page);
    desk.succeeds("smoothness trials=3 length=64 seed=5 out=other");
    assert_ne!(fs::read_to_string(desk.path("other/smoothness.md")).unwrap(), page);
}

#[test]
fn smoothness_of_a_files_distributions() {
    let desk = desk();
    fs::write(desk.path("a.csv"), "1,0,0,0\n0.25,0.25,0.25,0.25\n0.5,0.5\n").unwrap();
    let said = desk.succeeds("smoothness a.csv");
    let cells = |name: &str| -> Vec<String> {
        let line = said.lines().find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {said}"));
        line.trim()[name.len()..].split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(cells("row 2"), ["4", "0.000000", "0.000000", "0.000000"]);
    // Three frequencies of equal power: log₂ 3 bits.
    assert_eq!(cells("row 1").last().unwrap(), "1.584963");
    // The mean of a number and 0 is half of it; the deviation is it over √2.
    let one: f64 = cells("row 1")[1].parse().unwrap();
    let all = cells("all 2");
    let numbers = [1, 3].map(|i| all[i].parse::<f64>().unwrap());
    assert!((numbers[0] - one / 2.0).abs() < 2e-6, "{said}");
    assert!((numbers[1] - one / 2f64.sqrt()).abs() < 2e-6, "{said}");
    assert_eq!(cells("all 1"), ["2", "0.000000", "0.000000", "0.000000"]);

    let golden = project().join("crates/testkit/golden/smoothness_pmfs.safetensors");
    let said = desk.succeeds(&format!("smoothness {}", golden.display()));
    assert!(said.contains("onehot_mid_18") && said.contains("0.776394"), "{said}");
}

#[test]
fn nonsense_is_refused() {
    let desk = desk();
    fs::write(desk.path("a.csv"), "0.5,0.4\n").unwrap();
    desk.refuses("smoothness a.csv", &["row 1", "sums to 0.9"]);
    desk.refuses("smoothness absent.csv", &["absent.csv"]);
    desk.refuses("smoothness a.csv seed=1", &["a.csv", "alone"]);
    desk.refuses("smoothness tirals=3", &["`tirals`", "`trials`"]);
    desk.refuses("smoothness trials=0", &["trials=0"]);
    desk.refuses("smoothness length=1", &["length=1"]);
    desk.refuses("smoothness seed=-1", &["seed=-1"]);
}

const SMALL: &str = "datasets=gmm2 data_seeds=1,5 weight_seeds=1 frequencies=3,12 epochs=3 \
                     evaluate_every=2";

#[test]
fn heads_on_known_distributions_are_tabled_plotted_and_repeatable() {
    let desk = desk();
    let first = desk.succeeds(&format!("density {SMALL}"));
    for part in ["14 runs", "0.2376 ± 0.0318", "fourier-12 γ=0", "pointwise", "runs/lab/density"]
    {
        assert!(first.contains(part), "no {part:?} in {first}");
    }
    let page = fs::read_to_string(desk.path("runs/lab/density/density.md")).unwrap();
    assert!(page.contains("just lab density data_seeds=1,5 datasets=gmm2 epochs=3"), "{page}");
    assert!(desk.path("runs/lab/density/density-gmm2-kl.png").is_file());
    desk.succeeds(&format!("density {SMALL} out=again"));
    for name in ["density.md", "density-runs.csv", "density-gmm2-example.svg"] {
        let read = |folder: &str| fs::read(desk.path(folder).join(name)).unwrap();
        assert_eq!(read("again"), read("runs/lab/density"), "{name}");
    }
    let timing = desk.succeeds("density timing=true epochs=1");
    assert!(timing.contains("µs per step") && timing.contains("fourier-12 γ=1e-6"), "{timing}");
}

#[test]
fn densities_by_likelihood_are_tabled_and_plotted() {
    let desk = desk();
    let said = desk.succeeds(&format!("likelihood {SMALL}"));
    for part in ["10 runs", "0.072 ± 0.005", "gmm-mle", "runs/lab/likelihood"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert!(desk.path("runs/lab/likelihood/likelihood-gmm2-perplexity.png").is_file());
}

#[test]
fn nonsense_about_runs_is_refused() {
    let desk = desk();
    desk.refuses("density datasets=gauss", &["datasets=gauss", "gmm2"]);
    desk.refuses("density frequencies=50", &["frequencies=50", "between 1 and 49"]);
    desk.refuses("likelihood epochs=0", &["epochs=0"]);
    desk.refuses("likelihood data_seeds=1,b", &["data_seeds=1,b", "commas"]);
}
