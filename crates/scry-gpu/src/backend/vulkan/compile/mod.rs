//! Compiles WGSL programs to compute pipelines, and caches the driver's pipeline data.

mod writer;

use std::ffi::CString;
use std::sync::Arc;

use ash::vk;
use scry_ir::{BufferBindingType, ControlFlow, Features, Interface, Program, SpirvOptions};

pub(super) use self::writer::NoWriter;
pub use self::writer::SpirvWriter;
use super::device::Gpu;
use super::ffi::matrices::SUBGROUP_SIZE;
use super::probe::CacheIdentity;
use super::workarounds::Fix;
use crate::api::element;
use crate::api::error::{GpuError, KernelError, Result};
use crate::backend::shared::loop_limits::{self, LoopDefects};
use crate::cache::{DiskCache, Part, Variant};
use crate::core::driver::{CompileJob, FailureReport, GridSource};

/// Size in bytes of the header in front of a pipeline cache's data.
const CACHE_HEADER: usize = 32;

/// A compiled kernel.
pub(super) struct Kernel {
    pub(super) pipeline: vk::Pipeline,
    pub(super) layout: vk::PipelineLayout,
    pub(super) set_layout: vk::DescriptorSetLayout,
    /// Updates all bindings from an array of `vk::DescriptorBufferInfo`; null without bindings.
    pub(super) template: vk::DescriptorUpdateTemplate,
    /// Whether bindings are push descriptors rather than descriptor sets.
    pub(super) pushes: bool,
    /// Bindings of a launch: all but the stop word.
    pub(super) bindings: usize,
    /// Whether the last binding is the stop word, which loops poll.
    pub(super) polls: bool,
    /// Bytes of the immediate block; rounded up to 32-bit words in the pipeline layout.
    pub(super) immediates: usize,
    /// The meaning of the failure report in the last binding of a launch, if the kernel has one.
    pub(super) report: Option<Arc<FailureReport>>,
    gpu: Arc<Gpu>,
}

/// The inputs of a pipeline, whichever compiler wrote the SPIR-V.
pub(super) struct Source<'a> {
    pub(super) spirv: &'a [u32],
    pub(super) entry: &'a str,
    pub(super) bindings: &'a [vk::DescriptorType],
    pub(super) immediates: usize,
    /// Whether the last binding is the stop word.
    pub(super) polls: bool,
    /// Whether the kernel has cooperative matrices, which need full subgroups of 32.
    pub(super) matrices: bool,
}

/// Compiles a program, through the disk cache if there is one.
pub(super) fn compile(gpu: &Arc<Gpu>, job: &CompileJob<'_>) -> Result<Kernel> {
    let interface = job.program.interface();
    let CompileJob { program, checked, grid, .. } = *job;
    check_subgroups(gpu, interface)?;
    let mut report = None;
    let (spirv, options) = gpu.writer.write(program, checked, |flow| {
        report = failure_report(gpu, program, flow)?;
        Ok(SpirvOptions {
            reports_aborted_loops: report.is_some(),
            polls: checked && polls(gpu, program, flow),
            ..spirv_options(gpu, checked, grid)
        })
    })?;
    if let Some(dump) = job.dump {
        dump.spirv(&spirv);
    }
    let immediates = interface.immediates.as_ref();
    let source = Source {
        spirv: &spirv,
        entry: &interface.entry_point,
        bindings: &descriptor_types(job.program, &options),
        immediates: immediates.map_or(0, |block| block.layout.fixed_size()) as usize,
        polls: options.polls,
        matrices: interface.features.contains(Features::COOPERATIVE_MATRIX),
    };
    let mut kernel = match job.cache {
        Some(disk) => compile_cached(gpu, job, disk, &source)?,
        None => Kernel::new(gpu, &source, vk::PipelineCache::null())?,
    };
    kernel.report = report;
    Ok(kernel)
}

