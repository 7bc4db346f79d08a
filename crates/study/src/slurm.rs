//! Slurm clusters: job arrays for the cells of a study, a job for its page, and the queue.
//!
//! Slurm runs everything, and no process stays on this machine. A node runs a script that the user
//! can edit.

use std::{collections::BTreeMap, path::Path, process::Command};

use overtone_console::quoted;

use crate::{error::StudyError, grid::Executor};

/// Seconds before the end of a job's time at which Slurm signals the run to save and stop.
const WARNING_S: u32 = 120;

/// Maximum number of tasks of an array. The default of Slurm's `MaxArraySize` is 1001, and indices
/// from 0 must be smaller.
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
# Script for one cell of the study `{name}`. You can edit it, for example to load modules or to set
# partition and memory. `overtone study run` and `resume` do not change it.
#SBATCH --job-name={name}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@{WARNING_S}
{options}
program={program}
folder={folder}

# The first argument is the list of this array's cells, with a line for each task.
cell=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$folder/$1")
export RAYON_NUM_THREADS=${{RAYON_NUM_THREADS:-${{SLURM_CPUS_PER_TASK:-1}}}}

# {WARNING_S} s before the time limit, the run saves and ends with 130. The job is then queued again
# and resumes the run. After any other end, the job is not queued again.
time_is_over=
end() {{ kill -TERM "$child" 2>/dev/null; }}
trap 'time_is_over=yes; end' USR1
trap end TERM INT
"$program" study cell "$folder" "$cell" &
child=$!
# A signal interrupts `wait`, and then its status is not the status of the run.
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

/// The script that writes the page after all cells have ended.
pub fn report_script(name: &str, executor: &Executor, program: &Path, folder: &Path) -> String {
    let mut options = String::new();
    for (option, value) in [("partition", &executor.partition), ("account", &executor.account)] {
        if !value.is_empty() {
            options += &format!("#SBATCH --{option}={value}\n");
        }
    }
    format!(
        "#!/usr/bin/env bash\n# Writes the page of the study `{name}` after its cells have ended. \
         You can edit it.\n#SBATCH --job-name={name}-report\n{options}\n\
         {} study report {}\n",
        quoted(program),
        quoted(folder)
    )
}

fn positive(n: usize) -> String {
    if n == 0 { String::new() } else { n.to_string() }
}

/// Submits an array of `n` tasks to Slurm, for the cells in `list`, and returns its job id without
/// waiting.
///
/// At most `at_once` tasks run in parallel (0: no limit). The array starts after the array `after`
/// has ended, with any result. `n` must be at most [`MOST_TASKS`].
///
/// # Errors
/// When Slurm is not installed or rejects the array.
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

/// Submits the job of the page to Slurm. It starts after all arrays in `after` have ended, with any
/// result.
///
/// # Errors
/// When Slurm is not installed or rejects the job.
pub fn submit_report(folder: &Path, after: &[u64]) -> Result<u64, StudyError> {
    let output = format!("--output={}", folder.join("report.log").display());
    let script = folder.join("report.sh").display().to_string();
    let words: Vec<String> = dependency(after).into_iter().chain([output, script]).collect();
    sbatch(&words)
}

/// The option `--dependency=afterany:1:2`; `None` if `after` is empty.
fn dependency(after: &[u64]) -> Option<String> {
    let arrays: Vec<String> = after.iter().map(u64::to_string).collect();
    (!arrays.is_empty()).then(|| format!("--dependency=afterany:{}", arrays.join(":")))
}

fn sbatch(words: &[String]) -> Result<u64, StudyError> {
    let words: Vec<&str> =
        std::iter::once("--parsable").chain(words.iter().map(|w| &**w)).collect();
    let output = output_of("sbatch", &words)?;
    // `--parsable` prints `job` or `job;cluster`.
    let job = output.trim().split(';').next().unwrap_or_default();
    job.parse().map_err(|_| StudyError::Slurm {
        program: "sbatch",
        what: format!("expected a job's number, got `{}`", output.trim()),
    })
}

