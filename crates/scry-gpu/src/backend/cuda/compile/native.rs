//! Native kernels: PTX, CUDA C through NVRTC, and cuBLAS routines.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::jit;
use super::nvrtc::{Built, Device, Failure, Nvrtc};
use super::{Image, Kernel, Signature};
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types::{Code, Function, attribute, function_attribute};
use crate::backend::cuda::queue::cublas::{Blas, Slot};
use crate::backend::cuda::queue::declared_params::{self, DeclaredParams};
use crate::backend::cuda::queue::params::{self, Range};

use crate::api::error::{ArgumentError, DriverError, GpuError, Result, SourceError, TooLargeError};
use crate::api::native::{Language, NativeInterface, Routine};
use crate::cache::{Part, Variant};
use crate::core::driver::{GridSource, NativeJob, RoutineJob};

/// The launch method of a native kernel.
pub(crate) enum Native {
    /// With its parameters in one block; the maximum bytes of the block.
    Packed(NativeInterface, usize),
    /// With its parameters in a list, as declared.
    Declared(DeclaredParams),
    /// As a cuBLAS call.
    Product(Arc<Blas>, Routine),
}

impl Native {
    /// Returns the bindings read before `griddepcontrol.wait`; `None` without PDL.
    pub(crate) fn pdl_reads(&self) -> Option<&[usize]> {
        match self {
            Self::Packed(interface, _) => interface.pdl_reads(),
            Self::Declared(declared) => declared.interface.pdl_reads(),
            Self::Product(..) => None,
        }
    }
}

/// Compiles a kernel, through the disk cache if there is one. `driver` is the driver's CUDA
/// version.
pub(crate) fn compile(gpu: &Arc<Gpu>, driver: c_int, job: &NativeJob<'_>) -> Result<Kernel> {
    let _current = gpu.current()?;
    let interface = &job.spec.interface;
    let signature = Signature::of(interface);
    let image = |cubin| Image {
        entry: job.entry.to_owned(),
        params: Vec::new(),
        workgroup: interface.block(),
        dynamic_shared: interface.shared_bytes(),
        cubin,
    };
    // The source is the input of the compilation.
    let variant = Variant { grid: GridSource::Native, part: Part::Compiled(b"") };
    let cached = job.cache.and_then(|disk| disk.load(job.key, variant)).map(image);
    if let Some(cached) = cached.filter(Image::is_compiled) {
        match load(gpu, driver, &cached, job, signature) {
            Ok(kernel) => return Ok(kernel),
            Err(error) => log::debug!("cuda: a kernel from the disk cache is unusable: {error}"),
        }
        gpu.check_alive()?;
    }
    let image = image(code(gpu, driver, job)?);
    let loaded = load(gpu, driver, &image, job, signature);
    let kernel = loaded.map_err(|error| refused_by_jit(job, error))?;
    if let Some(disk) = job.cache.filter(|_| image.is_compiled()) {
        disk.store(job.key, variant, &image.cubin);
    }
    Ok(kernel)
}

/// Loads a routine of cuBLAS.
pub(crate) fn load_routine(
    gpu: &Arc<Gpu>,
    blas: &Slot,
    driver: c_int,
    job: &RoutineJob<'_>,
) -> Result<Kernel> {
    let _current = gpu.current()?;
    let unknown = || gpu.refused("load_routine", format!("there is no routine `{}`", job.name));
    let routine = Routine::from_name(job.name).ok_or_else(unknown)?;
    let native = Native::Product(blas.get(gpu, driver)?, routine);
    Ok(Kernel::without_code(gpu, native, Signature::of(job.interface)))
}

impl Signature {
    fn of(interface: &NativeInterface) -> Self {
        Self {
            bindings: interface.binding_count(),
            immediates: interface.immediate_bytes() as usize,
        }
    }
}

/// Loads a compiled kernel if the device can run it with this block size.
fn load(
    gpu: &Arc<Gpu>,
    driver: c_int,
    image: &Image,
    job: &NativeJob<'_>,
    signature: Signature,
) -> Result<Kernel> {
    let mut kernel = Kernel::load(gpu, image, signature)?;
    let interface = &job.spec.interface;
    let threads = interface.block().iter().map(|n| u64::from(*n)).product();
    let most = kernel.attribute(function_attribute::MAX_THREADS)?;
    if threads > u64::from(most) {
        return Err(too_many_threads(gpu, job.entry, threads, most));
    }
    let accepted = parameters(gpu, kernel.function);
    kernel.native = Some(match interface.declared_parameters() {
        Some(_) => {
            declared_params::check(job.entry, interface, accepted.as_deref())?;
            Native::Declared(DeclaredParams::new(gpu, driver, interface)?)
        }
        None => Native::Packed(interface.clone(), block_size(job.entry, interface, accepted)?),
    });
    Ok(kernel)
}

