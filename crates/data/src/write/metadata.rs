//! The metadata of our own recordings.

use std::path::Path;

use overtone_core::picture::SIDE;
use overtone_core::{ActionSpace, ObservationSpace};
use serde_json::{Map, Value, json};

use super::about::{About, Written};
use crate::describe::minari_id::minari_folder;

/// The release of Minari whose layout this is.
const MINARI_VERSION: &str = "0.5.4";

/// The text of `metadata.json`, and that which the file itself holds: without the bounds of
/// pictures, which are long and say nothing.
pub(super) fn texts(about: &About<'_>, written: &Written, to: &Path) -> [String; 2] {
    let task = about.task;
    let mut metadata = Map::new();
    let mut add = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
    add("total_episodes", written.episodes.into());
    add("total_steps", written.transitions.into());
    add("data_format", "hdf5".into());
    add("jpeg_encoding", false.into());
    add("action_space", action_space(&task.actions).into());
    if let Some(spec) = &about.env_spec {
        add("env_spec", spec.as_str().into());
    }
    add("dataset_id", id(to).into());
    add("algorithm_name", about.algorithm.as_str().into());
    add("description", about.description.as_str().into());
    add("author", json!([]));
    add("author_email", json!([]));
    add("code_permalink", "".into());
    add("minari_version", MINARI_VERSION.into());
    // Megabytes, as Minari counts them; what it is for is a listing of a hub.
    add("dataset_size", 0.0.into());
    add(
        "overtone",
        json!({
            "task": task.id(),
            "simulation": about.simulation,
            "content_sha256": written.content_hash,
        }),
    );
    let is_picture = matches!(task.observations, ObservationSpace::Pixels { .. });
    let short = match is_picture {
        true => Some(Value::Object(metadata.clone()).to_string()),
        false => None,
    };
    metadata.insert("observation_space".into(), observation_space(&task.observations).into());
    let whole = Value::Object(metadata).to_string();
    let short = short.unwrap_or_else(|| whole.clone());
    [whole, short]
}

/// The name by which Minari finds it: where it lies below Minari's folder, else its last name.
fn id(to: &Path) -> String {
    let below = minari_folder().ok();
    let id = below.as_deref().and_then(|folder| to.strip_prefix(folder).ok());
    let name = || to.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let id = id.map_or_else(name, |id| id.to_string_lossy().into_owned());
    match id.rsplit_once("-v") {
        Some((_, version)) if version.parse::<u32>().is_ok() => id,
        _ => format!("{id}-v0"),
    }
}

/// Minari's text of a space; JSON has no word for infinity, and Python reads this one.
fn space(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    format!("{{{}}}", fields.join(", "))
}

fn observation_space(observations: &ObservationSpace) -> String {
    match observations {
        ObservationSpace::Vectors { width } => {
            let bounds = |bound: f32| numbers(&vec![bound; *width]);
            space(&[
                ("type", "\"Box\"".into()),
                ("dtype", "\"float32\"".into()),
                ("shape", format!("[{width}]")),
                ("low", bounds(f32::NEG_INFINITY)),
                ("high", bounds(f32::INFINITY)),
            ])
        }
        // The newest frame of each observation.
        ObservationSpace::Pixels { .. } => {
            let bounds = |bound: u8| {
                let row = format!("[{}]", vec![bound.to_string(); SIDE].join(","));
                format!("[{}]", vec![row; SIDE].join(","))
            };
            space(&[
                ("type", "\"Box\"".into()),
                ("dtype", "\"uint8\"".into()),
                ("shape", format!("[{SIDE}, {SIDE}]")),
                ("low", bounds(0)),
                ("high", bounds(255)),
            ])
        }
    }
}

fn action_space(actions: &ActionSpace) -> String {
    match actions {
        ActionSpace::Discrete { names } => space(&[
            ("type", "\"Discrete\"".into()),
            ("dtype", "\"int64\"".into()),
            ("start", "0".into()),
            ("n", names.len().to_string()),
        ]),
        ActionSpace::Continuous { low, high } => space(&[
            ("type", "\"Box\"".into()),
            ("dtype", "\"float32\"".into()),
            ("shape", format!("[{}]", low.len())),
            ("low", numbers(low)),
            ("high", numbers(high)),
        ]),
    }
}

fn numbers(bounds: &[f32]) -> String {
    let number = |bound: &f32| match *bound {
        f32::INFINITY => "Infinity".to_owned(),
        f32::NEG_INFINITY => "-Infinity".to_owned(),
        bound => format!("{bound:?}"),
    };
    format!("[{}]", bounds.iter().map(number).collect::<Vec<_>>().join(", "))
}
