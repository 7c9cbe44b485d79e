//! Prepared operations: a plan with its buffers and compiled kernels.

use std::fmt;
use std::sync::Arc;

use scry_ptx::kernels::{BufferAccess, Parameter, Place, Plan, PtxKernel, Step};
use scry_ptx::typed::hopper::Swizzle;
use scry_ptx::{PtxModule, Target};

use super::check::Call;
use super::{Compiled, Kernels, Origin, error, lock};
use crate::api::batch::Batch;
use crate::api::binding::Binding;
use crate::api::buffer::Buffer;
use crate::api::device::Device;
use crate::api::error::{GpuError, Result, TooLargeError, WrongDeviceError};
use crate::api::launch::Launch;
use crate::api::native::{
    NativeBinding, NativeInterface, NativeParameter, TensorElement, TensorMap, TensorSwizzle,
};
use crate::core::command_list::CommandList;
use crate::core::context::Context;
use crate::core::encode;

/// An operation of the kernel library, checked and compiled: run it as often as you like.
#[must_use = "nothing is computed until it is run or added to a batch"]
pub struct PreparedOp<'a> {
    context: Arc<Context>,
    /// The function that prepared it, with its sizes.
    call: String,
    launches: Vec<Launched<'a>>,
}

/// A launch of one kernel.
struct Launched<'a> {
    kernel: crate::Kernel,
    buffers: Vec<StepBuffer<'a>>,
    launch: Launch,
}

/// A buffer that is bound to a kernel.
enum StepBuffer<'a> {
    Argument(&'a dyn Binding),
    Scratch(Arc<Buffer<u8>>),
}

impl<'a> StepBuffer<'a> {
    fn binding(&self) -> &dyn Binding {
        match self {
            Self::Argument(binding) => *binding,
            Self::Scratch(buffer) => &**buffer,
        }
    }
}

