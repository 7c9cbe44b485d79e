//! Compiles WGSL programs: generates PTX, which the driver compiles unless the disk cache has the
//! compiled code.

mod jit;
mod loaded;
pub(super) mod native;
pub(super) mod nvrtc;
pub(super) mod translation;

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use scry_ptx::Param;

use self::loaded::LoadedCode;
use self::native::Native;
use self::translation::Translation;
use super::device::Gpu;
use super::ffi::types::{Function, attribute, function_attribute};
use crate::api::error::Result;
use crate::cache::{Part, Variant};
use crate::core::driver::{CompileJob, GridSource};

/// A compiled kernel.
pub(super) struct Kernel {
    /// Kernel parameters, in order.
    pub(super) params: Vec<Param>,
    /// Threads of a block along x, y and z.
    pub(super) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(super) dynamic_shared: u32,
    /// Number of bindings of a dispatch; the grid parameters of a linearised kernel are the last
    /// one.
    pub(super) bindings: usize,
    /// Bytes of the immediate block.
    pub(super) immediates: usize,
    /// Blocks resident on the device at once: the grid of kernels that read workgroup counts.
    pub(super) resident_blocks: Option<u32>,
    /// Registers per thread.
    pub(super) registers: u32,
    /// Bytes of local memory per thread: arrays and register spills.
    pub(super) local_bytes: u32,
    /// Whether it is a generated kernel that begins with a wait for the preceding launch (PDL).
    waits: bool,
    /// How it is launched, if it is a native kernel.
    pub(super) native: Option<Native>,
    /// `None` if there is none to load.
    code: Option<LoadedCode>,
    gpu: Arc<Gpu>,
}

/// The numbers of bindings and of bytes of immediates that a kernel's dispatches have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signature {
    pub(super) bindings: usize,
    pub(super) immediates: usize,
    /// Whether it is a generated kernel that begins with a wait for the preceding launch (PDL).
    pub(super) waits: bool,
}

/// A compiled kernel, not yet loaded.
pub(super) struct Image {
    /// The kernel's symbol.
    pub(super) entry: String,
    /// Kernel parameters, in order.
    pub(super) params: Vec<Param>,
    /// Threads of a block along x, y and z.
    pub(super) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(super) dynamic_shared: u32,
    /// A cubin, which the disk cache stores; or zero-terminated PTX.
    pub(super) code: Vec<u8>,
}

impl Image {
    /// Returns whether the code is a cubin. The driver is not passed a length: it treats everything
    /// that is not ELF as zero-terminated text.
    pub(super) fn is_cubin(&self) -> bool {
        self.code.starts_with(b"\x7fELF")
    }
}

/// Compiles a program, through the disk cache if there is one. First bounds the registers; if the
/// kernel then uses local memory, also compiles it without the bound, and returns the one that uses
/// less.
pub(super) fn compile(gpu: &Arc<Gpu>, job: &CompileJob<'_>) -> Result<Kernel> {
    let _current = gpu.current()?;
    let translation = Translation::load_or_generate(gpu, job, true)?;
    let digest = translation.digest;
    let bounded = compile_translation(gpu, job, translation, true)?;
    if bounded.local_bytes == 0 {
        return Ok(bounded);
    }
    let translation = Translation::load_or_generate(gpu, job, false)?;
    if translation.digest == digest {
        return Ok(bounded);
    }
    let unbounded = compile_translation(gpu, job, translation, false)?;
    Ok(if unbounded.local_bytes < bounded.local_bytes { unbounded } else { bounded })
}

/// Compiles with the driver, unless the disk cache has the cubin of the same PTX.
fn compile_translation(
    gpu: &Arc<Gpu>,
    job: &CompileJob<'_>,
    translation: Translation,
    limit_registers: bool,
) -> Result<Kernel> {
    translation.dump(gpu, job, limit_registers)?;
    if let Some(kernel) = load_cached(gpu, job, &translation)? {
        if translation.is_new() {
            translation.store(job, limit_registers);
        }
        return Ok(kernel);
    }
    let (translation, ptx) = translation.with_text(gpu, job, limit_registers)?;
    let cubin = jit::compile(gpu, &translation.entry, ptx)?;
    let image = image_for(job, &translation, cubin);
    let kernel = Kernel::load(gpu, &image, signature(job))?;
    if let Some(disk) = translation::disk_cache(job) {
        disk.store(job.key, variant(job, &translation), &image.code);
        translation.store(job, limit_registers);
    }
    Ok(kernel)
}

/// Loads the kernel of a translation from the disk cache; `None` if there is no valid entry.
fn load_cached(
    gpu: &Arc<Gpu>,
    job: &CompileJob<'_>,
    translation: &Translation,
) -> Result<Option<Kernel>> {
    let stored =
        translation::disk_cache(job).and_then(|it| it.load(job.key, variant(job, translation)));
    let cached = stored.map(|code| image_for(job, translation, code));
    if let Some(cached) = cached.filter(Image::is_cubin) {
        match Kernel::load(gpu, &cached, signature(job)) {
            Ok(kernel) => return Ok(Some(kernel)),
            Err(error) => log::debug!("cuda: a kernel from the disk cache is unusable: {error}"),
        }
        gpu.check_alive()?;
    }
    Ok(None)
}

