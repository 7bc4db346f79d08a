//! [`Foreign`]: files of other programs that are not read, by name, and the way out.
//!
//! A file is recognised by its first bytes or by the names of its arrays, a folder by its contents.
//! The readers handle everything else.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{DataError, Fault};
use crate::read::npz;
use crate::read::run_folder::RunFolder;
use crate::read::source::Source;
use crate::read::zip::{Archive, MAGIC};
use crate::recording::{Reader, Recording};

/// Whatever another program wrote.
pub(crate) struct Foreign;

/// The kind of a file or a folder, in words that `is not read` may follow, and advice.
pub(super) type Known = (String, String);

/// The end of most ways out.
const ARRAYS: &str = "give its arrays to `overtone.from_arrays` (observations, actions, rewards, \
                      terminations, truncations)";

impl Reader for Foreign {
    fn name(&self) -> &'static str {
        "another program's"
    }

    fn reads(&self, path: &Path) -> bool {
        known(path).is_some()
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        let (what, way_out) = known(path)
            .unwrap_or_else(|| ("a file that changes".into(), "wait until it is complete".into()));
        Err(Fault::Unread { what, way_out }.at(path))
    }
}

fn known(path: &Path) -> Option<Known> {
    match path.is_dir() {
        true => of_folder(path),
        false => of_file(path),
    }
}

fn own(what: &str, way_out: impl Into<String>) -> Option<Known> {
    Some((what.into(), way_out.into()))
}

fn in_python(what: &str, opened: &str) -> Option<Known> {
    own(what, format!("in Python, open it with {opened}, and {ARRAYS}"))
}

fn table(what: &str, read: &str) -> Option<Known> {
    own(what, format!("in Python, hand the table of `{read}` to `overtone.from_pandas`"))
}

/// Bytes of a file's beginning that are looked at.
const HEAD: usize = 512;

fn of_file(path: &Path) -> Option<Known> {
    let mut head = Vec::with_capacity(HEAD);
    File::open(path).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
    let begins = |with: &[u8]| head.starts_with(with);
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if head.is_empty() {
        return own("an empty file", "fetch or copy it again");
    }
    if begins(b"version https://git-lfs.github.com/spec/") {
        return own(
            "a pointer of Git LFS, which stands for the file,",
            "fetch the file itself with `git lfs pull`",
        );
    }
    if begins(b"MATLAB 7.3") {
        return own(
            "a MATLAB file of version 7.3, whose axes are reversed,",
            format!(
                "in Python, open it with `h5py.File`, transpose each array (`numpy.array(f[\"\
                 observations\"]).T`, `.ravel()` of columns) and {ARRAYS}"
            ),
        );
    }
    if begins(b"MATLAB 5.0") || (ending == "mat" && !begins(HDF5)) {
        return in_python("a MATLAB file", "`scipy.io.loadmat`");
    }
    if begins(HDF5) {
        let renamed = || own("an HDF5 file that is called .npz", "rename it to end in .hdf5");
        return (ending == "npz").then(renamed).flatten();
    }
    if begins(b"\x93NUMPY") {
        return own(
            "a single array (.npy)",
            "in Python, load all arrays of the recording and save them together with `numpy.savez`",
        );
    }
    if begins(MAGIC) {
        return of_archive(path);
    }
    // The beginning of a file that `torch.save` wrote before it wrote archives.
    if begins(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") {
        return in_python("a PyTorch file", "`torch.load`");
    }
    if matches!(head[..], [0x80, 2..=5, ..]) || ["pkl", "pickle"].contains(&&*ending) {
        return own(
            "a pickle, which may run code,",
            "where you trust it, open it in Python with `pickle.load`, and give a list of \
             trajectories, as the Decision Transformer's, to `overtone.from_episodes`, or arrays \
             to `overtone.from_arrays`",
        );
    }
    if begins(b"\x1f\x8b") {
        return match name.starts_with("$store$") || name.contains("_ckpt.") {
            true => own("a single file of a DQN-replay log", "name the folder that it is in"),
            false => own("a gzip file", "unpack it with `gunzip` and name what is in it"),
        };
    }
    if begins(b"\xfd7zXZ")
        || begins(b"BZh")
        || begins(b"\x28\xb5\x2f\xfd")
        || begins(b"7z\xbc\xaf")
        || begins(b"Rar!")
        || head.get(257..262) == Some(b"ustar")
    {
        return own("an archive", "unpack it and name what is in it");
    }
    if begins(b"PAR1") {
        return table("a Parquet file, as LeRobot's are,", "pandas.read_parquet");
    }
    if begins(b"ARROW1") || begins(b"\xff\xff\xff\xff") && ending == "arrow" {
        return table("an Arrow file", "pandas.read_feather");
    }
    if is_tfrecord(&head) {
        return of_tfrecord();
    }
    if begins(b"SQLite format 3") {
        return in_python("an SQLite database", "`sqlite3`");
    }
    let text = String::from_utf8_lossy(&head).trim_start().to_lowercase();
    if text.starts_with("<!doctype") || text.starts_with("<html") || text.starts_with("<?xml") {
        return own(
            "a web page in the file's place",
            "fetch the file again, from an address that leads to the file itself",
        );
    }
    if is_safetensors(&head) || ["safetensors", "onnx"].contains(&&*ending) {
        return own("a file of a model's weights", "name the recording that it was trained on");
    }
    match &*ending {
        "csv" | "tsv" => table("a table in text", "pandas.read_csv"),
        "json" | "jsonl" | "ndjson" => in_python("a JSON file", "`json.load`"),
        "pt" | "pth" | "ckpt" => in_python("a PyTorch file", "`torch.load`"),
        _ => None,
    }
}

