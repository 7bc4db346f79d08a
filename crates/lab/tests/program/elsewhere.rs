//! `overtone-lab series`, `images`, `language`, `translation` and `tempo`: small ones.

use std::fs;

use crate::desk;

/// As small as networks can be.
const SMALL: &str = "seeds=1,2 d_model=8 n_layers=1 n_heads=2 batch=4 look_every=2";
const KINDS: &str = "attentions=softmax,fourier2/R2/vector";

/// Runs twice: the page, which is given back, and its runs are there, name what was asked, and
/// repeat.
#[track_caller]
fn check(name: &str, options: &str, runs: usize, parts: &[&str]) -> String {
    let desk = desk();
    let said = desk.succeeds(&format!("{name} {SMALL} {options}"));
    let folder = desk.path("runs/lab").join(name);
    let page = fs::read_to_string(folder.join(format!("{name}.md"))).unwrap();
    for part in parts {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    for part in [&format!("just lab {name} ")[..], "may be concluded", "95 % interval", "paper"] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    for named in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(folder.join(named).is_file(), "{named} is not there");
    }
    assert!(said.contains(&format!("runs/lab/{name}")), "{said}");
    desk.succeeds(&format!("{name} {SMALL} {options} out=again"));
    let mut n = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if !file.ends_with("-runs.csv") {
            continue;
        }
        let read = |folder: &std::path::Path| fs::read_to_string(folder.join(&file)).unwrap();
        assert_eq!(read(&folder), read(&desk.path("again")), "{file} repeats");
        n += read(&folder).lines().count() - 1;
    }
    assert_eq!(n, runs, "runs");
    page
}

#[test]
fn series() {
    // JapaneseVowels is in the paper's table alone.
    let options = format!("sets=BasicMotions epochs=1 {KINDS}");
    let parts = [
        "softmax, rate 0.003",
        "JapaneseVowels | 99.46 | 99.37",
        "Of 2 ways compared with softmax above, ",
        "% on BasicMotions (40 series) by ",
        "(2 seeds, no comparison)",
    ];
    let page = check("series", &options, 4 * 2, &parts);
    assert!(!page.contains("utterance"), "{page}");
}

#[test]
fn images() {
    let options = format!("updates=3 patch=4 learning_rate=0.01 {KINDS}");
    check("images", &options, 2 * 2, &["4 patches of 4 × 4", "73.25"]);
}

#[test]
fn language() {
    let options = format!("updates=3 context=8 windows=5 {KINDS}");
    let parts = ["mean learned R, layer 1", "31.86", "fourier2/R2/vector", "`fourier4/R2` here"];
    check("language", &options, 2 * 2, &parts);
}

#[test]
fn translation() {
    let options = format!("updates=3 below=100 n_train=80 n_test=20 {KINDS}");
    check("translation", &options, 2 * 2, &["80 to learn, 20 others", "34.68"]);
}

#[test]
fn tempo() {
    let options = "updates=3 train_each=1 test_each=1 frequencies=1";
    check("tempo", options, 2 * 2, &["Fourier-1", "+118 %", "33 bins"]);
}

#[test]
fn nonsense_is_refused() {
    let desk = desk();
    desk.refuses("series sets=Absent", &["Absent_TRAIN.ts", "if it came with the project"]);
    desk.refuses("series sets=../lab/BasicMotions", &["sets=../lab/BasicMotions", "a name"]);
    desk.refuses("images seeds=1,1", &["seeds=1,1", "once"]);
    desk.refuses("language windows=500 context=1000", &["windows=500", "111 fit"]);
    desk.refuses("series n_heads=5", &["n_heads=5", "d_model"]);
    desk.refuses("images patch=3", &["patch=3", "divide 8"]);
    desk.refuses("images attentions=fourier3", &["fourier3", "softmax"]);
    desk.refuses("language learning_rate=0", &["learning_rate=0", "above 0"]);
    desk.refuses("language context=1", &["context=1"]);
    desk.refuses("translation below=50 n_train=40 n_test=20", &["n_train=40", "below 50"]);
    desk.refuses("tempo frequencies=33", &["frequencies=33", "between 1 and 32"]);
}
