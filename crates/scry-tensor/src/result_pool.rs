//! Memory of small results that is used again: an allocation takes longer than the launch of a
//! small operation, and new memory is filled with zeros before it is first used.

use std::collections::{HashMap, VecDeque};

use scry_gpu::{Device, Result, UntypedBuffer};

/// Larger results are allocated: their kernels take longer than an allocation.
const MAX_BYTES: usize = 16 << 10;

/// Buffers of one size: more than the submissions that hold theirs until the queue is polled.
const MAX_BUFFERS: usize = 80;

/// Bytes of all buffers, beyond which they are released.
const MAX_TOTAL: usize = 4 << 20;

/// Buffers by size, of which each is used again once nothing else keeps it.
#[derive(Default)]
pub(crate) struct ResultPool {
    buffers: HashMap<usize, VecDeque<UntypedBuffer>>,
    total: usize,
}

impl ResultPool {
    /// Returns a buffer whose elements are overwritten entirely: they may be those of an earlier
    /// result.
    pub(crate) fn take(&mut self, device: &Device, bytes: usize) -> Result<UntypedBuffer> {
        if bytes > MAX_BYTES || bytes == 0 {
            return device.alloc_untyped(None, bytes);
        }
        let free = self.buffers.entry(bytes).or_default();
        // The oldest one; if it is in use, probably all later ones are.
        if let Some(oldest) = free.pop_front() {
            let is_free = !oldest.is_shared();
            if is_free || free.len() + 1 < MAX_BUFFERS {
                free.push_back(oldest.clone());
            } else {
                self.total -= bytes;
            }
            if is_free {
                return Ok(oldest);
            }
        }
        let new = device.alloc_untyped(None, bytes)?;
        if self.total + bytes > MAX_TOTAL {
            self.buffers.clear();
            self.total = 0;
        }
        self.total += bytes;
        self.buffers.entry(bytes).or_default().push_back(new.clone());
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_once_it_is_free() {
        let gpu = Device::open("cpu").unwrap();
        let mut pool = ResultPool::default();
        let first = pool.take(&gpu, 64).unwrap();
        let second = pool.take(&gpu, 64).unwrap();
        first.write_bytes(&[1; 64]).unwrap();
        second.write_bytes(&[2; 64]).unwrap();
        gpu.wait().unwrap();
        drop(first);
        let third = pool.take(&gpu, 64).unwrap();
        assert_eq!(third.download_bytes().unwrap(), [1; 64]);
        assert_eq!(second.download_bytes().unwrap(), [2; 64]);
    }

    #[test]
    fn memory_in_use_is_not_kept_beyond_bounds() {
        let gpu = Device::open("cpu").unwrap();
        let mut pool = ResultPool::default();
        let kept: Vec<_> = (0..1000).map(|_| pool.take(&gpu, 64).unwrap()).collect();
        assert!(pool.buffers[&64].len() <= MAX_BUFFERS && pool.total <= MAX_BUFFERS * 64);
        drop(kept);
        for bytes in (4..MAX_BYTES).step_by(132) {
            pool.take(&gpu, bytes).unwrap();
            assert!(pool.total <= MAX_TOTAL);
        }
        let large = pool.take(&gpu, MAX_BYTES + 4).unwrap();
        assert!(!large.is_shared());
    }
}
