//! How functions wait for kernels to be compiled and for the device: on the calling thread, or in a
//! future.
//!
//! Functions with both forms are written once, as an `async fn` with a [`Waiting`]. The blocking
//! form polls it once, with [`now`].
//!
//! The module is public, and hidden, for scry-models, whose functions are written in the same way.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use scry_gpu::{Device, GpuError, UntypedBuffer};

use crate::error::{Call, Error, Result};

/// How a function waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// On the calling thread: the future is ready when it is first polled.
    Blocking,
    /// In a future, without blocking the thread that polls it.
    Awaiting,
}

/// How often work is done again that could not wait, on a thread that must not block. Kernels that
/// it has compiled are kept, and the device is idle each time.
const MAX_ATTEMPTS: usize = 64;

/// For the crates above.
impl Waiting {
    /// Calls a function that has two forms, and returns the result of the one that waits so.
    pub async fn either<T, F: Future<Output = T>>(
        self,
        blocking: impl FnOnce() -> T,
        awaiting: impl FnOnce() -> F,
    ) -> T {
        match self {
            Self::Blocking => blocking(),
            Self::Awaiting => awaiting().await,
        }
    }

    /// Does work that makes one submission, last, and compiles nothing, once the device accepts it.
    ///
    /// # Errors
    /// Those of the work, and of [`Device::ready_async`].
    #[track_caller]
    pub fn submit_once<T>(
        self,
        device: &Device,
        work: impl FnMut() -> Result<T>,
    ) -> impl Future<Output = Result<T>> {
        self.submit(Call::new("Device::ready_async"), device, work)
    }

    /// Does work that may compile kernels, in a future on another thread if there are threads. It
    /// may be done several times.
    ///
    /// # Errors
    /// As [`submit_once`](Self::submit_once).
    #[track_caller]
    pub fn offload<T: Send + 'static>(
        self,
        device: &Device,
        work: impl Fn() -> Result<T> + Send + Sync + 'static,
    ) -> impl Future<Output = Result<T>> {
        self.compile(Call::new("Device::ready_async"), device, work)
    }
}

impl Waiting {
    /// Waits until the device accepts a submission. Those of threads that may block wait
    /// themselves.
    pub(crate) async fn ready(self, call: Call, device: &Device) -> Result<()> {
        match self {
            Self::Blocking => Ok(()),
            Self::Awaiting => device.ready_async().await.map_err(|error| call.gpu(error)),
        }
    }

    /// Returns the bytes of a buffer.
    pub(crate) async fn download(self, call: Call, buffer: &UntypedBuffer) -> Result<Vec<u8>> {
        let bytes = match self {
            Self::Blocking => buffer.download_bytes(),
            Self::Awaiting => buffer.download_bytes_async().await,
        };
        bytes.map_err(|error| call.gpu(error))
    }

    /// Does work that may compile kernels, in a future on another thread if there are threads.
    pub(crate) async fn compile<T: Send + 'static>(
        self,
        call: Call,
        device: &Device,
        work: impl Fn() -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        if self == Self::Blocking {
            return work();
        }
        let (work, mut attempt) = (Arc::new(work), 1);
        loop {
            self.ready(call, device).await?;
            let work = work.clone();
            match device.offload_async(move |_| work()).await {
                Err(error) if would_block(&error) && attempt < MAX_ATTEMPTS => {
                    device.wait_async().await.map_err(|error| call.gpu(error))?;
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    /// Does work that makes one submission, last, and compiles nothing, once the device accepts it.
    pub(crate) async fn submit<T>(
        self,
        call: Call,
        device: &Device,
        mut work: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let mut attempt = 1;
        loop {
            self.ready(call, device).await?;
            match work() {
                Err(error)
                    if self == Self::Awaiting && would_block(&error) && attempt < MAX_ATTEMPTS =>
                {
                    device.wait_async().await.map_err(|error| call.gpu(error))?;
                    attempt += 1;
                }
                done => return done,
            }
        }
    }
}

/// Returns whether work failed because its thread must not block.
fn would_block(error: &Error) -> bool {
    matches!(error.gpu(), Some(GpuError::WouldBlock(_)))
}

/// Returns the result of a future that waits with [`Waiting::Blocking`].
///
/// # Panics
/// If it awaits something.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("a function that blocks awaits nothing"),
    }
}
