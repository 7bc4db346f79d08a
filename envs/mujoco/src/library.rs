//! MuJoCo's C library, loaded at run time: the functions we use, and what happens when MuJoCo
//! complains.
//!
//! Models and simulations are opaque pointers here, and states go in and out through
//! `mj_getState` and `mj_setState`, so no layout of a C structure is relied on.
//!
//! # Warnings
//! MuJoCo writes warnings to the terminal and to `MUJOCO_LOG.TXT` in the current folder, unless
//! `mju_user_warning` is set. It is: the last warning of each thread is kept, and [`watch`]
//! says whether a call gave one.
//!
//! # Fatal errors
//! `mju_error` must not return: MuJoCo goes on as if it did not. It is called for what a caller
//! cannot mend, such as memory that has run out in the midst of a step (errors in a model file
//! come back from `mj_loadXML` instead). To unwind or jump out of C code whose locks and memory
//! we do not know is not safe, and other threads are inside MuJoCo too, so the process ends:
//! the message goes to the standard error stream, then `abort`. Without a handler MuJoCo would
//! write `MUJOCO_LOG.TXT` and call `exit`, which runs destructors under those threads.
//! Everything that a run keeps is in files by then.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::Symbol;

use crate::{MujocoError, packages};

/// What `mj_version` says for [`crate::MUJOCO_VERSION`]: 3, 017, 000.
const VERSION: c_int = 3_017_000;

/// `mjtState`, the parts of a state: `1 << 0`.
pub(crate) const TIME: c_int = 1;
/// `1 << 1`.
pub(crate) const POSITIONS: c_int = 1 << 1;
/// `1 << 2`.
pub(crate) const VELOCITIES: c_int = 1 << 2;
/// `1 << 6`.
pub(crate) const CONTROLS: c_int = 1 << 6;

/// C's `mjModel`.
#[repr(C)]
pub(crate) struct RawModel {
    _opaque: [u8; 0],
}

/// C's `mjData`.
#[repr(C)]
pub(crate) struct RawData {
    _opaque: [u8; 0],
}

/// The functions we use, with their names and types in C.
pub(crate) struct Library {
    pub(crate) load_xml: unsafe extern "C" fn(
        file: *const c_char,
        vfs: *const c_void,
        error: *mut c_char,
        error_size: c_int,
    ) -> *mut RawModel,
    pub(crate) delete_model: unsafe extern "C" fn(*mut RawModel),
    pub(crate) make_data: unsafe extern "C" fn(*const RawModel) -> *mut RawData,
    pub(crate) delete_data: unsafe extern "C" fn(*mut RawData),
    pub(crate) reset_data: unsafe extern "C" fn(*const RawModel, *mut RawData),
    pub(crate) forward: unsafe extern "C" fn(*const RawModel, *mut RawData),
    pub(crate) step: unsafe extern "C" fn(*const RawModel, *mut RawData),
    pub(crate) state_size: unsafe extern "C" fn(*const RawModel, parts: c_int) -> c_int,
    pub(crate) get_state:
        unsafe extern "C" fn(*const RawModel, *const RawData, state: *mut f64, parts: c_int),
    pub(crate) set_state:
        unsafe extern "C" fn(*const RawModel, *mut RawData, state: *const f64, parts: c_int),
    /// Keeps the functions where they are.
    _library: libloading::Library,
}

/// MuJoCo, loaded once for the process and never unloaded.
///
/// # Errors
/// When it is missing, does not load, or is another version.
pub(crate) fn load() -> Result<&'static Library, MujocoError> {
    static LOADED: OnceLock<Library> = OnceLock::new();
    if let Some(library) = LOADED.get() {
        return Ok(library);
    }
    let library = Library::open(&packages::library()?)?;
    Ok(LOADED.get_or_init(|| library))
}

/// Calls MuJoCo; the error is the last warning that it gave meanwhile.
pub(crate) fn watch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    WARNING.take();
    let answer = call();
    WARNING.take().map_or(Ok(answer), Err)
}

thread_local! {
    static WARNING: RefCell<Option<String>> = const { RefCell::new(None) };
}

type Handler = extern "C" fn(*const c_char);

extern "C" fn note_warning(message: *const c_char) {
    let message = text(message);
    // A thread that is ending has nobody left to tell.
    let _ = WARNING.try_with(|warning| warning.replace(Some(message)));
}

