//! Whether a browser accepts a kernel, which it reports after the call that compiles it.

use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use wgpu::ErrorFilter;

use super::device::Gpu;
use crate::backend::shared::locks::lock;

/// The verdict on a kernel, once it is known.
#[derive(Clone, Default)]
pub(super) struct Verdict(Arc<Mutex<State>>);

#[derive(Default)]
enum State {
    #[default]
    Accepted,
    Pending(Vec<Waker>),
    Rejected(String),
}

impl Verdict {
    /// Calls `work`, whose errors are the verdict on the kernel written as `wgsl`. Outside of
    /// browsers they are known at once, and those of [`Gpu::call`].
    pub(super) fn of<T>(gpu: &Gpu, wgsl: &str, work: impl FnOnce() -> T) -> (T, Self) {
        if !cfg!(target_arch = "wasm32") {
            return (work(), Self::default());
        }
        let filters = [ErrorFilter::Internal, ErrorFilter::OutOfMemory, ErrorFilter::Validation];
        let [first, second, third] = filters.map(|filter| gpu.device.push_error_scope(filter));
        let result = work();
        // In reverse order.
        let errors = (third.pop(), second.pop(), first.pop());
        let verdict = Self::default();
        *lock(&verdict.0) = State::Pending(Vec::new());
        let (pending, wgsl) = (verdict.clone(), wgsl.to_owned());
        spawn(async move {
            let found = [errors.0.await, errors.1.await, errors.2.await];
            let error = found.into_iter().flatten().next();
            pending
                .set(error.map(|error| format!("{error}\nin the WGSL that Scry wrote:\n{wgsl}")));
        });
        (result, verdict)
    }

    /// Returns the error of the browser, once it is known; until then `waker` is kept.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<Result<(), String>> {
        match &mut *lock(&self.0) {
            State::Accepted => Poll::Ready(Ok(())),
            State::Rejected(why) => Poll::Ready(Err(why.clone())),
            State::Pending(wakers) => {
                if !wakers.iter().any(|other| other.will_wake(waker)) {
                    wakers.push(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    /// Returns the error of the browser, if it is known.
    pub(super) fn rejection(&self) -> Option<String> {
        match &*lock(&self.0) {
            State::Rejected(why) => Some(why.clone()),
            State::Accepted | State::Pending(_) => None,
        }
    }

    fn set(&self, error: Option<String>) {
        let state = error.map_or(State::Accepted, State::Rejected);
        let previous = std::mem::replace(&mut *lock(&self.0), state);
        if let State::Pending(wakers) = previous {
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

/// Runs a future on the event loop of the browser.
#[cfg(target_arch = "wasm32")]
fn spawn(future: impl Future<Output = ()> + 'static) {
    wasm_bindgen_futures::spawn_local(future);
}

/// Not reached: elsewhere errors are known at once.
#[cfg(not(target_arch = "wasm32"))]
fn spawn(_: impl Future<Output = ()>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_awaited() {
        let verdict = Verdict::default();
        let waker = Waker::noop();
        assert_eq!(verdict.poll(waker), Poll::Ready(Ok(())));
        *lock(&verdict.0) = State::Pending(Vec::new());
        assert!(verdict.poll(waker).is_pending());
        assert_eq!(verdict.rejection(), None);
        verdict.set(Some("no such type".to_owned()));
        assert_eq!(verdict.poll(waker), Poll::Ready(Err("no such type".to_owned())));
        assert_eq!(verdict.rejection().as_deref(), Some("no such type"));
    }
}
