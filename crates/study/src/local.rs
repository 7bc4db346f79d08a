//! Parallel processes on this machine.
//!
//! Closing its standard input stops a process. This works without signals, and also when the parent
//! process is killed.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Interval between checks of the processes.
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum time to wait for the last output of a process after its end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The work of one process.
#[derive(Debug)]
pub struct Job {
    /// Id of the job.
    pub id: String,
    /// The command. [`run`] sets its streams.
    pub command: Command,
    /// File for its output. An existing file is replaced.
    pub log: PathBuf,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The exit code was 0.
    Done,
    /// The process failed with this error.
    Failed(String),
    /// The process was stopped.
    Stopped,
}

/// An event of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The job starts.
    Started(&'a str),
    /// The job ended.
    Ended(&'a str, &'a Ended),
}

/// Runs all jobs, at most `at_once` in parallel. A failing job does not affect the others.
///
/// When `stop` is set, no further job starts and the running jobs are stopped. Returns the started
/// jobs and how they ended, in the order of their ends.
pub fn run(
    jobs: Vec<Job>,
    at_once: usize,
    stop: &AtomicBool,
    notify: &mut dyn FnMut(&Event<'_>),
) -> Vec<(String, Ended)> {
    let mut waiting = VecDeque::from(jobs);
    let mut working: Vec<Working> = Vec::new();
    let mut ended = Vec::new();
    loop {
        let stopping = stop.load(Ordering::Relaxed);
        while !stopping && working.len() < at_once.max(1) {
            let Some(job) = waiting.pop_front() else { break };
            notify(&Event::Started(&job.id));
            let id = job.id.clone();
            match Working::start(job) {
                Ok(process) => working.push(process),
                Err(error) => {
                    let how = Ended::Failed(format!("cannot start the process: {error}"));
                    notify(&Event::Ended(&id, &how));
                    ended.push((id, how));
                }
            }
        }
        if stopping {
            working.iter_mut().for_each(|process| drop(process.child.stdin.take()));
        }
        if working.is_empty() {
            return ended;
        }
        thread::sleep(PAUSE);
        let mut i = 0;
        while i < working.len() {
            match working[i].child.try_wait() {
                Ok(None) => i += 1,
                result => {
                    let process = working.remove(i);
                    let id = process.id.clone();
                    // Ctrl-C reaches both processes, possibly after `stop` was last read.
                    let how = process.ended(result, stop.load(Ordering::Relaxed));
                    notify(&Event::Ended(&id, &how));
                    ended.push((id, how));
                }
            }
        }
    }
}

struct Working {
    id: String,
    child: Child,
    /// Thread that reads standard error until all processes have closed it.
    reader: Option<JoinHandle<()>>,
    /// The last error that the thread has read.
    error: Arc<Mutex<Option<String>>>,
}

impl Working {
    fn start(mut job: Job) -> io::Result<Self> {
        File::create(&job.log)?;
        // Both output streams append to the log, each with its own handle.
        let log = OpenOptions::new().append(true).open(&job.log)?;
        job.command.stdin(Stdio::piped()).stdout(log).stderr(Stdio::piped());
        let mut child = job.command.spawn()?;
        let error: Arc<Mutex<Option<String>>> = Arc::default();
        let reader = child.stderr.take().map(|stderr| {
            let (log, error) = (job.log.clone(), Arc::clone(&error));
            thread::spawn(move || read_errors(stderr, &log, &error))
        });
        Ok(Self { id: job.id, child, reader, error })
    }

    fn ended(self, status: io::Result<Option<ExitStatus>>, stopping: bool) -> Ended {
        // A process left behind by the job can keep standard error open for a long time.
        let ended = Instant::now();
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished())
            && ended.elapsed() < LAST_WORDS
        {
            thread::sleep(PAUSE);
        }
        let last_error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        match status {
            Ok(Some(status)) if status.success() => Ended::Done,
            Ok(Some(status)) if stopping || is_interrupted(&status) => Ended::Stopped,
            Ok(None) if stopping => Ended::Stopped,
            Ok(status) => {
                let how = status.map_or_else(String::new, |status| status.to_string());
                Ended::Failed(last_error.unwrap_or_else(|| format!("the process ended with {how}")))
            }
            Err(error) => Ended::Failed(error.to_string()),
        }
    }
}

/// Whether Ctrl-C ended a process that does not handle it yet.
fn is_interrupted(status: &ExitStatus) -> bool {
    const SIGINT: i32 = 2;
    status.signal() == Some(SIGINT)
}

