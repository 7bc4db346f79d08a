//! Commands: from words to a study, its run and its page.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use overtone_console::{progress, quoted};
use overtone_lab::report::check_writable;
use overtone_lab::study::Study;
use overtone_lab::{
    forecast::Forecast,
    fourier_integral::FourierIntegral,
    images::Images,
    language::Language,
    scaling_law::ScalingLaw,
    series::SeriesStudy,
    smoothness::SmoothnessStudy,
    tempo::Tempo,
    toy::{Density, Likelihood},
    translation::Translation,
};

/// Every study.
const STUDIES: [Entry; 11] = [
    Entry::of::<Density>(),
    Entry::of::<Likelihood>(),
    Entry::of::<SmoothnessStudy>(),
    Entry::of::<ScalingLaw>(),
    Entry::of::<Forecast>(),
    Entry::of::<Tempo>(),
    Entry::of::<FourierIntegral>(),
    Entry::of::<Language>(),
    Entry::of::<Images>(),
    Entry::of::<SeriesStudy>(),
    Entry::of::<Translation>(),
];

/// A study and how to run it.
struct Entry {
    name: &'static str,
    quick: &'static [&'static str],
    options: fn() -> Command,
    run: fn(&ArgMatches, &Request) -> Result<()>,
}

impl Entry {
    const fn of<S: Study>() -> Self {
        Self { name: S::NAME, quick: S::QUICK, options: options::<S>, run: run_study::<S> }
    }

    /// Every option with its default and its reason.
    fn help(&self) -> String {
        let command = (self.options)();
        let mut text = format!("{}\n\nOptions:\n", about(&command));
        for option in command.get_arguments() {
            let default = option.get_default_values().join(OsStr::new(","));
            let reason = option.get_long_help().or(option.get_help()).cloned().unwrap_or_default();
            text += &format!("  {}={}\n      {reason}\n", option.get_id(), default.display());
        }
        text += &format!("  out=runs/lab/{}\n      Folder of the page.\n", self.name);
        if !self.quick.is_empty() {
            let quick = self.quick.join(" ");
            text += &format!("  quick=false\n      With true, out=…-quick and {quick}\n");
        }
        text
    }
}

/// The options of a study as clap has them.
fn options<S: Study>() -> Command {
    let command = S::augment_args(Command::new(S::NAME).no_binary_name(true));
    S::DEFAULTS.iter().fold(command, |command, &(key, value)| {
        command.mut_arg(key, |option| option.default_value(value))
    })
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// The options of a command.
struct Request {
    /// By key; without `out` and `quick`.
    words: BTreeMap<String, String>,
    out: PathBuf,
    /// The command that asks for the same.
    command: String,
}

impl Request {
    /// Reads `key=value` words; `quick=true` sets `entry.quick` before them.
    fn read(entry: &Entry, words: &[String]) -> Result<Self> {
        let split = |word: &str| match word.split_once('=') {
            Some((key, value)) => {
                Ok((key.trim_start_matches('-').replace('-', "_"), value.to_owned()))
            }
            None => Err(anyhow!("options are written key=value, got `{word}` (--help lists all)")),
        };
        let mut given: BTreeMap<String, String> =
            words.iter().map(|word| split(word)).collect::<Result<_>>()?;
        let out = given.remove("out");
        let mut command = format!("just lab {}", entry.name);
        for (key, value) in &given {
            command += &format!(" {key}={}", quoted(value.clone()));
        }
        let is_quick = match given.remove("quick").as_deref() {
            None | Some("false") => false,
            Some("true") if !entry.quick.is_empty() => true,
            Some(value) => bail!("quick={value}: expected true or false"),
        };
        let mut words = BTreeMap::new();
        if is_quick {
            words = entry.quick.iter().map(|word| split(word)).collect::<Result<_>>()?;
        }
        words.extend(given);
        let suffix = if is_quick { "-quick" } else { "" };
        let out = out.unwrap_or_else(|| format!("runs/lab/{}{suffix}", entry.name));
        if out.is_empty() {
            bail!("out=: name a folder");
        }
        Ok(Self { words, out: out.into(), command })
    }
}

/// Carries out the words of a command line.
///
/// # Errors
/// When an option is invalid, data is missing, or the page cannot be written.
pub fn run(words: &[String]) -> Result<()> {
    let asks_help = |word: &str| matches!(word, "--help" | "-h" | "help");
    let Some((name, words)) = words.split_first().filter(|(name, _)| !asks_help(name)) else {
        say!("The papers' experiments: overtone-lab NAME [key=value…]; NAME --help lists options");
        for entry in &STUDIES {
            say!("  {:<18}{}", entry.name, about(&(entry.options)()));
        }
        return Ok(());
    };
    let Some(entry) = STUDIES.iter().find(|entry| entry.name == name) else {
        bail!("there is no experiment `{name}` (--help lists all)");
    };
    if words.iter().any(|word| asks_help(word)) {
        say!("{}", entry.help());
        return Ok(());
    }
    let request = Request::read(entry, words)?;
    let flags =
        request.words.iter().map(|(key, value)| format!("--{}={value}", key.replace('_', "-")));
    let matches =
        (entry.options)().try_get_matches_from(flags).map_err(|error| one_sentence(&error))?;
    (entry.run)(&matches, &request)
}

fn run_study<S: Study>(matches: &ArgMatches, request: &Request) -> Result<()> {
    let study = S::from_arg_matches(matches)?;
    let out = request.out.display();
    check_writable(&request.out)
        .with_context(|| format!("cannot write to out={out}; out= names another folder"))?;
    let bar = progress::parts("parts", study.units());
    let start = Instant::now();
    let results = study.run(&|| bar.inc(1));
    bar.finish_and_clear();
    let report = study.report(&results?);
    say!("{} parts in {:.0} s", study.units(), start.elapsed().as_secs_f64());
    if let Some((_, table)) = report.tables().next() {
        say!("{table}");
    }
    report
        .write(&request.out, S::NAME, &request.command)
        .with_context(|| format!("cannot write to {out}"))?;
    say!("tables and plots: {out}");
    Ok(())
}

/// An error of clap's in one sentence, options written `key=value`.
fn one_sentence(error: &clap::Error) -> anyhow::Error {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let key = |kind| {
        let text: String = context(kind);
        let key = text.split([' ', '=']).next().unwrap_or_default();
        key.trim_start_matches('-').replace('-', "_")
    };
    let arg = key(ContextKind::InvalidArg);
    if error.kind() == ErrorKind::UnknownArgument {
        let nearest = match key(ContextKind::SuggestedArg) {
            nearest if nearest.is_empty() => nearest,
            nearest => format!("; the nearest is `{nearest}`"),
        };
        return anyhow!("unknown option `{arg}`{nearest} (--help lists all)");
    }
    let reason = std::error::Error::source(error).map(ToString::to_string);
    let valid = || format!("expected one of {}", context(ContextKind::ValidValue));
    anyhow!("{arg}={}: {}", context(ContextKind::InvalidValue), reason.unwrap_or_else(valid))
}
