//! Plans of PTX kernels as launches. Unsafe code is here and in `host_gemm/mod.rs` only.

use std::panic::resume_unwind;

use scry_gpu::{
    Binding, GpuError, Launch, NativeBinding, NativeInterface, NativeParameter, PreparedLaunch,
    Result, Scalar, TensorElement, TensorMap, TensorSwizzle, UntypedBuffer,
};
use scry_ptx::kernels::{
    BufferAccess, BufferParameter, BufferSlot, Parameter, Plan, PlanError, PtxKernel, Step,
    TensorMapElement, TensorMapSpec,
};
use scry_ptx::typed::hopper::Swizzle;
use scry_ptx::{PtxModule, PtxType, Target};

use crate::arguments;
use crate::call::Call;
use crate::compiled::Compiled;
use crate::explanation::Explanation;
use crate::kernels::{Kernels, lock};
use crate::op::Op;
use crate::operation::{AnyOperation, Candidate, Preparation, VariantInfo};
use crate::ptx;

/// The author of a plan's kernels. The name of a library kernel determines its code, so such
/// kernels are cached by name and dynamic shared memory. A program's own kernels may share a name,
/// so they are not cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Crate,
    Program,
}

impl Kernels {
    /// Prepares a plan of your own PTX kernels; errors contain `name`. Buffers are in the order of
    /// the plan's arguments; they may be longer than it needs.
    ///
    /// ```no_run
    /// use scry_gpu::{Buffer, bf16};
    /// use scry_kernels::Kernels;
    ///
    /// fn example(
    ///     kernels: &Kernels,
    ///     a: &Buffer<bf16>,
    ///     b: &Buffer<bf16>,
    ///     c: &Buffer<bf16>,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     use scry_kernels::{Gemm, PtxType};
    ///
    ///     let spec = kernels.gpu_spec().expect("the device runs PTX");
    ///     let plan = Gemm::new(64, 64, 64, PtxType::Bf16).plan(spec)?;
    ///     // SAFETY: a plan of the kernel library keeps to its buffers.
    ///     let product = unsafe { kernels.prepare("product", &plan, &[a, b, c])? };
    ///     product.run()?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`](scry_gpu::GpuError::Argument) for buffers that are too short, of
    /// another element type, or that overlap where one is written;
    /// [`GpuError::Capability`](scry_gpu::GpuError::Capability) if the device lacks a feature that
    /// a kernel uses; [`GpuError::Language`](scry_gpu::GpuError::Language) on devices that do not
    /// run PTX; the errors of [`Device::compile_ptx`](scry_gpu::Device::compile_ptx) and
    /// [`Device::alloc`](scry_gpu::Device::alloc).
    ///
    /// # Safety
    /// Each kernel of the plan has the parameters that its interface lists. It accesses nothing
    /// but its buffers, up to the sizes in its interface, writes only those that are declared as
    /// written, and terminates. If [`PtxKernel::pdl_reads`] returns `Some`, even of no buffers, the
    /// kernel waits as [`NativeInterface::pdl`] requires.
    pub unsafe fn prepare(&self, name: &str, plan: &Plan, buffers: &[&dyn Binding]) -> Result<Op> {
        let call = Call::new(format!("Kernels::prepare of `{name}`"));
        let declared = bindings(&plan.arguments);
        arguments::check_declared(self.device(), &call, declared.clone(), buffers)?;
        let buffers: Vec<_> = buffers.iter().map(|buffer| buffer.to_untyped()).collect();
        // SAFETY: the caller guarantees the same requirements; the buffers were checked above.
        let launches = unsafe { launches(self, &call, plan, Origin::Program, &buffers) };
        let launches = launches.map_err(|error| error.in_function(call.function.clone()))?;
        let operation = ProgramPlan { call, arguments: declared, launches };
        let candidates = operation.candidates(self);
        let reason = "it is the program's own plan".to_owned();
        let explanation = Explanation::new(&operation.call, 0, reason, &candidates);
        Op::new(self, std::sync::Arc::new(operation), buffers, 0, explanation)
    }
}

/// A prepared plan of a program's own kernels.
#[derive(Debug)]
struct ProgramPlan {
    call: Call,
    arguments: Vec<NativeBinding>,
    launches: Vec<PreparedLaunch>,
}

impl AnyOperation for ProgramPlan {
    fn call(&self) -> Call {
        self.call.clone()
    }

    fn arguments(&self) -> Vec<NativeBinding> {
        self.arguments.clone()
    }

    fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }

    fn tolerance(&self) -> f64 {
        0.0
    }

    fn candidates(&self, _: &Kernels) -> Vec<Candidate> {
        let info = VariantInfo { name: "ptx", needs: "its targets", deterministic: false };
        vec![Candidate { info, obstacle: None, suits: true }]
    }

    fn prepare(&self, _: usize, _: &Kernels, _: &[UntypedBuffer]) -> Result<Vec<PreparedLaunch>> {
        Ok(self.launches.clone())
    }
}

