//! Files mapped into memory: the only unsafe code of the crate.

use std::path::Path;

use memmap2::Mmap;

use super::Weights;
use super::open;
use super::source::{Source, open_regular};
use crate::error::Result;

impl Weights {
    /// Opens weights as [`Weights::open`] does, but maps the files into memory: tensors are copied
    /// from the page cache to the device, without a copy in between. Reading is then as fast as the
    /// memory, and processes that load the same file share it.
    ///
    /// ```no_run
    /// // SAFETY: no process writes to the installed files.
    /// let weights = unsafe { scry_models::Weights::open_mapped("/opt/models/model.gguf")? };
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Weights::open`].
    ///
    /// # Safety
    /// No process may change or truncate the files while the `Weights` exist: the bytes of a shared
    /// slice would change, which is undefined behaviour, and access to pages beyond the end of a
    /// truncated file ends the process.
    pub unsafe fn open_mapped(path: impl AsRef<Path>) -> Result<Self> {
        open::open("Weights::open_mapped", path.as_ref(), |path| {
            let file = open_regular(path)?;
            // SAFETY: the caller guarantees that the file does not change as long as the mapping
            // exists, which `Weights` owns.
            let map = unsafe { Mmap::map(&file)? };
            Ok(Source::Mapped(map))
        })
    }
}
