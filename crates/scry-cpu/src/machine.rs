//! Threads that share the workgroups of a launch.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Code, Span};

/// A launch.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The kernel.
    pub code: &'a Code,
    /// What each of its buffers gets.
    pub bindings: &'a [Span],
    /// Workgroups along x, y and z.
    pub groups: [u32; 3],
    /// The immediate block.
    pub immediates: &'a [u8],
}

/// Tells a running kernel to end.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Asks for the end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A kernel was stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// A pool of threads.
#[derive(Debug)]
pub struct Machine;