/// Appends the standard error of a process to its log and keeps the last error. Write errors, such
/// as a full disk, are ignored.
fn read_errors(stderr: ChildStderr, log: &Path, last: &Mutex<Option<String>>) {
    let mut log = OpenOptions::new().append(true).open(log).ok();
    for line in BufReader::new(stderr).split(b'\n') {
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line);
        if let Some(log) = &mut log {
            let _ = writeln!(log, "{line}");
        }
        if let Some(error) = line.strip_prefix("error: ") {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(folder: &Path, id: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { id: id.into(), command, log: folder.join(format!("{id}.log")) }
    }

    #[test]
    fn a_failing_job_does_not_affect_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let scripts = [
            ("a", "echo fine; exit 0"),
            ("b", "echo 'error: no data' >&2; exit 1"),
            ("c", "kill -9 $$"),
            ("d", "echo 'warning: b' >&2"),
            ("e", "echo one; echo 'warning: two' >&2; sleep 0.3; echo three"),
        ];
        let jobs = scripts.map(|(id, script)| job(folder.path(), id, script)).into_iter().collect();
        let (mut most, mut now) = (0, 0_i32);
        let mut ended = run(jobs, 2, &AtomicBool::new(false), &mut |event| {
            now += if matches!(event, Event::Started(_)) { 1 } else { -1 };
            most = most.max(now);
        });
        ended.sort_by(|one, other| one.0.cmp(&other.0));
        let how: Vec<&Ended> = ended.iter().map(|(_, how)| how).collect();
        assert_eq!(how[0], &Ended::Done);
        assert_eq!(how[1], &Ended::Failed("no data".into()));
        let killed = "the process ended with signal: 9 (SIGKILL)";
        assert_eq!(how[2], &Ended::Failed(killed.into()));
        assert_eq!(how[3], &Ended::Done);
        assert_eq!((most, now), (2, 0));
        let log = |id: &str| std::fs::read_to_string(folder.path().join(id)).unwrap();
        assert_eq!(log("a.log"), "fine\n");
        assert_eq!(log("d.log"), "warning: b\n");
        let mut both: Vec<String> = log("e.log").lines().map(str::to_owned).collect();
        both.sort();
        assert_eq!(both, ["one", "three", "warning: two"]);
    }

    #[test]
    fn a_process_left_behind_does_not_delay_other_jobs() {
        let folder = tempfile::tempdir().unwrap();
        // It keeps the job's standard error open until the end of the test.
        let script = "sleep 20 & echo $! > \"$0.pid\"; echo 'error: gone' >&2; exit 1";
        let mut first = job(folder.path(), "a", script);
        first.command.arg(folder.path().join("a"));
        let jobs = vec![first, job(folder.path(), "b", "true")];
        let started = Instant::now();
        let ended = run(jobs, 1, &AtomicBool::new(false), &mut |_| {});
        let took = started.elapsed();
        let left = std::fs::read_to_string(folder.path().join("a.pid")).unwrap();
        Command::new("kill").arg(left.trim()).status().unwrap();
        assert!(took < Duration::from_secs(10), "{took:?}");
        let failed = Ended::Failed("gone".into());
        assert_eq!(ended, [("a".to_owned(), failed), ("b".to_owned(), Ended::Done)]);
    }

    #[test]
    fn stop_ends_running_jobs_and_starts_no_others() {
        let folder = tempfile::tempdir().unwrap();
        // The job ends when its input is closed, like a cell.
        let jobs = vec![
            job(folder.path(), "a", "cat > /dev/null; exit 130"),
            job(folder.path(), "b", "true"),
        ];
        let stop = Arc::new(AtomicBool::new(false));
        let set = stop.clone();
        let started = Instant::now();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            set.store(true, Ordering::Relaxed);
        });
        let ended = run(jobs, 1, &stop, &mut |_| {});
        assert_eq!(ended, [("a".to_owned(), Ended::Stopped)]);
        assert!(started.elapsed() >= Duration::from_millis(200));
    }

    /// Ctrl-C in a terminal reaches every process, including those that do not handle it yet.
    #[test]
    fn an_interrupted_job_counts_as_stopped() {
        let folder = tempfile::tempdir().unwrap();
        // A shell that runs the tests in the background makes them ignore the signal.
        let script = "default='env --default-signal=INT'; $default true || default=
                      exec $default sh -c 'kill -INT $$'";
        let jobs = vec![job(folder.path(), "a", script)];
        let ended = run(jobs, 1, &AtomicBool::new(false), &mut |_| {});
        assert_eq!(ended, [("a".to_owned(), Ended::Stopped)]);
    }

    #[test]
    fn a_job_that_cannot_start_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let command = Command::new("/no/such/program");
        let nothing = Job { id: "a".into(), command, log: folder.path().join("a.log") };
        let ended = run(vec![nothing], 1, &AtomicBool::new(false), &mut |_| {});
        let Ended::Failed(why) = &ended[0].1 else { panic!("{ended:?}") };
        assert!(why.starts_with("cannot start the process: "), "{why}");
    }
}
