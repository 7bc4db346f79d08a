//! [`Foreign`]: files of other programs that people often hold, and how to use them in Python.
//!
//! A file is recognised by its first bytes or its name, an HDF5 or `.npz` file by the names of its
//! arrays, a folder by its contents. Every other format gets one sentence, `Fault::UnknownFormat`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{DataError, Fault};
use crate::read::minari_spaces::other_form;
use crate::read::recording::{Reader, Recording};
use crate::read::run_folder::RunFolder;
use crate::read::source::Source;
use crate::read::table::is_parquet;
use crate::read::zip::{Archive, MAGIC};

/// Any form that is refused.
pub(crate) struct Foreign;

/// The form of a file or a folder, in words that `is not read` may follow, and advice with
/// `{arrays}` for [`ARRAYS`].
type Form = (&'static str, &'static str);

/// The end of most advice.
const ARRAYS: &str = "give its arrays to `overtone.from_arrays` (observations, actions, rewards, \
                      terminations, truncations)";

/// Bytes of a file's beginning that are looked at.
pub(crate) const HEAD: usize = 4096;
pub(crate) const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
const PARQUET: &[u8] = b"PAR1";

/// First bytes and endings of names, of which one is enough, and the form that they show.
type Signs = (&'static [&'static [u8]], &'static [&'static str], Form);

/// Forms of files.
const FILES: [Signs; 8] = [
    (
        &[b"MATLAB 7.3"],
        &[],
        (
            "a MATLAB file of version 7.3, whose axes are reversed,",
            "in Python, open it with `h5py.File`, transpose each array \
             (`numpy.array(f[\"observations\"]).T`, `.ravel()` of columns) and {arrays}",
        ),
    ),
    (
        &[b"MATLAB 5.0"],
        &["mat"],
        ("a MATLAB file", "in Python, open it with `scipy.io.loadmat`, and {arrays}"),
    ),
    // Every other HDF5 file goes to the readers.
    (&[HDF5], &[], ("an HDF5 file that is called .npz", "rename it to end in .hdf5")),
    (&[PARQUET], &[], ("a Parquet file without its ending", "rename it to end in .parquet")),
    (
        // PyTorch's old files begin with another object of protocol 2.
        &[b"\x80\x02]", b"\x80\x02}", b"\x80\x02c", b"\x80\x03", b"\x80\x04", b"\x80\x05"],
        &["pkl", "pickle"],
        (
            "a pickle, which may run code,",
            "if you trust it, open it in Python with `pickle.load`, and give a list of \
             trajectories to `overtone.from_episodes`, or arrays to `overtone.from_arrays`",
        ),
    ),
    (
        &[],
        &["gz", "tgz", "bz2", "xz", "zst", "tar", "7z", "rar"],
        ("an archive", "unpack it and name what is in it"),
    ),
    (
        &[],
        &["xlsx", "xls"],
        (
            "an Excel file",
            "in Python, give the table of `pandas.read_excel` to `overtone.from_pandas`",
        ),
    ),
    (&[], &["zip"], ("a zip archive", "unpack it and name what is in it")),
];

/// Forms by a file in a folder.
const FOLDERS: [(&[&str], Form); 1] = [(
    &[".zgroup", ".zarray", ".zattrs", "zarr.json"],
    ("a Zarr folder", "in Python, open it with `zarr.open`, and {arrays}"),
)];

/// Endings of data files, which say what the folder around them is.
const DATA: [&str; 3] = ["pkl", "pickle", "mat"];
/// Endings of tables.
const TABLES: [&str; 3] = ["parquet", "csv", "tsv"];

const TIANSHOU: Form = (
    "a Tianshou replay buffer",
    "in Python, open it with `ReplayBuffer.load_hdf5` (`buffer.obs`, `.act`, `.rew`, \
     `.terminated`, `.truncated`), and {arrays}",
);
const SHIFTED: Form = (
    "an episode of the form of Dreamer and DeepMind, whose actions led to their rows,",
    "in Python, take `observation[:-1]` (or `image[:-1]`), `action[1:]` (`.argmax(-1)` of one-hot \
     rows), `reward[1:]`, as terminations `is_terminal[1:]` or `discount[1:] == 0`, and {arrays}",
);
const STABLE_BASELINES: Form = (
    "an agent of Stable-Baselines3",
    "record episodes with it, and give them to `overtone.from_episodes`",
);
const LOG: Form = ("a single file of a DQN-replay log", "name the folder that it is in");

impl Reader for Foreign {
    fn name(&self) -> &'static str {
        "another program's"
    }

    fn reads(&self, path: &Path) -> bool {
        refusal(path).is_some()
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        // The file may have changed since it was recognised.
        Err(refusal(path).unwrap_or(Fault::UnknownFormat).at(path))
    }
}

fn refusal(path: &Path) -> Option<Fault> {
    if path.is_dir() { of_folder(path) } else { of_file(path) }
}

fn unread((what, way_out): Form) -> Fault {
    Fault::Unread { what: what.into(), way_out: way_out.replace("{arrays}", ARRAYS) }
}

