//! Awaiting tickets.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::api::error::{InFunction, Result};
use crate::api::ticket::Ticket;
use crate::core::completion::Completion;

/// The future of a [`Ticket`]: completes when the batch is done. Dropping it does not stop the
/// batch.
#[must_use = "futures do nothing unless polled"]
pub struct TicketFuture {
    /// `None` if the batch was empty.
    completion: Option<Completion>,
}

impl Future for TicketFuture {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut self.completion {
            Some(completion) => {
                let polled = Pin::new(completion).poll(cx);
                polled.map(|result| result.in_function("Ticket::await"))
            }
            None => Poll::Ready(Ok(())),
        }
    }
}

impl IntoFuture for Ticket {
    type Output = Result<()>;
    type IntoFuture = TicketFuture;

    /// Returns a future that completes when the batch is done, with the errors of
    /// [`Ticket::wait`]. The device's time limit starts when it is first polled.
    ///
    /// ```
    /// use scry_gpu::Device;
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// pollster::block_on(async {
    ///     let gpu = Device::open("cpu")?;
    ///     let x = gpu.alloc::<u32>(2)?;
    ///     gpu.batch().fill(&x, 1)?.submit_async()?.await?;
    ///     assert_eq!(x.download()?, [1, 1]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    fn into_future(self) -> TicketFuture {
        (&self).into_future()
    }
}

impl IntoFuture for &Ticket {
    type Output = Result<()>;
    type IntoFuture = TicketFuture;

    /// Returns a future that completes when the batch is done; the ticket can be awaited again.
    fn into_future(self) -> TicketFuture {
        TicketFuture { completion: self.completion() }
    }
}

impl fmt::Debug for TicketFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketFuture").finish_non_exhaustive()
    }
}