impl<'a> PreparedOp<'a> {
    /// Submits the operation and returns before it is done; reads of the results wait for it.
    ///
    /// ```no_run
    /// # #[cfg(feature = "kernels")]
    /// # mod example {
    /// use scry_gpu::Buffer;
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(kernels: &Kernels, x: &Buffer<f32>, y: &Buffer<f32>) -> scry_gpu::Result<()> {
    ///     let softmax = kernels.softmax(x, y, [1024, 4096])?;
    ///     softmax.run()?; // does not wait
    ///     softmax.run()
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::run`](crate::Device::run).
    pub fn run(&self) -> Result<()> {
        let mut list = CommandList::default();
        const NAME: &str = "PreparedOp::run";
        self.append(&self.context, &mut list, NAME)?;
        let submitted = self.context.submit_unless_empty(list);
        submitted.map_err(|error| self.explained(NAME, error))
    }

    /// Adds the operation to a batch.
    ///
    /// ```no_run
    /// # #[cfg(feature = "kernels")]
    /// # mod example {
    /// use scry_gpu::Buffer;
    /// use scry_gpu::cuda::kernels::Kernels;
    ///
    /// fn example(kernels: &Kernels, x: &Buffer<f32>, y: &Buffer<f32>) -> scry_gpu::Result<()> {
    ///     let softmax = kernels.softmax(x, y, [1024, 4096])?;
    ///     let mut batch = kernels.device().batch();
    ///     softmax.add_to(&mut batch)?;
    ///     batch.submit()
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::WrongDevice`](crate::GpuError::WrongDevice) if the batch is of another device;
    /// as [`Device::run`](crate::Device::run).
    pub fn add_to(&self, batch: &mut Batch) -> Result<()> {
        batch.add(|context, list| self.append(context, list, "PreparedOp::add_to")).map(|_| ())
    }

    /// Returns the names of the kernels in launch order; empty if there is nothing to compute.
    #[must_use]
    pub fn kernels(&self) -> Vec<&str> {
        self.launches.iter().map(|launched| launched.kernel.entry_point()).collect()
    }

    /// Prepares a launch of one kernel, which the core checks.
    pub(super) fn of_one(
        device: &Device,
        call: Call<'_>,
        kernel: crate::Kernel,
        buffers: &[&'a dyn Binding],
        launch: Launch,
    ) -> Self {
        let buffers = buffers.iter().map(|buffer| StepBuffer::Argument(*buffer)).collect();
        let launches = vec![Launched { kernel, buffers, launch }];
        Self { context: Arc::clone(&device.context), call: call.described(), launches }
    }

    fn append(
        &self,
        context: &Arc<Context>,
        list: &mut CommandList,
        operation: &str,
    ) -> Result<()> {
        self.check_device(context, operation)?;
        self.launches.iter().try_for_each(|launched| {
            let bindings: Vec<_> = launched.buffers.iter().map(StepBuffer::binding).collect();
            encode::dispatch(
                context,
                list,
                operation,
                &launched.kernel,
                &bindings,
                &launched.launch,
            )
            .map_err(|error| self.explained(operation, error))
        })
    }

    /// Converts a launch's error to one of the called functions: the program neither wrote the
    /// kernel nor chose its grid.
    fn explained(&self, operation: &str, error: GpuError) -> GpuError {
        match error {
            GpuError::TooLarge(error) => GpuError::TooLarge(TooLargeError {
                function: Some(operation.to_owned().into()),
                what: format!("the grid of {}", self.call),
                help: "compute it in parts".to_owned(),
                ..error
            }),
            other => other.in_function(format!("{operation} of {}", self.call)),
        }
    }

    /// Rejects a batch of another device.
    fn check_device(&self, context: &Arc<Context>, operation: &str) -> Result<()> {
        if Arc::ptr_eq(context, &self.context) {
            return Ok(());
        }
        Err(GpuError::WrongDevice(WrongDeviceError {
            operation: operation.to_owned(),
            what: format!("what {} prepared", self.call),
            owner: self.context.info.name.clone(),
            user: context.info.name.clone(),
            help: "add it to a batch of the Device that it was prepared for".to_owned(),
        }))
    }

    /// Compiles the kernels of a plan with checked buffers.
    ///
    /// # Safety
    /// As [`Kernels::prepare`].
    pub(super) unsafe fn new(
        kernels: &Kernels,
        call: Call<'_>,
        plan: &Plan,
        origin: Origin,
        buffers: &[&'a dyn Binding],
    ) -> Result<Self> {
        let sizes = plan.scratch.iter().enumerate();
        let scratch = sizes.map(|(nth, bytes)| kernels.scratch(nth, *bytes));
        let scratch = scratch.collect::<Result<_>>()?;
        let plan_buffers = PlanBuffers { kernels, origin, buffers, scratch };
        // SAFETY: the caller's.
        let launches = plan.steps.iter().map(|step| unsafe { plan_buffers.launched(step) });
        let context = Arc::clone(&kernels.shared.device.context);
        let call = call.described();
        Ok(Self { context, call, launches: launches.collect::<Result<_>>()? })
    }
}

/// The buffers that the steps of a plan refer to.
struct PlanBuffers<'r, 'a> {
    kernels: &'r Kernels,
    origin: Origin,
    buffers: &'r [&'a dyn Binding],
    scratch: Vec<Arc<Buffer<u8>>>,
}

impl<'a> PlanBuffers<'_, 'a> {
    /// # Safety
    /// As [`Kernels::prepare`].
    unsafe fn launched(&self, step: &Step) -> Result<Launched<'a>> {
        let kernel = &*step.kernel;
        // SAFETY: the caller's.
        let compiled = unsafe { self.kernels.compiled(kernel, self.origin) };
        let Compiled { kernel: compiled, cluster } = compiled?;
        let grid = kernel.launch().grid;
        let whole_clusters = grid.iter().zip(cluster).all(|(n, of)| *n > 0 && n.is_multiple_of(of));
        if !whole_clusters {
            return Err(error::partial_cluster(kernel, cluster));
        }
        let buffers = step.buffers.iter().map(|place| self.buffer(*place));
        let launch = Launch::workgroups(grid).immediate_bytes(values(kernel));
        Ok(Launched { kernel: compiled, buffers: buffers.collect::<Result<_>>()?, launch })
    }

    fn buffer(&self, place: Place) -> Result<StepBuffer<'a>> {
        match place {
            Place::Scratch(nth) => {
                let scratch = self.scratch.get(nth).ok_or_else(|| error::missing_buffer(place));
                scratch.map(|scratch| StepBuffer::Scratch(Arc::clone(scratch)))
            }
            Place::Argument(nth) => match self.buffers.get(nth) {
                None => Err(error::missing_buffer(place)),
                // An empty buffer cannot be bound: the kernel, which does not access it, gets
                // another one.
                Some(buffer) if buffer.view().size == 0 => {
                    let nothing = self.kernels.shared.device.alloc(16)?;
                    Ok(StepBuffer::Scratch(Arc::new(nothing)))
                }
                Some(buffer) => Ok(StepBuffer::Argument(*buffer)),
            },
        }
    }
}

impl Kernels {
    /// Returns the compiled kernel. Library kernels are cached by name; a program's own kernels are
    /// not, because another one may have the same name.
    ///
    /// # Safety
    ///
    /// As [`Kernels::prepare`].
    unsafe fn compiled(&self, kernel: &dyn PtxKernel, origin: Origin) -> Result<Compiled> {
        let key = (kernel.name(), kernel.launch().dynamic_shared);
        let cached = lock(&self.shared.compiled).get(&key).cloned();
        if let Some(cached) = cached.filter(|_| origin == Origin::Crate) {
            return Ok(cached);
        }
        let (device, target) = (&self.shared.device, self.machine().target);
        let needed = kernel.default_target();
        if !target.runs(needed) {
            return Err(error::missing_capability(device.info(), key.0, needed));
        }
        let function = kernel.write(target);
        let cluster = function.cluster.unwrap_or([1; 3]);
        let text = PtxModule::new(target).with(function).to_string();
        // SAFETY: the caller's.
        let compiled = unsafe { device.compile_ptx(&text, &key.0, &interface(kernel, target))? };
        let compiled = Compiled { kernel: compiled, cluster };
        if origin == Origin::Crate {
            lock(&self.shared.compiled).insert(key, compiled.clone());
        }
        Ok(compiled)
    }
}

/// Converts a kernel's interface for the core. The plan's check has covered the buffers' types.
fn interface(kernel: &dyn PtxKernel, target: Target) -> NativeInterface {
    let (launch, interface) = (kernel.launch(), kernel.interface());
    let bindings: Vec<_> = interface
        .buffers
        .iter()
        .map(|buffer| match buffer.access {
            BufferAccess::Read => NativeBinding::read_bytes(buffer.name),
            BufferAccess::Write => NativeBinding::read_write_bytes(buffer.name),
        })
        .collect();
    let parameters: Vec<_> = interface.parameters.iter().map(parameter).collect();
    let interface = NativeInterface::new(bindings, launch.block)
        .dynamic_shared(launch.dynamic_shared)
        .with_parameters(parameters);
    match kernel.pdl_reads() {
        Some(pdl) if target.has(90) => interface.pdl(pdl),
        _ => interface,
    }
}

fn parameter(parameter: &Parameter) -> NativeParameter {
    match parameter {
        Parameter::Pointer(buffer) => NativeParameter::Pointer(*buffer),
        Parameter::U32(_) | Parameter::F32(_) => NativeParameter::Word,
        Parameter::U64(_) => NativeParameter::Long,
        Parameter::Map(buffer, _) => NativeParameter::Map(*buffer),
    }
}

/// Returns the values of a kernel's scalar parameters and tensor maps, in order.
fn values(kernel: &dyn PtxKernel) -> Vec<u8> {
    let mut bytes = Vec::new();
    for parameter in kernel.interface().parameters {
        match parameter {
            Parameter::Pointer(_) => {}
            Parameter::U32(number) => bytes.extend(number.to_ne_bytes()),
            Parameter::F32(number) => bytes.extend(number.to_ne_bytes()),
            Parameter::U64(number) => bytes.extend(number.to_ne_bytes()),
            Parameter::Map(_, map) => bytes.extend(tensor_map(map).to_bytes()),
        }
    }
    bytes
}

fn tensor_map(map: scry_ptx::kernels::TensorMapSpec) -> TensorMap {
    use scry_ptx::kernels::TensorMapElement as From;
    let scry_ptx::kernels::TensorMapSpec { element, offset, dims, strides, tile, swizzle } = map;
    let element = match element {
        From::U8 => TensorElement::U8,
        From::F16 => TensorElement::F16,
        From::Bf16 => TensorElement::Bf16,
        From::F32 => TensorElement::F32,
    };
    let swizzle = match swizzle {
        Swizzle::None => TensorSwizzle::None,
        Swizzle::B32 => TensorSwizzle::B32,
        Swizzle::B64 => TensorSwizzle::B64,
        Swizzle::B128 => TensorSwizzle::B128,
    };
    TensorMap { element, offset, dims, strides, tile, swizzle }
}

impl fmt::Debug for PreparedOp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedOp").field("kernels", &self.kernels()).finish()
    }
}
