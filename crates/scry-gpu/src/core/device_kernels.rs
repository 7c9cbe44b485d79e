//! Internal kernels of a device. They hold no handle of the device, because the device owns them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::api::error::Result;
use crate::core::compiled_kernel::CompiledKernel;
use crate::core::driver::CopyKernel;

/// The settings of copies that run as a kernel.
pub(crate) struct Copier {
    enabled: AtomicBool,
    /// Unset if all copies are copy commands.
    kernel: OnceLock<&'static CopyKernel>,
    /// Compiled for the first copy that uses it; `None` if that failed.
    compiled: OnceLock<Option<Arc<CompiledKernel>>>,
}

impl Copier {
    /// Uses the driver's preferred kernel, or copy commands if it has none.
    pub(crate) fn new(kernel: Option<&'static CopyKernel>) -> Self {
        let enabled = AtomicBool::new(kernel.is_some());
        let kernel = kernel.map_or_else(OnceLock::new, OnceLock::from);
        Self { enabled, kernel, compiled: OnceLock::new() }
    }

    /// Enables or disables copies by kernel, using `kernel` if the driver has none of its own.
    pub(crate) fn enable(&self, enabled: bool, kernel: &'static CopyKernel) {
        self.kernel.get_or_init(|| kernel);
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    /// Returns the kernel for large copies, if enabled.
    pub(crate) fn kernel(&self) -> Option<&'static CopyKernel> {
        let enabled = self.enabled.load(Ordering::Relaxed);
        self.kernel.get().copied().filter(|_| enabled)
    }

    /// Returns the kernel, compiled by the first call; `None` if that failed.
    pub(crate) fn get_or_compile(
        &self,
        compile: impl FnOnce() -> Option<Arc<CompiledKernel>>,
    ) -> Option<&Arc<CompiledKernel>> {
        self.compiled.get_or_init(compile).as_ref()
    }
}

/// The kernel that prepares indirect launches, compiled for the first one.
#[derive(Default)]
pub(crate) struct GridPreparer(OnceLock<Arc<CompiledKernel>>);

impl GridPreparer {
    /// Returns the kernel, compiled unless an earlier call has done so.
    pub(crate) fn get_or_compile(
        &self,
        compile: impl FnOnce() -> Result<Arc<CompiledKernel>>,
    ) -> Result<&Arc<CompiledKernel>> {
        match self.0.get() {
            Some(kernel) => Ok(kernel),
            None => compile().map(|kernel| self.0.get_or_init(|| kernel)),
        }
    }
}

/// Routines of vendor libraries, loaded on first use.
#[derive(Default)]
pub(crate) struct Routines(Mutex<Vec<(&'static str, Arc<CompiledKernel>)>>);

impl Routines {
    /// Returns the routine, loaded unless an earlier call has done so.
    pub(crate) fn get_or_load(
        &self,
        name: &'static str,
        load: impl FnOnce() -> Result<CompiledKernel>,
    ) -> Result<Arc<CompiledKernel>> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, routine)) = loaded.iter().find(|(other, _)| *other == name) {
            return Ok(routine.clone());
        }
        let routine = Arc::new(load()?);
        loaded.push((name, routine.clone()));
        Ok(routine)
    }
}