/// Builds a pipeline from the cached pipeline data of its SPIR-V, and stores that data on a miss.
fn compile_cached(
    gpu: &Arc<Gpu>,
    job: &CompileJob<'_>,
    disk: &DiskCache,
    source: &Source<'_>,
) -> Result<Kernel> {
    let variant = Variant { grid: job.grid, part: Part::Compiled(element::bytes_of(source.spirv)) };
    let known = disk.load(job.key, variant).filter(|blob| matches_device(blob, gpu.cache_identity));
    let cache = Cache::new(gpu, known.as_deref().unwrap_or_default())?;
    let kernel = Kernel::new(gpu, source, cache.raw)?;
    if known.is_none() {
        let blob = cache.data()?;
        if blob.len() > CACHE_HEADER {
            disk.store(job.key, variant, &blob);
        }
    }
    Ok(kernel)
}

/// Returns the meaning of the failure reports that launches of a kernel need on this device.
fn failure_report(
    gpu: &Gpu,
    program: &Program,
    flow: ControlFlow,
) -> Result<Option<Arc<FailureReport>>> {
    let defects = LoopDefects {
        aborts_loops: gpu.workarounds.has(Fix::ReportAbortedLoops),
        drops_conditions: gpu.workarounds.has(Fix::RejectDeepNesting),
    };
    loop_limits::failure_report(&gpu.info, defects, program, flow)
}

/// Rejects a kernel with cooperative matrices whose subgroups would not all be full.
fn check_subgroups(gpu: &Gpu, interface: &Interface) -> Result<()> {
    let [width, ..] = interface.workgroup_size;
    let has_matrices = interface.features.contains(Features::COOPERATIVE_MATRIX);
    if !has_matrices || width.is_multiple_of(SUBGROUP_SIZE) {
        return Ok(());
    }
    Err(GpuError::Kernel(KernelError {
        label: None,
        kernel: interface.entry_point.clone(),
        device: gpu.info.name.clone(),
        driver: gpu.info.driver.clone(),
        problem: format!("has cooperative matrices and workgroups of {width} invocations along x"),
        limit: Some(format!("full subgroups for matrices, of {SUBGROUP_SIZE} along x")),
        help: format!("make x of `@workgroup_size` a multiple of {SUBGROUP_SIZE}"),
    }))
}

/// Returns whether loops of a checked kernel poll the stop word. A kernel that needs all workgroup
/// memory or all bindings has no room for it.
fn polls(gpu: &Gpu, program: &Program, flow: ControlFlow) -> bool {
    let (interface, limits) = (program.interface(), &gpu.info.limits);
    let memory = u64::from(interface.workgroup_memory) + u64::from(SpirvOptions::STOP_SIZE);
    let is_storage = |ty: &BufferBindingType| *ty == BufferBindingType::Storage;
    let bindings = interface.bindings.iter().filter(|binding| is_storage(&binding.ty)).count();
    let has_room = memory <= u64::from(limits.max_workgroup_memory)
        && bindings < limits.max_storage_bindings as usize;
    flow.may_not_end && gpu.can_poll && has_room
}

fn spirv_options(gpu: &Gpu, checked: bool, grid: GridSource) -> SpirvOptions {
    let newest = gpu.version >= vk::API_VERSION_1_3 && gpu.has_dot_product;
    SpirvOptions {
        // SPIR-V 1.6 has instructions for packed dot products.
        version: if newest { (1, 6) } else { (1, 5) },
        checked,
        native_workgroup_zeroing: gpu.zeroes_workgroup_memory,
        linearised: grid == GridSource::Linearised,
        workarounds: gpu.workarounds.spirv(),
        reports_aborted_loops: false,
        polls: false,
        matrices: gpu.info.matrix_products,
        nan_preserving: gpu.nan_preserving,
        max_workgroup_memory: gpu.info.limits.max_workgroup_memory,
    }
}

fn descriptor_types(program: &Program, options: &SpirvOptions) -> Vec<vk::DescriptorType> {
    let declared = program.interface().bindings.iter();
    let declared = declared.map(|binding| match binding.ty {
        BufferBindingType::Uniform => vk::DescriptorType::UNIFORM_BUFFER,
        BufferBindingType::Storage => vk::DescriptorType::STORAGE_BUFFER,
    });
    let grid_params = options.linearised.then_some(vk::DescriptorType::UNIFORM_BUFFER);
    let hidden = [options.reports_aborted_loops, options.polls];
    let hidden = hidden.into_iter().filter(|has| *has);
    declared.chain(grid_params).chain(hidden.map(|_| vk::DescriptorType::STORAGE_BUFFER)).collect()
}

