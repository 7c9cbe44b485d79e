//! Compiles programs to compute pipelines, through the WGSL that scry-ir writes.

use std::sync::Arc;
use std::thread;

use scry_ir::{BufferBindingType, ControlFlow, Interface, LaunchBlock, WgslKernel, WgslOptions};
use wgpu::{
    BindGroupLayout, BindGroupLayoutDescriptor, BindGroupLayoutEntry, BindingType, ComputePipeline,
    ComputePipelineDescriptor, PipelineCompilationOptions, PipelineLayoutDescriptor, ShaderModule,
    ShaderModuleDescriptor, ShaderRuntimeChecks, ShaderSource, ShaderStages,
};

use super::device::Gpu;
use super::verdict::Verdict;
use crate::api::error::{GpuError, Result};
use crate::backend::shared::loop_limits;
use crate::core::driver::{CompileJob, FailureReport, GridSource};

/// Bytes of stack for wgpu's compiler: the nesting of WGSL is limited, but its stack frames are
/// large. Reserved only: unused pages cost nothing.
const STACK: usize = 64 << 20;

/// A compiled kernel.
pub(super) struct Kernel {
    pub(super) pipeline: ComputePipeline,
    pub(super) layout: BindGroupLayout,
    /// The type of each binding of a launch: all but the launch block.
    pub(super) bindings: Vec<BufferBindingType>,
    /// Bytes of the immediate block.
    pub(super) immediates: usize,
    /// The content of the last binding, which the launch has besides its own; `None` without one.
    pub(super) launch_block: Option<LaunchBlock>,
    /// The meaning of the failure report in the last binding of a launch, if the kernel has one.
    pub(super) report: Option<Arc<FailureReport>>,
    /// Whether the browser accepts it.
    pub(super) verdict: Verdict,
}

impl Kernel {
    /// Returns whether immediates are native, rather than part of the launch block.
    pub(super) fn has_native_immediates(&self) -> bool {
        self.immediates > 0 && self.launch_block.as_ref().is_none_or(|block| block.immediates == 0)
    }
}

/// Compiles a program.
pub(super) fn compile(gpu: &Gpu, job: &CompileJob<'_>) -> Result<Kernel> {
    let interface = job.program.interface();
    let linearised = job.grid == GridSource::Linearised;
    let mut report = None;
    let emitted = job.program.to_wgsl_for(job.checked, |flow: ControlFlow| {
        report = loop_limits::failure_report(&gpu.info, gpu.loop_defects, job.program, flow)?;
        Ok::<_, GpuError>(WgslOptions {
            linearised,
            reports_aborted_loops: report.is_some(),
            immediates_in_uniform: !gpu.has_immediates,
            // Only llvmpipe ends loops early, in several ways.
            hides_loop_bounds: gpu.loop_defects.aborts_loops,
            omits_subgroup_directive: !cfg!(target_arch = "wasm32"),
            // The driver below a browser is unknown.
            clamps_tanh: cfg!(target_arch = "wasm32"),
        })
    })?;
    let entries = layout_entries(interface, linearised, report.is_some(), &emitted);
    let immediates = interface.immediates.as_ref();
    let immediates = immediates.map_or(0, |block| block.layout.fixed_size()) as usize;
    let is_native = emitted.launch_block.as_ref().is_none_or(|block| block.immediates == 0);
    let native_immediates = if is_native { immediates.next_multiple_of(4) as u32 } else { 0 };
    let checked = job.checked;
    let build = || pipeline(gpu, interface, checked, &emitted, &entries, native_immediates);
    let (built, verdict) = Verdict::of(gpu, &emitted.source, || with_stack(gpu, build));
    let (pipeline, layout) = built?;
    let launch_bindings = entries.len() - usize::from(emitted.launch_block.is_some());
    let bindings = entries[..launch_bindings].iter().map(|entry| match entry.ty {
        BindingType::Buffer { ty: wgpu::BufferBindingType::Uniform, .. } => {
            BufferBindingType::Uniform
        }
        _ => BufferBindingType::Storage,
    });
    let (bindings, launch_block) = (bindings.collect(), emitted.launch_block);
    Ok(Kernel { pipeline, layout, bindings, immediates, launch_block, report, verdict })
}

