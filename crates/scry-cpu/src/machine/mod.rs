//! Threads that share the workgroups of a launch.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{fmt, thread};

use crate::exec::{self, Scratch};
use crate::pool::Pool;
use crate::scheduling::{ChunkSize, ChunkStart, Chunks};
use crate::{CancelToken, Cancelled, Launch, MemoryRange};

/// Minimum duration in nanoseconds of launches that run on several threads.
const MIN_PARALLEL_NANOS: u64 = 30_000;

/// Number of bytes that a thread fills or copies at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Alignment of bindings in bytes.
const BINDING_ALIGNMENT: usize = 16;

/// A thread pool that runs kernels. Its threads start with the first launch, fill or copy that is
/// large enough, sleep while there is no work, and end when the value is dropped.
pub struct Machine {
    threads: usize,
    pool: OnceLock<Pool>,
    /// Scratch memory of idle threads.
    scratches: Mutex<Vec<Scratch>>,
}

impl Machine {
    /// Creates a machine of `threads` threads, of which one is the caller of [`Machine::run`]. In
    /// WebAssembly it is the only one.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self { threads: available(threads), pool: OnceLock::new(), scratches: Mutex::default() }
    }

    /// Returns the number of threads that run kernels, including the caller's.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work` on the calling thread and on up to `helpers` other threads of the machine, and
    /// returns when all calls have returned. A thread that wakes up only after the call on the
    /// caller's thread has returned does not call it, nor does any while the threads help another
    /// caller: `work` has to claim its parts, and to return when none is left.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
    /// let claim = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < 10);
    /// scry_cpu::Machine::new(2).with_help(1, &|| {
    ///     while let Some(part) = claim() {
    ///         sum.fetch_add(part, Ordering::Relaxed);
    ///     }
    /// });
    /// assert_eq!(sum.into_inner(), 45);
    /// ```
    ///
    /// # Panics
    /// If a call of `work` does, after all calls have returned.
    pub fn with_help(&self, helpers: usize, work: &(dyn Fn() + Sync)) {
        if helpers == 0 || self.threads == 1 {
            return work();
        }
        let pool = self.pool.get_or_init(|| Pool::new(self.threads - 1));
        pool.with_help(helpers, work, work);
    }

    /// Runs all workgroups of a launch, and returns when they are done. Small launches stay on the
    /// caller's thread. Several threads may call this at once; the threads of the pool help one of
    /// them.
    ///
    /// # Errors
    /// [`Cancelled`] if `stop` was requested before the end. Then each workgroup may have run
    /// completely, partly, or not at all.
    ///
    /// # Panics
    /// If the launch does not have one range for each buffer of the kernel, if a range is not
    /// aligned to 16 bytes, or because of a bug in this crate. No thread executes the launch any
    /// more after the panic.
    ///
    /// # Safety
    /// The memory of the ranges is alive. Meanwhile only this launch writes to it, or reads what
    /// the kernel may write. A range of a buffer that the kernel may write overlaps no other range.
    /// The kernel's IR is valid, as that of every program is; check hand-built IR with
    /// `scry_ir::kir::verify`.
    pub unsafe fn run(&self, launch: &Launch<'_>, stop: &CancelToken) -> Result<(), Cancelled> {
        let (found, needed) = (launch.bindings.len(), launch.code.writable.len());
        assert_eq!(found, needed, "Machine::run: number of bindings, and of the kernel's buffers");
        let aligned = |range: &MemoryRange| range.is_aligned_to(BINDING_ALIGNMENT);
        assert!(launch.bindings.iter().all(aligned), "a binding that is not aligned to 16 bytes");
        // 2^64 workgroups would run for centuries, so saturation is not observable.
        let total = launch.workgroups().unwrap_or(u64::MAX);
        let run = |groups, scratch: &mut _| {
            // SAFETY: as the caller promises; the other threads execute the same launch.
            unsafe { exec::run(launch.code, launch, groups, scratch, stop) }
        };
        let unit = u64::from(launch.code.lane_layout.batch);
        self.run_on_threads(&Work { total, unit, cost: launch.code.cost(), stop, run: &run })
    }

    /// Runs all workgroups of a launch, on several threads if it is large enough.
    fn run_on_threads(&self, work: &Work<'_>) -> Result<(), Cancelled> {
        let chunks = Chunks::new(work.total, work.unit, self.threads());
        let workers = Workers { machine: self, work, chunks, stopped: AtomicBool::new(false) };
        let others = usize::try_from(work.total).unwrap_or(usize::MAX).saturating_sub(1);
        let others = if work.is_small() { 0 } else { others };
        self.with_help(others, &|| workers.run_chunks());
        if workers.stopped.into_inner() { Err(Cancelled) } else { Ok(()) }
    }

    /// Fills a range with a 32-bit pattern, on several threads if it is large.
    ///
    /// # Safety
    /// As [`MemoryRange::fill`].
    ///
    /// # Panics
    /// As [`MemoryRange::fill`].
    pub unsafe fn fill(&self, dst: MemoryRange, pattern: u32) {
        // SAFETY: the caller's promise for the whole holds for each part.
        self.in_chunks(dst.size, &|at, size| unsafe { chunk(dst, at, size).fill(pattern) });
    }

    /// Copies bytes between ranges of the same size, on several threads if they are large.
    ///
    /// # Safety
    /// As [`MemoryRange::copy_from`], and the ranges do not overlap.
    ///
    /// # Panics
    /// If the sizes differ.
    pub unsafe fn copy(&self, src: MemoryRange, dst: MemoryRange) {
        assert_eq!(src.size, dst.size, "the ranges to copy differ in size");
        // SAFETY: the caller's promise for the whole holds for each part.
        self.in_chunks(dst.size, &|at, size| unsafe {
            chunk(dst, at, size).copy_from(chunk(src, at, size));
        });
    }

    /// Calls `work` with the offset and the size of each chunk.
    fn in_chunks(&self, size: usize, work: &(dyn Fn(usize, usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let chunks = size.div_ceil(CHUNK_BYTES);
        let claim = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < chunks);
        let run_chunks = || {
            while let Some(index) = claim() {
                let offset = index * CHUNK_BYTES;
                work(offset, CHUNK_BYTES.min(size - offset));
            }
        };
        // About two chunks per thread.
        self.with_help(chunks.saturating_sub(1) / 2, &run_chunks);
    }

    /// Calls `work` with the scratch memory of an idle thread, or with a new one.
    fn with_scratch<R>(&self, work: impl FnOnce(&mut Scratch) -> R) -> R {
        let lock = || self.scratches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = lock().pop().unwrap_or_default();
        let result = work(&mut scratch);
        // If `work` panics, the scratch memory is dropped: its content is undefined.
        lock().push(scratch);
        result
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machine({} threads)", self.threads())
    }
}

