//! A compiled kernel of a driver. It does not keep the device alive.

use std::sync::{Arc, Mutex, PoisonError};

use scry_ir::{Interface, Program};

use crate::api::device_selection;
use crate::api::error::Result;
use crate::api::native::{Language, NativeInterface, NativeSpec};
use crate::cache::KernelKey;
use crate::core::check::{self, KernelInterface};
use crate::core::device_state::DeviceState;
use crate::core::driver::{
    CompileJob, Driver, FailureReport, GridSource, HostJob, NativeJob, RoutineJob,
};
use crate::core::dump::Dump;
use crate::core::handles::KernelId;

/// A compiled kernel, shared by the clones of a [`Kernel`](crate::Kernel) and the cache.
pub(crate) struct CompiledKernel {
    driver: Arc<dyn Driver>,
    source: Source,
    key: KernelKey,
    native_grid: Arc<KernelVariant>,
    /// The variants for other grid sources, compiled on first use.
    linearised: Mutex<Option<Arc<KernelVariant>>>,
    counts: Mutex<Option<Arc<KernelVariant>>>,
}

/// The source of a kernel.
enum Source {
    /// Parsed WGSL, or the kernel IR.
    Program(Program),
    /// Any other language, with its declared interface.
    Native(Interface),
}

/// One variant of a kernel in a driver.
pub(crate) struct KernelVariant {
    driver: Arc<dyn Driver>,
    id: KernelId,
    report: Option<Arc<FailureReport>>,
}

impl KernelVariant {
    pub(crate) fn new(driver: &Arc<dyn Driver>, id: KernelId) -> Arc<Self> {
        Arc::new(Self { report: driver.report(id), driver: driver.clone(), id })
    }

    pub(crate) fn id(&self) -> KernelId {
        self.id
    }

    /// Describes the failure that a launch may report; `None` if launches write no report.
    pub(crate) fn report(&self) -> Option<&Arc<FailureReport>> {
        self.report.as_ref()
    }
}

impl Drop for KernelVariant {
    fn drop(&mut self) {
        self.driver.free_kernel(self.id);
    }
}

impl CompiledKernel {
    /// Parses and compiles the WGSL source in the key.
    pub(crate) fn compile(device: &DeviceState, key: KernelKey) -> Result<Self> {
        let options = scry_ir::Options {
            entry: key.entry.clone(),
            overrides: key.overrides.iter().map(|(name, it)| (name.clone(), it.value())).collect(),
            ..Default::default()
        };
        let program = Program::with_options(&key.source, &options)?;
        Self::compile_program(device, key, program)
    }

    /// Compiles a program parsed from the source in its key.
    pub(crate) fn compile_program(
        device: &DeviceState,
        key: KernelKey,
        program: Program,
    ) -> Result<Self> {
        let interface = program.interface();
        check::kernel_limits(interface, &device.info, device_selection::devices_with)?;
        let native_grid = compile_variant(device, &program, &key, GridSource::Native)?;
        Ok(Self::new(device, Source::Program(program), key, native_grid))
    }

    /// Compiles the PTX or CUDA C source in the key, with the declared interface.
    pub(crate) fn compile_native(
        device: &DeviceState,
        key: KernelKey,
        spec: &NativeSpec,
    ) -> Result<Self> {
        let entry = key.entry.as_deref().unwrap_or_default();
        let interface = spec.interface.reflect(entry);
        let limited = match spec.interface.declared_parameters() {
            // Kernel parameters declared one by one have a separate limit.
            Some(_) => &Interface { immediates: None, ..interface.clone() },
            None => &interface,
        };
        let limited = KernelInterface::new(limited, true);
        check::kernel_limits(limited, &device.info, device_selection::devices_with)?;
        if let (Language::Ptx, Some(dump)) =
            (spec.language, Dump::start(entry, GridSource::Native, true))
        {
            dump.ptx("", &key.source);
        }
        let cache = device.disk.as_ref();
        let job = NativeJob { source: &key.source, entry, spec, key: &key, cache };
        let id = device.note_loss(device.driver.compile_native(&job))?;
        let variant = KernelVariant::new(&device.driver, id);
        Ok(Self::new(device, Source::Native(interface), key, variant))
    }

