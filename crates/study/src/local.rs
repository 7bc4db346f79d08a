//! Processes on this machine, several at once.
//!
//! A process is asked to end by closing its standard input: that reaches it also when this one
//! is killed, and needs no signals.

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

/// How often processes are looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// How long what a process said last is waited for after its end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is to be done by one process.
#[derive(Debug)]
pub struct Job {
    /// What it is called.
    pub id: String,
    /// The process. Its streams are set here.
    pub command: Command,
    /// Where what it prints goes; what was there before goes.
    pub log: PathBuf,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With exit code 0.
    Done,
    /// Otherwise, although it was not asked to: with this sentence.
    Failed(String),
    /// As it was asked to.
    Stopped,
}

/// What happens to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// It begins.
    Started(&'a str),
    /// It ended.
    Ended(&'a str, &'a Ended),
}

/// Does all jobs, at most `at_once` at a time; those that fail do not hinder the others. Once
/// `stop` is set none is begun, and those under way are asked to end. Gives the jobs that were
/// begun with how they ended, in the order in which they did.
pub fn run(
    jobs: Vec<Job>,
    at_once: usize,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Vec<(String, Ended)> {
    let mut waiting = VecDeque::from(jobs);
    let mut working: Vec<Working> = Vec::new();
    let mut ended = Vec::new();
    loop {
        let stopping = stop.load(Ordering::Relaxed);
        while !stopping && working.len() < at_once.max(1) {
            let Some(job) = waiting.pop_front() else { break };
            tell(&Event::Started(&job.id));
            let id = job.id.clone();
            match Working::start(job) {
                Ok(process) => working.push(process),
                Err(error) => {
                    let how = Ended::Failed(format!("it cannot be started: {error}"));
                    tell(&Event::Ended(&id, &how));
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
                    // Ctrl-C reaches it as well as this one, maybe since the last look.
                    let how = process.ended(result, stop.load(Ordering::Relaxed));
                    tell(&Event::Ended(&id, &how));
                    ended.push((id, how));
                }
            }
        }
    }
}

struct Working {
    id: String,
    child: Child,
    /// Reads standard error until no process has it open.
    reader: Option<JoinHandle<()>>,
    /// The last error that it read.
    error: Arc<Mutex<Option<String>>>,
}

impl Working {
    fn start(mut job: Job) -> io::Result<Self> {
        File::create(&job.log)?;
        // Both of its streams go to the log's end, each through a handle of its own.
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

    fn ended(self, status: io::Result<Option<ExitStatus>>, asked: bool) -> Ended {
        // A process that the job has left behind may have standard error open for long.
        let ended = Instant::now();
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished())
            && ended.elapsed() < LAST_WORDS
        {
            thread::sleep(PAUSE);
        }
        let said = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        match status {
            Ok(Some(status)) if status.success() => Ended::Done,
            Ok(Some(status)) if asked || is_interrupted(&status) => Ended::Stopped,
            Ok(None) if asked => Ended::Stopped,
            Ok(status) => {
                let how = status.map_or_else(String::new, |status| status.to_string());
                Ended::Failed(said.unwrap_or_else(|| format!("it ended with {how}")))
            }
            Err(error) => Ended::Failed(error.to_string()),
        }
    }
}

/// Whether a process that does not listen yet was ended by a person's Ctrl-C.
fn is_interrupted(status: &ExitStatus) -> bool {
    const SIGINT: i32 = 2;
    status.signal() == Some(SIGINT)
}

/// Copies what a process says of errors to the end of its log, which a full disk may refuse,
/// and keeps the last.
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
    fn a_failing_job_does_not_hinder_the_others() {
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
        assert_eq!(how[2], &Ended::Failed("it ended with signal: 9 (SIGKILL)".into()));
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
    fn a_process_left_behind_holds_nothing_up() {
        let folder = tempfile::tempdir().unwrap();
        // It has the job's standard error, until the test's end.
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
    fn stopping_asks_the_jobs_to_end_and_begins_no_other() {
        let folder = tempfile::tempdir().unwrap();
        // Ends when its input does, as a cell does.
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

    /// A terminal's Ctrl-C reaches every process, also one that listens to no signal yet.
    #[test]
    fn an_interrupted_job_is_stopped_and_has_not_failed() {
        let folder = tempfile::tempdir().unwrap();
        // Where the tests themselves run in a shell's background, the signal is ignored.
        let script = "heed='env --default-signal=INT'; $heed true || heed=
                      exec $heed sh -c 'kill -INT $$'";
        let jobs = vec![job(folder.path(), "a", script)];
        let ended = run(jobs, 1, &AtomicBool::new(false), &mut |_| {});
        assert_eq!(ended, [("a".to_owned(), Ended::Stopped)]);
    }

    #[test]
    fn a_job_that_cannot_be_started_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let command = Command::new("/no/such/program");
        let nothing = Job { id: "a".into(), command, log: folder.path().join("a.log") };
        let ended = run(vec![nothing], 1, &AtomicBool::new(false), &mut |_| {});
        let Ended::Failed(why) = &ended[0].1 else { panic!("{ended:?}") };
        assert!(why.starts_with("it cannot be started: "), "{why}");
    }
}