/// Returns the number of threads of a machine for which `requested` are requested.
fn available(requested: usize) -> usize {
    if cfg!(target_arch = "wasm32") { 1 } else { requested.max(1) }
}

/// Returns a chunk of a range, which is long enough.
fn chunk(range: MemoryRange, offset: usize, size: usize) -> MemoryRange {
    range.part(offset, size).expect("a chunk is within its range")
}

/// Runs a range of workgroups.
type Run<'a> = &'a (dyn Fn(Range<u64>, &mut Scratch) -> Result<(), Cancelled> + Sync + 'a);

/// The workgroups of a launch.
struct Work<'a> {
    total: u64,
    /// Chunk sizes are multiples of this number of workgroups.
    unit: u64,
    /// Estimated nanoseconds per workgroup, if known.
    cost: Option<u64>,
    stop: &'a CancelToken,
    run: Run<'a>,
}

impl Work<'_> {
    /// Returns whether waking other threads would take longer than the launch.
    fn is_small(&self) -> bool {
        let total = self.cost.and_then(|cost| cost.checked_mul(self.total));
        total.is_some_and(|total| total < MIN_PARALLEL_NANOS)
    }
}

/// The threads that execute one launch, and their shared state.
struct Workers<'a> {
    machine: &'a Machine,
    work: &'a Work<'a>,
    chunks: Chunks,
    stopped: AtomicBool,
}

impl Workers<'_> {
    /// Runs chunks on the calling thread until all workgroups are claimed.
    fn run_chunks(&self) {
        let _end = EndOnPanic(&self.stopped);
        self.machine.with_scratch(|scratch| {
            let mut chunk_size = ChunkSize::new(self.work.cost);
            while !self.has_to_stop() {
                let Some(groups) = chunk_size.claim(&self.chunks) else { break };
                let start = ChunkStart::now();
                if (self.work.run)(groups, scratch).is_err() {
                    self.stopped.store(true, Ordering::Relaxed);
                }
                chunk_size.adapt(start);
            }
        });
    }

    /// Returns whether to stop. A request is ignored if all workgroups are claimed.
    fn has_to_stop(&self) -> bool {
        if self.work.stop.requested() && self.chunks.unclaimed() > 0 {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Stops the other threads if this one panics, since their results would be discarded.
struct EndOnPanic<'a>(&'a AtomicBool);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
