//! Awaiting a device: the futures of what blocks elsewhere. They need no particular executor.

mod device;
mod ticket;
mod transfers;

pub use ticket::TicketFuture;
