//! The arenas of a plan, which its runs of all sizes share.
//!
//! Runs are serialised by the device, so that those of different sizes can use the same memory.
//! A plan is compiled for the largest sizes first: for others it allocates nothing. To allocate,
//! to fill with zeros and to release takes longer than all else for new sizes.

use std::sync::{Mutex, PoisonError};

use scry_gpu::{Result, UntypedBuffer};

/// Arenas that are kept, the largest first.
#[derive(Default)]
pub(super) struct Arenas(Mutex<Vec<UntypedBuffer>>);

impl Arenas {
    /// Returns the bytes of the arenas that are kept, the largest first.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(UntypedBuffer::byte_size).collect()
    }

    /// Returns arenas of these bytes, each in memory of its own: kept ones, or new ones if these
    /// are too small.
    pub(super) fn take(
        &self,
        wanted: &[u64],
        allocate: impl Fn(usize) -> Result<UntypedBuffer>,
    ) -> Result<Vec<UntypedBuffer>> {
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        order.sort_by_key(|arena| std::cmp::Reverse(wanted[*arena]));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = vec![None; wanted.len()];
        for (nth, arena) in order.into_iter().enumerate() {
            let bytes = wanted[arena] as usize;
            let whole = match kept.get(nth) {
                Some(known) if known.byte_size() >= wanted[arena] => known.clone(),
                _ => {
                    let new = allocate(bytes)?;
                    // Still in order: those before it are at least as large.
                    match kept.get_mut(nth) {
                        Some(known) => *known = new.clone(),
                        None => kept.push(new.clone()),
                    }
                    new
                }
            };
            taken[arena] = Some(match whole.byte_size() > wanted[arena] {
                true => whole.slice(..bytes)?,
                false => whole,
            });
        }
        Ok(taken.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::Device;

    #[test]
    fn smaller_sizes_allocate_nothing() {
        let gpu = Device::open("cpu").unwrap();
        let (arenas, allocated) = (Arenas::default(), RefCell::new(Vec::new()));
        let take = |wanted: &[u64]| {
            let allocate = |bytes| {
                allocated.borrow_mut().push(bytes);
                gpu.alloc_untyped(None, bytes)
            };
            let taken = arenas.take(wanted, allocate).unwrap();
            let sizes: Vec<u64> = taken.iter().map(UntypedBuffer::byte_size).collect();
            assert_eq!(sizes, wanted);
            // No two share memory.
            let mut batch = gpu.batch();
            for (n, arena) in (0u8..).zip(&taken) {
                batch.fill(arena, n).unwrap();
            }
            batch.submit().unwrap();
            for (n, arena) in (0u8..).zip(&taken) {
                assert!(arena.download_bytes().unwrap().iter().all(|byte| *byte == n));
            }
            std::mem::take(&mut *allocated.borrow_mut())
        };
        assert_eq!(take(&[256, 1024]), [1024, 256]);
        assert_eq!(take(&[768, 256]), [0usize; 0]);
        assert_eq!(take(&[256]), [0usize; 0]);
        // The second one grows, and a third one is new.
        assert_eq!(take(&[256, 512, 512]), [512, 256]);
        assert_eq!(take(&[256, 512, 512]), [0usize; 0]);
    }
}
