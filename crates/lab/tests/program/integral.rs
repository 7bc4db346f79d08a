//! `overtone-lab fourier-integral` and `overtone-lab scaling-law`.

use std::fs;

use crate::desk;

const TINY: &str = "fourier-integral quick=true draws=2 density_points=500 \
                    regression_points=500 test_points=20 radii=3 rate_draws=2 \
                    rate_points_1d=50,100 rate_points_2d=50";

#[test]
fn the_fourier_integral_is_repeatable_and_has_the_papers_numbers() {
    let desk = desk();
    let said = desk.succeeds(TINY);
    for part in ["density, 2-D", "the paper's", "Laplace", "runs/lab/fourier-integral"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let page = "fourier-integral.md";
    let read = |name: &str| fs::read_to_string(desk.path(name)).unwrap();
    let first = read(&format!("runs/lab/fourier-integral-quick/{page}"));
    for part in ["quick=true", "radii=3", "2.42e-5", "500 points", "[100, 50]", "[50, 100]"] {
        assert_eq!(first.contains(part), part != "[100, 50]", "{part:?} in {first}");
    }
    desk.succeeds(&format!("{TINY} out=again"));
    assert_eq!(read(&format!("again/{page}")), first);
    desk.succeeds(&format!("{TINY} seed=2 out=other"));
    let other = read(&format!("other/{page}"));
    assert!(other != first && other.contains("seed=2"), "{other}");
}

#[test]
fn the_scaling_law_is_repeatable() {
    let desk = desk();
    let tiny = "scaling-law bins=256 from=4 to=16 most_fitted=8";
    let said = desk.succeeds(tiny);
    for part in ["square wave", "power, t = 3.5", "best head", "the theorem's"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let read = |name: &str| fs::read_to_string(desk.path(name)).unwrap();
    let first = read("runs/lab/scaling-law/scaling-law.md");
    assert!(first.contains("just lab scaling-law bins=256 from=4 most_fitted=8 to=16"), "{first}");
    desk.succeeds(&format!("{tiny} out=again"));
    assert_eq!(read("again/scaling-law.md"), first);
}

#[test]
fn nonsense_is_refused() {
    let desk = desk();
    desk.refuses("fourier-integral draws=0", &["draws=0"]);
    desk.refuses("fourier-integral correlation=1.0", &["correlation=1"]);
    desk.refuses("fourier-integral rate_points_1d=10,x", &["rate_points_1d=10,x"]);
    desk.refuses("fourier-integral radius=3", &["`radius`", "`radii`"]);
    desk.refuses("scaling-law bins=1001", &["bins=1001", "even"]);
    desk.refuses("scaling-law from=16 to=20", &["to=20"]);
    let too_few = "scaling-law bins=64 from=1 to=2 most_fitted=4";
    desk.refuses(too_few, &["to=2", "2 numbers of frequencies"]);
    desk.refuses("scaling-law floor=0.5", &["floor=0.5"]);
}
