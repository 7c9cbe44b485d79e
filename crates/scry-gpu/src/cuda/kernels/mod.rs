//! The kernel library for NVIDIA GPUs: matrix products, attention, softmax, norms and quantised
//! weights. Its kernels use instructions that WGSL does not have; they are written in Rust and
//! compiled by the driver, so that nothing else needs to be installed.
//!
//! [`Kernels`] chooses the variant that suits the shape and the device, and returns it as
//! [`PreparedOp`]: run it at once, or add it to a batch or a recording, as often as you like.

mod attention;
mod check;
mod error;
mod prepared;
mod products;
mod quantized;
mod rows;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use attention::{Attention, AttentionBias, Strides};
pub use prepared::PreparedOp;
pub use products::{Activation, Engine, Epilogue, Gemm, Layout, MatrixLayout, Precision};
pub use quantized::BlockFormat;
pub use rows::{Norm, NormKind, Rows, SoftmaxKind};
pub use scry_ptx::kernels::{GpuSpec, Plan, PlanError, PtxKernel};
pub use scry_ptx::{PtxType, Target};

use self::check::Call;
use crate::api::binding::Binding;
use crate::api::buffer::Buffer;
use crate::api::device::Device;
use crate::api::element::ElementLayout;
use crate::api::error::{InFunction, Result};
use crate::api::info::DeviceInfo;
use crate::api::native::{self, GemmElement, Language};
use scry_ir::ScalarKind;

/// The kernel library on one device: kernels are compiled at their first use, and cached.
///
/// Cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Kernels {
    shared: Arc<Shared>,
}

struct Shared {
    device: Device,
    spec: GpuSpec,
    /// Library kernels by name and bytes of dynamic shared memory.
    compiled: Mutex<HashMap<(String, u32), Compiled>>,
    /// Scratch memory of plans: the first allocation of each, the second one, and so on. All plans
    /// share it, ordered by the hazards of their commands.
    scratch: Mutex<Vec<Arc<Buffer<u8>>>>,
}

/// The author of a plan's kernels. Library kernels have unique names, so they are cached by name. A
/// program's own kernels may share a name, so they are not cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Crate,
    Program,
}

/// A compiled kernel.
#[derive(Clone)]
struct Compiled {
    kernel: crate::Kernel,
    /// Blocks of a cluster along x, y and z.
    cluster: [u32; 3],
}