impl Preparation<'_> {
    /// Compiles kernels of the kernel library that are not compiled yet, at the same time on
    /// several threads. Returns the error of the first one that has one.
    pub(crate) fn compile_all(
        &self,
        all: Result<Vec<Box<dyn PtxKernel>>, PlanError>,
    ) -> Result<()> {
        let all =
            all.map_err(|error| ptx::plan_error(self.kernels.device().info(), self.call, error))?;
        let compile = |kernel: &dyn PtxKernel| {
            // SAFETY: the kernels of scry-ptx keep to their interfaces.
            unsafe { compile(self.kernels, self.call, kernel, Origin::Crate) }.map(|_| ())
        };
        let is_compiled = |kernel: &dyn PtxKernel| {
            lock(&self.kernels.shared.ptx.kernels).contains_key(&cache_key(kernel))
        };
        let new: Vec<_> = all.iter().map(|it| &**it).filter(|it| !is_compiled(*it)).collect();
        match new.as_slice() {
            [] => Ok(()),
            [single] => compile(*single),
            [first, others @ ..] => std::thread::scope(|scope| {
                let compile = &compile;
                let mut threads = Vec::new();
                for kernel in others.iter().copied() {
                    let thread = std::thread::Builder::new().name("scry-compile".to_owned());
                    // A kernel whose thread cannot be started is compiled at its first use.
                    threads.extend(thread.spawn_scoped(scope, move || compile(kernel)));
                }
                let mut result = compile(*first);
                for thread in threads {
                    let compiled = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                    result = result.and(compiled);
                }
                result
            }),
        }
    }

    /// Prepares a plan of the kernel library.
    pub(crate) fn plan(&self, plan: Result<Plan, PlanError>) -> Result<Vec<PreparedLaunch>> {
        let device = self.kernels.device();
        let plan = plan.map_err(|error| ptx::plan_error(device.info(), self.call, error))?;
        let declared = bindings(&plan.arguments);
        let buffers: Vec<&dyn Binding> = self.buffers.iter().map(|buffer| buffer as _).collect();
        arguments::check_declared(device, self.call, declared, &buffers)?;
        // SAFETY: the kernels of scry-ptx keep to their interfaces: they access nothing beyond the
        // sizes in the plan, which were checked above, and terminate.
        unsafe { launches(self.kernels, self.call, &plan, Origin::Crate, self.buffers) }
    }
}

/// Compiles the kernels of a plan, and prepares its launches with checked buffers.
///
/// # Safety
/// As [`Kernels::prepare`], and the buffers have the types and lengths of the plan's arguments.
unsafe fn launches(
    kernels: &Kernels,
    call: &Call,
    plan: &Plan,
    origin: Origin,
    buffers: &[UntypedBuffer],
) -> Result<Vec<PreparedLaunch>> {
    let sizes = plan.scratch.iter().enumerate();
    let scratch = sizes.map(|(nth, bytes)| kernels.scratch(nth, *bytes));
    let scratch = scratch.collect::<Result<_>>()?;
    let plan_buffers = PlanBuffers { kernels, call, origin, buffers, scratch };
    // SAFETY: the caller guarantees the same requirements.
    plan.steps.iter().map(|step| unsafe { plan_buffers.prepare_step(step) }).collect()
}

/// The buffers that the steps of a plan refer to.
struct PlanBuffers<'r> {
    kernels: &'r Kernels,
    call: &'r Call,
    origin: Origin,
    buffers: &'r [UntypedBuffer],
    scratch: Vec<UntypedBuffer>,
}

impl PlanBuffers<'_> {
    /// Compiles the kernel of a step, and prepares its launch.
    ///
    /// # Safety
    /// As [`launches`].
    unsafe fn prepare_step(&self, step: &Step) -> Result<PreparedLaunch> {
        let kernel = &*step.kernel;
        // SAFETY: the caller guarantees the same requirements.
        let compiled = unsafe { compile(self.kernels, self.call, kernel, self.origin) };
        let Compiled { kernel: compiled, cluster } = compiled?;
        let grid = kernel.launch().grid;
        let whole_clusters =
            grid.iter().zip(cluster).all(|(n, blocks)| *n > 0 && n.is_multiple_of(blocks));
        if !whole_clusters {
            return Err(ptx::partial_cluster(self.call, kernel, cluster));
        }
        let buffers = step.buffers.iter().map(|slot| self.buffer(*slot));
        let buffers = buffers.collect::<Result<Vec<_>>>()?;
        let bindings: Vec<&dyn Binding> = buffers.iter().map(|buffer| buffer as _).collect();
        let launch = Launch::workgroups(grid).immediate_bytes(parameter_bytes(kernel));
        compiled.prepare(&bindings, launch)
    }

    fn buffer(&self, slot: BufferSlot) -> Result<UntypedBuffer> {
        let found = match slot {
            BufferSlot::Scratch(nth) => self.scratch.get(nth),
            BufferSlot::Argument(nth) => self.buffers.get(nth),
        };
        let found = found.ok_or_else(|| ptx::missing_buffer(self.call, slot))?;
        self.kernels.non_empty(found)
    }
}

