//! A Slurm cluster: arrays of jobs for a study, a job for its page, and what is queued.
//!
//! The engine is Slurm itself: nothing stays behind here, and what a node runs is a script that
//! its user may edit.

use std::{collections::BTreeMap, path::Path, process::Command};

use overtone_console::quoted;

use crate::{error::StudyError, grid::Executor};

/// Seconds before a job's time is over at which its run is told to save and end.
const WARNING_S: u32 = 120;

/// Most tasks of an array. Slurm's `MaxArraySize` is 1001 where nobody set it, and an index, which
/// begins at 0, is below it.
pub const MOST_TASKS: usize = 1000;

/// The script of one cell. `program` and the study's `folder` are absolute paths.
pub fn job_script(name: &str, executor: &Executor, program: &Path, folder: &Path) -> String {
    let mut options = String::new();
    for (option, value) in [
        ("partition", executor.partition.clone()),
        ("time", executor.time.clone()),
        ("cpus-per-task", positive(executor.cpus)),
        ("gpus", executor.gpus.clone()),
        ("account", executor.account.clone()),
    ] {
        if !value.is_empty() {
            options += &format!("#SBATCH --{option}={value}\n");
        }
    }
    format!(
        r#"#!/usr/bin/env bash
# What a node runs for one cell of the study `{name}`. It is yours to edit: modules to load,
# partition, memory; `overtone study run` and `resume` leave it as it is.
#SBATCH --job-name={name}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@{WARNING_S}
{options}
program={program}
folder={folder}

# What this array does is in the list that is the script's first word: a line for each task.
cell=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$folder/$1")
export RAYON_NUM_THREADS=${{RAYON_NUM_THREADS:-${{SLURM_CPUS_PER_TASK:-1}}}}

# {WARNING_S} s before its time is over the run saves and ends with 130, and the job queues
# again: it goes on from there. Anything else that ends the job, ends it.
time_is_over=
end() {{ kill -TERM "$child" 2>/dev/null; }}
trap 'time_is_over=yes; end' USR1
trap end TERM INT
"$program" study cell "$folder" "$cell" &
child=$!
# A signal ends `wait`: what it says then is not how the run ended.
while kill -0 "$child" 2>/dev/null; do wait "$child"; done
wait "$child"
code=$?
if [ -n "$time_is_over" ] && [ "$code" -eq 130 ]; then
    job=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
    echo "time is over: $job queues again"
    scontrol requeue "$job" && sleep 60
fi
exit "$code"
"#,
        program = quoted(program),
        folder = quoted(folder),
    )
}

/// The script of the page that is written when all cells ended.
pub fn report_script(name: &str, executor: &Executor, program: &Path, folder: &Path) -> String {
    let mut options = String::new();
    for (option, value) in [("partition", &executor.partition), ("account", &executor.account)] {
        if !value.is_empty() {
            options += &format!("#SBATCH --{option}={value}\n");
        }
    }
    format!(
        "#!/usr/bin/env bash\n# Writes the page of the study `{name}` once its cells have ended. \
         It is yours to edit.\n#SBATCH --job-name={name}-report\n{options}\n\
         {} study report {}\n",
        quoted(program),
        quoted(folder)
    )
}

fn positive(n: usize) -> String {
    if n == 0 { String::new() } else { n.to_string() }
}

/// Hands an array of `n` tasks to Slurm, those of `list`, at most `at_once` (0: as Slurm likes)
/// at a time, to be begun when all of the arrays `after` ended, however they did; and returns at
/// once: its job. There are at most [`MOST_TASKS`].
///
/// # Errors
/// When Slurm is not there or refuses.
pub fn submit(
    folder: &Path,
    list: &str,
    n: usize,
    at_once: usize,
    after: Option<u64>,
) -> Result<u64, StudyError> {
    let last = n.saturating_sub(1);
    let limit = if at_once == 0 { String::new() } else { format!("%{at_once}") };
    let log = folder.join("cells").join("slurm-%A_%a.log");
    let (array, output) =
        (format!("--array=0-{last}{limit}"), format!("--output={}", log.display()));
    let script = folder.join("job.sh").display().to_string();
    let words = [array, output]
        .into_iter()
        .chain(dependency(after.as_slice()))
        .chain([script, list.to_owned()]);
    sbatch(&words.collect::<Vec<_>>())
}

/// Hands the job of the page to Slurm, to be done when all of the arrays `after` ended, however
/// they did.
///
/// # Errors
/// When Slurm is not there or refuses.
pub fn submit_report(folder: &Path, after: &[u64]) -> Result<u64, StudyError> {
    let output = format!("--output={}", folder.join("report.log").display());
    let script = folder.join("report.sh").display().to_string();
    let words: Vec<String> = dependency(after).into_iter().chain([output, script]).collect();
    sbatch(&words)
}

/// `--dependency=afterany:1:2`; none where there is nothing to wait for.
fn dependency(after: &[u64]) -> Option<String> {
    let arrays: Vec<String> = after.iter().map(u64::to_string).collect();
    (!arrays.is_empty()).then(|| format!("--dependency=afterany:{}", arrays.join(":")))
}

