//! TensorBoard's event files: scalars and hyperparameters, written by code that cannot panic.
//!
//! A file is a sequence of records: length (u64), its checksum, the bytes of a protobuf `Event`,
//! their checksum; all little-endian. The checksums are CRC-32C, rotated and offset as in
//! TensorFlow's `record_writer.h`. Of `event.proto`, we write `wall_time` (1), `step` (2), and one
//! of `file_version` (3), `summary` (5) and `session_log` (7).

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crc32c::crc32c;

use crate::{error::TrainError, setting::Setting};

/// An open event file.
#[derive(Debug)]
pub struct Events {
    file: File,
    path: PathBuf,
    /// Records not written yet.
    buffer: Vec<u8>,
}

/// Protobuf's wire types.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

impl Events {
    /// A new file in `folder`.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(folder: &Path) -> Result<Self, TrainError> {
        // TensorBoard reads a directory's files in the order of their names.
        let now = now();
        let name = format!(
            "events.out.tfevents.{:010}.{:09}.{}",
            now.as_secs(),
            now.subsec_nanos(),
            std::process::id()
        );
        let path = folder.join(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(TrainError::io(&path))?;
        let mut events = Self { file, path, buffer: Vec::new() };
        events.event(0, 3, b"brain.Event:2");
        events.flush()?;
        Ok(events)
    }

    /// Makes TensorBoard ignore the points after `step` in the directory's older files, because
    /// these steps are repeated.
    pub fn restart_after(&mut self, step: u64) {
        // `SessionLog { status: START }`.
        let mut start = Vec::new();
        key(&mut start, 1, VARINT);
        varint(&mut start, 1);
        self.event(step + 1, 7, &start);
    }

    /// Adds the point (`step`, `value`) to the curve `tag`.
    pub fn scalar(&mut self, tag: &str, value: f32, step: u64) {
        self.described(tag, value, step, "");
    }

    /// The same, with a description that TensorBoard shows next to the curve's name. The first
    /// point's description stays.
    pub fn described(&mut self, tag: &str, value: f32, step: u64, words: &str) {
        let mut point = Vec::new();
        field(&mut point, 1, tag.as_bytes());
        key(&mut point, 2, FIXED_32);
        point.extend(value.to_le_bytes());
        if !words.is_empty() {
            // `SummaryMetadata { plugin_data, summary_description }`.
            let mut metadata = message(1, &message(1, b"scalars"));
            field(&mut metadata, 3, words.as_bytes());
            field(&mut point, 9, &metadata);
        }
        self.event(step, 5, &message(1, &point));
    }

    /// The run's settings, for the tab HParams.
    pub fn settings(&mut self, settings: &[(String, Setting)]) {
        // `SessionStartInfo { hparams, start_time_secs }`, whose values are `google.protobuf.Value`.
        let mut start = Vec::new();
        for (name, setting) in settings {
            let mut value = Vec::new();
            match setting {
                Setting::Number(number) => {
                    key(&mut value, 2, FIXED_64);
                    value.extend(number.to_le_bytes());
                }
                Setting::Word(word) => field(&mut value, 3, word.as_bytes()),
                Setting::Flag(flag) => {
                    key(&mut value, 4, VARINT);
                    varint(&mut value, u64::from(*flag));
                }
            }
            let mut entry = message(1, name.as_bytes());
            field(&mut entry, 2, &value);
            field(&mut start, 1, &entry);
        }
        key(&mut start, 5, FIXED_64);
        start.extend(now().as_secs_f64().to_le_bytes());
        self.hparams("_hparams_/session_start_info", &message(3, &start));
    }

    /// Records for the tab HParams that the run has ended without an error.
    pub fn ended(&mut self) {
        // `SessionEndInfo { status: STATUS_SUCCESS, end_time_secs }`.
        let mut end = Vec::new();
        key(&mut end, 1, VARINT);
        varint(&mut end, 1);
        key(&mut end, 2, FIXED_64);
        end.extend(now().as_secs_f64().to_le_bytes());
        self.hparams("_hparams_/session_end_info", &message(4, &end));
    }

