//! Memory of results that is used again: an allocation takes longer than the launch of a small
//! operation, and new memory is filled with zeros before it is first used, which takes half as long
//! as to add two large tensors.
//!
//! Only results whose words are all overwritten by the kernel that computes them are in memory of
//! the pool, so that no earlier contents are visible, unless the launch failed or was cancelled.
//! Failures of launches that wrote the earlier contents are not those of the new ones.

use std::collections::VecDeque;

use scry_gpu::{BackendKind, Device, GpuError, Result, UntypedBuffer};

/// Results of at most this many bytes are small: there are buffers for each of their sizes.
const MAX_SMALL: usize = 16 << 10;

/// Small buffers of one size: more than the submissions that hold theirs until the queue is polled.
const MAX_BUFFERS: usize = 80;

/// Bytes of all small buffers, beyond which they are released.
const MAX_SMALL_TOTAL: usize = 4 << 20;

/// The number of large buffers.
const MAX_LARGE: usize = 32;

/// The most bytes of all large buffers, and the part of the device's memory that they may be.
const MAX_LARGE_TOTAL: u64 = 4 << 30;
const LARGE_FRACTION: u64 = 16;

/// As [`MAX_LARGE_TOTAL`], on the CPU.
const MAX_LARGE_TOTAL_ON_CPU: u64 = 64 << 20;

/// Buffers of results, of which each is used again once nothing else keeps it.
#[derive(Default)]
pub(crate) struct ResultPool {
    /// By their number of words: few enough to be an index.
    small: Vec<VecDeque<UntypedBuffer>>,
    small_total: usize,
    /// The oldest first.
    large: VecDeque<UntypedBuffer>,
    large_total: u64,
}

impl ResultPool {
    /// Releases all memory. Returns whether there was any.
    pub(crate) fn release(&mut self) -> bool {
        let held = self.small_total as u64 + self.large_total;
        *self = Self::default();
        held > 0
    }

    /// Returns a buffer of whole words, which are overwritten entirely: they may be those of an
    /// earlier result.
    pub(crate) fn take(&mut self, device: &Device, bytes: usize) -> Result<UntypedBuffer> {
        match bytes {
            0 => device.alloc_untyped(None, 0),
            1..=MAX_SMALL => self.take_small(device, bytes),
            _ => self.take_large(device, bytes),
        }
    }

    fn take_small(&mut self, device: &Device, bytes: usize) -> Result<UntypedBuffer> {
        let words = bytes / size_of::<u32>();
        if self.small.len() <= words {
            self.small.resize_with(words + 1, VecDeque::new);
        }
        let free = &mut self.small[words];
        // The oldest one; if it is in use, probably all later ones are.
        if let Some(oldest) = free.pop_front() {
            let is_free = !oldest.is_shared();
            if is_free || free.len() + 1 < MAX_BUFFERS {
                free.push_back(oldest.clone());
            } else {
                self.small_total -= bytes;
            }
            if is_free {
                oldest.forget_failures();
                return Ok(oldest);
            }
        }
        let new = allocate(device, bytes, || self.release())?;
        if self.small_total + bytes > MAX_SMALL_TOTAL {
            self.small.iter_mut().for_each(VecDeque::clear);
            self.small_total = 0;
        }
        self.small_total += bytes;
        // An allocation may have released all.
        self.small.resize_with(self.small.len().max(words + 1), VecDeque::new);
        self.small[words].push_back(new.clone());
        Ok(new)
    }

    fn take_large(&mut self, device: &Device, bytes: usize) -> Result<UntypedBuffer> {
        let size = bytes as u64;
        let is_free = |it: &UntypedBuffer| it.byte_size() == size && !it.is_shared();
        let mut found = self.large.iter().position(is_free);
        if found.is_none() && self.large.iter().any(|it| it.byte_size() == size) {
            device.release_finished()?;
            found = self.large.iter().position(is_free);
        }
        if let Some(found) = found
            && let Some(buffer) = self.large.remove(found)
        {
            buffer.forget_failures();
            self.large.push_back(buffer.clone());
            return Ok(buffer);
        }
        let new = allocate(device, bytes, || self.release())?;
        let max = match device.backend_kind() {
            BackendKind::Cpu => MAX_LARGE_TOTAL_ON_CPU,
            _ => (device.info().memory / LARGE_FRACTION).min(MAX_LARGE_TOTAL),
        };
        if size > max {
            return Ok(new);
        }
        while self.large.len() >= MAX_LARGE || self.large_total + size > max {
            let Some(oldest) = self.large.pop_front() else { return Ok(new) };
            self.large_total -= oldest.byte_size();
        }
        self.large_total += size;
        self.large.push_back(new.clone());
        Ok(new)
    }
}