fn sbatch(words: &[String]) -> Result<u64, StudyError> {
    let words: Vec<&str> =
        std::iter::once("--parsable").chain(words.iter().map(|w| &**w)).collect();
    let said = ask("sbatch", &words)?;
    // `--parsable` gives `job` or `job;cluster`.
    let job = said.trim().split(';').next().unwrap_or_default();
    job.parse().map_err(|_| StudyError::Slurm {
        program: "sbatch",
        what: format!("expected a job's number, got `{}`", said.trim()),
    })
}

/// The tasks of these arrays that Slurm has not ended yet, each with its state (`PENDING`,
/// `RUNNING`, …), by array and task. None where there is no Slurm or it forgot the arrays.
///
/// # Errors
/// When Slurm is there and does not say: what waits must not be taken for ended.
pub fn live(arrays: &[u64]) -> Result<BTreeMap<(u64, usize), String>, StudyError> {
    let mut found = BTreeMap::new();
    for array in arrays {
        // One by one: `squeue` refuses a list in which one job is not known any more.
        let job = format!("--jobs={array}");
        match ask("squeue", &["--noheader", "--array", "--format=%F %K %T", &job]) {
            Ok(text) => found.extend(text.lines().filter_map(task)),
            Err(StudyError::NoSlurm { .. }) => {}
            Err(StudyError::Slurm { what, .. }) if what.contains(FORGOTTEN) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// What `squeue` says of a job that ended some minutes ago.
const FORGOTTEN: &str = "Invalid job id";

/// `12 3 RUNNING`.
fn task(line: &str) -> Option<((u64, usize), String)> {
    let mut words = line.split_whitespace();
    let (array, task, state) = (words.next()?, words.next()?, words.next()?);
    Some(((array.parse().ok()?, task.parse().ok()?), state.to_owned()))
}

fn ask(program: &'static str, words: &[&str]) -> Result<String, StudyError> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|source| StudyError::NoSlurm { program, source })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(StudyError::Slurm { program, what: said.trim().replace('\n', "; ") });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_passed_through_and_the_rest_left_out() {
        let executor = Executor {
            partition: "gpu".into(),
            time: "04:00:00".into(),
            cpus: 4,
            ..Executor::default()
        };
        let script = job_script("a", &executor, Path::new("/b in/overtone"), Path::new("/it's"));
        for line in [
            "#SBATCH --partition=gpu",
            "#SBATCH --time=04:00:00",
            "#SBATCH --cpus-per-task=4",
            "#SBATCH --requeue",
            "program='/b in/overtone'",
            r"folder='/it'\''s'",
        ] {
            assert!(script.lines().any(|found| found == line), "no {line:?} in\n{script}");
        }
        assert!(!script.contains("--gpus") && !script.contains("--account"), "{script}");
        let checked = Command::new("bash").args(["-n", "-c", &script]).status();
        assert!(checked.unwrap().success(), "{script}");
        let report = report_script("a", &executor, Path::new("/o"), Path::new("/f"));
        assert!(report.contains("--partition=gpu") && !report.contains("--time"), "{report}");
    }

    /// The script with a program that ends with `code` when it is told to, once the job's time is
    /// nearly over: its own code, and whether the job queues again.
    fn time_is_over(code: u8) -> (Option<i32>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write(
            "program",
            &format!(
                "trap 'exit {code}' TERM\n: > {}/ready\nwhile :; do sleep 0.02; done\n",
                folder.path().display()
            ),
        );
        write("list", "a\n");
        // Neither is waited for: a `scontrol` that fails.
        let script = job_script("a", &Executor::default(), Path::new("sh"), folder.path());
        let script = script.replace(
            "\"$program\" study cell",
            "scontrol() { echo \"asked to $*\"; return 1; }\n\"$program\" \"$folder/program\"",
        );
        write("job.sh", &script);
        let job = Command::new("bash")
            .arg(folder.path().join("job.sh"))
            .arg("list")
            .envs([("SLURM_ARRAY_TASK_ID", "0"), ("SLURM_ARRAY_JOB_ID", "12")])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let started = std::time::Instant::now();
        while !folder.path().join("ready").exists() {
            assert!(started.elapsed().as_secs() < 30, "the program does not begin:\n{script}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let signal = format!("kill -USR1 {}", job.id());
        assert!(Command::new("sh").args(["-c", &signal]).status().unwrap().success());
        let ended = job.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stdout).unwrap();
        (ended.status.code(), said.contains("asked to requeue 12_0"))
    }

    #[test]
    fn only_what_was_stopped_queues_again() {
        assert_eq!(time_is_over(130), (Some(130), true));
        // It failed, was done after all, or did not even begin before its time was over.
        for code in [1, 0, 143] {
            assert_eq!(time_is_over(code), (Some(i32::from(code)), false));
        }
    }

    #[test]
    fn what_is_waited_for_is_told() {
        assert_eq!(dependency(&[]), None);
        assert_eq!(dependency(&[7, 9]).as_deref(), Some("--dependency=afterany:7:9"));
    }

    #[test]
    fn tasks_are_read() {
        assert_eq!(task("12 3 RUNNING"), Some(((12, 3), "RUNNING".into())));
        assert_eq!(task("12 [0-3] PENDING"), None);
    }
}
