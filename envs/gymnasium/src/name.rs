//! [`TaskName`]: the arguments of `gymnasium.make` as one word.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::GymnasiumError;

/// An environment's id, optionally with a module before a colon and keyword arguments after commas:
/// `my_module:MyEnv-v0,size=5,shape=[2,3],mode=hard`.
///
/// A value is parsed as Python's `True`, `False` or `None`, or as JSON. Any other value is a string.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskName {
    /// `CartPole-v1`, or `my_module:MyEnv-v0`.
    pub id: String,
    /// Keyword arguments by name.
    pub options: BTreeMap<String, Value>,
}

impl TaskName {
    /// Parses a name.
    ///
    /// # Errors
    /// When the id is missing or a keyword argument appears twice.
    pub fn parse(name: &str) -> Result<Self, GymnasiumError> {
        let wrong =
            |reason: &str| GymnasiumError::Name { name: name.into(), reason: reason.into() };
        let mut parts: Vec<String> = Vec::new();
        for part in name.split(',') {
            match parts.last_mut() {
                // The comma is inside a value.
                Some(last) if split(part).is_none() => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => parts.push(part.to_owned()),
            }
        }
        let mut parts = parts.into_iter();
        let id = parts.next().unwrap_or_default();
        if id.trim().is_empty() || id.contains([',', '=', '"']) {
            return Err(wrong("the environment's id is missing before the keyword arguments"));
        }
        let mut options = BTreeMap::new();
        for part in parts {
            let Some((key, text)) = split(&part) else { continue };
            let value = value_of(text).unwrap_or_else(|| Value::String(text.to_owned()));
            if options.insert(key.to_owned(), value).is_some() {
                return Err(wrong(&format!("the keyword argument {key} appears twice")));
            }
        }
        Ok(Self { id, options })
    }

    /// The id without module, namespace and version: `Ant` for `gym_robots:robots/Ant-v5`.
    pub fn environment(&self) -> &str {
        let id = self.id.rsplit([':', '/']).next().unwrap_or(&self.id);
        match id.rsplit_once("-v") {
            Some((name, version)) if version.chars().all(|c| c.is_ascii_digit()) => name,
            _ => id,
        }
    }

    /// The keyword arguments as JSON.
    pub fn options_as_json(&self) -> String {
        serde_json::to_string(&self.options).unwrap_or_default()
    }
}

/// Splits a keyword argument such as `size=5` into key and value.
fn split(part: &str) -> Option<(&str, &str)> {
    let (key, value) = part.split_once('=')?;
    let word = |c: char| c.is_alphanumeric() || c == '_';
    (!key.is_empty() && key.chars().all(word)).then_some((key, value))
}

/// The value of `text` as a Python constant or as JSON; `None` for other strings.
fn value_of(text: &str) -> Option<Value> {
    match text {
        "True" => Some(Value::Bool(true)),
        "False" => Some(Value::Bool(false)),
        "None" => Some(Value::Null),
        text => serde_json::from_str(text).ok(),
    }
}

impl fmt::Display for TaskName {
    /// Equal tasks have equal names, because keyword arguments are sorted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        for (key, value) in &self.options {
            match value {
                // A plain string does not need quotes.
                Value::String(text) if value_of(text).is_none() => {
                    write!(f, ",{key}={text}")?;
                }
                value => write!(f, ",{key}={value}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use overtone_testkit::sentences;

    #[track_caller]
    fn check(text: &str, id: &str, options: Value, canonical: &str) {
        let name = TaskName::parse(text).unwrap();
        assert_eq!((name.id.as_str(), json!(name.options)), (id, options));
        assert_eq!(name.to_string(), canonical);
        assert_eq!(TaskName::parse(canonical).unwrap(), name);
    }

    #[test]
    fn names_are_ids_with_keyword_arguments() {
        check("CartPole-v1", "CartPole-v1", json!({}), "CartPole-v1");
        check(
            "my_pkg.envs:ns/Mine-v0,b=false,a=-1.5,mode=hard",
            "my_pkg.envs:ns/Mine-v0",
            json!({"a": -1.5, "b": false, "mode": "hard"}),
            "my_pkg.envs:ns/Mine-v0,a=-1.5,b=false,mode=hard",
        );
        check(
            "A-v0,a=True,b=False,c=None,d=\"None\",e=none",
            "A-v0",
            json!({"a": true, "b": false, "c": null, "d": "None", "e": "none"}),
            "A-v0,a=true,b=false,c=null,d=\"None\",e=none",
        );
        let listed = "Maze-v3,map=[[1,0],[0,1]],name=\"5\"";
        check(listed, "Maze-v3", json!({"map": [[1, 0], [0, 1]], "name": "5"}), listed);
    }

    #[test]
    fn the_environment_is_the_id_without_its_version() {
        let environment = |name| TaskName::parse(name).unwrap().environment().to_owned();
        assert_eq!(environment("Ant-v5,xml_file=ant.xml"), "Ant");
        assert_eq!(environment("robots:D4RL/AdroitHandPen-v1"), "AdroitHandPen");
        assert_eq!(environment("my_module:make-vast"), "make-vast");
    }

    #[test]
    fn invalid_names_are_rejected() {
        let error = |name| TaskName::parse(name).unwrap_err().to_string();
        sentences::check(&error("g=9.8"));
        sentences::check(&error(""));
        sentences::check(&error("A-v0,g=1,g=2"));
    }
}