/// Returns the bindings: those of the interface, and the hidden ones.
fn layout_entries(
    interface: &Interface,
    linearised: bool,
    reports: bool,
    emitted: &WgslKernel,
) -> Vec<BindGroupLayoutEntry> {
    use wgpu::BufferBindingType::{Storage, Uniform};
    let declared = interface.bindings.iter().map(|binding| match binding.ty {
        BufferBindingType::Uniform => Uniform,
        BufferBindingType::Storage => Storage { read_only: !binding.access.writes() },
    });
    let hidden = [
        (linearised, Uniform),
        (reports, Storage { read_only: false }),
        (emitted.launch_block.is_some(), Uniform),
    ];
    let hidden = hidden.into_iter().filter(|(has, _)| *has).map(|(_, ty)| ty);
    let entry = |(binding, ty)| BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    };
    (0..).zip(declared.chain(hidden)).map(entry).collect()
}

fn pipeline(
    gpu: &Gpu,
    interface: &Interface,
    checked: bool,
    emitted: &WgslKernel,
    entries: &[BindGroupLayoutEntry],
    immediate_size: u32,
) -> Result<(ComputePipeline, BindGroupLayout)> {
    let label = Some(&*interface.entry_point);
    let device = &gpu.device;
    let module = gpu.call("Device::create_shader_module", || {
        module(gpu, &interface.entry_point, emitted, checked)
    })?;
    gpu.call("Device::create_compute_pipeline", || {
        let layout = device.create_bind_group_layout(&BindGroupLayoutDescriptor { label, entries });
        let pipeline_layout = device.create_pipeline_layout(&PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size,
        });
        let pipeline = device.create_compute_pipeline(&ComputePipelineDescriptor {
            label,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: None,
            compilation_options: PipelineCompilationOptions::default(),
            cache: None,
        });
        (pipeline, layout)
    })
}

/// Creates the module of a kernel, without wgpu's runtime checks: the WGSL has its own.
fn module(gpu: &Gpu, entry: &str, emitted: &WgslKernel, checked: bool) -> ShaderModule {
    let source = ShaderSource::Wgsl(emitted.source.as_str().into());
    let descriptor = ShaderModuleDescriptor { label: Some(entry), source };
    // SAFETY: scry-ir wrote the source from a kernel whose indices are clamped and which has no ray
    // queries or mesh shaders, and the core checks that buffers are as large as the kernel assumes;
    // a caller who disabled these checks vouched for the kernel in an unsafe call. Divisions stay
    // checked, and loops that are not proven to end are bounded by wgpu.
    unsafe {
        let mut checks = ShaderRuntimeChecks::unchecked();
        checks.int_div_checks = true;
        checks.force_loop_bounding = checked && !emitted.is_finite;
        // Not needed, but llvmpipe generates faster code for indices of arrays that it can bound.
        checks.bounds_checks = gpu.loop_defects.aborts_loops;
        gpu.device.create_shader_module_trusted(descriptor, checks)
    }
}

/// Calls `work` on a thread with a large stack, except in browsers, which compile elsewhere. A
/// panic of wgpu's compiler becomes an error.
fn with_stack<T: Send>(gpu: &Gpu, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if cfg!(target_arch = "wasm32") {
        return work();
    }
    let failed = |why: String| Err(gpu.defect_error("Device::create_shader_module", why));
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("scry-wgpu compile".to_owned());
        match builder.stack_size(STACK).spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                failed(format!("it panicked: {}", text.unwrap_or("no message")))
            }),
            Err(error) => failed(format!("a thread could not be started: {error}")),
        }
    })
}