    /// Loads a routine of a vendor library. Its key is never looked up in the caches.
    pub(crate) fn load_routine(device: &DeviceState, job: &RoutineJob<'_>) -> Result<Self> {
        let interface: &NativeInterface = job.interface;
        let id = device.note_loss(device.driver.load_routine(job))?;
        let variant = KernelVariant::new(&device.driver, id);
        let key = KernelKey {
            source: String::new(),
            entry: Some(job.name.to_owned()),
            overrides: Vec::new(),
            checked: false,
            native: None,
        };
        Ok(Self::new(device, Source::Native(interface.reflect(job.name)), key, variant))
    }

    /// Loads a function of the host. Its key is never looked up in the caches: two functions may
    /// have the same name.
    pub(crate) fn load_host_function(device: &DeviceState, job: &HostJob<'_>) -> Result<Self> {
        let interface = job.interface.reflect(job.name);
        let native = KernelInterface::new(&interface, true);
        check::kernel_limits(native, &device.info, device_selection::devices_with)?;
        let id = device.note_loss(device.driver.load_host_function(job))?;
        let variant = KernelVariant::new(&device.driver, id);
        let spec = NativeSpec { language: Language::Host, interface: job.interface.clone() };
        let key = KernelKey {
            source: String::new(),
            entry: Some(job.name.to_owned()),
            overrides: Vec::new(),
            checked: false,
            native: Some(spec),
        };
        Ok(Self::new(device, Source::Native(interface), key, variant))
    }

    /// Returns the bindings, immediates and workgroup size.
    pub(crate) fn interface(&self) -> &Interface {
        self.source.interface()
    }

    /// Returns the driver that compiled it.
    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// Returns the key of the kernel in the caches.
    pub(crate) fn key(&self) -> &KernelKey {
        &self.key
    }

    /// Returns whether it is PTX, CUDA C or a library routine, rather than WGSL or the kernel IR.
    pub(crate) fn is_native(&self) -> bool {
        matches!(self.source, Source::Native(_))
    }

    /// Returns the variant that uses the native grid.
    pub(crate) fn native_grid(&self) -> &Arc<KernelVariant> {
        &self.native_grid
    }

    /// Returns the variant for a grid source, compiled on first use.
    pub(crate) fn variant(
        &self,
        device: &DeviceState,
        grid: GridSource,
    ) -> Result<Arc<KernelVariant>> {
        let slot = match grid {
            GridSource::Native => return Ok(self.native_grid.clone()),
            GridSource::Linearised => &self.linearised,
            GridSource::Counts => &self.counts,
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = &*slot {
            return Ok(compiled.clone());
        }
        let Source::Program(program) = &self.source else {
            // Native kernels have only one variant.
            return Ok(self.native_grid.clone());
        };
        Ok(slot.insert(compile_variant(device, program, &self.key, grid)?).clone())
    }

    fn new(
        device: &DeviceState,
        source: Source,
        key: KernelKey,
        native_grid: Arc<KernelVariant>,
    ) -> Self {
        let driver = device.driver.clone();
        let (linearised, counts) = (Mutex::new(None), Mutex::new(None));
        Self { driver, source, key, native_grid, linearised, counts }
    }
}

impl Source {
    fn interface(&self) -> &Interface {
        match self {
            Self::Program(program) => program.interface(),
            Self::Native(interface) => interface,
        }
    }
}

fn compile_variant(
    device: &DeviceState,
    program: &Program,
    key: &KernelKey,
    grid: GridSource,
) -> Result<Arc<KernelVariant>> {
    let cache = device.disk.as_ref();
    let checked = key.checked;
    let dump = Dump::start(&program.interface().entry_point, grid, checked);
    if let Some(dump) = &dump {
        dump.program(program, checked);
    }
    let job = CompileJob { program, grid, checked, key, cache, dump: dump.as_ref() };
    let compiled = device.driver.compile(&job);
    if let Some(dump) = &dump {
        dump.finish(&device.info.selector());
    }
    let id = device.note_loss(compiled)?;
    Ok(KernelVariant::new(&device.driver, id))
}