const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

/// A zip archive that holds other files than arrays.
fn of_archive(path: &Path) -> Option<Known> {
    let archive = Archive::open(path).ok()?;
    let has = |ending: &str| archive.entries().iter().any(|entry| entry.name.ends_with(ending));
    if has("policy.pth") || has("pytorch_variables.pth") {
        return own(
            "an agent of Stable-Baselines3",
            "record episodes with it, and give them to `overtone.from_episodes`",
        );
    }
    if has("data.pkl") {
        return in_python("a PyTorch file", "`torch.load`");
    }
    let is_other = !archive.entries().is_empty() && !has(".npy");
    is_other.then(|| ("a zip archive".into(), "unpack it and name what is in it".into()))
}

/// Whether a file begins as a record of TensorFlow's: the length of its first record, and the masked
/// CRC-32C of that.
fn is_tfrecord(head: &[u8]) -> bool {
    let (Some(length), Some(sum)) = (head.get(..8), head.get(8..12)) else { return false };
    let masked = crc32c::crc32c(length).rotate_right(15).wrapping_add(0xa282_ead8);
    sum == masked.to_le_bytes()
}

/// Whether a file begins with the length of a JSON header, and the header.
fn is_safetensors(head: &[u8]) -> bool {
    head.get(8) == Some(&b'{') && head[4..8] == [0; 4]
}

fn of_tfrecord() -> Option<Known> {
    in_python(
        "a TFRecord file, as RLDS's and RL Unplugged's are,",
        "`tensorflow_datasets` (an RLDS step's action is the one taken in its observation)",
    )
}

/// The kind of a folder that does not hold a log.
fn of_folder(folder: &Path) -> Option<Known> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let has = |name: &str| folder.join(name).exists();
    let ends_in = |path: &Path, endings: &[&str]| {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        path.is_file() && endings.contains(&&*ending)
    };
    if paths.iter().any(|path| ends_in(path, &["hdf5", "h5"])) || has("data/main_data.hdf5") {
        return None;
    }
    if [".zgroup", ".zarray", ".zattrs", "zarr.json"].iter().any(|name| has(name)) {
        return in_python("a folder of Zarr's", "`zarr.open`");
    }
    if has("meta/info.json") {
        return in_python("a dataset of LeRobot's", "`lerobot.datasets.lerobot_dataset`");
    }
    if has("dataset_info.json") && has("features.json") {
        return of_tfrecord();
    }
    let arrays: Vec<&PathBuf> = paths.iter().filter(|path| ends_in(path, &["npz"])).collect();
    if let [first, ..] = arrays[..] {
        let files = format!("a folder of .npz files ({} of them)", arrays.len());
        if let Some((what, way_out)) = npz::other_s(first) {
            return own(&format!("{files}, each {what}"), way_out);
        }
        let shown =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return own(
            &files,
            format!(
                "give one of them (…/{}), or join them in Python: `numpy.savez(\"all.npz\", **{{k: \
                 numpy.concatenate([f[k] for f in files]) for k in files[0]}})`",
                shown(first)
            ),
        );
    }
    if RunFolder::find(folder).is_ok() {
        return None;
    }
    let first =
        paths.iter().filter(|path| path.is_file()).find_map(|path| Some((path, of_file(path)?)));
    let (path, (what, way_out)) = first?;
    // Whatever else lies about in a folder says nothing of it.
    let is_data =
        ends_in(path, &["pkl", "pickle", "pt", "mat", "parquet", "arrow", "csv", "tfrecord"])
            || path.file_name()?.to_string_lossy().contains(".tfrecord");
    let name = path.file_name()?.to_string_lossy().into_owned();
    is_data.then(|| (format!("a folder with {} ({name}),", what.trim_end_matches(',')), way_out))
}