    /// `HParamsPluginData` of version 0, in the metadata of a tensor of one zero.
    fn hparams(&mut self, tag: &str, data: &[u8]) {
        let mut plugin = message(1, b"hparams");
        field(&mut plugin, 2, data);
        // `TensorProto { dtype: DT_FLOAT, tensor_shape: [1], tensor_content }`.
        let mut tensor = Vec::new();
        key(&mut tensor, 1, VARINT);
        varint(&mut tensor, 1);
        let mut size = Vec::new();
        key(&mut size, 1, VARINT);
        varint(&mut size, 1);
        field(&mut tensor, 2, &message(2, &size));
        field(&mut tensor, 4, &[0; 4]);
        let mut value = message(1, tag.as_bytes());
        field(&mut value, 8, &tensor);
        field(&mut value, 9, &message(1, &plugin));
        self.event(0, 5, &message(1, &value));
    }

    /// Writes the buffered records.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush(&mut self) -> Result<(), TrainError> {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(TrainError::io(&self.path))
    }

    /// Waits until the written records are on disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn sync(&self) -> Result<(), TrainError> {
        self.file.sync_data().map_err(TrainError::io(&self.path))
    }

    /// One record: an event with `content` in the field `what`.
    fn event(&mut self, step: u64, what: u64, content: &[u8]) {
        let mut event = Vec::new();
        key(&mut event, 1, FIXED_64);
        event.extend(now().as_secs_f64().to_le_bytes());
        key(&mut event, 2, VARINT);
        varint(&mut event, step);
        field(&mut event, what, content);
        let length = (event.len() as u64).to_le_bytes();
        for part in [&length[..], &event] {
            self.buffer.extend(part);
            self.buffer.extend(masked(crc32c(part)).to_le_bytes());
        }
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn key(out: &mut Vec<u8>, number: u64, wire: u64) {
    varint(out, number << 3 | wire);
}

fn field(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    key(out, number, BYTES);
    varint(out, content.len() as u64);
    out.extend(content);
}

/// A message of one field.
fn message(number: u64, content: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    field(&mut message, number, content);
    message
}

/// A checksum as records store it, masked so that a checksum of data with checksums is not
/// degenerate.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_the_bytes_of_event_proto() {
        let dir = tempfile::tempdir().unwrap();
        let mut events = Events::create(dir.path()).unwrap();
        let before = std::fs::metadata(&events.path).unwrap().len() as usize;
        events.scalar("a/b", 0.5, 300);
        events.flush().unwrap();
        let record = std::fs::read(&events.path).unwrap().split_off(before);
        // Length, its checksum; wall_time: key and 8 bytes; step: key and 300 as a varint.
        let (length, event) = (&record[..8], &record[12..record.len() - 4]);
        assert_eq!(length, (event.len() as u64).to_le_bytes());
        assert_eq!(event[0], 0x09);
        assert_eq!(event[9..12], [0x10, 0xac, 0x02]);
        // summary { value { tag: "a/b", simple_value: 0.5 } }
        assert_eq!(event[12..], *b"\x2a\x0c\x0a\x0a\x0a\x03a/b\x15\x00\x00\x00\x3f");
        let crc = masked(crc32c(event)).to_le_bytes();
        assert_eq!(record[record.len() - 4..], crc);
    }

    /// The bytes are those that TensorBoard's own `hparams` wrote for the same settings.
    #[test]
    fn settings_are_the_bytes_of_hparams_protos() {
        let dir = tempfile::tempdir().unwrap();
        let mut events = Events::create(dir.path()).unwrap();
        events.settings(&[
            ("lr".into(), Setting::Number(0.5)),
            ("head".into(), Setting::Word("linear".into())),
            ("norm".into(), Setting::Flag(true)),
        ]);
        events.ended();
        events.flush().unwrap();
        let bytes = std::fs::read(&events.path).unwrap();
        let holds = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        // Each an entry of the map: key, then a value with the field of its kind.
        assert!(holds(b"\x0a\x0f\x0a\x02lr\x12\x09\x11\x00\x00\x00\x00\x00\x00\xe0\x3f"));
        assert!(holds(b"\x0a\x10\x0a\x04head\x12\x08\x1a\x06linear"));
        assert!(holds(b"\x0a\x0a\x0a\x04norm\x12\x02\x20\x01"));
        assert!(holds(b"_hparams_/session_start_info") && holds(b"_hparams_/session_end_info"));
        // `STATUS_SUCCESS`, then a time.
        assert!(holds(b"\x22\x0b\x08\x01\x11"));
    }

    #[test]
    fn two_files_of_one_second_are_two() {
        let dir = tempfile::tempdir().unwrap();
        let first = Events::create(dir.path()).unwrap();
        let second = Events::create(dir.path()).unwrap();
        assert!(first.path < second.path);
        let absent = dir.path().join("absent");
        assert!(Events::create(&absent).is_err());
    }
}
