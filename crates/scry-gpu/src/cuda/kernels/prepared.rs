//! Prepared operations: a plan with its buffers and compiled kernels.

use std::fmt;
use std::sync::Arc;

use scry_ptx::kernels::{BufferAccess, BufferSlot, Parameter, Plan, PtxKernel, Step};
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
    /// The function that prepared the operation, and the sizes passed to it, for errors.
    call: String,
    launches: Vec<PreparedLaunch<'a>>,
}

/// A launch of one kernel.
struct PreparedLaunch<'a> {
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
    /// The same as [`Device::run`](crate::Device::run).
    pub fn run(&self) -> Result<()> {
        let mut list = CommandList::default();
        const NAME: &str = "PreparedOp::run";
        self.append(&self.context, &mut list, NAME)?;
        let submitted = self.context.submit_unless_empty(list);
        submitted.map_err(|error| self.with_call(NAME, error))
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
    /// the errors of [`Device::run`](crate::Device::run).
    pub fn add_to(&self, batch: &mut Batch) -> Result<()> {
        batch.add(|context, list| self.append(context, list, "PreparedOp::add_to")).map(|_| ())
    }

    /// Returns the names of the kernels in launch order; empty if there is nothing to compute.
    #[must_use]
    pub fn kernels(&self) -> Vec<&str> {
        self.launches.iter().map(|launched| launched.kernel.entry_point()).collect()
    }

    /// Prepares a launch of one kernel. The core checks it when it is run.
    pub(super) fn single(
        device: &Device,
        call: Call<'_>,
        kernel: crate::Kernel,
        buffers: &[&'a dyn Binding],
        launch: Launch,
    ) -> Self {
        let buffers = buffers.iter().map(|buffer| StepBuffer::Argument(*buffer)).collect();
        let launches = vec![PreparedLaunch { kernel, buffers, launch }];
        Self { context: Arc::clone(&device.context), call: call.description(), launches }
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
            .map_err(|error| self.with_call(operation, error))
        })
    }

    /// Converts the error of a launch to one that names the functions that the program called: it
    /// neither wrote the kernel nor chose its grid.
    fn with_call(&self, operation: &str, error: GpuError) -> GpuError {
        match error {
            GpuError::TooLarge(error) => GpuError::TooLarge(TooLargeError {
                function: Some(operation.to_owned().into()),
                what: format!("the grid of {}", self.call),
                help: "split the operation over several calls".to_owned(),
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
            what: format!("the operation prepared by {}", self.call),
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
        // SAFETY: the caller guarantees the same requirements.
        let launches = plan.steps.iter().map(|step| unsafe { plan_buffers.prepare_step(step) });
        let context = Arc::clone(&kernels.shared.device.context);
        let call = call.description();
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
    /// Compiles the kernel of a step, and resolves its buffers.
    ///
    /// # Safety
    /// As [`Kernels::prepare`].
    unsafe fn prepare_step(&self, step: &Step) -> Result<PreparedLaunch<'a>> {
        let kernel = &*step.kernel;
        // SAFETY: the caller guarantees the same requirements.
        let compiled = unsafe { self.kernels.compile(kernel, self.origin) };
        let Compiled { kernel: compiled, cluster } = compiled?;
        let grid = kernel.launch().grid;
        let whole_clusters =
            grid.iter().zip(cluster).all(|(n, blocks)| *n > 0 && n.is_multiple_of(blocks));
        if !whole_clusters {
            return Err(error::partial_cluster(kernel, cluster));
        }
        let buffers = step.buffers.iter().map(|place| self.buffer(*place));
        let launch = Launch::workgroups(grid).immediate_bytes(parameter_bytes(kernel));
        Ok(PreparedLaunch { kernel: compiled, buffers: buffers.collect::<Result<_>>()?, launch })
    }

    fn buffer(&self, place: BufferSlot) -> Result<StepBuffer<'a>> {
        match place {
            BufferSlot::Scratch(nth) => {
                let scratch = self.scratch.get(nth).ok_or_else(|| error::missing_buffer(place));
                scratch.map(|scratch| StepBuffer::Scratch(Arc::clone(scratch)))
            }
            BufferSlot::Argument(nth) => match self.buffers.get(nth) {
                None => Err(error::missing_buffer(place)),
                // An empty buffer cannot be bound. The kernel does not access it, so another buffer
                // is bound instead.
                Some(buffer) if buffer.view().size == 0 => {
                    let placeholder = self.kernels.shared.device.alloc(16)?;
                    Ok(StepBuffer::Scratch(Arc::new(placeholder)))
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
    unsafe fn compile(&self, kernel: &dyn PtxKernel, origin: Origin) -> Result<Compiled> {
        let key = (kernel.name(), kernel.launch().dynamic_shared);
        let cached = lock(&self.shared.compiled).get(&key).cloned();
        if let Some(cached) = cached.filter(|_| origin == Origin::Crate) {
            return Ok(cached);
        }
        let (device, target) = (&self.shared.device, self.gpu_spec().target);
        let needed = kernel.default_target();
        if !target.supports(needed) {
            return Err(error::missing_capability(device.info(), key.0, needed));
        }
        let function = kernel.write(target);
        let cluster = function.cluster.unwrap_or([1; 3]);
        let text = PtxModule::new(target).with(function).to_string();
        // SAFETY: the caller guarantees that the kernel keeps to its interface, which is the one
        // that is passed here.
        let compiled = unsafe { device.compile_ptx(&text, &key.0, &to_interface(kernel, target))? };
        let compiled = Compiled { kernel: compiled, cluster };
        if origin == Origin::Crate {
            lock(&self.shared.compiled).insert(key, compiled.clone());
        }
        Ok(compiled)
    }
}

/// Converts a kernel's interface to that of the core. Buffers are declared as bytes, since
/// [`check_arguments`](super::check::check_arguments) has checked their types.
fn to_interface(kernel: &dyn PtxKernel, target: Target) -> NativeInterface {
    let (launch, interface) = (kernel.launch(), kernel.interface());
    let bindings: Vec<_> = interface
        .buffers
        .iter()
        .map(|buffer| match buffer.access {
            BufferAccess::Read => NativeBinding::read_bytes(buffer.name),
            BufferAccess::Write => NativeBinding::read_write_bytes(buffer.name),
        })
        .collect();
    let parameters: Vec<_> = interface.parameters.iter().map(to_parameter).collect();
    let interface = NativeInterface::new(bindings, launch.block)
        .dynamic_shared(launch.dynamic_shared)
        .with_parameters(parameters);
    match kernel.pdl_reads() {
        Some(pdl) if target.has(90) => interface.pdl(pdl),
        _ => interface,
    }
}

fn to_parameter(parameter: &Parameter) -> NativeParameter {
    match parameter {
        Parameter::Pointer(buffer) => NativeParameter::Pointer(*buffer),
        Parameter::U32(_) | Parameter::F32(_) => NativeParameter::U32,
        Parameter::U64(_) => NativeParameter::U64,
        Parameter::TensorMap(buffer, _) => NativeParameter::TensorMap(*buffer),
    }
}

/// Returns the values of a kernel's scalar parameters and tensor maps, in order.
fn parameter_bytes(kernel: &dyn PtxKernel) -> Vec<u8> {
    let mut bytes = Vec::new();
    for parameter in kernel.interface().parameters {
        match parameter {
            Parameter::Pointer(_) => {}
            Parameter::U32(number) => bytes.extend(number.to_ne_bytes()),
            Parameter::F32(number) => bytes.extend(number.to_ne_bytes()),
            Parameter::U64(number) => bytes.extend(number.to_ne_bytes()),
            Parameter::TensorMap(_, map) => bytes.extend(to_tensor_map(map).to_bytes()),
        }
    }
    bytes
}

fn to_tensor_map(map: scry_ptx::kernels::TensorMapSpec) -> TensorMap {
    use scry_ptx::kernels::TensorMapElement as Element;
    let scry_ptx::kernels::TensorMapSpec { element, offset, dims, strides, tile, swizzle } = map;
    let element = match element {
        Element::U8 => TensorElement::U8,
        Element::F16 => TensorElement::F16,
        Element::Bf16 => TensorElement::Bf16,
        Element::F32 => TensorElement::F32,
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
