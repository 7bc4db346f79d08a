//! [`MinariId`]: a dataset of Minari's hub, and where it lies on this machine.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::download::unfinished;
use crate::error::{DataError, Fault};

/// The prefix of a dataset's name that marks a Minari id.
const PREFIX: &str = "minari:";

/// The most bytes of a description that are read; Minari's have a few thousand,
/// and where pictures are observed a bound for each of their pixels.
const MAX_METADATA: u64 = 16 << 20;

/// A dataset of Minari's hub, such as `mujoco/hopper/medium-v0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinariId(String);

/// Which environment a dataset was recorded in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RecordedEnv {
    /// Its id in Gymnasium, such as `Hopper-v5`.
    pub id: String,
    /// Its longest episode, if it has a limit.
    pub max_episode_steps: Option<u32>,
    /// Keyword arguments it was made with.
    #[serde(default)]
    pub kwargs: BTreeMap<String, Value>,
}

impl fmt::Display for MinariId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl MinariId {
    /// The id in `minari:mujoco/hopper/medium-v0`; none in a name without `minari:`.
    ///
    /// # Errors
    /// [`DataError::MinariId`] when it is not names and a version.
    pub fn of(name: &str) -> Result<Option<Self>, DataError> {
        let Some(id) = name.strip_prefix(PREFIX) else { return Ok(None) };
        let plain = |part: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !part.starts_with('.') && !part.is_empty() && part.bytes().all(known)
        };
        let (_, version) = id.rsplit_once("-v").unwrap_or_default();
        let has_version = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
        if !(id.contains('/') && id.split('/').all(plain) && has_version) {
            return Err(DataError::MinariId(name.into()));
        }
        Ok(Some(Self(id.to_owned())))
    }

    /// The organisation's repository on the hub, and the folder in it.
    pub fn repository(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or((&self.0, ""))
    }

    /// The folder where Minari keeps this dataset on this machine, whether it is there or not.
    ///
    /// # Errors
    /// As [`minari_folder`].
    pub fn folder(&self) -> Result<PathBuf, DataError> {
        Ok(minari_folder()?.join(&self.0))
    }

    /// The folder of this dataset, which is there.
    ///
    /// # Errors
    /// When it is not, or its download is not finished.
    pub fn find(&self) -> Result<PathBuf, DataError> {
        let path = self.folder()?;
        if let Some(path) = unfinished(&path) {
            return Err(Fault::Unfinished.at(path));
        }
        if !path.is_dir() {
            let hint = format!("fetch it (`overtone download dataset={PREFIX}{self}`)");
            return Err(DataError::missing(path, hint));
        }
        Ok(path)
    }
}

/// The folder where Minari keeps datasets: `MINARI_DATASETS_PATH`, else `~/.minari/datasets`.
///
/// # Errors
/// If the home folder is unknown too.
pub fn minari_folder() -> Result<PathBuf, DataError> {
    if let Some(folder) = env::var_os("MINARI_DATASETS_PATH").filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
    home.map(|home| home.join(".minari/datasets")).ok_or_else(|| {
        DataError::missing("~", "say where Minari's datasets are in MINARI_DATASETS_PATH")
    })
}

/// The text of Minari's description at `path`.
///
/// # Errors
/// When it cannot be read, or is too large to be one.
pub(crate) fn metadata_text(path: &Path) -> Result<String, DataError> {
    let size = fs::metadata(path).map_err(DataError::io(path, "read"))?.len();
    if size > MAX_METADATA {
        let reason = "it is too large to be Minari's".into();
        return Err(Fault::NoLog(reason).at(path));
    }
    fs::read_to_string(path).map_err(DataError::io(path, "read"))
}

impl RecordedEnv {
    /// Its id with its keyword arguments: `Pendulum-v1,g=9.81`.
    pub fn with_kwargs(&self) -> String {
        let kwargs = self.kwargs.iter().map(|(key, value)| format!(",{key}={value}"));
        self.id.clone() + &kwargs.collect::<String>()
    }

    /// Its name and its version: `Hopper` and `v5`; of `ALE/Pong-v5`, `Pong` and `v5`.
    pub fn name_and_version(&self) -> (&str, Option<&str>) {
        let name = self.id.rsplit('/').next().unwrap_or(&self.id);
        match name.rfind("-v") {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::recorded_task::RecordedTask;

    #[test]
    fn ids() {
        let of = |name: &str| MinariId::of(name).map(|id| id.map(|id| id.to_string()));
        assert_eq!(of("medium").unwrap(), None);
        assert_eq!(of("/a/minari:b").unwrap(), None);
        for good in ["mujoco/hopper/medium-v0", "D4RL/door/human-v2", "a/b-v1-v10"] {
            assert_eq!(of(&format!("minari:{good}")).unwrap().unwrap(), good);
        }
        let id = MinariId::of("minari:mujoco/hopper/medium-v0").unwrap().unwrap();
        assert_eq!(id.repository(), ("mujoco", "hopper/medium-v0"));
        for bad in [
            "",
            "medium-v0",
            "mujoco/hopper/medium",
            "mujoco/hopper/medium-v",
            "a/b-vx",
            "a//b-v0",
            "/a/b-v0",
            "../b-v0",
            "a/../b-v0",
            "a/.b-v0",
            "a/b?c-v0",
            "a/b c-v0",
            "a\\b/c-v0",
        ] {
            let error = of(&format!("minari:{bad}")).unwrap_err().to_string();
            assert!(error.contains("minari:mujoco/hopper/medium-v0"), "{error}");
        }
    }

    #[test]
    fn the_environment_of_a_dataset() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        let of = |text: &str| {
            fs::write(dir.path().join("data/metadata.json"), text).unwrap();
            RecordedTask::of(dir.path()).map(|said| said.env)
        };
        let text = r#"{"env_spec": "{\"id\": \"ALE/Pong-v5\", \"max_episode_steps\": 7}"}"#;
        let env = of(text).unwrap().unwrap();
        assert_eq!(
            (env.name_and_version(), env.max_episode_steps),
            (("Pong", Some("v5")), Some(7))
        );
        assert_eq!(env.with_kwargs(), "ALE/Pong-v5");
        let text = r#"{"env_spec": "{\"id\": \"Own\", \"max_episode_steps\": null,
            \"kwargs\": {\"size\": 5, \"map\": [[1, 0]]}}"}"#;
        let env = of(&text.replace('\n', "")).unwrap().unwrap();
        assert_eq!(env.with_kwargs(), "Own,map=[[1,0]],size=5");
        assert_eq!((env.name_and_version(), env.max_episode_steps), (("Own", None), None));
        assert_eq!(of("{}").unwrap(), None);
        assert_eq!(of(r#"{"env_spec": "Infinity"}"#).unwrap(), None);
        for bad in ["", "[]", "{\"env_spec\": 1}"] {
            assert!(of(bad).unwrap_err().to_string().contains("metadata.json"), "{bad}");
        }
        fs::remove_dir_all(dir.path().join("data")).unwrap();
        assert_eq!(RecordedTask::of(dir.path()).unwrap(), RecordedTask::default());
    }
}
