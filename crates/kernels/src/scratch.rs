//! Working memory that a thread keeps between calls.

use std::cell::RefCell;

use crate::partitions::take;

thread_local! {
    /// One buffer for each level of nested calls, the outermost last.
    static SPARE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` with working memory of these sizes. The content is arbitrary.
///
/// The memory belongs to the thread and is reused, which avoids the page faults of fresh memory on
/// every call.
pub(crate) fn with_scratch<const N: usize, R>(
    sizes: [usize; N],
    f: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    let mut memory = SPARE.with(|spare| spare.borrow_mut().pop()).unwrap_or_default();
    let total = sizes.iter().sum();
    if memory.len() < total {
        memory.resize(total, 0.0);
    }
    let mut rest = &mut memory[..];
    let result = f(sizes.map(|size| take(&mut rest, size)));
    SPARE.with(|spare| spare.borrow_mut().push(memory));
    result
}