/// Returns the bytes of all parameters; an error if they differ from the declared ones.
fn block_size(
    entry: &str,
    interface: &NativeInterface,
    accepted: Option<Vec<(usize, usize)>>,
) -> Result<usize> {
    let declared = interface.parameter_bytes();
    let ends = |accepted: Vec<(usize, usize)>| accepted.iter().map(|(at, size)| at + size).max();
    match accepted.map(|accepted| ends(accepted).unwrap_or(0)) {
        Some(accepted) if !fits(accepted, declared) => Err(misdeclared(entry, interface, accepted)),
        accepted => Ok(accepted.unwrap_or(declared)),
    }
}

/// Returns offset and size of each parameter of a kernel, where the driver supports it.
fn parameters(gpu: &Gpu, function: Function) -> Option<Vec<(usize, usize)>> {
    /// An upper bound: kernels have at most 32 KiB of parameters.
    const MAX_PARAM_BYTES: usize = 32 << 10;
    let symbol = gpu.api.optional_function(c"cuFuncGetParamInfo")?;
    // SAFETY: the signature is that of the driver's header.
    let get_param_info: unsafe extern "C" fn(Function, usize, *mut usize, *mut usize) -> Code =
        unsafe { std::mem::transmute(symbol) };
    let mut found = Vec::new();
    for index in 0..MAX_PARAM_BYTES {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is alive; the driver writes two integers.
        match unsafe { get_param_info(function, index, &raw mut offset, &raw mut size) } {
            Code::SUCCESS => found.push((offset, size)),
            Code::INVALID_VALUE => return Some(found),
            _ => return None,
        }
    }
    None
}

/// Returns whether `declared` bytes of values fill the `accepted` bytes of a kernel: a structure
/// may end in padding.
fn fits(accepted: usize, declared: usize) -> bool {
    (accepted..accepted + 8).contains(&declared)
}

fn misdeclared(entry: &str, interface: &NativeInterface, accepted: usize) -> GpuError {
    GpuError::Argument(ArgumentError {
        label: None,
        kernel: entry.to_owned(),
        argument: "parameters".to_owned(),
        problem: format!(
            "the kernel takes {accepted} bytes, but {} are declared: {} for {} buffers and their \
             lengths, {} of immediates",
            interface.parameter_bytes(),
            interface.parameter_bytes() - interface.immediate_bytes() as usize,
            interface.binding_count(),
            interface.immediate_bytes()
        ),
        help: "declare a binding for each pointer, with_length for each 64-bit number of \
                 elements behind them, and all else as immediates"
            .to_owned(),
    })
}

fn too_many_threads(gpu: &Gpu, entry: &str, threads: u64, most: u32) -> GpuError {
    GpuError::TooLarge(TooLargeError {
        label: None,
        function: None,
        what: format!("the block of kernel `{entry}`"),
        requested: format!("{threads} threads"),
        device: gpu.info.name.clone(),
        limit: format!("{most} threads of this kernel"),
        limit_name: "MAX_THREADS_PER_BLOCK, by its registers and shared memory",
        help: "use smaller blocks, or bound its registers (__launch_bounds__ in CUDA C, \
                 .maxntid in PTX)"
            .to_owned(),
    })
}

/// Returns a cubin for a source, or zero-terminated PTX to be compiled when it is loaded.
fn code(gpu: &Gpu, driver: c_int, job: &NativeJob<'_>) -> Result<Vec<u8>> {
    let ptx = match job.spec.language {
        Language::CudaC => match cuda_c(gpu, driver, job)? {
            Built::Ptx(ptx) => ptx,
            Built::Cubin(cubin) => return Ok(cubin),
        },
        _ => job.source.to_owned(),
    };
    check_entry(gpu, job, &ptx)?;
    if overaligns_shared(&ptx) || is_arch_specific(&ptx) {
        return Ok([ptx.as_bytes(), b"\0"].concat());
    }
    jit::cubin(gpu, job.entry, ptx).map_err(|error| refused_by_jit(job, error))
}

