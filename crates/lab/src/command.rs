//! The experiments, a file each; this one holds what they share: options, and where their pages
//! go.

pub mod density;
pub mod forecast;
pub mod fourier_integral;
pub mod images;
pub mod language;
mod learning;
pub mod likelihood;
pub mod scaling_law;
pub mod series;
pub mod smoothness;
pub mod tempo;
mod toy;
pub mod translation;

use std::{error::Error, path::PathBuf, str::FromStr, time::Instant};

use anyhow::{Context, Result, bail};
use overtone_console::{
    keys::{self, Keys},
    quoted,
};
use overtone_data::{DataError, datasets_folder};
use overtone_lab::Page;

use crate::progress;

/// An experiment's options: TOML with a reason above each key.
pub struct Options {
    /// Its name, as in `just lab NAME`.
    pub name: &'static str,
    /// Every key with its default.
    pub full: &'static str,
    /// The keys that `quick=true` changes, beside the folder: `-quick` follows its name, so that
    /// the page of a long run stays. Empty where there is no `quick`.
    pub quick: &'static str,
}

/// What an experiment was asked to do.
pub struct Asked {
    name: &'static str,
    keys: Keys,
    /// The keys that differ from their defaults, `out` aside.
    changed: Vec<String>,
}

impl Options {
    /// Every key, its default and its reason; then what `quick=true` makes of them.
    pub fn help(&self) -> String {
        let quick = match self.quick {
            "" => String::new(),
            quick => format!(
                "With quick=true, which writes beside the folder, to out=…-quick:\n{}",
                keys::help(quick)
            ),
        };
        keys::after_help(self.full, &quick)
    }

    /// The defaults with `words` (each `key=value`) on top.
    ///
    /// # Errors
    /// For a word that sets no key, or a value of another type.
    pub fn read(&self, words: &[String]) -> Result<Asked> {
        let mut defaults = keys::flatten(&self.full.parse()?);
        let mut asked = defaults.clone();
        keys::apply(&mut asked, words)?;
        if asked.get("quick").and_then(toml::Value::as_bool) == Some(true) {
            defaults.extend(keys::flatten(&self.quick.parse()?));
            if let Some(toml::Value::String(out)) = defaults.get_mut("out") {
                out.push_str("-quick");
            }
            asked = defaults.clone();
            keys::apply(&mut asked, words)?;
        }
        let differs = |key: &&String| key.as_str() != "out" && asked[*key] != defaults[*key];
        let changed = asked.keys().filter(differs).cloned().collect();
        Ok(Asked { name: self.name, keys: asked, changed })
    }
}

impl Asked {
    /// The command that asks for the same.
    pub fn command(&self) -> String {
        let word = |key: &String| format!(" {key}={}", quoted(keys::plain(&self.keys[key])));
        let changed: String = self.changed.iter().map(word).collect();
        format!("just lab {}{changed}", self.name)
    }

    /// A whole number.
    ///
    /// # Errors
    /// When it does not lie between `least` and `most`.
    pub fn whole(&self, key: &str, least: u64, most: u64) -> Result<u64> {
        let number = self.keys.get(key).and_then(toml::Value::as_integer).unwrap_or(0);
        within(key, number, least, most)
    }

    /// Whether a key says `true`.
    pub fn is(&self, key: &str) -> bool {
        self.keys.get(key).and_then(toml::Value::as_bool) == Some(true)
    }

    /// A number.
    ///
    /// # Errors
    /// When it does not lie between `least` and `most`.
    pub fn number(&self, key: &str, least: f64, most: f64) -> Result<f64> {
        let number = self.keys.get(key).and_then(toml::Value::as_float).unwrap_or(f64::NAN);
        if !(least..=most).contains(&number) {
            bail!("{key}={number}: must be between {least} and {most}");
        }
        Ok(number)
    }

    /// Names separated by commas, at least one.
    ///
    /// # Errors
    /// When one of them is not known, or is there twice.
    pub fn names<T: PartialEq + FromStr<Err: Error + Send + Sync + 'static>>(
        &self,
        key: &str,
    ) -> Result<Vec<T>> {
        let text = self.text(key);
        let name = |part: &str| part.trim().parse().with_context(|| format!("{key}={text}"));
        once(key, &text, text.split(',').map(name).collect::<Result<_>>()?)
    }

    /// Whole numbers separated by commas, at least one.
    ///
    /// # Errors
    /// When one of them is none, does not lie between `least` and `most`, or is there twice.
    pub fn list(&self, key: &str, least: u64, most: u64) -> Result<Vec<u64>> {
        let text = self.text(key);
        let number = |part: &str| match part.trim().parse() {
            Ok(number) => within(key, number, least, most),
            Err(_) => bail!("{key}={text}: expected whole numbers separated by commas"),
        };
        once(key, &text, text.split(',').map(number).collect::<Result<_>>()?)
    }

    /// A value as it was written.
    pub fn text(&self, key: &str) -> String {
        keys::text(&self.keys, key)
    }

    /// Writes a page where `out` says, and says where that is.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, page: &Page) -> Result<()> {
        let out = self.out()?;
        page.write(&out).with_context(|| format!("cannot write to {}", out.display()))?;
        say!("tables and plots: {}", out.display());
        Ok(())
    }

    /// Makes the folder that `out` says, and finds out whether a page can be written there:
    /// before the work, not after.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check_writable(&self) -> Result<()> {
        let out = self.out()?;
        Page::check_writable(&out).with_context(|| {
            format!("cannot write to out={}; out= names another folder", out.display())
        })
    }

    fn out(&self) -> Result<PathBuf> {
        let out = PathBuf::from(self.text("out"));
        if out.as_os_str().is_empty() {
            bail!("out=: say a folder");
        }
        Ok(out)
    }
}

