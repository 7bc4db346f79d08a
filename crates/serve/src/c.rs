//! The C interface (`include/overtone_serve.h`): a handle for each agent, and a code for each call.
//!
//! Different handles may be used on different threads; one handle only on one at a time. No panic
//! crosses the border. After an error the handle can still be used.

use std::{
    cell::RefCell,
    ffi::{CStr, CString, c_char, c_float, c_int},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    ptr, slice,
};

use crate::{Action, Agent, Error};

/// Everything went well.
const OK: c_int = 0;
/// The file is damaged, or of another version.
const FILE: c_int = 1;
/// The call does not fit the agent.
const CALL: c_int = 2;
/// The agent's output is not finite.
const NOT_FINITE: c_int = 3;
/// A bug in this library.
const PANIC: c_int = 4;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn report(error: &Error) -> c_int {
    let text = CString::new(error.to_string().replace('\0', "?")).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = text);
    match error {
        Error::File(_) => FILE,
        Error::Call(_) => CALL,
        Error::NotFinite(_) => NOT_FINITE,
    }
}

/// Runs `work`; returns its code.
fn guarded(work: impl FnOnce() -> Result<(), Error>) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => OK,
        Ok(Err(error)) => report(&error),
        Err(_) => {
            report(&Error::Call("a bug in overtone-serve; please report it".into()));
            PANIC
        }
    }
}

fn missing(what: &str) -> Error {
    Error::Call(format!("{what} is null"))
}

/// The elements at `start`.
///
/// # Safety
/// `start` is null or points to `n` elements that live for the call.
unsafe fn list<'a, T>(start: *const T, n: usize, what: &str) -> Result<&'a [T], Error> {
    match (start.is_null(), n) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(missing(what)),
        // SAFETY: as the caller promises.
        (false, _) => Ok(unsafe { slice::from_raw_parts(start, n) }),
    }
}

/// The agent of a handle.
///
/// # Safety
/// `agent` is null or a handle of this library that was not freed, used on one thread.
unsafe fn of<'a>(agent: *mut Agent) -> Result<&'a mut Agent, Error> {
    // SAFETY: as the caller promises.
    unsafe { agent.as_mut() }.ok_or_else(|| missing("the agent"))
}

fn handle(out: *mut *mut Agent, load: impl FnOnce() -> Result<Agent, Error>) -> c_int {
    guarded(|| {
        if out.is_null() {
            return Err(missing("the place of the agent"));
        }
        // SAFETY: it is not null, and the caller promises a place for a handle.
        unsafe { *out = ptr::null_mut() };
        let agent = Box::into_raw(Box::new(load()?));
        // SAFETY: as above.
        unsafe { *out = agent };
        Ok(())
    })
}

/// Opens the directory `path`; the handle is written to `agent`.
///
/// # Safety
/// `path` is a C string, and `agent` a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_open(path: *const c_char, agent: *mut *mut Agent) -> c_int {
    handle(agent, || {
        if path.is_null() {
            return Err(missing("the path"));
        }
        // SAFETY: as the caller promises.
        let path = unsafe { CStr::from_ptr(path) }.to_str();
        Agent::open(Path::new(path.map_err(|_| Error::Call("the path is not UTF-8".into()))?))
    })
}

/// Loads the contents of `agent.onnx` and `agent.json`; the handle is written to `agent`.
///
/// # Safety
/// `graph` and `about` point to as many bytes, and `agent` is a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_load(
    graph: *const u8,
    graph_size: usize,
    about: *const u8,
    about_size: usize,
    agent: *mut *mut Agent,
) -> c_int {
    handle(agent, || {
        // SAFETY: as the caller promises.
        let (graph, about) = unsafe {
            (list(graph, graph_size, "the graph")?, list(about, about_size, "agent.json")?)
        };
        let about = std::str::from_utf8(about);
        Agent::load(graph, about.map_err(|_| Error::File("agent.json is not UTF-8".into()))?)
    })
}

/// Frees a handle; null is allowed.
///
/// # Safety
/// `agent` is null or a handle that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_free(agent: *mut Agent) {
    if !agent.is_null() {
        // SAFETY: `handle` made it from a box.
        drop(unsafe { Box::from_raw(agent) });
    }
}

/// Numbers of one observation; 0 for null.
///
/// # Safety
/// `agent` is null or a handle that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_observation_size(agent: *mut Agent) -> usize {
    // SAFETY: as the caller promises.
    unsafe { of(agent) }.map_or(0, |agent| agent.observation_size())
}

