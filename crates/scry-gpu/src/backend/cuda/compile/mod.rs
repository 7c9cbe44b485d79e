//! WGSL programs as kernels: translated to PTX, which the driver compiles, or taken from the disk
//! cache as the driver compiled them before.

mod jit;
pub(super) mod native;
pub(super) mod nvrtc;
pub(super) mod translation;

use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

use scry_ptx::Param;

use self::native::Native;
use self::translation::Translation;
use super::device::Gpu;
use super::ffi::types::{Function, Module, attribute, function_attribute};
use crate::api::error::Result;
use crate::cache::{Part, Variant};
use crate::core::driver::{CompileJob, GridSource};

/// A compiled kernel.
pub(super) struct Kernel {
    pub(super) function: Function,
    /// What a launch passes, in order.
    pub(super) params: Vec<Param>,
    /// Threads of a block along x, y and z.
    pub(super) block: [u32; 3],
    /// Bytes of shared memory that a launch asks for.
    pub(super) dynamic_shared: u32,
    /// Bindings of a dispatch; those of a folded kernel have the fold parameters last.
    pub(super) bindings: usize,
    /// Bytes of the immediate block.
    pub(super) immediates: usize,
    /// Blocks that the device holds at once, where the kernel reads workgroup counts.
    pub(super) resident: Option<u32>,
    /// Registers of a thread.
    pub(super) registers: u32,
    /// Bytes of memory that each thread has for itself: its arrays, and what registers are too few
    /// for.
    pub(super) local_bytes: u32,
    /// How it is launched, unless it is WGSL.
    pub(super) native: Option<Native>,
    /// Absent where there is no code to load.
    module: Module,
    gpu: Arc<Gpu>,
}

/// What a dispatch of a kernel has to give.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signature {
    pub(super) bindings: usize,
    pub(super) immediates: usize,
}

/// A compiled kernel, not yet loaded.
pub(super) struct Image {
    /// The kernel's name in the code.
    pub(super) entry: String,
    /// What a launch passes, in order.
    pub(super) params: Vec<Param>,
    /// Threads of a block along x, y and z.
    pub(super) workgroup: [u32; 3],
    /// Bytes of shared memory that a launch asks for.
    pub(super) dynamic_shared: u32,
    /// The code of the device, which is what the disk cache keeps; or PTX with a zero at the end.
    pub(super) cubin: Vec<u8>,
}

impl Image {
    /// Whether there is the code of the device. The driver is given no length, and takes what is no
    /// ELF for a text that ends with a zero.
    pub(super) fn is_compiled(&self) -> bool {
        self.cubin.starts_with(b"\x7fELF")
    }
}

/// Compiles a program, through the disk cache if there is one. Registers are bounded, unless the
/// kernel needs more of them.
pub(super) fn compile(gpu: &Arc<Gpu>, job: &CompileJob<'_>) -> Result<Kernel> {
    let _current = gpu.current()?;
    let translation = Translation::find_or_make(gpu, job, true)?;
    let digest = translation.digest;
    let bounded = make(gpu, job, translation, true)?;
    if bounded.local_bytes == 0 {
        return Ok(bounded);
    }
    let unbounded = Translation::find_or_make(gpu, job, false)?;
    if unbounded.digest == digest {
        return Ok(bounded);
    }
    let free = make(gpu, job, unbounded, false)?;
    Ok(if free.local_bytes < bounded.local_bytes { free } else { bounded })
}

/// Has the driver compile, unless the disk cache has what it made of this very PTX.
fn make(
    gpu: &Arc<Gpu>,
    job: &CompileJob<'_>,
    translation: Translation,
    bounded: bool,
) -> Result<Kernel> {
    if let Some(kernel) = compiled_before(gpu, job, &translation)? {
        if translation.is_new() {
            translation.store(job, bounded);
        }
        return Ok(kernel);
    }
    let (translation, ptx) = translation.with_text(gpu, job, bounded)?;
    let cubin = jit::cubin(gpu, &translation.entry, ptx)?;
    let image = image(job, &translation, cubin);
    let kernel = Kernel::load(gpu, &image, signature(job))?;
    if let Some(disk) = translation::disk(job) {
        disk.store(job.key, variant(job, &translation), &image.cubin);
        translation.store(job, bounded);
    }
    Ok(kernel)
}

/// The kernel that the disk cache has of a translation, if it is there and can be loaded.
fn compiled_before(
    gpu: &Arc<Gpu>,
    job: &CompileJob<'_>,
    translation: &Translation,
) -> Result<Option<Kernel>> {
    let stored = translation::disk(job).and_then(|it| it.load(job.key, variant(job, translation)));
    let known = stored.map(|cubin| image(job, translation, cubin));
    if let Some(known) = known.filter(Image::is_compiled) {
        match Kernel::load(gpu, &known, signature(job)) {
            Ok(kernel) => return Ok(Some(kernel)),
            Err(error) => log::debug!("cuda: a kernel from the disk cache is of no use: {error}"),
        }
        gpu.check_alive()?;
    }
    Ok(None)
}

