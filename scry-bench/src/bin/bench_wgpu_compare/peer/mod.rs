//! Peers: libraries that execute WGSL, as implementations of one trait.

use std::time::Duration;

use anyhow::Result;

mod scry;
#[cfg(feature = "scry-gpu-01")]
mod scry_01;
mod wgpu;

pub use scry::Scry;
#[cfg(feature = "scry-gpu-01")]
pub use scry_01::Scry01;
pub use wgpu::Wgpu;

/// A compiled kernel of one peer.
#[derive(Clone, Copy)]
pub struct KernelId(usize);

/// A buffer of one peer.
#[derive(Clone, Copy)]
pub struct BufferId(usize);

/// A list of steps that one peer has prepared.
#[derive(Clone, Copy)]
pub struct PlanId(usize);

/// Consecutive elements of a buffer.
#[derive(Clone, Copy)]
pub struct Span {
    /// The buffer.
    pub buffer: BufferId,
    /// The first element.
    pub start: usize,
    /// The number of elements.
    pub len: usize,
}

/// A command for the device.
#[derive(Clone)]
pub enum Step {
    /// A launch of a kernel.
    Launch {
        /// The kernel.
        kernel: KernelId,
        /// Bindings 0, 1, … of group 0: at most two.
        bindings: Vec<Span>,
        /// Workgroups along x and y.
        groups: [u32; 2],
        /// The immediate, if the kernel has one.
        immediate: Option<f32>,
    },
    /// A copy between two buffers.
    Copy {
        /// The source.
        from: Span,
        /// The destination.
        to: Span,
    },
}

/// CPU time of the calling thread, from the start of recording.
pub struct HostTime {
    /// Until the steps are recorded.
    pub record: Duration,
    /// Until they are recorded and submitted to the device.
    pub submit: Duration,
}

/// A library. Methods return `None` for operations that it does not support.
pub trait Peer {
    /// Name and version.
    fn name(&self) -> &'static str;

    /// Compiles the entry point `main`.
    fn compile(&mut self, wgsl: &str) -> Result<KernelId>;

    /// Creates a buffer with a copy of `data`, which has reached the device on return.
    fn upload(&mut self, data: &[f32]) -> Result<BufferId>;

    /// Frees a buffer that no plan uses.
    fn free(&mut self, buffer: BufferId);

    /// Frees all plans, then all buffers.
    fn clear(&mut self);

    /// Replaces a buffer's elements; they have reached the device on return.
    fn write(&mut self, buffer: BufferId, data: &[f32]) -> Result<Option<()>>;

    /// Reads a buffer into memory that was touched before.
    fn read_into(&mut self, buffer: BufferId, out: &mut [f32]) -> Result<Option<()>>;

    /// Reads a buffer into a new vector.
    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>>;

    /// Prepares objects that are not part of recording, such as bind groups. If `chained`, each
    /// step depends on the previous one; otherwise the steps may run concurrently.
    fn plan(&mut self, steps: &[Step], chained: bool) -> Result<Option<PlanId>>;

    /// Records the steps afresh, submits them, and waits.
    fn run(&mut self, plan: PlanId) -> Result<()>;

    /// Like [`Peer::run`]; returns the CPU time of the calling thread before it waited.
    fn record(&mut self, plan: PlanId) -> Result<HostTime>;

    /// Like [`Peer::run`], with steps recorded only once; returns the CPU time of the calling
    /// thread before it waited.
    fn replay(&mut self, plan: PlanId) -> Result<Option<Duration>>;
}

/// Values by the index they were added at.
struct Table<T>(Vec<Option<T>>);

impl<T> Table<T> {
    fn add(&mut self, value: T) -> usize {
        self.0.push(Some(value));
        self.0.len() - 1
    }

    fn get(&self, index: usize) -> &T {
        self.0[index].as_ref().expect("scenarios do not use freed objects")
    }

    fn get_mut(&mut self, index: usize) -> &mut T {
        self.0[index].as_mut().expect("scenarios do not use freed objects")
    }

    fn remove(&mut self, index: usize) -> Option<T> {
        self.0[index].take()
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