/// Returns whether PTX has dynamic shared memory with an alignment above 16 bytes. The driver's
/// linker drops that alignment, and places it directly after static shared memory.
fn overaligns_shared(ptx: &str) -> bool {
    ptx.split(".extern").skip(1).any(|rest| {
        let line = &rest[..rest.find(';').unwrap_or(rest.len())];
        let shared = line.trim_start().starts_with(".shared");
        let number = line.split_once(".align").map(|(_, rest)| first_name(rest));
        shared && number.and_then(|number| number.parse().ok()).is_some_and(|align: u32| align > 16)
    })
}

/// Returns whether PTX targets one architecture only, such as `sm_90a`. The driver's linker
/// compiles it as relocatable code, in which tensor core instructions no longer overlap others.
fn is_arch_specific(ptx: &str) -> bool {
    let line = ptx.lines().find_map(|line| line.trim_start().strip_prefix(".target"));
    line.is_some_and(|line| first_name(line).ends_with('a'))
}

/// Compiles CUDA C by NVRTC.
fn cuda_c(gpu: &Gpu, driver: c_int, job: &NativeJob<'_>) -> Result<Built> {
    let [major, minor] =
        [gpu.attribute(attribute::CAPABILITY_MAJOR)?, gpu.attribute(attribute::CAPABILITY_MINOR)?];
    let device = Device { capability: (major * 10 + minor) as c_int, driver };
    let nvrtc = Nvrtc::shared(driver)?;
    let built = nvrtc.compile(job.source, job.entry, device);
    built.map_err(|failure| match failure {
        Failure::Rejected(log) => {
            let help = format!("correct the source; NVRTC {} says", nvrtc.version_text());
            source_error(gpu, job, log, help)
        }
        Failure::Failed(call, why) => gpu.refused(call, why),
    })
}

fn source_error(gpu: &Gpu, job: &NativeJob<'_>, log: String, help: String) -> GpuError {
    GpuError::Source(SourceError {
        function: None,
        kernel: job.entry.to_owned(),
        language: job.spec.language,
        device: gpu.info.name.clone(),
        log,
        help,
    })
}

/// Turns an error of the driver's compiler into one of the source.
fn refused_by_jit(job: &NativeJob<'_>, error: GpuError) -> GpuError {
    match error {
        GpuError::Driver(DriverError {
            device,
            call: "cuLinkAddData" | "cuLinkComplete" | "cuModuleLoadDataEx",
            code,
            ..
        }) => GpuError::Source(SourceError {
            function: None,
            kernel: job.entry.to_owned(),
            language: job.spec.language,
            device,
            log: code,
            help: "correct the source; the driver says".to_owned(),
        }),
        other => other,
    }
}

/// Rejects PTX without the requested kernel; the error lists its kernels.
fn check_entry(gpu: &Gpu, job: &NativeJob<'_>, ptx: &str) -> Result<()> {
    let found = entries(ptx);
    if found.contains(&job.entry) {
        return Ok(());
    }
    let log = match found.as_slice() {
        [] => "it has no kernels".to_owned(),
        names => format!("its kernels are {}", names.join(", ")),
    };
    let how = match job.spec.language {
        Language::CudaC => "declare the kernel extern \"C\" __global__, so that it keeps its name",
        _ => "pass the name after .entry",
    };
    Err(source_error(gpu, job, log, format!("it has no kernel of that name: {how}")))
}

/// Returns the names of the kernels in PTX.
fn entries(ptx: &str) -> Vec<&str> {
    ptx.split(".entry").skip(1).map(first_name).filter(|name| !name.is_empty()).collect()
}

/// Returns the identifier that a text starts with.
fn first_name(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '%')));
    &text[..end.unwrap_or(text.len())]
}

/// Kernel parameters in one block, an alternative to a list.
#[derive(Default)]
pub(crate) struct Packed {
    /// Words, so that the block is 8-byte aligned.
    words: Vec<u64>,
    size: usize,
    extra: [usize; 5],
}

impl Packed {
    /// Replaces the parameters of the previous launch.
    pub(crate) fn pack(
        &mut self,
        interface: &NativeInterface,
        most: usize,
        bindings: &[Range],
        immediates: &[u8],
    ) {
        let buffers: Vec<(u64, u64)> = bindings.iter().map(|it| (it.address, it.size)).collect();
        let bytes = interface.encode_parameters(&buffers, immediates);
        self.size = bytes.len().min(most);
        self.words.clear();
        params::extend(&mut self.words, &bytes);
    }

