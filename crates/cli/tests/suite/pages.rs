//! Reports and videos of real evaluations.

use std::{fs, path::Path};

use serde_json::Value;

use crate::desk::{Desk, names};

const ROBOT: &str = "train env=hopper evaluation.episodes=3 evaluation.target=3600,1800 model.n_layers=1 model.d_model=16 \
                     model.context_length=5 train.batch_size=3 train.updates=4";

/// Width, height and number of frames of a GIF, by its format.
#[track_caller]
fn gif(path: &Path) -> (u16, u16, usize) {
    let bytes = fs::read(path).unwrap();
    assert_eq!(&bytes[..6], b"GIF89a");
    let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    // Each frame begins with a graphic control extension of four bytes, a zero, and an image.
    let frames =
        bytes.windows(9).filter(|w| w[..3] == [0x21, 0xf9, 4] && w[7..] == [0, 0x2c]).count();
    assert_eq!(*bytes.last().unwrap(), 0x3b, "the file is whole");
    (short(6), short(8), frames)
}

#[test]
fn a_robots_page_has_its_video() {
    let desk = Desk::new();
    desk.succeeds(ROBOT);
    let run = desk.only_run("runs");
    let stdout = desk.succeeds("report replications=200");
    assert!(stdout.contains("filming episode") && stdout.contains("report: runs/"), "{stdout}");
    assert!(!stdout.contains("note: this time"), "the episode came out as it did: {stdout}");
    let evaluation: Value =
        serde_json::from_slice(&fs::read(run.join("evaluation.json")).unwrap()).unwrap();
    let mut episodes: Vec<(f64, u64)> = evaluation["episodes"].as_array().unwrap()[..3]
        .iter()
        .map(|e| (e["raw_return"].as_f64().unwrap(), e["length"].as_u64().unwrap()))
        .collect();
    episodes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (width, height, frames) = gif(&run.join("video.gif"));
    // An image of 480 × 400 next to a column of 320; every second step.
    assert_eq!((width, height), (800, 400));
    assert_eq!(frames as u64, episodes[1].1.div_ceil(2), "the median episode: {episodes:?}");

    let html = fs::read_to_string(run.join("report.html")).unwrap();
    for part in ["data:image/gif;base64,", "Hopper", "training loss", "updates = 4"] {
        assert!(html.contains(part), "no {part}");
    }
    let files = names(&run);
    for name in ["report.md", "report-scores.csv", "report-episodes.csv", "report-video-1.gif"] {
        assert!(files.contains(&name.to_owned()), "{files:?}");
    }
    assert!(files.iter().all(|name| !name.starts_with(".report")), "{files:?}");

    // The second report is the same page; the video is kept.
    let stdout = desk.succeeds("report replications=200");
    assert!(!stdout.contains("filming"), "{stdout}");
    assert_eq!(fs::read_to_string(run.join("report.html")).unwrap(), html);

    desk.succeeds("video episode=0 steps=10 every=5 out=short.gif");
    assert_eq!(gif(&desk.path("short.gif")).2, 2);
    desk.refuses("video episode=3");
    desk.refuses("video target=7");
    desk.refuses("video steps=0");
    desk.refuses("report nowhere");
    desk.refuses("report level=1.5");
    desk.refuses("report replications=9000000000000000000");
    desk.refuses("report video=maybe");
    for name in ["../escaped", ".hidden"] {
        desk.refuses(&format!("report name={name}"));
    }
}

#[test]
fn a_run_without_an_evaluation_has_a_page_and_no_video() {
    let desk = Desk::new();
    desk.succeeds(&ROBOT.replace("evaluation.episodes=3", "evaluation.episodes=0"));
    desk.refuses("video");
    let run = desk.only_run("runs");
    desk.succeeds("report out=pages name=page replications=200");
    let html = fs::read_to_string(desk.path("pages/page.html")).unwrap();
    assert!(html.contains("No evaluation found"), "{html}");
    assert!(!names(&run).contains(&"video.gif".to_owned()));
}

#[cfg(feature = "python")]
#[test]
fn runs_that_differ_in_their_seed_share_a_page() {
    let desk = Desk::new();
    for seed in [1, 2] {
        let words = format!("seed={seed} evaluation.episodes=2 evaluation.target=5");
        desk.succeeds(&desk.tiny(&words));
    }
    let runs = names(&desk.path("runs"));
    let page_of = |stdout: &str| {
        let (_, after) = stdout.rsplit_once("report: ").unwrap();
        after.split(" (").next().unwrap().to_owned()
    };
    let words = format!("report {} replications=200", runs.join(" "));
    // Videos of many runs take minutes: only on request.
    assert!(!desk.succeeds(&words).contains("filming"));
    let stdout = desk.succeeds(&format!("{words} video=true"));
    let page = page_of(&stdout);
    assert!(page.starts_with(&format!("runs/reports/{}-and-1-more-", runs[0])), "{page}");
    let html = fs::read_to_string(desk.path(&page)).unwrap();
    assert!(html.contains("Over training seeds") && html.contains("2 runs"), "{stdout}");
    // Every action has a bar, in the video and next to the scores.
    assert!(html.contains(">UPLEFTFIRE</text>"));
    // The same runs replace their report, other runs do not.
    let reversed = format!("report {} {} replications=200", runs[1], runs[0]);
    assert_eq!(page_of(&desk.succeeds(&reversed)), page);
    desk.succeeds(&desk.tiny("seed=3 evaluation.episodes=0"));
    let all = names(&desk.path("runs")).into_iter().filter(|name| name != "reports");
    let all = all.collect::<Vec<_>>().join(" ");
    let other = page_of(&desk.succeeds(&format!("report {all} replications=200")));
    assert!(other != page && other.contains("-and-2-more-"), "{other}");
    assert!(desk.path(&page).is_file() && desk.path(&other).is_file());
    assert_eq!(html.matches("data:image/gif;base64,").count(), 2);
    let (width, height, frames) = gif(&desk.path("runs").join(&runs[0]).join("video.gif"));
    // A screen of 160 × 210 twice as large, and a column of 320.
    assert_eq!((width, height), (640, 420));
    assert!(frames > 15, "{frames}");
}