/// Numbers of a continuous action, or number of discrete actions; 0 for null.
///
/// # Safety
/// `agent` is null or a handle that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_action_size(agent: *mut Agent) -> usize {
    // SAFETY: as the caller promises.
    unsafe { of(agent) }.map_or(0, |agent| agent.n_actions())
}

/// 1 if actions are indices, else 0.
///
/// # Safety
/// `agent` is null or a handle that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_is_discrete(agent: *mut Agent) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { of(agent) }.map_or(0, |agent| c_int::from(agent.is_discrete()))
}

/// Starts an episode. A target return of NaN is the agent's own.
///
/// # Safety
/// `agent` is a handle that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_begin(
    agent: *mut Agent,
    seed: u64,
    target_return: c_float,
) -> c_int {
    let target = (!target_return.is_nan()).then_some(target_return);
    // SAFETY: as the caller promises.
    guarded(|| unsafe { of(agent) }?.begin(seed, target))
}

/// Allows only these discrete actions at the next step: 0 or another number for each.
///
/// # Safety
/// `allowed` points to `n_actions` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_allow(
    agent: *mut Agent,
    allowed: *const u8,
    n_actions: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (agent, allowed) = unsafe { (of(agent)?, list(allowed, n_actions, "the mask")?) };
        let allowed: Vec<bool> = allowed.iter().map(|&flag| flag != 0).collect();
        agent.allow(&allowed)
    })
}

/// Writes the action for an observation: `action_size` numbers, or one number, the index of a
/// discrete action.
///
/// # Safety
/// `observation` points to `observation_size` numbers, and `action` to a place for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_act(
    agent: *mut Agent,
    observation: *const c_float,
    observation_size: usize,
    reward: c_float,
    action: *mut c_float,
    action_size: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let agent = unsafe { of(agent) }?;
        let needed = if agent.is_discrete() { 1 } else { agent.n_actions() };
        if action.is_null() || action_size < needed {
            return Err(Error::Call(format!("the action has {needed} numbers, not {action_size}")));
        }
        // SAFETY: as the caller promises.
        let observation = unsafe { list(observation, observation_size, "the observation") }?;
        let numbers = match agent.act(observation, reward)? {
            Action::Index(index) => vec![index as c_float],
            Action::Numbers(numbers) => numbers,
        };
        // SAFETY: there is a place for them, as checked and promised.
        unsafe { slice::from_raw_parts_mut(action, needed) }.copy_from_slice(&numbers);
        Ok(())
    })
}

/// Replaces the last action by the one that was taken, in the form of `overtone_act`.
///
/// # Safety
/// `action` points to `action_size` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overtone_took(
    agent: *mut Agent,
    action: *const c_float,
    action_size: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (agent, action) = unsafe { (of(agent)?, list(action, action_size, "the action")?) };
        let action = match (agent.is_discrete(), action) {
            (true, [index]) if *index >= 0.0 && index.fract() == 0.0 => {
                Action::Index(*index as usize)
            }
            (true, _) => return Err(Error::Call("a discrete action is one whole number".into())),
            (false, numbers) => Action::Numbers(numbers.to_vec()),
        };
        agent.took(&action)
    })
}

/// The sentence about the last error on this thread. It is valid until the next error.
#[unsafe(no_mangle)]
pub extern "C" fn overtone_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// Memory for `size` bytes, in which JavaScript writes files, observations and handles.
#[cfg(any(target_arch = "wasm32", test))]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn overtone_allocate(size: usize) -> *mut u8 {
    // Aligned for a handle and for numbers.
    Box::into_raw(vec![0u64; size.div_ceil(8)].into_boxed_slice()).cast()
}

/// Frees memory of [`overtone_allocate`].
///
/// # Safety
/// `start` and `size` are of one call of it, and were not freed.
#[cfg(any(target_arch = "wasm32", test))]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn overtone_release(start: *mut u8, size: usize) {
    let words = ptr::slice_from_raw_parts_mut(start.cast::<u64>(), size.div_ceil(8));
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(words) });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JavaScript keeps a handle, bytes and numbers in this memory.
    #[test]
    fn memory_is_aligned_for_handles_and_numbers() {
        for size in [0, 1, 3, 4, 5, 11, 64] {
            let places: Vec<*mut u8> = (0..32).map(|_| overtone_allocate(size)).collect();
            for place in places {
                assert_eq!(place as usize % align_of::<*mut Agent>(), 0, "{size}");
                // SAFETY: it is from `overtone_allocate` with this size.
                unsafe { overtone_release(place, size) };
            }
        }
    }
}