extern "C" fn end_process(message: *const c_char) {
    let _ = writeln!(std::io::stderr(), "MuJoCo cannot go on: {}", text(message));
    std::process::abort();
}

fn text(message: *const c_char) -> String {
    if message.is_null() {
        return "(no message)".into();
    }
    // SAFETY: MuJoCo hands its handlers a string that ends in zero, valid during the call.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().trim_end().to_owned()
}

impl Library {
    fn open(path: &Path) -> Result<Self, MujocoError> {
        let unloadable = |source| MujocoError::Unloadable { path: path.to_owned(), source };
        // SAFETY: loading runs the library's initializers; MuJoCo's only fill its own tables.
        let library = unsafe { libloading::Library::new(path) }.map_err(unloadable)?;
        // SAFETY: the names and types of MuJoCo 3.17.0's headers; the version is checked before
        // anything else is called.
        unsafe {
            let version: Symbol<'_, unsafe extern "C" fn() -> c_int> =
                library.get(c"mj_version").map_err(unloadable)?;
            if version() != VERSION {
                return Err(MujocoError::OtherLibrary { path: path.to_owned() });
            }
            set_handler(&library, c"mju_user_warning", note_warning).map_err(unloadable)?;
            set_handler(&library, c"mju_user_error", end_process).map_err(unloadable)?;
            Ok(Self {
                load_xml: *library.get(c"mj_loadXML").map_err(unloadable)?,
                delete_model: *library.get(c"mj_deleteModel").map_err(unloadable)?,
                make_data: *library.get(c"mj_makeData").map_err(unloadable)?,
                delete_data: *library.get(c"mj_deleteData").map_err(unloadable)?,
                reset_data: *library.get(c"mj_resetData").map_err(unloadable)?,
                forward: *library.get(c"mj_forward").map_err(unloadable)?,
                step: *library.get(c"mj_step").map_err(unloadable)?,
                state_size: *library.get(c"mj_stateSize").map_err(unloadable)?,
                get_state: *library.get(c"mj_getState").map_err(unloadable)?,
                set_state: *library.get(c"mj_setState").map_err(unloadable)?,
                _library: library,
            })
        }
    }
}

/// Sets one of MuJoCo's global handlers.
///
/// # Safety
/// `name` is a variable of `library` that holds a [`Handler`] or null.
unsafe fn set_handler(
    library: &libloading::Library,
    name: &CStr,
    handler: Handler,
) -> Result<(), libloading::Error> {
    // SAFETY: as promised; an atomic pointer is laid out as a pointer, and the library stays.
    let variable: Symbol<'_, *const AtomicPtr<c_void>> = unsafe { library.get(name)? };
    unsafe { &**variable }.store(handler as *mut c_void, Ordering::SeqCst);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const CHILD: &str = "OVERTONE_MUJOCO_ERROR_CHILD";

    /// What the child does; alone it does nothing.
    #[test]
    #[ignore = "the other process of a test; alone it does nothing"]
    fn child() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        let library = load().unwrap();
        type Complain = unsafe extern "C" fn(*const c_char, ...);
        // SAFETY: the types of MuJoCo's headers; the messages have nothing to format.
        unsafe {
            let warn: Symbol<'_, Complain> = library._library.get(c"mju_warning").unwrap();
            warn(c"before".as_ptr());
            let heard = watch(|| {
                warn(c"first".as_ptr());
                warn(c"last".as_ptr());
                std::thread::scope(|scope| scope.spawn(|| watch(|| 7)).join().unwrap())
            });
            eprintln!("heard {heard:?} {:?}", watch(|| 8));
            let fail: Symbol<'_, Complain> = library._library.get(c"mju_error").unwrap();
            fail(c"out of everything".as_ptr());
        }
        unreachable!("a fatal error does not return");
    }

    #[test]
    fn warnings_are_kept_and_fatal_errors_end_the_process_with_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "library::tests::child", "--nocapture", "--ignored"])
            .current_dir(folder.path())
            .env(packages::SITE_PACKAGES, packages().unwrap())
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("heard Err(\"last\") Ok(8)"), "{said}");
        assert!(said.contains("MuJoCo cannot go on: out of everything\n"), "{said}");
        assert!(!output.status.success() && !said.contains("does not return"), "{said}");
        assert!(!folder.path().join("MUJOCO_LOG.TXT").exists());
    }
}
