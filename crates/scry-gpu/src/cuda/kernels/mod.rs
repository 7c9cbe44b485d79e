//! Ready-made kernels for NVIDIA GPUs, on buffers: what no WGSL can express. They are written in
//! Rust and compiled by the driver; nothing needs to be installed.
//!
//! [`Kernels`] picks the variant that suits the shape and the device, and gives it [`Prepared`]: to
//! be run at once, or added to a batch or a recording, as often as you like.

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
pub use prepared::Prepared;
pub use products::{Activation, Engine, Epilogue, Gemm, Layout, MatrixLayout, Precision};
pub use quantized::BlockFormat;
pub use rows::{Norm, NormKind, Rows, Softmax};
pub use scry_ptx::kernels::{GpuSpec, Plan, PlanError, PtxKernel};
pub use scry_ptx::{PtxType, Target};

use self::check::Call;
use crate::api::binding::Binding;
use crate::api::buffer::Buffer;
use crate::api::device::Device;
use crate::api::element::ElementLayout;
use crate::api::error::Result;
use crate::api::info::DeviceInfo;
use crate::api::native::{self, Factor, Language};
use scry_ir::ScalarKind;

/// The ready-made kernels of one device: compiled when first needed, and kept.
///
/// Cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Kernels {
    shared: Arc<Shared>,
}

struct Shared {
    device: Device,
    machine: GpuSpec,
    /// This crate's kernels, by name and bytes of dynamic shared memory.
    compiled: Mutex<HashMap<(String, u32), Compiled>>,
    /// Memory for what passes between the steps of plans: the first piece of each, the second one,
    /// and so on. Plans share it: the order of their commands follows from that.
    scratch: Mutex<Vec<Arc<Buffer<u8>>>>,
}

/// Who wrote the kernels of a plan: what this crate's are called says what they are, and they are
/// not written a second time; of a program's own nobody knows whether their names tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Crate,
    Program,
}

/// A kernel that is ready to be launched.
#[derive(Clone)]
struct Compiled {
    kernel: crate::Kernel,
    /// Blocks of a cluster along x, y and z.
    cluster: [u32; 3],
}

impl Kernels {
    /// The kernels of a CUDA device.
    ///
    /// ```no_run
    /// # #[cfg(feature = "kernels")]
    /// # fn example() -> scry_gpu::Result<()> {
    /// use scry_gpu::cuda::kernels::Kernels;
    /// use scry_gpu::{BackendKind, Device};
    ///
    /// let gpu = Device::with_backend(BackendKind::Cuda)?;
    /// let kernels = Kernels::new(&gpu)?;
    /// println!("{:?}", kernels.machine());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Language`](crate::GpuError::Language) on devices of other backends.
    pub fn new(device: &Device) -> Result<Self> {
        let info = device.info();
        let machine = machine(info)
            .ok_or_else(|| native::refusal("Kernels::new", Language::Ptx, &info.title()))?;
        let shared = Shared {
            device: device.clone(),
            machine,
            compiled: Mutex::default(),
            scratch: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// What the choice of variants depends on.
    #[must_use]
    pub fn machine(&self) -> GpuSpec {
        self.shared.machine
    }

    /// Prepares a plan of your own; `name` stands in errors. Buffers are given in the order of its
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
    ///     let plan = Gemm::new(64, 64, 64, PtxType::Bf16).plan(kernels.machine())?;
    ///     // SAFETY: a plan of the kernel library keeps to its buffers.
    ///     let product = unsafe { kernels.prepare("product", &plan, &[a, b, c])? };
    ///     product.run()?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](crate::GpuError::Argument) for buffers that are too short, of other
    /// elements, or that overlap where one is written;
    /// [`GpuError::Capability`](crate::GpuError::Capability) if the device lacks what a kernel
    /// uses; as [`Device::compile_ptx`] and [`Device::alloc`].
    ///
    /// # Safety
    /// Each kernel of the plan takes the parameters that its interface lists. It accesses nothing
    /// but its buffers, as far as its interface says that they reach, writes only those that are
    /// declared to be written, and ends. If it says what it reads early, it waits as
    /// [`NativeInterface::begins_early`](crate::NativeInterface::begins_early) says.
    pub unsafe fn prepare<'a>(
        &self,
        name: &str,
        plan: &Plan,
        buffers: &[&'a dyn Binding],
    ) -> Result<Prepared<'a>> {
        let function = format!("Kernels::prepare of `{name}`");
        let call = Call { function: &function, sizes: &[] };
        check::arguments(&self.shared.device, call, plan, buffers)?;
        // SAFETY: the caller's.
        unsafe { Prepared::new(self, call, plan, Origin::Program, buffers) }
            .map_err(|error| error.in_function(function.clone()))
    }

    /// Prepares a plan of this crate's, whose kernels keep to their buffers.
    fn planned<'a>(
        &self,
        call: Call<'_>,
        plan: Result<Plan, PlanError>,
        buffers: &[&'a dyn Binding],
    ) -> Result<Prepared<'a>> {
        let device = &self.shared.device;
        let plan = plan.map_err(|error| error::refused(device.info(), call, error))?;
        check::arguments(device, call, &plan, buffers)?;
        // SAFETY: the kernels of scry-ptx touch nothing beyond the sizes that they are planned for,
        // of which the buffers are checked to be, and end.
        unsafe { Prepared::new(self, call, &plan, Origin::Crate, buffers) }
            .map_err(|error| call.named(error))
    }

    /// Memory for what passes between steps: the `nth` piece, of at least so many bytes.
    fn scratch(&self, nth: usize, bytes: u64) -> Result<Arc<Buffer<u8>>> {
        let mut pieces = lock(&self.shared.scratch);
        let device = &self.shared.device;
        while pieces.len() <= nth {
            pieces.push(Arc::new(device.alloc(16)?));
        }
        if pieces[nth].byte_size() < bytes {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let larger = Buffer::allocate(&device.context, bytes, error::SCRATCH);
            pieces[nth] = Arc::new(larger.map_err(error::without_scratch)?);
        }
        Ok(Arc::clone(&pieces[nth]))
    }
}

/// What kernels are chosen for; none if the device does not run PTX.
fn machine(info: &DeviceInfo) -> Option<GpuSpec> {
    let (capability, multiprocessors) = (info.compute_capability?, info.multiprocessors?);
    let shared_memory = info.limits.max_workgroup_memory;
    let target = match capability {
        [9, 0] => Target::SM_90A,
        [major, minor] => Target::for_capability(major, minor)?,
    };
    Some(GpuSpec { target, multiprocessors, shared_memory })
}

/// Sizes of an operation by their names, as kernels count them.
fn sizes<const N: usize>(function: &str, sizes: [(&str, i128); N]) -> Result<[u64; N]> {
    let wrong = sizes.into_iter().find(|(_, size)| u64::try_from(*size).is_err());
    if let Some((name, size)) = wrong {
        let call = Call { function, sizes: &[] };
        let problem = format!("is {size}, but must be a number of elements");
        return Err(call.refuse(name.to_owned(), problem, "pass a number from 0 to 2^64 - 1"));
    }
    // All of them fit.
    Ok(sizes.map(|(_, size)| size as u64))
}

/// The type of elements.
fn element<T: Factor>() -> PtxType {
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
            .field("machine", &self.machine())
            .finish()
    }
}