/// Allocates a buffer of zeros. If there is too little memory, it tries again once `release` has
/// released some, and returned true.
pub(crate) fn allocate(
    device: &Device,
    bytes: usize,
    release: impl FnOnce() -> bool,
) -> Result<UntypedBuffer> {
    match device.alloc_untyped(None, bytes) {
        Err(GpuError::OutOfMemory(_)) if release() => device.alloc_untyped(None, bytes),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use scry_gpu::{DType, testing};

    use super::*;

    #[test]
    fn memory_is_used_again_once_it_is_free() {
        let gpu = Device::open("cpu").unwrap();
        for bytes in [64, 1 << 20] {
            let mut pool = ResultPool::default();
            let first = pool.take(&gpu, bytes).unwrap();
            let second = pool.take(&gpu, bytes).unwrap();
            first.write_bytes(&vec![1; bytes]).unwrap();
            second.write_bytes(&vec![2; bytes]).unwrap();
            gpu.wait().unwrap();
            drop(first);
            let third = pool.take(&gpu, bytes).unwrap();
            assert_eq!(third.download_bytes().unwrap(), vec![1; bytes]);
            assert_eq!(second.download_bytes().unwrap(), vec![2; bytes]);
        }
    }

    /// Reads of a result once reported the failure of a kernel whose result had been dropped.
    #[test]
    fn failures_of_earlier_results_are_forgotten() {
        const FILL: &str = "
            @group(0) @binding(0) var<storage, read_write> x: array<u32>;
            @compute @workgroup_size(64) fn fill(@builtin(global_invocation_id) id: vec3u) {
                if id.x < arrayLength(&x) { x[id.x] = 1u; }
            }";
        for bytes in [64, 1 << 20] {
            let (gpu, _) = testing::reporting(testing::null_info(), &[0]);
            let fill = gpu.compile(FILL).unwrap();
            let mut pool = ResultPool::default();
            let mut filled = || {
                let words = pool.take(&gpu, bytes).unwrap().view_as(DType::U32).unwrap();
                gpu.run(&fill, &[&words], 64).unwrap();
                words
            };
            drop(filled());
            gpu.release_finished().unwrap();
            let words = filled();
            // A task, unlike the thread that submitted, depends on the memory only.
            let read = pollster::block_on(words.download_bytes_async());
            assert!(read.is_ok(), "{read:?}");
            assert!(matches!(gpu.wait(), Err(GpuError::Kernel(_))));
        }
    }

    #[test]
    fn memory_in_use_is_not_kept_beyond_bounds() {
        let gpu = Device::open("cpu").unwrap();
        let mut pool = ResultPool::default();
        let kept: Vec<_> = (0..1000).map(|_| pool.take(&gpu, 64).unwrap()).collect();
        assert!(pool.small[16].len() <= MAX_BUFFERS && pool.small_total <= MAX_BUFFERS * 64);
        drop(kept);
        for bytes in (4..MAX_SMALL).step_by(132) {
            pool.take(&gpu, bytes).unwrap();
            assert!(pool.small_total <= MAX_SMALL_TOTAL);
        }
        for n in 1..40 {
            pool.take(&gpu, n << 20).unwrap();
            let total: u64 = pool.large.iter().map(UntypedBuffer::byte_size).sum();
            assert_eq!(pool.large_total, total);
            assert!(total <= MAX_LARGE_TOTAL_ON_CPU && pool.large.len() <= MAX_LARGE);
        }
        let kept = pool.large.len();
        let huge = pool.take(&gpu, MAX_LARGE_TOTAL_ON_CPU as usize + 4).unwrap();
        assert!(!huge.is_shared());
        assert_eq!(pool.large.len(), kept);
    }
}
