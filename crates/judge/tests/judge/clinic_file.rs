//! `datasets/starter/own/clinic_doctor.npz`: the recorded doctor's visits. `UPDATE_CLINIC=1` writes it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use overtone_core::Outcome;
use overtone_core::judgement::Verdict;
use overtone_data::{
    ActionColumn, Columns, DatasetCard, Expected, ObservationColumn, Recording, read,
};
use overtone_judge::weights::{Logged, Settings, estimate};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::clinic::{Doctor, TREATMENTS, VISITS, Visit, WIDTH, record};
use crate::coverage::{logged, verdict};

const PATIENTS: usize = 500;
const SEED: u64 = 12;

fn datasets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets")
}

fn path() -> PathBuf {
    datasets().join("starter/own/clinic_doctor.npz")
}

fn visits() -> Vec<Vec<Visit>> {
    record(Doctor::Recorded, PATIENTS, SEED)
}

/// The contents of a `.npy` file, version 1.0.
fn npy(dtype: &str, shape: &str, data: Vec<u8>) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}").into_bytes();
    // Magic, version, length, header and a line break fill a multiple of 64 bytes.
    header.resize((header.len() + 11).next_multiple_of(64) - 11, b' ');
    header.push(b'\n');
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, &header, &data].concat()
}

/// The arrays of the file by name.
fn arrays() -> BTreeMap<String, Vec<u8>> {
    let episodes = visits();
    let rows = || {
        episodes.iter().flat_map(|visits| {
            visits.iter().enumerate().map(move |(i, visit)| (i, visit, i + 1 == visits.len()))
        })
    };
    let n = rows().count();
    let floats = |of: &dyn Fn(usize, &Visit) -> Vec<f32>| -> Vec<u8> {
        rows().flat_map(|(i, visit, _)| of(i, visit)).flat_map(f32::to_le_bytes).collect()
    };
    let flags = |of: &dyn Fn(&Visit, bool) -> bool| -> Vec<u8> {
        rows().map(|(_, visit, is_last)| u8::from(of(visit, is_last))).collect()
    };
    let log_prob =
        |visit: &Visit| Doctor::Recorded.probs(visit.patient)[visit.treatment].ln() as f32;
    let actions = rows().flat_map(|(_, visit, _)| (visit.treatment as i32).to_le_bytes());
    let column = format!("({n},)");
    let n_actions = (TREATMENTS.len() as i32).to_le_bytes().to_vec();
    let arrays = [
        (
            "observations",
            npy(
                "<f4",
                &format!("({n}, {WIDTH})"),
                floats(&|i, visit| visit.patient.observation(i, visit.age).to_vec()),
            ),
        ),
        ("actions", npy("<i4", &column, actions.collect())),
        ("rewards", npy("<f4", &column, floats(&|_, visit| vec![visit.reward as f32]))),
        ("terminals", npy("|b1", &column, flags(&|visit, _| visit.is_end))),
        ("timeouts", npy("|b1", &column, flags(&|visit, is_last| is_last && !visit.is_end))),
        ("behavior_log_probs", npy("<f4", &column, floats(&|_, visit| vec![log_prob(visit)]))),
        ("n_actions", npy("<i4", "()", n_actions)),
    ];
    arrays.map(|(name, bytes)| (format!("{name}.npy"), bytes)).into()
}

fn write(arrays: &BTreeMap<String, Vec<u8>>) {
    fs::create_dir_all(path().parent().unwrap()).unwrap();
    let mut file = ZipWriter::new(File::create(path()).unwrap());
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in arrays {
        file.start_file(name.as_str(), stored).unwrap();
        file.write_all(bytes).unwrap();
    }
    file.finish().unwrap();
}

fn contents() -> BTreeMap<String, Vec<u8>> {
    let mut archive = ZipArchive::new(File::open(path()).unwrap()).unwrap();
    let mut contents = BTreeMap::new();
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).unwrap();
        let name = entry.name().unwrap().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        contents.insert(name, bytes);
    }
    contents
}

#[test]
fn the_file_is_what_the_program_writes() {
    let arrays = arrays();
    if std::env::var_os("UPDATE_CLINIC").is_some() {
        write(&arrays);
    }
    assert!(contents() == arrays, "run this test with UPDATE_CLINIC=1, then check its card");
    assert!(fs::metadata(path()).unwrap().len() < 200_000);
}

#[test]
fn the_reader_finds_the_visits() {
    let card = DatasetCard::load(&datasets().join("starter-own.toml")).unwrap();
    let known = Expected { card: Some(&card), ..Expected::default() };
    let report = overtone_data::check(&path(), &known).unwrap().report;
    assert!(report.findings.is_empty(), "{report}");
    let Recording::Columns(Columns { observations, actions, rewards, episodes, .. }) =
        read::open(&path()).unwrap()
    else {
        panic!("columns")
    };
    let recorded = visits();
    let ObservationColumn::Vectors { width, .. } = observations else { panic!("vectors") };
    let ActionColumn::Discrete { n_actions, .. } = actions else { panic!("discrete actions") };
    assert_eq!((width, n_actions), (WIDTH, TREATMENTS.len()));
    assert_eq!(episodes.len(), PATIENTS);
    for (episode, visits) in episodes.iter().zip(&recorded) {
        let is_end = visits.last().unwrap().is_end;
        let outcome = if is_end { Outcome::Terminated } else { Outcome::Truncated };
        assert_eq!((episode.length, episode.outcome), (visits.len(), outcome));
    }
    assert_eq!(rewards.len(), recorded.iter().map(Vec::len).sum::<usize>());
    assert!(episodes.iter().any(|episode| episode.length == VISITS));
}

#[test]
fn the_recording_tells_the_doctors_apart() {
    let (visits, values) = (visits(), Doctor::Recorded.values(1.0));
    let judged = |doctor: Doctor| {
        let episodes: Vec<Logged> =
            visits.iter().map(|visits| logged(visits, doctor, &values)).collect();
        let settings = Settings { discount: 1.0, ..Settings::default() };
        let weighted = estimate(&episodes, &settings).unwrap();
        for estimate in &weighted.estimates {
            let covers = estimate.interval.unwrap().contains(doctor.value(1.0));
            assert!(covers || weighted.overlap.horizon.is_some(), "{doctor:?}: {estimate:?}");
        }
        verdict(&weighted)
    };
    assert_eq!(judged(Doctor::Guideline), Verdict::BetterThanRecorded);
    assert!(matches!(judged(Doctor::Reluctant), Verdict::CannotTell { .. }));
    assert_eq!(judged(Doctor::Recorded).to_string(), "cannot tell: difference");
}