/// Returns the disk cache's key of a translation's cubin.
fn variant(job: &CompileJob<'_>, translation: &Translation) -> Variant<'static> {
    Variant { grid: job.grid, part: Part::CompiledFrom(translation.digest) }
}

fn image_for(job: &CompileJob<'_>, translation: &Translation, code: Vec<u8>) -> Image {
    Image {
        entry: translation.entry.clone(),
        params: translation.params.clone(),
        block: job.program.interface().workgroup_size,
        dynamic_shared: translation.dynamic_shared,
        code,
    }
}

fn signature(job: &CompileJob<'_>) -> Signature {
    let interface = job.program.interface();
    let immediates = interface.immediates.as_ref();
    Signature {
        bindings: interface.bindings.len() + usize::from(job.grid == GridSource::Linearised),
        immediates: immediates.map_or(0, |block| block.layout.fixed_size()) as usize,
        waits: translation::waits(job.program),
    }
}

impl Kernel {
    /// Returns the bindings read before `griddepcontrol.wait`; `None` without PDL. Kernels that
    /// were built in the kernel IR begin with the wait, if the target has it.
    pub(super) fn pdl_reads(&self) -> Option<&[usize]> {
        match &self.native {
            Some(native) => native.pdl_reads(),
            None => (self.waits && self.gpu.target.has(90)).then_some(&[]),
        }
    }

    /// Returns the function that is launched; null if there is no code to load.
    pub(super) fn function(&self) -> Function {
        self.code.as_ref().map_or(Function::NULL, LoadedCode::function)
    }

    /// Loads a compiled kernel. The device's context must be current.
    pub(super) fn load(gpu: &Arc<Gpu>, image: &Image, signature: Signature) -> Result<Self> {
        let mut kernel = Self::empty(gpu, signature);
        kernel.params = image.params.clone();
        kernel.block = image.block;
        kernel.dynamic_shared = image.dynamic_shared;
        let (entry, code) = (&image.entry, &image.code);
        kernel.code = Some(match CStr::from_bytes_with_nul(code) {
            Ok(ptx) if !image.is_cubin() => LoadedCode::of_ptx(gpu, entry, ptx)?,
            _ => LoadedCode::of_cubin(gpu, entry, code)?,
        });
        kernel.prepare()?;
        let Self { registers, local_bytes, .. } = kernel;
        log::debug!("cuda: kernel `{entry}`: {registers} registers, {local_bytes} local bytes");
        Ok(kernel)
    }

    /// Creates a kernel whose code is in a library.
    pub(super) fn without_code(gpu: &Arc<Gpu>, native: Native, signature: Signature) -> Self {
        let mut kernel = Self::empty(gpu, signature);
        kernel.native = Some(native);
        kernel
    }

    fn empty(gpu: &Arc<Gpu>, signature: Signature) -> Self {
        Self {
            params: Vec::new(),
            block: [1; 3],
            dynamic_shared: 0,
            bindings: signature.bindings,
            immediates: signature.immediates,
            resident_blocks: None,
            registers: 0,
            local_bytes: 0,
            waits: signature.waits,
            native: None,
            code: None,
            gpu: Arc::clone(gpu),
        }
    }

    /// Reads the kernel's resource use, and requests its shared memory.
    fn prepare(&mut self) -> Result<()> {
        self.registers = self.attribute(function_attribute::REGISTERS)?;
        self.local_bytes = self.attribute(function_attribute::LOCAL_BYTES)?;
        self.request_shared_memory()?;
        if self.params.contains(&Param::WorkgroupCounts) {
            self.resident_blocks = Some(self.resident_blocks()?);
        }
        Ok(())
    }

    fn request_shared_memory(&self) -> Result<()> {
        if self.dynamic_shared == 0 {
            return Ok(());
        }
        let bytes = c_int::try_from(self.dynamic_shared).unwrap_or(c_int::MAX);
        // SAFETY: the function is alive.
        let code = unsafe {
            let set = self.gpu.api.func_set_attribute;
            set(self.function(), function_attribute::MAX_DYNAMIC_SHARED, bytes)
        };
        self.gpu.check("cuFuncSetAttribute", code)
    }

    /// Returns the blocks resident on the device at once, at least one.
    fn resident_blocks(&self) -> Result<u32> {
        let threads: u32 = self.block.iter().product();
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        let (mut blocks, shared) = (0, self.dynamic_shared as usize);
        // SAFETY: the function is alive; the driver writes an integer.
        let code = unsafe {
            let get = self.gpu.api.occupancy_max_blocks;
            get(&raw mut blocks, self.function(), threads, shared)
        };
        self.gpu.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        let processors = self.gpu.attribute(attribute::MULTIPROCESSORS)?;
        Ok(u32::try_from(blocks).unwrap_or(0).saturating_mul(processors).max(1))
    }

    /// Reads a function attribute.
    pub(super) fn attribute(&self, attribute: c_int) -> Result<u32> {
        let mut value = 0;
        // SAFETY: the function is alive; the driver writes an integer.
        let code = unsafe {
            (self.gpu.api.func_get_attribute)(&raw mut value, attribute, self.function())
        };
        self.gpu.check("cuFuncGetAttribute", code)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}