/// The form of a file whose first bytes `head` show that it stands in the place of another.
pub(crate) fn stand_in(head: &[u8]) -> Option<Form> {
    let text = head.trim_ascii_start();
    let says =
        |words: &[u8]| text.get(..words.len()).is_some_and(|t| t.eq_ignore_ascii_case(words));
    let page: [&[u8]; 4] = [b"<!doctype", b"<html", b"<?xml", b"<head"];
    if head.is_empty() {
        Some(("an empty file", "fetch or copy it again"))
    } else if head.starts_with(b"version https://git-lfs.github.com/spec/") {
        Some(("a Git LFS pointer", "fetch the file itself with `git lfs pull`"))
    } else if page.into_iter().any(says) {
        let way_out = "fetch the file again, from an address that leads to the file itself";
        Some(("a web page", way_out))
    } else {
        None
    }
}

pub(crate) fn ending_of(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn of_file(path: &Path) -> Option<Fault> {
    let mut head = Vec::with_capacity(HEAD);
    File::open(path).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
    let ending = ending_of(path);
    if head.starts_with(HDF5) && ending != "npz" || head.starts_with(PARQUET) && is_parquet(path) {
        return None;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("$store$") && ending == "gz" {
        return Some(unread(LOG));
    }
    let by_bytes = FILES.iter().find(|(begins, ..)| begins.iter().any(|b| head.starts_with(b)));
    let by_name = || FILES.iter().find(|(_, ends, _)| ends.contains(&&*ending));
    let form = stand_in(&head).or_else(|| Some(by_bytes.or_else(by_name)?.2));
    if head.starts_with(MAGIC) { of_archive(path, form) } else { form.map(unread) }
}

/// A zip archive that does not hold arrays; `form` is the form that its name says.
fn of_archive(path: &Path, form: Option<Form>) -> Option<Fault> {
    let archive = Archive::open(path).ok()?;
    let has = |ending: &str| archive.entries().iter().any(|entry| entry.name.ends_with(ending));
    if has(".npy") || archive.entries().is_empty() {
        None
    } else if has("policy.pth") || has("pytorch_variables.pth") {
        Some(unread(STABLE_BASELINES))
    } else {
        Some(form.map_or(Fault::UnknownFormat, unread))
    }
}

/// The form of a folder that does not hold a log.
fn of_folder(folder: &Path) -> Option<Fault> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    let has = |name: &str| folder.join(name).exists();
    let first_of =
        |endings: &[&str]| files.iter().find(|path| endings.contains(&&*ending_of(path)));
    if first_of(&["hdf5", "h5"]).is_some() || has("data/main_data.hdf5") {
        return None;
    }
    if let Some((_, form)) = FOLDERS.iter().find(|(names, _)| names.iter().any(|name| has(name))) {
        return Some(unread(*form));
    }
    let name_of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(first) = first_of(&["npz"]) {
        let n = files.iter().filter(|path| ending_of(path) == "npz").count();
        let what = format!("a folder of .npz files ({n} of them)");
        let way_out = format!(
            "give one of them (…/{}), or join them in Python: `numpy.savez(\"all.npz\", **{{k: \
             numpy.concatenate([f[k] for f in files]) for k in files[0]}})`",
            name_of(first)
        );
        return Some(Fault::Unread { what, way_out });
    }
    if RunFolder::find(folder).is_ok() || other_form(folder).is_some() {
        return None;
    }
    if let Some(first) = first_of(&TABLES) {
        let what = format!("a folder of tables (…/{})", name_of(first));
        let way_out = "name one of them, or join them in Python: give \
                       `pandas.concat(map(pandas.read_parquet, files))` (or `read_csv`) to \
                       `overtone.from_pandas`";
        return Some(Fault::Unread { what, way_out: way_out.into() });
    }
    if let Some(first) = first_of(&DATA)
        && let Some(Fault::Unread { what, way_out }) = of_file(first)
    {
        let what = format!("a folder with {} ({}),", what.trim_end_matches(','), name_of(first));
        return Some(Fault::Unread { what, way_out });
    }
    // Parts of a log, and hidden files, say nothing.
    let is_other = |path: &PathBuf| !name_of(path).starts_with(['.', '$']);
    files.iter().any(is_other).then_some(Fault::UnknownFormat)
}

/// The error for a file whose arrays have the names of another library's.
pub(crate) fn by_names(source: &dyn Source) -> Option<DataError> {
    let all = |names: &[&str]| names.iter().all(|name| source.has(name));
    let within = |group: &str, begin: &str| {
        source.parts(group).unwrap_or_default().iter().any(|part| part.starts_with(begin))
    };
    let form = if all(&["observations"]) || all(&["obs", "acts", "dones"]) {
        return None;
    } else if all(&["obs", "act", "rew"]) || within("_meta", "") {
        TIANSHOU
    } else if all(&["is_first", "is_last"]) || all(&["action", "reward", "discount"]) {
        SHIFTED
    } else {
        return None;
    };
    Some(unread(form).at(source.path()))
}
