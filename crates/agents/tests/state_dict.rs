//! State dicts saved by torch (`scripts/peers/state_dicts.py` wrote them).

use std::path::{Path, PathBuf};

use burn::tensor::DType;
use overtone_agents::{
    AlgorithmConfig,
    state_dict::{self, MissingSettings},
};
use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_model::{DecisionTransformerConfig, ModelError, PositionsConfig, published};
use overtone_testkit::{Golden, check_error, golden};

const PUBLISHED: MissingSettings = MissingSettings { n_heads: None, context_length: 4 };

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/state_dict").join(name)
}

fn vectors(width: usize, actions: usize) -> Task {
    Task::own("vectors", ObservationSpace::Vectors { width }, ActionSpace::unit(actions))
}

fn frames(actions: usize) -> Task {
    let shape = vec![4, 84, 84];
    Task::own("frames", ObservationSpace::Pixels { shape }, ActionSpace::numbered(actions))
}

#[test]
fn a_model_of_vectors_is_the_golden_one() {
    let theirs = state_dict::read(&file("gym.pt")).unwrap();
    let weights = Golden::read(&golden::folder().join("dt_gym_weights.safetensors"));
    let mut n = 0;
    for (name, array) in weights.iter() {
        let numbers: Vec<f32> = theirs[name].iter().collect();
        let expected: Vec<f32> = array.values.iter().map(|value| *value as f32).collect();
        assert_eq!((&numbers, &theirs[name].shape()[..]), (&expected, &array.shape[..]), "{name}");
        n += 1;
    }
    assert_eq!(theirs.len(), n);
    assert_eq!(state_dict::read(&file("older.pt")).unwrap(), theirs);
    let halves = state_dict::read(&file("halves.pt")).unwrap();
    assert_eq!(halves.len(), n);
    for (name, half) in &halves {
        for (half, full) in half.iter::<f32>().zip(theirs[name].iter::<f32>()) {
            // A bfloat16 has 8 bits.
            assert!((half - full).abs() <= full.abs() / 256.0, "{name}: {half} of {full}");
        }
    }
    let missing_settings = MissingSettings { n_heads: Some(2), ..PUBLISHED };
    let (algorithm, ours) = state_dict::import(&theirs, &vectors(5, 3), missing_settings).unwrap();
    let AlgorithmConfig::DecisionTransformer(options) = algorithm else { panic!("{algorithm:?}") };
    let expected = DecisionTransformerConfig {
        n_layers: 2,
        n_heads: 2,
        d_model: 16,
        context_length: 4,
        ..DecisionTransformerConfig::gym(20)
    };
    assert_eq!(options.0, expected);
    assert_eq!(ours, published::gym(&expected, &theirs).unwrap());
}

/// In addition to the weights, a mask of bytes, and one of the weights in double precision.
#[test]
fn a_safetensors_file_is_read_as_torch_s_is() {
    let theirs = state_dict::read(&file("gym.pt")).unwrap();
    let doubled = "transformer.h.1.ln_1.weight";
    let mut arrays = vec![("transformer.h.0.attn.bias", "U8", vec![2, 2], vec![1u8, 0, 1, 1])];
    for (name, data) in &theirs {
        let (dtype, bytes) = if name == doubled {
            ("F64", data.iter::<f64>().flat_map(f64::to_le_bytes).collect())
        } else {
            ("F32", data.as_bytes().to_vec())
        };
        arrays.push((name, dtype, data.shape().to_vec(), bytes));
    }
    let (mut header, mut numbers) = (serde_json::Map::new(), Vec::new());
    for (name, dtype, shape, bytes) in arrays {
        let from = numbers.len();
        numbers.extend(bytes);
        let tensor = serde_json::json!({
            "dtype": dtype, "shape": shape, "data_offsets": [from, numbers.len()],
        });
        header.insert(name.into(), tensor);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let length = (header.len() as u64).to_le_bytes();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    std::fs::write(&path, [&length[..], &header, &numbers].concat()).unwrap();

    let read = state_dict::read(&path).unwrap();
    assert!(read.contains_key(doubled));
    assert_eq!(read, theirs);
    assert!(read.values().all(|data| data.dtype() == DType::F32));
}

#[test]
fn a_model_of_frames_determines_its_context() {
    let theirs = state_dict::read(&file("atari.pt")).unwrap();
    // [i, j, k, l] of a view is number i + 2j + 3k + 4l of its row.
    let convolution = &theirs["model_state_dict.module.state_encoder.2.weight"];
    assert_eq!(convolution.shape()[..], [64, 32, 4, 4]);
    let numbers: Vec<f32> = convolution.iter().collect();
    for [i, j, k, l] in [[0, 0, 0, 0], [3, 1, 2, 0], [63, 31, 3, 3], [5, 30, 0, 2]] {
        let expected = (i + 2 * j + 3 * k + 4 * l) as f32 / 100.0 - 0.5;
        assert_eq!(numbers[((i * 32 + j) * 4 + k) * 4 + l], expected, "{i} {j} {k} {l}");
    }
    let (algorithm, ours) = state_dict::import(&theirs, &frames(6), PUBLISHED).unwrap();
    let AlgorithmConfig::DecisionTransformer(options) = algorithm else { panic!("{algorithm:?}") };
    let max_timestep = 6;
    let expected = DecisionTransformerConfig {
        n_layers: 2,
        n_heads: 8,
        d_model: 8,
        context_length: 2,
        positions: PositionsConfig::LocalAndGlobal { max_timestep },
        ..DecisionTransformerConfig::atari(max_timestep)
    };
    assert_eq!(options.0, expected);
    assert_eq!(ours["positions.local"].shape()[..], [7, 8]);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let (gym, atari) = (file("gym.pt"), file("atari.pt"));
    let (gym, atari) = (state_dict::read(&gym).unwrap(), state_dict::read(&atari).unwrap());
    for (theirs, task, missing_settings, expected) in [
        (&gym, vectors(6, 3), PUBLISHED, "width of observations"),
        (&gym, vectors(5, 4), PUBLISHED, "numbers in an action"),
        (&atari, frames(18), PUBLISHED, "6 in the state dict"),
        (&atari, vectors(5, 3), PUBLISHED, "`embed_state.weight`"),
        (&gym, vectors(5, 3), MissingSettings { n_heads: Some(3), ..PUBLISHED }, "n_heads"),
    ] {
        let error = state_dict::import(theirs, &task, missing_settings).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let mut lost = gym.clone();
    lost.remove("transformer.h.0.mlp.c_fc.bias");
    let error = state_dict::import(&lost, &vectors(5, 3), PUBLISHED).unwrap_err();
    check_error!(error, ModelError::MissingTensor { name } if name.ends_with("c_fc.bias"));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("half.pt");
    for bytes in [&b"no pickle"[..], &std::fs::read(file("gym.pt")).unwrap()[..20_000]] {
        std::fs::write(&path, bytes).unwrap();
        check_error!(state_dict::read(&path).unwrap_err(), ModelError::StateDict { .. });
    }
}
