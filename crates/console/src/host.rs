//! Lent by a program that runs commands inside itself, such as Python: where what they print
//! goes, instead of the terminal.
//!
//! It holds for the thread that a command runs in.

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

/// Is given each line that would be printed.
type Reader = Box<dyn FnMut(String)>;

thread_local! {
    static READER: RefCell<Option<Reader>> = const { RefCell::new(None) };
}

/// Runs `work` while `reader` gets every line that it says, and no progress bar is drawn.
pub fn with_reader<T>(reader: impl FnMut(String) + 'static, work: impl FnOnce() -> T) -> T {
    /// Takes the reader back, whatever happens.
    struct Lent;
    impl Drop for Lent {
        fn drop(&mut self) {
            READER.take();
        }
    }
    READER.replace(Some(Box::new(reader)));
    let _lent = Lent;
    work()
}

/// Whether someone else reads what this thread says.
pub fn is_lent() -> bool {
    READER.with_borrow(Option::is_some)
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// From here on this process says nothing but its errors: another one speaks for it.
pub fn hush() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether another process speaks for this one.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Standard output, where only [`say`] writes to it.
static OWN: OnceLock<File> = OnceLock::new();

unsafe extern "C" {
    fn dup2(old: i32, new: i32) -> i32;
}

/// From here on standard output is for [`say`] alone: what libraries write to file descriptor 1,
/// in whatever language, goes to standard error.
///
/// # Errors
/// When the system has no file descriptor left.
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

/// Says a line: what [`say!`](crate::say) does. That nobody reads on (`… | head`) is no reason to
/// stop.
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

/// Says a line on standard error: what [`warn!`](crate::warn) does.
pub fn warn(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    #[test]
    fn lines_go_to_the_reader_and_no_longer() {
        let lines = Rc::new(RefCell::new(Vec::new()));
        let told = lines.clone();
        super::with_reader(
            move |line| told.borrow_mut().push(line),
            || {
                assert!(super::is_lent());
                crate::say!("one {}", 1);
                crate::say!("two");
            },
        );
        assert!(!super::is_lent());
        assert_eq!(*lines.borrow(), ["one 1", "two"]);
    }
}
