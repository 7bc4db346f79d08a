//! MuJoCo's C library, loaded at run time: its functions, and the handling of its warnings and
//! errors.
//!
//! Models and simulations are opaque pointers, and states are copied with `mj_getState` and
//! `mj_setState`. The code therefore does not depend on the layout of C structures.
//!
//! # Warnings
//! By default MuJoCo writes warnings to the terminal and to `MUJOCO_LOG.TXT` in the current
//! directory. We set `mju_user_warning` instead: it stores the last warning of each thread, and
//! [`watch`] returns it.
//!
//! # Fatal errors
//! `mju_error` must not return, because MuJoCo relies on that. MuJoCo calls it for errors that a
//! caller cannot fix, such as running out of memory during a step. Errors in a model file are
//! returned by `mj_loadXML` instead.
//!
//! Unwinding out of C code with unknown locks and memory is not safe, and other threads can be inside
//! MuJoCo. The process therefore prints the message to standard error and calls `abort`. Without a
//! handler, MuJoCo would write `MUJOCO_LOG.TXT` and call `exit`, which runs destructors while those
//! threads still run. All results of a run are already in files at that point.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::Symbol;

use crate::{MujocoError, packages};

/// Return value of `mj_version` for [`crate::MUJOCO_VERSION`]: 3, 017, 000.
const VERSION: c_int = 3_017_000;

/// `mjtState`: the time part of a state.
pub(crate) const TIME: c_int = 1;
/// `mjtState`: the positions of a state.
pub(crate) const POSITIONS: c_int = 1 << 1;
/// `mjtState`: the velocities of a state.
pub(crate) const VELOCITIES: c_int = 1 << 2;
/// `mjtState`: the controls of a state.
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

/// The C functions, with their types.
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
    /// Keeps the library loaded, so that the functions stay valid.
    _library: libloading::Library,
}

/// Loads MuJoCo once for the process. It is never unloaded.
///
/// # Errors
/// When the library is missing, does not load, or has another version.
pub(crate) fn load() -> Result<&'static Library, MujocoError> {
    static LOADED: OnceLock<Library> = OnceLock::new();
    if let Some(library) = LOADED.get() {
        return Ok(library);
    }
    let library = Library::open(&packages::library()?)?;
    Ok(LOADED.get_or_init(|| library))
}

/// Calls MuJoCo. The error is MuJoCo's last warning during the call.
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
    // The storage of an ending thread can already be gone.
    let _ = WARNING.try_with(|warning| warning.replace(Some(message)));
}

extern "C" fn end_process(message: *const c_char) {
    let _ = writeln!(std::io::stderr(), "MuJoCo cannot continue: {}", text(message));
    std::process::abort();
}

fn text(message: *const c_char) -> String {
    if message.is_null() {
        return "(no message)".into();
    }
    // SAFETY: MuJoCo passes its handlers a string that ends in zero and is valid during the call.
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

    /// The code of the child process.
    #[test]
    #[ignore = "the child process of another test"]
    fn child() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        let library = load().unwrap();
        type Report = unsafe extern "C" fn(*const c_char, ...);
        // SAFETY: the types of MuJoCo's headers; the messages contain no format specifiers.
        unsafe {
            let warn: Symbol<'_, Report> = library._library.get(c"mju_warning").unwrap();
            warn(c"before".as_ptr());
            let warned = watch(|| {
                warn(c"first".as_ptr());
                warn(c"last".as_ptr());
                std::thread::scope(|scope| scope.spawn(|| watch(|| 7)).join().unwrap())
            });
            eprintln!("warned {warned:?} {:?}", watch(|| 8));
            let fail: Symbol<'_, Report> = library._library.get(c"mju_error").unwrap();
            fail(c"out of everything".as_ptr());
        }
        unreachable!("a fatal error does not return");
    }

    #[test]
    fn warnings_are_stored_and_fatal_errors_end_the_process_with_a_message() {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "library::tests::child", "--nocapture", "--ignored"])
            .current_dir(folder.path())
            .env(packages::SITE_PACKAGES, packages().unwrap())
            .env(CHILD, "1")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(printed.contains("warned Err(\"last\") Ok(8)"), "{printed}");
        assert!(printed.contains("MuJoCo cannot continue: out of everything\n"), "{printed}");
        assert!(!output.status.success() && !printed.contains("does not return"), "{printed}");
        assert!(!folder.path().join("MUJOCO_LOG.TXT").exists());
    }
}
