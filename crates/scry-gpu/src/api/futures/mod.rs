//! The async forms of blocking calls. They work with any executor.

mod batch;
mod device;
mod ticket;
mod transfers;

pub use ticket::TicketFuture;