/// Returns the key of a library kernel in the cache: its name and its dynamic shared memory.
fn cache_key(kernel: &dyn PtxKernel) -> (String, u32) {
    (kernel.name(), kernel.launch().dynamic_shared)
}

/// Returns the compiled kernel. Library kernels are cached by name and dynamic shared memory; a
/// program's own kernels are not, because another one may have the same name.
///
/// # Safety
/// As [`Kernels::prepare`].
unsafe fn compile(
    kernels: &Kernels,
    call: &Call,
    kernel: &dyn PtxKernel,
    origin: Origin,
) -> Result<Compiled> {
    let cache = &kernels.shared.ptx.kernels;
    let key = cache_key(kernel);
    let cached = lock(cache).get(&key).cloned();
    if let Some(cached) = cached.filter(|_| origin == Origin::Crate) {
        return Ok(cached);
    }
    let device = kernels.device();
    let needed = kernel.default_target();
    // A device that does not run PTX has no target, and rejects the kernel for its language.
    let target = kernels.gpu_spec().map_or(needed, |spec| spec.target);
    if !target.supports(needed) {
        let error = ptx::missing_capability(device.info(), call, needed);
        return Err(GpuError::Capability(match origin {
            Origin::Crate => error,
            Origin::Program => error.with_kernel(key.0),
        }));
    }
    let function = kernel.write(target);
    let cluster = function.cluster.unwrap_or([1; 3]);
    let text = PtxModule::new(target).with(function).to_string();
    // SAFETY: the caller guarantees that the kernel keeps to its interface, which is the one that
    // is passed here.
    let compiled = unsafe { device.compile_ptx(&text, &key.0, &to_interface(kernel, target))? };
    let compiled = Compiled { kernel: compiled, cluster };
    if origin == Origin::Crate {
        lock(cache).insert(key, compiled.clone());
    }
    Ok(compiled)
}

/// Converts the buffers of a plan to bindings of scry-gpu.
pub(crate) fn bindings(buffers: &[BufferParameter]) -> Vec<NativeBinding> {
    buffers.iter().map(native_binding).collect()
}

/// Converts a buffer of a plan to a binding of scry-gpu.
fn native_binding(buffer: &BufferParameter) -> NativeBinding {
    let scalar = scalar_type(buffer.element);
    let binding = match (scalar, buffer.access) {
        (Some(scalar), BufferAccess::Read) => NativeBinding::read(buffer.name, scalar),
        (Some(scalar), BufferAccess::Write) => NativeBinding::read_write(buffer.name, scalar),
        (None, BufferAccess::Read) => NativeBinding::read_bytes(buffer.name),
        (None, BufferAccess::Write) => NativeBinding::read_write_bytes(buffer.name),
    };
    let unit = if scalar.is_some() { 1 } else { u64::from(buffer.element.size()) };
    binding.with_min_len(buffer.len.saturating_mul(unit))
}

/// Returns the scalar type; `None` for blocks of bytes.
fn scalar_type(element: PtxType) -> Option<Scalar> {
    match element {
        PtxType::F16 => Some(Scalar::F16),
        PtxType::Bf16 => Some(Scalar::BF16),
        PtxType::F32 => Some(Scalar::F32),
        PtxType::F64 => Some(Scalar::F64),
        PtxType::U32 | PtxType::B32 => Some(Scalar::U32),
        PtxType::S32 => Some(Scalar::I32),
        _ => None,
    }
}

/// Converts a kernel's interface to that of scry-gpu. Buffers are declared as bytes, since the
/// arguments of the plan have checked their types.
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

fn to_tensor_map(map: TensorMapSpec) -> TensorMap {
    let TensorMapSpec { element, offset, dims, strides, tile, swizzle } = map;
    let element = match element {
        TensorMapElement::U8 => TensorElement::U8,
        TensorMapElement::F16 => TensorElement::F16,
        TensorMapElement::Bf16 => TensorElement::Bf16,
        TensorMapElement::F32 => TensorElement::F32,
    };
    let swizzle = match swizzle {
        Swizzle::None => TensorSwizzle::None,
        Swizzle::B32 => TensorSwizzle::B32,
        Swizzle::B64 => TensorSwizzle::B64,
        Swizzle::B128 => TensorSwizzle::B128,
    };
    TensorMap { element, offset, dims, strides, tile, swizzle }
}