    /// Returns the `extra` argument of the launch: the block's address and size.
    pub(crate) fn extra(&mut self) -> *mut *mut c_void {
        /// `CU_LAUNCH_PARAM_BUFFER_POINTER`.
        const BUFFER: usize = 1;
        /// `CU_LAUNCH_PARAM_BUFFER_SIZE`.
        const SIZE: usize = 2;
        /// `CU_LAUNCH_PARAM_END`.
        const END: usize = 0;
        let block = self.words.as_mut_ptr().expose_provenance();
        let size = (&raw mut self.size).expose_provenance();
        self.extra = [BUFFER, block, SIZE, size, END];
        self.extra.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use scry_ir::Scalar;

    use super::*;
    use crate::api::native::NativeBinding;

    #[test]
    fn ptx_entries_are_found_by_name() {
        let ptx = ".visible .entry one(.param .u64 x) { ret; }\n.entry\n  _Z3two$1 (\n)\n{ ret; }";
        assert_eq!(entries(ptx), ["one", "_Z3two$1"]);
        assert_eq!(entries(".func f() { ret; }"), [""; 0]);
    }

    #[test]
    fn detects_overaligned_dynamic_shared_memory() {
        assert!(overaligns_shared("\n.extern .shared .align 1024 .b8 shared0[];\n"));
        assert!(overaligns_shared(".extern .func f;\n.extern\t.shared .align 32 .b8 s[];"));
        assert!(!overaligns_shared(".extern .shared .align 16 .b8 s[];"));
        assert!(!overaligns_shared(".extern .shared .b8 s[];"));
        assert!(!overaligns_shared(".extern .func f;\n.shared .align 128 .b8 s[64];"));
        assert!(!overaligns_shared(".extern .global .align 128 .b8 g[64];"));
    }

    #[test]
    fn detects_architecture_specific_ptx() {
        assert!(is_arch_specific(".version 8.0\n.target sm_90a\n.address_size 64"));
        assert!(is_arch_specific("// a\n  .target sm_100a, debug\n"));
        assert!(!is_arch_specific(".version 8.0\n.target sm_90\n// .target sm_90a"));
        assert!(!is_arch_specific(".visible .entry a()"));
    }

    #[test]
    fn parameters_are_packed_in_one_block() {
        let x = NativeBinding::read("x", Scalar::F32).with_length();
        let interface = NativeInterface::new([x], [1; 3]).immediates(4);
        let mut packed = Packed::default();
        let range = Range { address: 0x7000_0000_1000, size: 20 };
        packed.pack(&interface, 20, &[range], &[9; 4]);
        // A second launch replaces the parameters of the first one.
        packed.pack(&interface, 20, &[range], &[1, 2, 3, 4]);
        let extra = packed.extra();
        // SAFETY: there are five words.
        let [one, block, two, size, end] = unsafe { extra.cast::<[usize; 5]>().read() };
        assert_eq!((one, two, end), (1, 2, 0));
        let size = std::ptr::with_exposed_provenance::<usize>(size);
        // SAFETY: the pointers are those of the size and of the block.
        let bytes = unsafe {
            let start = std::ptr::with_exposed_provenance::<u8>(block);
            std::slice::from_raw_parts(start, *size)
        };
        let mut expected = 0x7000_0000_1000u64.to_ne_bytes().to_vec();
        expected.extend(5u64.to_ne_bytes());
        expected.extend([1, 2, 3, 4]);
        assert_eq!(bytes, expected);
        assert!(block.is_multiple_of(8));
    }

    #[test]
    fn rejects_undeclared_parameters() {
        assert!(fits(36, 36) && fits(36, 40) && fits(0, 0));
        assert!(!fits(36, 32) && !fits(36, 44) && !fits(8, 16));
        let interface = NativeInterface::new(2, [1; 3]).immediates(12);
        let text = misdeclared("k", &interface, 36).to_string();
        let expected = "kernel `k`, parameters: the kernel takes 36 bytes, but 28 are declared: 16 \
                        for 2 buffers and their lengths, 12 of immediates";
        assert!(text.starts_with(expected), "{text}");
    }
}