/// The error for a file whose arrays have the names of another library's.
pub(crate) fn by_names(source: &dyn Source) -> Option<DataError> {
    let (what, way_out) = named(source)?;
    Some(Fault::Unread { what, way_out }.at(source.path()))
}

/// The kind of the file with these arrays and advice, if another library wrote it.
pub(super) fn named(source: &dyn Source) -> Option<Known> {
    let has = |names: &[&str]| names.iter().all(|name| source.has(name));
    let within = |group: &str, name: &str| {
        source.parts(group).is_some_and(|parts| parts.iter().any(|part| part.starts_with(name)))
    };
    if within("data", "demo_") {
        return in_python(
            "a file of robomimic's (data/demo_0, …)",
            "`h5py.File`, choose the parts of `obs` that the agent is to see \
             (`numpy.concatenate([demo[\"obs\"][k] for k in parts], 1)`)",
        );
    }
    if has(&["action"]) && within("observations", "qpos") {
        return in_python(
            "an episode of ALOHA's (observations/qpos, action)",
            "`h5py.File`, take `observations/qpos`",
        );
    }
    if has(&["observations"]) || has(&["obs", "acts", "dones"]) {
        return None;
    }
    if has(&["obs", "acts", "terminal", "indices"]) {
        return own(
            "a file of imitation's trajectories",
            "in Python, give `serialize.load(…)` to `rollout.flatten_trajectories_with_rew` and its \
             arrays to `overtone.from_arrays`",
        );
    }
    if source.parts("_meta").is_some() || has(&["obs", "act", "rew"]) {
        return in_python(
            "a replay buffer of Tianshou's",
            "`ReplayBuffer.load_hdf5` (`buffer.obs`, `.act`, `.rew`, `.terminated`, `.truncated`)",
        );
    }
    if has(&["is_first", "is_last"]) {
        return own(
            "an episode of Dreamer's, whose actions led to their rows,",
            format!(
                "in Python, take `image[:-1]`, `action[1:]` (`.argmax(-1)` of ones and zeros), \
                 `reward[1:]`, `is_terminal[1:]`, and {ARRAYS}"
            ),
        );
    }
    if has(&["action", "reward", "discount"]) {
        return own(
            "an episode of DeepMind's form (V-D4RL's, ExORL's), whose actions led to their rows,",
            format!(
                "in Python, take `observation[:-1]`, `action[1:]`, `reward[1:]`, a last step's \
                 `discount == 0` as its termination, and {ARRAYS}"
            ),
        );
    }
    if has(&["timesteps", "results", "ep_lengths"]) {
        return own(
            "a log of evaluations of Stable-Baselines3's",
            "name a recording of steps: it has no observations and actions",
        );
    }
    if source
        .listed()
        .iter()
        .any(|name| name.starts_with("observation$") || name.starts_with("action$"))
    {
        return in_python("an episode of MineRL's", "`numpy.load`, join the parts");
    }
    let is_weights = ["model_weights", "optimizer_weights", "_layer_checkpoint_dependencies"];
    if is_weights.iter().any(|name| source.has(name)) || has(&["layers", "vars"]) {
        return own(
            "a file of a model's weights (Keras)",
            "name the recording that it was trained on",
        );
    }
    None
}