/// The unfinished tasks of these arrays by array and task, each with its state (`PENDING`,
/// `RUNNING`, …). Empty if Slurm is not installed or no longer knows the arrays.
///
/// # Errors
/// When Slurm is installed but the query fails. Waiting tasks must not count as ended.
pub fn live(arrays: &[u64]) -> Result<BTreeMap<(u64, usize), String>, StudyError> {
    let mut states = BTreeMap::new();
    for array in arrays {
        // One query for each array, because `squeue` rejects a list with one unknown job.
        let job = format!("--jobs={array}");
        match output_of("squeue", &["--noheader", "--array", "--format=%F %K %T", &job]) {
            Ok(text) => states.extend(text.lines().filter_map(task)),
            Err(StudyError::NoSlurm { .. }) => {}
            Err(StudyError::Slurm { what, .. }) if what.contains(FORGOTTEN) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(states)
}

/// Error of `squeue` for a job that ended some minutes ago.
const FORGOTTEN: &str = "Invalid job id";

/// Parses a line of `squeue`, such as `12 3 RUNNING`.
fn task(line: &str) -> Option<((u64, usize), String)> {
    let mut words = line.split_whitespace();
    let (array, task, state) = (words.next()?, words.next()?, words.next()?);
    Some(((array.parse().ok()?, task.parse().ok()?), state.to_owned()))
}

fn output_of(program: &'static str, words: &[&str]) -> Result<String, StudyError> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|source| StudyError::NoSlurm { program, source })?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(StudyError::Slurm { program, what: error.trim().replace('\n', "; ") });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_options_are_passed_and_other_options_are_omitted() {
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
            assert!(script.lines().any(|written| written == line), "no {line:?} in\n{script}");
        }
        assert!(!script.contains("--gpus") && !script.contains("--account"), "{script}");
        let checked = Command::new("bash").args(["-n", "-c", &script]).status();
        assert!(checked.unwrap().success(), "{script}");
        let report = report_script("a", &executor, Path::new("/o"), Path::new("/f"));
        assert!(report.contains("--partition=gpu") && !report.contains("--time"), "{report}");
    }

    /// Runs the script near its time limit, with a program that ends with `code` on a signal. Returns
    /// the script's exit code and whether the job is queued again.
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
        // `scontrol` fails here, so the script does not wait after it.
        let script = job_script("a", &Executor::default(), Path::new("sh"), folder.path());
        let script = script.replace(
            "\"$program\" study cell",
            "scontrol() { echo \"called with $*\"; return 1; }\n\"$program\" \"$folder/program\"",
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
            assert!(started.elapsed().as_secs() < 30, "the program does not start:\n{script}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let signal = format!("kill -USR1 {}", job.id());
        assert!(Command::new("sh").args(["-c", &signal]).status().unwrap().success());
        let ended = job.wait_with_output().unwrap();
        let output = String::from_utf8(ended.stdout).unwrap();
        (ended.status.code(), output.contains("called with requeue 12_0"))
    }

    #[test]
    fn only_stopped_jobs_are_queued_again() {
        assert_eq!(time_is_over(130), (Some(130), true));
        // The run failed, finished, or did not start before the time limit.
        for code in [1, 0, 143] {
            assert_eq!(time_is_over(code), (Some(i32::from(code)), false));
        }
    }

    #[test]
    fn dependencies_are_passed_as_an_option() {
        assert_eq!(dependency(&[]), None);
        assert_eq!(dependency(&[7, 9]).as_deref(), Some("--dependency=afterany:7:9"));
    }

    #[test]
    fn tasks_are_parsed() {
        assert_eq!(task("12 3 RUNNING"), Some(((12, 3), "RUNNING".into())));
        assert_eq!(task("12 [0-3] PENDING"), None);
    }
}