/// The folder of datasets that comes with the project.
///
/// # Errors
/// When there is none.
pub fn datasets() -> Result<PathBuf> {
    match datasets_folder() {
        Err(DataError::Missing { .. }) => bail!(
            "there is no folder datasets; run in the project's folder, or name its datasets in \
             OVERTONE_DATASETS"
        ),
        found => Ok(found?),
    }
}

/// Runs with a bar over `n` parts, which are `what`, and says how long they took.
pub fn with_bar<F>(what: &'static str, n: usize, run: impl FnOnce(&(dyn Fn() + Sync)) -> F) -> F {
    let bar = progress::parts(what, n);
    let start = Instant::now();
    let found = run(&|| bar.inc(1));
    bar.finish_and_clear();
    say!("{n} {what} in {:.0} s", start.elapsed().as_secs_f64());
    found
}

fn within(key: &str, number: i64, least: u64, most: u64) -> Result<u64> {
    match u64::try_from(number) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ if most == u64::MAX => bail!("{key}={number}: must be {least} or more"),
        _ => bail!("{key}={number}: must be between {least} and {most}"),
    }
}

/// The list, of which nothing may be there twice: two runs from one seed are equal, and would count
/// as two.
fn once<T: PartialEq>(key: &str, text: &str, list: Vec<T>) -> Result<Vec<T>> {
    if (1..list.len()).any(|i| list[..i].contains(&list[i])) {
        bail!("{key}={text}: name each once");
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options {
        name: "test",
        full: "quick = false\n# Why.\nseeds = \"1,2\"\nn = 9\nrate = 0.5\nout = \"there\"\n",
        quick: "# Fewer.\nn = 3\n",
    };

    fn asked(line: &str) -> Result<Asked> {
        OPTIONS.read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn quick_changes_defaults_and_words_win() {
        let n = |line: &str| asked(line).unwrap().whole("n", 0, 99).unwrap();
        assert_eq!([n(""), n("quick=true"), n("n=5 quick=true"), n("quick=false")], [9, 3, 5, 9]);
        assert!(OPTIONS.help().contains("out=…-quick:\n  n=3\n      Fewer."));
    }

    #[test]
    fn a_quick_page_does_not_replace_a_long_runs() {
        let out = |line: &str| asked(line).unwrap().text("out");
        assert_eq!(out(""), "there");
        assert_eq!(out("quick=true"), "there-quick");
        assert_eq!(out("quick=true out=elsewhere"), "elsewhere");
    }

    #[test]
    fn nothing_is_counted_twice() {
        let seeds = asked("seeds=1,2,1").unwrap();
        let refused = seeds.list("seeds", 0, 9).unwrap_err().to_string();
        assert_eq!(refused, "seeds=1,2,1: name each once");
        assert!(seeds.names::<String>("seeds").is_err());
        // The same attention in two spellings.
        let kinds = asked("seeds=fourier4,fourier4/R1").unwrap();
        assert!(kinds.names::<overtone_lab::transformer::Kind>("seeds").is_err());
    }

    #[test]
    fn the_command_names_what_was_changed() {
        let command = |line: &str| asked(line).unwrap().command();
        assert_eq!(command("out=elsewhere"), "just lab test");
        assert_eq!(command("seeds=7 n=9"), "just lab test seeds=7");
        assert_eq!(command("quick=true n=9"), "just lab test n=9 quick=true");
    }

    #[test]
    fn numbers_are_checked() {
        let asked = asked("").unwrap();
        assert_eq!(asked.list("seeds", 0, 9).unwrap(), [1, 2]);
        assert_eq!(asked.number("rate", 0.0, 1.0).unwrap(), 0.5);
        assert!(!asked.is("quick"));
        for refused in [
            asked.whole("n", 10, 12).unwrap_err(),
            asked.whole("n", 10, u64::MAX).unwrap_err(),
            asked.number("rate", 0.6, 1.0).unwrap_err(),
            asked.list("seeds", 2, 3).unwrap_err(),
        ] {
            assert!(refused.to_string().contains("must be"), "{refused}");
        }
    }

    #[test]
    fn lists_are_of_whole_numbers() {
        let refused = asked("seeds=1,x").unwrap().list("seeds", 0, 9).unwrap_err().to_string();
        assert!(refused.contains("seeds=1,x") && refused.contains("commas"), "{refused}");
    }
}
