//! Kernels that a device has for its own work. As parts of the device they must not hold it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::api::error::Result;
use crate::api::info::{DeviceInfo, DeviceKind};
use crate::core::compiled_kernel::KernelInner;

/// Whether and how a device copies with a kernel.
pub(crate) struct Copier {
    enabled: AtomicBool,
    /// Compiled for the first copy that it suits; `None` if that failed.
    kernel: OnceLock<Option<Arc<KernelInner>>>,
}

impl Copier {
    /// What is best for a device: on processors a copy command is the fastest there is.
    pub(crate) fn new(info: &DeviceInfo) -> Self {
        use DeviceKind::{Discrete, Integrated, Virtual};
        let is_gpu = matches!(info.kind, Discrete | Integrated | Virtual);
        Self { enabled: AtomicBool::new(is_gpu), kernel: OnceLock::new() }
    }

    /// Decides otherwise.
    pub(crate) fn enable(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    /// Whether copies may go through the kernel.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// The kernel, compiled at the first call; `None` if that failed.
    pub(crate) fn get_or_compile(
        &self,
        compile: impl FnOnce() -> Option<Arc<KernelInner>>,
    ) -> Option<&Arc<KernelInner>> {
        self.kernel.get_or_init(compile).as_ref()
    }
}

/// The kernel that prepares indirect launches, compiled for the first one.
#[derive(Default)]
pub(crate) struct Preparer(OnceLock<Arc<KernelInner>>);

impl Preparer {
    /// The kernel, compiled unless an earlier call succeeded in that.
    pub(crate) fn get_or_compile(
        &self,
        compile: impl FnOnce() -> Result<Arc<KernelInner>>,
    ) -> Result<&Arc<KernelInner>> {
        match self.0.get() {
            Some(kernel) => Ok(kernel),
            None => compile().map(|kernel| self.0.get_or_init(|| kernel)),
        }
    }
}

/// Routines of libraries, loaded when first needed.
#[derive(Default)]
pub(crate) struct Routines(Mutex<Vec<(&'static str, Arc<KernelInner>)>>);

impl Routines {
    /// The routine, loaded unless an earlier call succeeded in that.
    pub(crate) fn get_or_load(
        &self,
        name: &'static str,
        load: impl FnOnce() -> Result<KernelInner>,
    ) -> Result<Arc<KernelInner>> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, routine)) = loaded.iter().find(|(other, _)| *other == name) {
            return Ok(routine.clone());
        }
        let routine = Arc::new(load()?);
        loaded.push((name, routine.clone()));
        Ok(routine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::null::null_info;

    #[test]
    fn gpus_alone_copy_with_kernels() {
        use DeviceKind::{Discrete, Integrated, Other, Software, Virtual};
        let copies = |kind| {
            let copier = Copier::new(&DeviceInfo { kind, ..null_info() });
            copier.is_enabled()
        };
        assert_eq!([Discrete, Integrated, Virtual].map(copies), [true; 3]);
        assert_eq!([Software, Other].map(copies), [false; 2]);
        assert!(!Copier::new(&null_info()).is_enabled());
    }
}
