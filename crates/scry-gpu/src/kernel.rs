//! A compiled kernel.

use std::sync::{Arc, Mutex, PoisonError};

use scry_ir::{Interface, Program};

use crate::cache::{KernelKey, KeyRef};
use crate::check;
use crate::context::Context;
use crate::device;
use crate::driver::{CompileJob, Driver, KernelId};
use crate::error::{GpuError, Result};

/// A kernel compiled for one device. Cheap to clone, usable from any thread, any number of times.
#[derive(Clone)]
pub struct Kernel {
    inner: Arc<KernelInner>,
}

/// What the clones of a kernel and the cache share.
pub(crate) struct KernelInner {
    driver: Arc<dyn Driver>,
    program: Program,
    key: KernelKey,
    native: Arc<Compiled>,
    /// The variant for folded grids, compiled when first needed.
    folded: Mutex<Option<Arc<Compiled>>>,
}

/// One variant of a kernel in a driver.
pub(crate) struct Compiled {
    driver: Arc<dyn Driver>,
    id: KernelId,
}

impl Compiled {
    pub(crate) fn id(&self) -> KernelId {
        self.id
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        self.driver.release(self.id);
    }
}

/// How to compile a kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CompileOptions {
    /// The entry point; `None` takes the only one.
    pub entry: Option<String>,
    /// Values of `override`s, by name or by decimal `@id`; `bool`s as 0 and 1.
    pub overrides: Vec<(String, f64)>,
}

impl CompileOptions {
    /// The only entry point, every override at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses the entry point.
    #[must_use]
    pub fn entry(mut self, name: impl Into<String>) -> Self {
        self.entry = Some(name.into());
        self
    }

    /// Sets an override.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: f64) -> Self {
        self.overrides.push((name.into(), value));
        self
    }
}

impl Kernel {
    /// Number of buffers that the kernel takes.
    #[must_use]
    pub fn binding_count(&self) -> usize {
        self.interface().bindings.len()
    }

    /// Name of the entry point.
    #[must_use]
    pub fn entry_point(&self) -> &str {
        &self.interface().entry_point
    }

    /// Invocations of a workgroup along x, y and z.
    #[must_use]
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.interface().workgroup_size
    }

    /// Everything that the host has to know of the kernel: bindings, immediates, overrides.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        self.inner.program.interface()
    }

    /// Compiles a source, or finds it compiled.
    pub(crate) fn compile(
        context: &Arc<Context>,
        source: &str,
        options: &CompileOptions,
        checked: bool,
    ) -> Result<Self> {
        context.check_alive()?;
        let CompileOptions { entry, overrides } = options;
        let key = KeyRef { source, entry: entry.as_deref(), overrides, checked };
        let build = |key: &KernelKey| KernelInner::compile(context, key.clone());
        let inner = context.kernels.get_or_build(key, build)?;
        Ok(Self { inner })
    }

    pub(crate) fn check_device(&self, context: &Arc<Context>) -> Result<()> {
        if Arc::ptr_eq(&self.inner.driver, &context.driver) {
            return Ok(());
        }
        Err(GpuError::WrongDevice {
            what: format!("kernel `{}`", self.entry_point()),
            owner: self.inner.driver.info().name.clone(),
            user: context.info.name.clone(),
            remedy: "compile it for the device that it is to run on".to_owned(),
        })
    }

    /// The variant for ordinary or for folded grids.
    pub(crate) fn variant(&self, context: &Context, folded: bool) -> Result<Arc<Compiled>> {
        if !folded {
            return Ok(self.inner.native.clone());
        }
        let mut slot = self.inner.folded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = &*slot {
            return Ok(compiled.clone());
        }
        let KernelInner { program, key, .. } = &*self.inner;
        Ok(slot.insert(compile_variant(context, program, key, true)?).clone())
    }
}

impl KernelInner {
    fn compile(context: &Context, key: KernelKey) -> Result<Self> {
        let options = scry_ir::Options {
            entry: key.entry.clone(),
            overrides: key.overrides.iter().map(|(n, v)| (n.clone(), f64::from_bits(*v))).collect(),
            ..Default::default()
        };
        let program = Program::with_options(&key.source, &options)?;
        let interface = program.interface();
        check::kernel_limits(interface, &context.info, device::who_has)?;
        let native = compile_variant(context, &program, &key, false)?;
        let driver = context.driver.clone();
        Ok(Self { driver, program, key, native, folded: Mutex::new(None) })
    }
}

fn compile_variant(
    context: &Context,
    program: &Program,
    key: &KernelKey,
    folded: bool,
) -> Result<Arc<Compiled>> {
    let cache = context.disk.as_ref();
    let job = CompileJob { program, folded, checked: key.checked, key, cache };
    let id = context.note_loss(context.driver.compile(&job))?;
    Ok(Arc::new(Compiled { driver: context.driver.clone(), id }))
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("entry_point", &self.entry_point())
            .field("workgroup_size", &self.workgroup_size())
            .field("bindings", &self.binding_count())
            .finish()
    }
}