impl Kernels {
    /// Opens the kernel library on a CUDA device.
    ///
    /// ```no_run
    /// # #[cfg(feature = "kernels")]
    /// # fn example() -> scry_gpu::Result<()> {
    /// use scry_gpu::cuda::kernels::Kernels;
    /// use scry_gpu::{BackendKind, Device};
    ///
    /// let gpu = Device::with_backend(BackendKind::Cuda)?;
    /// let kernels = Kernels::new(&gpu)?;
    /// println!("{:?}", kernels.gpu_spec());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Language`](crate::GpuError::Language) on devices of other backends.
    pub fn new(device: &Device) -> Result<Self> {
        let info = device.info();
        let spec = gpu_spec(info)
            .ok_or_else(|| native::language_error(None, Language::Ptx, &info.title()))
            .in_function("Kernels::new")?;
        let shared = Shared {
            device: device.clone(),
            spec,
            compiled: Mutex::default(),
            scratch: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// Returns the properties of the device that the choice of kernels depends on.
    #[must_use]
    pub fn gpu_spec(&self) -> GpuSpec {
        self.shared.spec
    }

    /// Prepares a plan of your own; errors contain `name`. Buffers are in the order of the plan's
    /// arguments; they may be longer than it needs.
    ///
    /// ```no_run
    /// use scry_gpu::{Buffer, bf16};
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(
    ///     kernels: &Kernels,
    ///     a: &Buffer<bf16>,
    ///     b: &Buffer<bf16>,
    ///     c: &Buffer<bf16>,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     use scry_gpu::cuda::kernels::{Gemm, PtxType};
    ///
    ///     let plan = Gemm::new(64, 64, 64, PtxType::Bf16).plan(kernels.gpu_spec())?;
    ///     // SAFETY: a plan of the kernel library keeps to its buffers.
    ///     let product = unsafe { kernels.prepare("product", &plan, &[a, b, c])? };
    ///     product.run()?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](crate::GpuError::Argument) for buffers that are too short, of another
    /// element type, or that overlap where one is written;
    /// [`GpuError::Capability`](crate::GpuError::Capability) if the device lacks a feature that a
    /// kernel uses; the errors of [`Device::compile_ptx`] and [`Device::alloc`].
    ///
    /// # Safety
    /// Each kernel of the plan has the parameters that its interface lists. It accesses nothing
    /// but its buffers, up to the sizes in its interface, writes only those that are declared as
    /// written, and terminates. If [`PtxKernel::pdl_reads`] returns buffers, it waits as
    /// [`NativeInterface::pdl`](crate::NativeInterface::pdl) requires.
    pub unsafe fn prepare<'a>(
        &self,
        name: &str,
        plan: &Plan,
        buffers: &[&'a dyn Binding],
    ) -> Result<PreparedOp<'a>> {
        let function = format!("Kernels::prepare of `{name}`");
        let call = Call { function: &function, sizes: &[] };
        check::check_arguments(&self.shared.device, call, plan, buffers)?;
        // SAFETY: the caller guarantees the same requirements.
        unsafe { PreparedOp::new(self, call, plan, Origin::Program, buffers) }
            .map_err(|error| error.in_function(function.clone()))
    }

    /// Prepares a plan of the kernel library; errors name the called function.
    fn prepare_plan<'a>(
        &self,
        call: Call<'_>,
        plan: Result<Plan, PlanError>,
        buffers: &[&'a dyn Binding],
    ) -> Result<PreparedOp<'a>> {
        let device = &self.shared.device;
        let plan = plan.map_err(|error| error::plan_error(device.info(), call, error))?;
        check::check_arguments(device, call, &plan, buffers)?;
        // SAFETY: the kernels of scry-ptx keep to their interfaces: they access nothing beyond the
        // sizes in the plan, which were checked above, and terminate.
        unsafe { PreparedOp::new(self, call, &plan, Origin::Crate, buffers) }
            .map_err(|error| call.for_function(error))
    }

    /// Returns the `nth` scratch buffer of plans, with at least `bytes` bytes.
    fn scratch(&self, nth: usize, bytes: u64) -> Result<Arc<Buffer<u8>>> {
        let mut buffers = lock(&self.shared.scratch);
        let device = &self.shared.device;
        while buffers.len() <= nth {
            buffers.push(Arc::new(device.alloc(16)?));
        }
        if buffers[nth].byte_size() < bytes {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let larger = Buffer::allocate(&device.context, bytes, error::SCRATCH);
            buffers[nth] = Arc::new(larger.map_err(error::scratch_too_large)?);
        }
        Ok(Arc::clone(&buffers[nth]))
    }
}

/// Returns the properties that the choice of kernels depends on; `None` if the device does not run
/// PTX.
fn gpu_spec(info: &DeviceInfo) -> Option<GpuSpec> {
    let (capability, multiprocessors) = (info.compute_capability?, info.multiprocessors?);
    let shared_memory = info.limits.max_workgroup_memory;
    let target = match capability {
        [9, 0] => Target::SM_90A,
        [major, minor] => Target::for_capability(major, minor)?,
    };
    Some(GpuSpec { target, multiprocessors, shared_memory })
}

/// Converts the sizes of an operation, which must be non-negative.
fn sizes<const N: usize>(function: &str, sizes: [(&str, i128); N]) -> Result<[u64; N]> {
    let negative = sizes.into_iter().find(|(_, size)| u64::try_from(*size).is_err());
    if let Some((name, size)) = negative {
        let call = Call { function, sizes: &[] };
        let problem = format!("is {size}, but sizes must be non-negative");
        return Err(call.argument_error(
            name.to_owned(),
            problem,
            "pass a number from 0 to 2^64 - 1",
        ));
    }
    // None is negative, and all fit in 64 bits.
    Ok(sizes.map(|(_, size)| size as u64))
}

/// Returns the PTX type of an element type.
fn element<T: GemmElement>() -> PtxType {
    match T::LAYOUT {
        ElementLayout::Scalar(it) if it.kind == ScalarKind::Bfloat => PtxType::Bf16,
        ElementLayout::Scalar(it) if it.width == 2 => PtxType::F16,
        _ => PtxType::F32,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.shared.device.name();
        f.debug_struct("Kernels")
            .field("device", &device)
            .field("gpu_spec", &self.gpu_spec())
            .finish()
    }
}
