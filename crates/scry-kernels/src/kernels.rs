//! The library on one device.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scry_gpu::{Device, DeviceInfo, Result};
use scry_ptx::Target;
use scry_ptx::kernels::GpuSpec;

use crate::compiled::PtxCache;
use crate::scratch::Scratch;

/// The kernel library on one device, of any backend: kernels are compiled at their first use, and
/// cached.
///
/// Each function checks its arguments, chooses the variant that suits the sizes and the device, and
/// returns an [`Op`](crate::Op): run it at once, or add it to a batch or a recording, as often as
/// you like.
/// Cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Kernels {
    pub(crate) shared: Arc<Shared>,
    options: Arc<KernelOptions>,
}

/// How variants are chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelOptions {
    /// The name of the variant to use, such as `wgsl`; `None` to let the library choose.
    /// [`operations`](crate::operations) lists them.
    pub variant: Option<String>,
    /// Uses only variants whose results are bit-equal between runs on one device. In
    /// [`Kernels::column_parallel_linear`], results are also bit-equal for any number of ranks.
    pub deterministic: bool,
    /// Computes products whose number of rows varies between calls with few kernels: see
    /// [`Portfolio`](scry_ptx::kernels::gemm::Portfolio). By default each number of rows has the
    /// kernel that is the fastest for it. [`Kernels::compile_gemm`] compiles them before they are
    /// needed.
    pub any_rows: bool,
}

pub(crate) struct Shared {
    device: Device,
    /// What the choice of PTX kernels depends on; `None` where PTX does not run.
    spec: Option<GpuSpec>,
    pub(crate) ptx: PtxCache,
    pub(crate) scratch: Scratch,
    /// The fastest variants of tuned operations, by key.
    tuned: Mutex<HashMap<String, &'static str>>,
}

impl Kernels {
    /// Opens the kernel library on a device.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// let gpu = Device::open("cpu")?;
    /// let kernels = Kernels::new(&gpu)?;
    /// let (x, y) = (gpu.upload(&[1.0f32, 1.0, 3.0, 3.0])?, gpu.alloc::<f32>(4)?);
    /// kernels.softmax(&x, &y, 2, 2)?.run()?;
    /// assert_eq!(y.download()?, [0.5; 4]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// None at present.
    pub fn new(device: &Device) -> Result<Self> {
        Self::with_options(device, KernelOptions::default())
    }

    /// Opens the kernel library with options for the choice of variants.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{KernelOptions, Kernels};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let reproducible = KernelOptions { deterministic: true, ..Default::default() };
    /// let kernels = Kernels::with_options(&gpu, reproducible)?;
    /// let (x, y) = (gpu.upload(&[1.0f32; 4])?, gpu.alloc::<f32>(4)?);
    /// kernels.softmax(&x, &y, 2, 2)?.run()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::new`].
    pub fn with_options(device: &Device, options: KernelOptions) -> Result<Self> {
        let shared = Shared {
            device: device.clone(),
            spec: gpu_spec(device.info()),
            ptx: PtxCache::default(),
            scratch: Scratch::default(),
            tuned: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared), options: Arc::new(options) })
    }

    /// Returns the library of the same device, with the same caches, for other options.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::{KernelOptions, Kernels};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let plain = KernelOptions { variant: Some("wgsl".to_owned()), ..Default::default() };
    /// let kernels = Kernels::new(&gpu)?.having(plain);
    /// let (x, y) = (gpu.upload(&[1.0f32; 4])?, gpu.alloc::<f32>(4)?);
    /// assert_eq!(kernels.softmax(&x, &y, 2, 2)?.explain().variant(), "wgsl");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn having(&self, options: KernelOptions) -> Self {
        Self { shared: self.shared.clone(), options: Arc::new(options) }
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// Returns how variants are chosen.
    #[must_use]
    pub fn options(&self) -> &KernelOptions {
        &self.options
    }

    /// Returns the properties that the choice of PTX kernels depends on; `None` if the device does
    /// not run PTX.
    #[must_use]
    pub fn gpu_spec(&self) -> Option<GpuSpec> {
        self.shared.spec
    }

    /// Returns how many kernels of the library were compiled for the device, for tests and
    /// measurements. WGSL sources and a program's own kernels do not count.
    ///
    /// ```
    /// use scry_gpu::Device;
    /// use scry_kernels::Kernels;
    ///
    /// assert_eq!(Kernels::new(&Device::open("cpu")?)?.compiled_kernels(), 0);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn compiled_kernels(&self) -> usize {
        lock(&self.shared.ptx.kernels).len()
    }

    /// Returns the variant that tuning found for an operation with a key.
    pub(crate) fn tuned(&self, key: impl FnOnce() -> String) -> Option<&'static str> {
        let tuned = lock(&self.shared.tuned);
        // Keys are texts: to write one takes as long as to choose a variant.
        if tuned.is_empty() { None } else { tuned.get(&key()).copied() }
    }

    /// Keeps the variant that tuning found.
    pub(crate) fn set_tuned(&self, key: String, variant: &'static str) {
        lock(&self.shared.tuned).insert(key, variant);
    }
}

/// Returns the properties that the choice of PTX kernels depends on; `None` if the device does not
/// run PTX.
fn gpu_spec(info: &DeviceInfo) -> Option<GpuSpec> {
    let (capability, multiprocessors) = (info.compute_capability?, info.multiprocessors?);
    let shared_memory = info.limits.max_workgroup_memory;
    let target = match capability {
        [9, 0] => Target::SM_90A,
        [major, minor] => Target::for_capability(major, minor)?,
    };
    Some(GpuSpec { target, multiprocessors, shared_memory })
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels")
            .field("device", &self.shared.device.name())
            .field("gpu_spec", &self.gpu_spec())
            .field("options", &self.options)
            .finish()
    }
}