/// The entry of the disk cache for what is compiled from a translation.
fn variant(job: &CompileJob<'_>, translation: &Translation) -> Variant<'static> {
    Variant { grid: job.grid, part: Part::CompiledFrom(translation.digest) }
}

fn image(job: &CompileJob<'_>, translation: &Translation, cubin: Vec<u8>) -> Image {
    Image {
        entry: translation.entry.clone(),
        params: translation.params.clone(),
        workgroup: job.program.interface().workgroup_size,
        dynamic_shared: translation.dynamic_shared,
        cubin,
    }
}

fn signature(job: &CompileJob<'_>) -> Signature {
    let interface = job.program.interface();
    let immediates = interface.immediates.as_ref();
    Signature {
        bindings: interface.bindings.len() + usize::from(job.grid == GridSource::Folded),
        immediates: immediates.map_or(0, |block| block.layout.fixed_size()) as usize,
    }
}

impl Kernel {
    /// Loads a compiled kernel. The device's context must be current.
    pub(super) fn load(gpu: &Arc<Gpu>, image: &Image, signature: Signature) -> Result<Self> {
        let mut kernel = Self::empty(gpu, signature);
        kernel.params = image.params.clone();
        kernel.block = image.workgroup;
        kernel.dynamic_shared = image.dynamic_shared;
        // From here on the drop unloads it.
        kernel.module = match CStr::from_bytes_with_nul(&image.cubin) {
            Ok(ptx) if !image.is_compiled() => jit::module(gpu, &image.entry, ptx)?,
            _ => load_module(gpu, &image.cubin)?,
        };
        kernel.find_function(&image.entry)?;
        kernel.prepare()?;
        let Self { registers, local_bytes, .. } = kernel;
        let name = &image.entry;
        log::debug!("cuda: kernel `{name}`: {registers} registers, {local_bytes} local bytes");
        Ok(kernel)
    }

    /// A kernel that others have the code of.
    pub(super) fn without_code(gpu: &Arc<Gpu>, native: Native, signature: Signature) -> Self {
        let mut kernel = Self::empty(gpu, signature);
        kernel.native = Some(native);
        kernel
    }

    fn empty(gpu: &Arc<Gpu>, signature: Signature) -> Self {
        Self {
            function: Function::NULL,
            params: Vec::new(),
            block: [1; 3],
            dynamic_shared: 0,
            bindings: signature.bindings,
            immediates: signature.immediates,
            resident: None,
            registers: 0,
            local_bytes: 0,
            native: None,
            module: Module::NULL,
            gpu: Arc::clone(gpu),
        }
    }

    fn find_function(&mut self, entry: &str) -> Result<()> {
        let refused =
            |error: std::ffi::NulError| self.gpu.refused("cuModuleGetFunction", error.to_string());
        let name = CString::new(entry).map_err(refused)?;
        // SAFETY: the module is alive; the driver writes a handle.
        let code = unsafe {
            let get = self.gpu.api.module_get_function;
            get(&raw mut self.function, self.module, name.as_ptr())
        };
        self.gpu.check("cuModuleGetFunction", code)
    }

    /// Asks what the kernel takes, and for the shared memory that it wants.
    fn prepare(&mut self) -> Result<()> {
        self.registers = self.attribute(function_attribute::REGISTERS)?;
        self.local_bytes = self.attribute(function_attribute::LOCAL_BYTES)?;
        self.ask_for_shared()?;
        if self.params.contains(&Param::Counts) {
            self.resident = Some(self.resident()?);
        }
        Ok(())
    }

    fn ask_for_shared(&self) -> Result<()> {
        if self.dynamic_shared == 0 {
            return Ok(());
        }
        let most = c_int::try_from(self.dynamic_shared).unwrap_or(c_int::MAX);
        // SAFETY: the function is alive.
        let code = unsafe {
            let set = self.gpu.api.func_set_attribute;
            set(self.function, function_attribute::MAX_DYNAMIC_SHARED, most)
        };
        self.gpu.check("cuFuncSetAttribute", code)
    }

    /// Blocks that the device holds at once, at least one.
    fn resident(&self) -> Result<u32> {
        let threads: u32 = self.block.iter().product();
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        let (mut blocks, shared) = (0, self.dynamic_shared as usize);
        // SAFETY: the function is alive; the driver writes a number.
        let code = unsafe {
            let get = self.gpu.api.occupancy_max_blocks;
            get(&raw mut blocks, self.function, threads, shared)
        };
        self.gpu.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        let processors = self.gpu.attribute(attribute::MULTIPROCESSORS)?;
        Ok(u32::try_from(blocks).unwrap_or(0).saturating_mul(processors).max(1))
    }

    /// What the driver says of the code.
    pub(super) fn attribute(&self, attribute: c_int) -> Result<u32> {
        let mut value = 0;
        // SAFETY: the function is alive; the driver writes a number.
        let code =
            unsafe { (self.gpu.api.func_get_attribute)(&raw mut value, attribute, self.function) };
        self.gpu.check("cuFuncGetAttribute", code)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}

fn load_module(gpu: &Gpu, cubin: &[u8]) -> Result<Module> {
    let mut module = Module::NULL;
    let (start, none) = (cubin.as_ptr().cast(), std::ptr::null_mut());
    // SAFETY: the driver made the code, and the disk cache's checksum says that it is whole; it
    // reads what it needs of it, and writes a handle.
    let code = unsafe { (gpu.api.module_load_data)(&raw mut module, start, 0, none, none.cast()) };
    gpu.check("cuModuleLoadDataEx", code)?;
    Ok(module)
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if self.module.is_null() {
            return;
        }
        let Some(_current) = self.gpu.current_to_free() else { return };
        // SAFETY: by the driver's contract no unfinished submission uses the kernel.
        let code = unsafe { (self.gpu.api.module_unload)(self.module) };
        if let Err(error) = self.gpu.check("cuModuleUnload", code) {
            log::error!("cuda: a kernel was not unloaded: {error}");
        }
    }
}
