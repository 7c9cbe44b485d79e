//! Runs the compiler where a hostile source can do no harm: on a thread with a stack of its own,
//! panics caught and kept quiet.
//!
//! WebAssembly has neither threads nor panics that can be caught. There the work runs on the
//! caller's stack, which suffices for what the scan lets through, and a panic ends the module with
//! a trap.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

use crate::ShaderError;

/// Bytes of stack for work on a program that was read: enough for the deepest nesting of
/// statements that the scan lets through. Reserved, not touched: pages that stay unused cost
/// nothing.
const STACK: usize = 160 << 20;

thread_local! {
    /// True on a compiler thread: a panic there prints nothing, and a nested run stays there.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether work runs on a thread of its own.
const HAS_THREADS: bool = !cfg!(target_arch = "wasm32");

/// Runs `work` on a thread with a large stack; a panic becomes an error of kind
/// [`ShaderErrorKind::Compiler`](crate::ShaderErrorKind::Compiler).
///
/// # Errors
/// What `work` returns, a panic in it, or a thread that could not be started.
pub(crate) fn run<T: Send>(
    work: impl FnOnce() -> Result<T, ShaderError> + Send,
) -> Result<T, ShaderError> {
    run_with_stack(STACK, work)
}

/// [`run`] with a stack of so many bytes.
pub(crate) fn run_with_stack<T: Send>(
    stack: usize,
    work: impl FnOnce() -> Result<T, ShaderError> + Send,
) -> Result<T, ShaderError> {
    if GUARDED.get() || !HAS_THREADS {
        return work();
    }
    let (mut work, mut done) = (Some(work), None);
    on_a_thread(stack, &mut || done = work.take().map(|work| work()))?;
    done.expect("a thread that ends without a panic has done its work")
}

/// Calls `work`, once, on a thread with a stack of so many bytes.
fn on_a_thread(stack: usize, work: &mut (dyn FnMut() + Send)) -> Result<(), ShaderError> {
    install_hook();
    let guarded = || {
        GUARDED.set(true);
        panic::catch_unwind(AssertUnwindSafe(work))
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("scry-compile".into())
            .stack_size(stack)
            .spawn_scoped(scope, guarded)
            .map_err(|e| {
                ShaderError::compiler(format!("no thread to compile the kernel on: {e}"))
            })?;
        match thread.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(payload)) | Err(payload) => Err(panicked(payload.as_ref())),
        }
    })
}

fn panicked(payload: &(dyn Any + Send)) -> ShaderError {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ShaderError::compiler(format!(
        "the shader compiler failed on this kernel, which is a defect to report: {text}"
    ))
}

/// Puts a filter before the panic hook that is in force, once in a process: panics of compiler
/// threads print nothing, all others reach the hook that was there.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    if thread::panicking() {
        return; // The hook cannot be changed now; one panic that prints too much is no harm.
    }
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ShaderErrorKind;

    #[test]
    fn a_panic_becomes_an_error() {
        let error = run::<()>(|| panic!("of {}\nlines", 2)).unwrap_err();
        assert_eq!(error.kind, ShaderErrorKind::Compiler);
        assert!(error.message.ends_with("to report: of 2 lines"), "{}", error.message);
    }

    #[test]
    fn the_stack_is_large_and_nested_runs_share_it() {
        fn deep(n: u32) -> u64 {
            let block = std::hint::black_box([u64::from(n); 128]);
            if n == 0 { block[0] } else { deep(n - 1) + block[n as usize % 128] }
        }
        let here = run(|| {
            let outer = thread::current().id();
            let inner = run(|| Ok(thread::current().id()))?;
            assert_eq!(outer, inner);
            Ok(deep(50_000))
        });
        assert_eq!(here, Ok(50_000 * 50_001 / 2));
    }
}
