//! Output of commands: the terminal, or the reader of a host, a program that runs commands inside
//! itself, such as Python.
//!
//! A reader belongs to the thread that a command runs in.

use std::{
    cell::RefCell,
    fmt,
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// A callback for each line of output.
type Reader = Box<dyn FnMut(String)>;

thread_local! {
    static READER: RefCell<Option<Reader>> = const { RefCell::new(None) };
}

/// Runs `work`. `reader` receives each line of its output, and no progress bar is drawn.
pub fn with_reader<T>(reader: impl FnMut(String) + 'static, work: impl FnOnce() -> T) -> T {
    /// Removes the reader, also after a panic.
    struct RemoveReader;
    impl Drop for RemoveReader {
        fn drop(&mut self) {
            READER.take();
        }
    }
    READER.replace(Some(Box::new(reader)));
    let _guard = RemoveReader;
    work()
}

/// Whether a host reads this thread's output.
pub fn has_reader() -> bool {
    READER.with_borrow(Option::is_some)
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Silences this process, except for its errors: another process prints for it.
pub fn silence() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether this process is silenced.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Standard output, after [`own_stdout`] reserved it for [`say`].
static OWN: OnceLock<File> = OnceLock::new();

unsafe extern "C" {
    fn dup2(old: i32, new: i32) -> i32;
}

/// Reserves standard output for `say!`. Output of libraries in any language to file descriptor 1
/// then goes to standard error.
///
/// # Errors
/// When the system does not have a free file descriptor.
pub fn own_stdout() -> io::Result<()> {
    if OWN.get().is_some() {
        return Ok(());
    }
    let own = io::stdout().as_fd().try_clone_to_owned()?;
    io::stdout().flush()?;
    // SAFETY: both are descriptors of this process, which no Rust object owns; 1 stays open.
    if unsafe { dup2(2, 1) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let _ = OWN.set(File::from(own));
    Ok(())
}

/// Prints a line, as [`say!`](crate::say) does. A closed output (`… | head`) is ignored.
pub fn say(line: fmt::Arguments<'_>) {
    READER.with_borrow_mut(|reader| match reader {
        None if is_quiet() => {}
        reader => match reader {
            Some(reader) => reader(line.to_string()),
            None => {
                let line = format!("{line}\n");
                let _ = match OWN.get() {
                    Some(mut own) => own.write_all(line.as_bytes()),
                    None => io::stdout().write_all(line.as_bytes()),
                };
            }
        },
    });
}

/// Prints a line on standard error, as [`warn!`](crate::warn) does.
pub fn warn(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    #[test]
    fn lines_go_to_the_reader_and_no_longer() {
        let lines = Rc::new(RefCell::new(Vec::new()));
        let received = lines.clone();
        super::with_reader(
            move |line| received.borrow_mut().push(line),
            || {
                assert!(super::has_reader());
                crate::say!("one {}", 1);
                crate::say!("two");
            },
        );
        assert!(!super::has_reader());
        assert_eq!(*lines.borrow(), ["one 1", "two"]);
    }
}
