//! `overtone-lab return-heads`.

use std::fs;

use overtone_testkit::desk::project;

use crate::desk;

#[test]
fn a_tiny_run_is_tabled_plotted_and_repeatable() {
    let desk = desk();
    let data = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    let tiny = format!(
        "return-heads data={} heads=fourier12,hl-gauss120,expectile99 splits=1 updates=2 batch=8 \
         width=8 asked=40",
        data.display()
    );
    let said = desk.succeeds(&tiny);
    for part in ["hl-gauss120", "The rule: fourier12", "runs/lab/return-heads"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let folder = desk.path("runs/lab/return-heads");
    let page = fs::read_to_string(folder.join("return-heads.md")).unwrap();
    assert!(page.contains("just lab return-heads asked=40 batch=8"), "{page}");
    assert!(page.contains("| hopper_medium |"), "{page}");
    assert!(page.contains("earned (1 split, no comparison)\n"), "{page}");
    for named in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(folder.join(named).is_file(), "{named} is not there");
    }
    let runs = fs::read_to_string(folder.join("runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 1 + 3);
    desk.succeeds(&format!("{tiny} out=again"));
    assert_eq!(fs::read_to_string(desk.path("again/runs.csv")).unwrap(), runs);
}

#[test]
fn nonsense_is_refused() {
    let desk = desk();
    desk.refuses("return-heads data=nowhere", &["nowhere"]);
    desk.refuses("return-heads heads=softmax", &["heads=softmax", "softmax120"]);
    desk.refuses("return-heads held_out=1.5", &["held_out"]);
}
