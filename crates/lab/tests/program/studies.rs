//! Every study, as small as it can be.

use std::fs;

use crate::desk;

/// As small as networks can be.
const NETWORK: &str = "seeds=1,2 d_model=8 n_layers=1 n_heads=2 batch=4 evaluate_every=2";
const KINDS: &str = "attentions=softmax,fourier2/R2/vector";

/// Runs a study twice: the page has `parts` and names files that are there, and the runs repeat.
#[track_caller]
fn check(name: &str, options: &str, repeats: &str, parts: &[&str]) {
    let desk = desk();
    let printed = desk.succeeds(&format!("{name} {options}"));
    assert!(printed.contains(&format!("tables and plots: runs/lab/{name}")), "{printed}");
    let folder = desk.path("runs/lab").join(name);
    let page = fs::read_to_string(folder.join(format!("{name}.md"))).unwrap();
    for part in parts.iter().chain(&[&*format!("just lab {name} ")]) {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    assert!(!page.contains("NaN"), "{page}");
    for named in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(folder.join(named).is_file(), "{named} is not there");
    }
    desk.succeeds(&format!("{name} {options} out=again"));
    let read = |folder: &std::path::Path| fs::read_to_string(folder.join(repeats)).unwrap();
    assert_eq!(read(&folder), read(&desk.path("again")), "{repeats} repeats");
}

const TOY: &str = "datasets=gmm2 data_seeds=1,2 weight_seeds=1 frequencies=3,12 epochs=1";

#[test]
fn density() {
    let parts = ["0.2376 ± 0.0318", "fourier-12 γ=0", "pointwise", "density-gmm2-kl.svg"];
    check("density", TOY, "density-runs.csv", &parts);
}

#[test]
fn likelihood() {
    let parts = ["0.072 ± 0.005", "gmm-mle", "likelihood-gmm2-perplexity.svg"];
    check("likelihood", TOY, "likelihood-runs.csv", &parts);
}

#[test]
fn smoothness() {
    let parts = ["| brown |", "0.0034", "length=64 seed=4"];
    check("smoothness", "trials=3 length=64 seed=4", "smoothness.md", &parts);
}

#[test]
fn scaling_law() {
    let options = "bins=256 from=4 to=16 most_fitted=8";
    let parts = ["square wave", "power, t = 3.5", "best head", "widths.csv"];
    check("scaling-law", options, "truncations.csv", &parts);
}

#[test]
fn fourier_integral() {
    let options = "draws=2 density_points=500 regression_points=500 test_points=20 radii=3";
    let parts = ["density, 2-D", "2.42e-5", "Laplace"];
    check("fourier-integral", options, "examples-by-radius.csv", &parts);
}

#[test]
fn forecast() {
    let options = "seeds=4,5 bins=32 frequencies=6 gamma=0 context=14 horizon=3 d_model=8 \
                   n_layers=1 n_heads=2 training_series=4 test_series=4 steps=2 batch=2 samples=2";
    let parts = ["Seasonal naive", "| Fourier-6 | mixed |", "forecast-pmf-uniform.svg"];
    check("forecast", options, "forecast-runs.csv", &parts);
}

#[test]
fn series() {
    let options = format!("sets=BasicMotions epochs=1 {NETWORK} {KINDS}");
    check("series", &options, "series-basicmotions-runs.csv", &["softmax, rate 0.003"]);
}

#[test]
fn images() {
    let options = format!("updates=3 patch=4 learning_rate=0.01 {NETWORK} {KINDS}");
    check("images", &options, "images-runs.csv", &["| fourier2/R2/vector |"]);
}

#[test]
fn language() {
    let options = format!("updates=3 context=8 windows=5 {NETWORK} {KINDS}");
    check(
        "language",
        &options,
        "language-runs.csv",
        &["distance between heads", "language-layers.csv"],
    );
}

#[test]
fn translation() {
    let options = format!("updates=3 below=100 n_train=80 n_test=20 {NETWORK} {KINDS}");
    check("translation", &options, "translation-runs.csv", &["BLEU", "translation-cost.csv"]);
}

#[test]
fn tempo() {
    let options = format!("updates=3 train_each=1 test_each=1 frequencies=1 {NETWORK}");
    check("tempo", &options, "tempo-runs.csv", &["Fourier-1", "tempo-example.svg"]);
}

#[test]
fn nonsense_is_refused() {
    let desk = desk();
    desk.refuses("density datasets=gauss", &["datasets=gauss", "gmm2"]);
    desk.refuses("density frequencies=50", &["frequencies=50", "1..=49"]);
    desk.refuses("density data_seeds=5", &["gaussian_seed5_xyz"]);
    desk.refuses("likelihood epochs=0", &["epochs=0"]);
    desk.refuses("likelihood data_seeds=1,b", &["data_seeds=b", "invalid digit"]);
    desk.refuses("smoothness seed=-1", &["seed=-1"]);
    desk.refuses("fourier-integral radii=1", &["radii=1", "2..=200"]);
    desk.refuses("scaling-law bins=1001", &["bins=1001", "even"]);
    desk.refuses("scaling-law from=16 to=17", &["to=17", "takes three"]);
    desk.refuses("forecast frequencies=8,8", &["frequencies=8,8", "once"]);
    desk.refuses("series sets=Absent", &["Absent_TRAIN.ts", "if it came with the project"]);
    desk.refuses("images seeds=1,1", &["seeds=1,1", "once"]);
    desk.refuses("images patch=3", &["patch=3", "divide 8"]);
    desk.refuses("images attentions=fourier3", &["fourier3", "softmax"]);
    desk.refuses("language windows=500 context=1000", &["windows=500", "111 fit"]);
    desk.refuses("language learning_rate=0", &["learning_rate=0", "between"]);
    desk.refuses("translation below=50 n_train=40 n_test=20", &["n_train=40", "below 50"]);
    desk.refuses("tempo learning_rate=0.1,0.2", &["learning_rate=0.1,0.2", "one rate"]);
}
