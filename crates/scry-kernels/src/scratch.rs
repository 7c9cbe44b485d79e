//! Scratch memory, which passes data between the launches of an operation.

use std::sync::Mutex;

use scry_gpu::{DType, Device, GpuError, Result, UntypedBuffer};

use crate::kernels::{Kernels, lock};

/// What errors call the scratch memory.
const SCRATCH: &str = "scratch memory of the kernel library";

/// The scratch buffers of a device: the first one of each operation, the second one, and so on.
/// All operations share them, ordered by the hazards of their commands. A buffer is replaced by a
/// larger one when needed; launches that use the old one retain it.
#[derive(Default)]
pub(crate) struct Scratch(Mutex<Vec<UntypedBuffer>>);

impl Scratch {
    /// Returns the `nth` scratch buffer, with at least `bytes` bytes.
    pub(crate) fn get(&self, device: &Device, nth: usize, bytes: u64) -> Result<UntypedBuffer> {
        let mut buffers = lock(&self.0);
        while buffers.len() <= nth {
            buffers.push(device.alloc_untyped(None, 16)?.with_label(SCRATCH));
        }
        if buffers[nth].byte_size() < bytes {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let larger = device.alloc_untyped(None, bytes.next_multiple_of(16));
            buffers[nth] = larger.map_err(too_large)?.with_label(SCRATCH);
        }
        Ok(buffers[nth].clone())
    }
}

fn too_large(error: GpuError) -> GpuError {
    match error {
        GpuError::TooLarge(error) => GpuError::TooLarge(
            error.with_subject(SCRATCH, "split the operation over several calls"),
        ),
        other => other,
    }
}

impl Kernels {
    /// Returns `len` elements of the `nth` scratch buffer of operations.
    pub(crate) fn scratch_of(&self, nth: usize, dtype: DType, len: u64) -> Result<UntypedBuffer> {
        let bytes = len.saturating_mul(dtype.size() as u64);
        let buffer = self.scratch(nth, bytes)?;
        // It has that many bytes, which fit in memory.
        buffer.slice(..bytes as usize)?.view_as(dtype)
    }

    /// Returns the `nth` scratch buffer of operations, with at least `bytes` bytes.
    pub(crate) fn scratch(&self, nth: usize, bytes: u64) -> Result<UntypedBuffer> {
        self.shared.scratch.get(self.device(), nth, bytes)
    }
}
