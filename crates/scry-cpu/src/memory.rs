//! Memory that kernels work on.

/// Bytes that a kernel may touch: a part of a [`Memory`](crate::Memory).
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// First byte; aligned to 16 bytes.
    pub(crate) start: *mut u8,
    /// Number of bytes.
    pub(crate) size: usize,
}

// SAFETY: a span is an address and a length; whoever dereferences it has to know that it may.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

/// An allocation.
#[derive(Debug)]
pub struct Memory;