/// Returns whether a blob begins with the pipeline cache header of this device and driver.
fn matches_device(blob: &[u8], identity: CacheIdentity) -> bool {
    let word = |at: usize| {
        let bytes = blob.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let version = vk::PipelineCacheHeaderVersion::ONE.as_raw() as u32;
    word(0) == Some(CACHE_HEADER as u32)
        && word(4) == Some(version)
        && word(8) == Some(identity.vendor)
        && word(12) == Some(identity.device)
        && blob.get(16..CACHE_HEADER) == Some(&identity.uuid)
}

/// A driver's pipeline cache that exists during one compilation.
struct Cache {
    raw: vk::PipelineCache,
    gpu: Arc<Gpu>,
}

impl Cache {
    fn new(gpu: &Arc<Gpu>, blob: &[u8]) -> Result<Self> {
        let info = vk::PipelineCacheCreateInfo::default().initial_data(blob);
        // SAFETY: the data is empty or was written by this driver for this device: the header and
        // the disk cache's checksum were verified.
        let raw = unsafe { gpu.raw.create_pipeline_cache(&info, None) }
            .map_err(|code| gpu.failed("vkCreatePipelineCache", code))?;
        Ok(Self { raw, gpu: Arc::clone(gpu) })
    }

    fn data(&self) -> Result<Vec<u8>> {
        // SAFETY: the cache is alive, and only this thread uses it.
        unsafe { self.gpu.raw.get_pipeline_cache_data(self.raw) }
            .map_err(|code| self.gpu.failed("vkGetPipelineCacheData", code))
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // SAFETY: the compilation that used the cache has finished.
        unsafe { self.gpu.raw.destroy_pipeline_cache(self.raw, None) };
    }
}

impl Kernel {
    /// Builds the pipeline. If a step fails, the drop destroys the objects created so far.
    pub(super) fn new(
        gpu: &Arc<Gpu>,
        source: &Source<'_>,
        cache: vk::PipelineCache,
    ) -> Result<Self> {
        let few = source.bindings.len() <= gpu.max_push_descriptors as usize;
        let mut kernel = Self {
            pipeline: vk::Pipeline::null(),
            layout: vk::PipelineLayout::null(),
            set_layout: vk::DescriptorSetLayout::null(),
            template: vk::DescriptorUpdateTemplate::null(),
            pushes: few && gpu.push.is_some() && !gpu.prefers_sets,
            bindings: source.bindings.len() - usize::from(source.polls),
            polls: source.polls,
            immediates: source.immediates,
            report: None,
            gpu: Arc::clone(gpu),
        };
        kernel.make_layouts(source)?;
        if !source.bindings.is_empty() {
            kernel.make_template(source)?;
        }
        kernel.make_pipeline(source, cache)?;
        gpu.set_name(kernel.pipeline, source.entry);
        Ok(kernel)
    }

    fn make_layouts(&mut self, source: &Source<'_>) -> Result<()> {
        let bindings: Vec<_> = source
            .bindings
            .iter()
            .zip(0..)
            .map(|(ty, index)| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(index)
                    .descriptor_type(*ty)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let mut flags = vk::DescriptorSetLayoutCreateFlags::empty();
        if self.pushes {
            flags |= vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR;
        }
        let info = vk::DescriptorSetLayoutCreateInfo::default().flags(flags).bindings(&bindings);
        // SAFETY: the core checked the number of bindings against the device's limits.
        self.set_layout = unsafe { self.gpu.raw.create_descriptor_set_layout(&info, None) }
            .map_err(|code| self.gpu.failed("vkCreateDescriptorSetLayout", code))?;
        let sets = [self.set_layout];
        let words = u32::try_from(self.immediates.next_multiple_of(4)).unwrap_or(u32::MAX);
        let constants = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(words)];
        let mut info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
        if words > 0 {
            info = info.push_constant_ranges(&constants);
        }
        // SAFETY: the core checked the size of the immediates against the device's limit.
        self.layout = unsafe { self.gpu.raw.create_pipeline_layout(&info, None) }
            .map_err(|code| self.gpu.failed("vkCreatePipelineLayout", code))?;
        Ok(())
    }

    fn make_template(&mut self, source: &Source<'_>) -> Result<()> {
        let stride = size_of::<vk::DescriptorBufferInfo>();
        let entries: Vec<_> = source
            .bindings
            .iter()
            .zip(0u32..)
            .map(|(ty, index)| {
                vk::DescriptorUpdateTemplateEntry::default()
                    .dst_binding(index)
                    .descriptor_count(1)
                    .descriptor_type(*ty)
                    .offset(index as usize * stride)
                    .stride(stride)
            })
            .collect();
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .descriptor_update_entries(&entries)
            .template_type(if self.pushes {
                vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR
            } else {
                vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET
            })
            .descriptor_set_layout(self.set_layout)
            .pipeline_bind_point(vk::PipelineBindPoint::COMPUTE)
            .pipeline_layout(self.layout)
            .set(0);
        // SAFETY: the entries match the bindings of the set layout.
        self.template = unsafe { self.gpu.raw.create_descriptor_update_template(&info, None) }
            .map_err(|code| self.gpu.failed("vkCreateDescriptorUpdateTemplate", code))?;
        Ok(())
    }

    fn make_pipeline(&mut self, source: &Source<'_>, cache: vk::PipelineCache) -> Result<()> {
        let entry = CString::new(source.entry).map_err(|error| {
            self.gpu.defect_error("vkCreateComputePipelines", error.to_string())
        })?;
        let info = vk::ShaderModuleCreateInfo::default().code(source.spirv);
        // SAFETY: the SPIR-V was written from a validated module.
        let module = unsafe { self.gpu.raw.create_shader_module(&info, None) }
            .map_err(|code| self.gpu.failed("vkCreateShaderModule", code))?;
        let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
            .required_subgroup_size(SUBGROUP_SIZE);
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(&entry);
        if source.matrices {
            let full = vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS;
            stage = stage.flags(full).push_next(&mut size);
        }
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout);
        // SAFETY: the module is alive until after the call, and its declarations match the layout.
        let made = unsafe {
            let made = self.gpu.raw.create_compute_pipelines(cache, &[info], None);
            self.gpu.raw.destroy_shader_module(module, None);
            made
        };
        let made = made.map_err(|(_, code)| self.gpu.failed("vkCreateComputePipelines", code))?;
        self.pipeline = made[0];
        Ok(())
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            return;
        }
        let device = &self.gpu.raw;
        // SAFETY: by the contract of `Driver` no unfinished submission uses the kernel; handles
        // that were never created are null, which Vulkan ignores.
        unsafe {
            device.destroy_pipeline(self.pipeline, None);
            device.destroy_descriptor_update_template(self.template, None);
            device.destroy_pipeline_layout(self.layout, None);
            device.destroy_descriptor_set_layout(self.set_layout, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: CacheIdentity = CacheIdentity { vendor: 0x10de, device: 0x2335, uuid: [7; 16] };

    fn blob() -> Vec<u8> {
        let words = [32u32, 1, IDENTITY.vendor, IDENTITY.device];
        let mut blob: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        blob.extend(IDENTITY.uuid);
        blob.extend([1, 2, 3]);
        blob
    }

    #[test]
    fn matching_cache_header_is_accepted() {
        assert!(matches_device(&blob(), IDENTITY));
    }

    #[test]
    fn differing_cache_header_is_rejected() {
        for at in 0..CACHE_HEADER {
            let mut foreign = blob();
            foreign[at] ^= 0x40;
            assert!(!matches_device(&foreign, IDENTITY), "byte {at}");
        }
    }

    #[test]
    fn short_cache_header_is_rejected() {
        for len in 0..CACHE_HEADER {
            assert!(!matches_device(&blob()[..len], IDENTITY), "{len} bytes");
        }
    }
}
