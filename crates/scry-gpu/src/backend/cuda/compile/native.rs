//! Native kernels: PTX, CUDA C through NVRTC, and cuBLAS routines.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::jit;
use super::nvrtc::{self, Device, Failure, Nvrtc, Output};
use super::{Image, Kernel, Signature};
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types::{Code, Function, attribute, function_attribute};
use crate::backend::cuda::queue::communicator::Membership;
use crate::backend::cuda::queue::cublas::{Blas, LazyBlas};
use crate::backend::cuda::queue::declared_params::{self, DeclaredParams};
use crate::backend::cuda::queue::params::{self, Range};

use crate::api::error::{
    ArgumentError, DRIVER_FAILED, DriverError, GpuError, Result, SourceError, TooLargeError,
};
use crate::api::native::{Language, NativeInterface, Routine};
use crate::cache::{Part, Variant};
use crate::core::driver::{GridSource, NativeJob, RoutineJob};

/// How a native kernel is launched.
pub(crate) enum Native {
    /// With all parameters in one block of at most this many bytes.
    Packed(NativeInterface, usize),
    /// With a list of the parameters that the interface declares.
    Declared(DeclaredParams),
    /// By a call of cuBLAS, for a matrix product.
    Product(Arc<Blas>, Routine),
    /// By a call of NCCL, for a collective.
    Collectives(Arc<Membership>),
}

impl Native {
    /// Returns the bindings read before `griddepcontrol.wait`; `None` without PDL.
    pub(crate) fn pdl_reads(&self) -> Option<&[usize]> {
        match self {
            Self::Packed(interface, _) => interface.pdl_reads(),
            Self::Declared(declared) => declared.interface.pdl_reads(),
            Self::Product(..) | Self::Collectives(_) => None,
        }
    }
}

/// Compiles a kernel, through the disk cache if there is one.
pub(crate) fn compile(gpu: &Arc<Gpu>, job: &NativeJob<'_>) -> Result<Kernel> {
    let _current = gpu.current()?;
    let interface = &job.spec.interface;
    let signature = Signature::for_interface(interface);
    let image_for = |code| Image {
        entry: job.entry.to_owned(),
        params: Vec::new(),
        block: interface.block(),
        dynamic_shared: interface.shared_bytes(),
        code,
    };
    // There is no generated code: the source itself, which is in the key, is compiled.
    let variant = Variant { grid: GridSource::Native, part: Part::Compiled(b"") };
    let cached = job.cache.and_then(|disk| disk.load(job.key, variant)).map(image_for);
    if let Some(cached) = cached.filter(Image::is_cubin) {
        match load(gpu, &cached, job, signature) {
            Ok(kernel) => return Ok(kernel),
            Err(error) => log::debug!("cuda: a kernel from the disk cache is unusable: {error}"),
        }
        gpu.check_alive()?;
    }
    let image = image_for(compile_source(gpu, job)?);
    let loaded = load(gpu, &image, job, signature);
    let kernel = loaded.map_err(|error| to_source_error(job, error))?;
    if let Some(disk) = job.cache.filter(|_| image.is_cubin()) {
        disk.store(job.key, variant, &image.code);
    }
    Ok(kernel)
}

/// Returns the kernel of a cuBLAS routine.
pub(crate) fn load_routine(
    gpu: &Arc<Gpu>,
    blas: &LazyBlas,
    job: &RoutineJob<'_>,
) -> Result<Kernel> {
    let _current = gpu.current()?;
    let unknown =
        || gpu.defect_error("load_routine", format!("there is no routine `{}`", job.name));
    let routine = Routine::from_name(job.name).ok_or_else(unknown)?;
    let native = Native::Product(blas.get(gpu)?, routine);
    Ok(Kernel::without_code(gpu, native, Signature::for_interface(job.interface)))
}

/// Returns the kernel of a communicator's collectives.
pub(crate) fn collectives(gpu: &Arc<Gpu>, membership: &Arc<Membership>) -> Kernel {
    let immediates = crate::core::collective::ENCODED_SIZE;
    let signature = Signature { bindings: 0, immediates, waits: false };
    Kernel::without_code(gpu, Native::Collectives(Arc::clone(membership)), signature)
}

impl Signature {
    fn for_interface(interface: &NativeInterface) -> Self {
        Self {
            bindings: interface.binding_count(),
            immediates: interface.immediate_bytes() as usize,
            waits: false,
        }
    }
}

/// Loads a compiled kernel. An error if the device cannot run it with its block size, or if its
/// parameters differ from the declared ones.
fn load(
    gpu: &Arc<Gpu>,
    image: &Image,
    job: &NativeJob<'_>,
    signature: Signature,
) -> Result<Kernel> {
    let mut kernel = Kernel::load(gpu, image, signature)?;
    let interface = &job.spec.interface;
    let threads = interface.block().iter().map(|n| u64::from(*n)).product();
    let max_threads = kernel.attribute(function_attribute::MAX_THREADS)?;
    if threads > u64::from(max_threads) {
        return Err(too_many_threads(gpu, job.entry, threads, max_threads));
    }
    let actual = query_parameters(gpu, kernel.function());
    kernel.native = Some(match interface.declared_parameters() {
        Some(_) => {
            declared_params::check(job.entry, interface, actual.as_deref())?;
            Native::Declared(DeclaredParams::new(gpu, interface)?)
        }
        None => {
            let size = parameter_block_size(job.entry, interface, actual)?;
            Native::Packed(interface.clone(), size)
        }
    });
    Ok(kernel)
}

/// Returns the bytes of the block of all parameters; an error if they differ from the declared
/// ones. `actual` has the offset and size of each parameter of the kernel, if the driver reports
/// them.
fn parameter_block_size(
    entry: &str,
    interface: &NativeInterface,
    actual: Option<Vec<(usize, usize)>>,
) -> Result<usize> {
    let declared = interface.parameter_bytes();
    let end = |actual: Vec<(usize, usize)>| actual.iter().map(|(at, size)| at + size).max();
    match actual.map(|actual| end(actual).unwrap_or(0)) {
        Some(actual) if !is_filled_by(actual, declared) => {
            Err(size_mismatch(entry, interface, actual))
        }
        actual => Ok(actual.unwrap_or(declared)),
    }
}

/// Returns offset and size of each parameter of a kernel; `None` if the driver does not report
/// them.
fn query_parameters(gpu: &Gpu, function: Function) -> Option<Vec<(usize, usize)>> {
    /// An upper bound of their number: kernels have at most 32 KiB of parameters.
    const MAX_PARAMS: usize = 32 << 10;
    let symbol = gpu.api.optional_function(c"cuFuncGetParamInfo")?;
    // SAFETY: the signature is that of the driver's header.
    let get_param_info: unsafe extern "C" fn(Function, usize, *mut usize, *mut usize) -> Code =
        unsafe { std::mem::transmute(symbol) };
    let mut found = Vec::new();
    for index in 0..MAX_PARAMS {
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

/// Returns whether `declared` bytes of values fill the `actual` bytes of a kernel's parameters. A
/// few bytes more are allowed: the immediates may be a structure that ends in padding.
fn is_filled_by(actual: usize, declared: usize) -> bool {
    (actual..actual + 8).contains(&declared)
}

fn size_mismatch(entry: &str, interface: &NativeInterface, actual: usize) -> GpuError {
    GpuError::Argument(ArgumentError {
        label: None,
        function: None,
        kernel: Some(entry.to_owned()),
        argument: "parameters".to_owned(),
        problem: format!(
            "the kernel has {actual} bytes of parameters, but {} are declared: {} for {} buffers \
             and their lengths, {} of immediates",
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

fn too_many_threads(gpu: &Gpu, entry: &str, threads: u64, max_threads: u32) -> GpuError {
    GpuError::TooLarge(TooLargeError {
        label: None,
        function: None,
        what: format!("the block of kernel `{entry}`"),
        requested: format!("{threads} threads"),
        device: gpu.info.name.clone(),
        limit: format!("{max_threads} threads of this kernel"),
        limit_name: "MAX_THREADS_PER_BLOCK, by its registers and shared memory",
        help: "use smaller blocks, or bound its registers (__launch_bounds__ in CUDA C, \
                 .maxntid in PTX)"
            .to_owned(),
    })
}

/// Compiles a source to a cubin, or to zero-terminated PTX that the driver compiles when it is
/// loaded.
fn compile_source(gpu: &Gpu, job: &NativeJob<'_>) -> Result<Vec<u8>> {
    let ptx = match job.spec.language {
        Language::CudaC => match compile_cuda_c(gpu, job)? {
            Output::Ptx(ptx) => ptx,
            Output::Cubin(cubin) => return Ok(cubin),
        },
        _ => job.source.to_owned(),
    };
    check_entry(gpu, job, &ptx)?;
    if overaligns_shared(&ptx) || is_arch_specific(&ptx) {
        return Ok([ptx.as_bytes(), b"\0"].concat());
    }
    jit::compile(gpu, job.entry, ptx).map_err(|error| to_source_error(job, error))
}

/// Returns whether PTX has dynamic shared memory with an alignment above 16 bytes. The driver's
/// linker drops that alignment, and places it directly after static shared memory.
fn overaligns_shared(ptx: &str) -> bool {
    ptx.split(".extern").skip(1).any(|rest| {
        let line = &rest[..rest.find(';').unwrap_or(rest.len())];
        let shared = line.trim_start().starts_with(".shared");
        let number = line.split_once(".align").map(|(_, rest)| first_word(rest));
        shared && number.and_then(|number| number.parse().ok()).is_some_and(|align: u32| align > 16)
    })
}

/// Returns whether PTX targets one architecture only, such as `sm_90a`. The driver's linker would
/// compile it as relocatable code, in which tensor core instructions do not overlap others.
fn is_arch_specific(ptx: &str) -> bool {
    let line = ptx.lines().find_map(|line| line.trim_start().strip_prefix(".target"));
    line.is_some_and(|line| first_word(line).ends_with('a'))
}

/// Compiles CUDA C by NVRTC.
fn compile_cuda_c(gpu: &Gpu, job: &NativeJob<'_>) -> Result<Output> {
    let [major, minor] =
        [gpu.attribute(attribute::CAPABILITY_MAJOR)?, gpu.attribute(attribute::CAPABILITY_MINOR)?];
    let driver = gpu.cuda_version;
    let device = Device { capability: (major * 10 + minor) as c_int, driver };
    let nvrtc = Nvrtc::shared(driver)?;
    let output = nvrtc.compile(job.source, job.entry, device);
    output.map_err(|failure| match failure {
        Failure::Rejected(log) => {
            let help = format!("correct the source; NVRTC {} says", nvrtc.version_text());
            source_error(gpu, job, log, help)
        }
        Failure::Failed(call, why) => {
            GpuError::Driver(DriverError::new(&gpu.info.name, call, why, nvrtc::FAILED))
        }
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

/// Converts an error of the driver's compiler to a source error; returns other errors unchanged.
fn to_source_error(job: &NativeJob<'_>, error: GpuError) -> GpuError {
    match error {
        GpuError::Driver(DriverError {
            device,
            call: "cuLinkAddData" | "cuLinkComplete" | "cuModuleLoadDataEx",
            code,
            help,
            ..
        }) => GpuError::Source(SourceError {
            function: None,
            kernel: job.entry.to_owned(),
            language: job.spec.language,
            device,
            log: code,
            // Codes with advice are failures of the installation rather than of the source.
            help: match help.as_str() {
                DRIVER_FAILED => "correct the source; the driver says".to_owned(),
                advice => format!("{advice}; the driver says"),
            },
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
    let advice = match job.spec.language {
        Language::CudaC => "declare the kernel extern \"C\" __global__, so that it keeps its name",
        _ => "pass the name after .entry",
    };
    Err(source_error(gpu, job, log, format!("it has no kernel of that name: {advice}")))
}

/// Returns the names of the kernels in PTX.
fn entries(ptx: &str) -> Vec<&str> {
    ptx.split(".entry").skip(1).map(first_word).filter(|name| !name.is_empty()).collect()
}

/// Returns the identifier or number that a text starts with, after blanks.
fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '%')));
    &text[..end.unwrap_or(text.len())]
}

/// Kernel parameters in one block, the driver's alternative to a list of pointers.
#[derive(Default)]
pub(crate) struct Packed {
    /// Words, so that the block is 8-byte aligned.
    words: Vec<u64>,
    /// Bytes of the block.
    size: usize,
    /// The `extra` argument, filled by [`Packed::extra`].
    extra: [usize; 5],
}

impl Packed {
    /// Replaces the parameters of the previous launch; the block has at most `max_size` bytes.
    pub(crate) fn pack(
        &mut self,
        interface: &NativeInterface,
        max_size: usize,
        bindings: &[Range],
        immediates: &[u8],
    ) {
        let buffers: Vec<(u64, u64)> = bindings.iter().map(|it| (it.address, it.size)).collect();
        let bytes = interface.encode_parameters(&buffers, immediates);
        self.size = bytes.len().min(max_size);
        self.words.clear();
        params::extend_with_bytes(&mut self.words, &bytes);
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
    use crate::api::native::{NativeBinding, NativeSpec};
    use crate::cache::KernelKey;

    #[test]
    fn ptx_entries_are_found_by_name() {
        let ptx = ".visible .entry one(.param .u64 x) { ret; }\n.entry\n  _Z3two$1 (\n)\n{ ret; }";
        assert_eq!(entries(ptx), ["one", "_Z3two$1"]);
        assert_eq!(entries(".func f() { ret; }"), [""; 0]);
    }

    #[test]
    fn advice_of_the_driver_stays_in_source_errors() {
        let interface = NativeInterface::new(0, [1; 3]);
        let spec = NativeSpec { language: Language::Ptx, interface };
        let (source, native) = (String::new(), Some(spec.clone()));
        let key = KernelKey { source, entry: None, overrides: Vec::new(), checked: false, native };
        let job = NativeJob { source: "", entry: "k", spec: &spec, key: &key, cache: None };
        let help_of = |call, help| {
            let error = DriverError::new("GPU", call, "NAME (1)".to_owned(), help);
            match to_source_error(&job, GpuError::Driver(error)) {
                GpuError::Source(error) => error.help().to_owned(),
                other => panic!("{other}"),
            }
        };
        let source = "correct the source; the driver says";
        assert_eq!(help_of("cuModuleLoadDataEx", DRIVER_FAILED), source);
        let version = "update NVIDIA's driver";
        assert_eq!(help_of("cuLinkAddData", version), format!("{version}; the driver says"));
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
        let [pointer_key, block, size_key, size, end] =
            unsafe { extra.cast::<[usize; 5]>().read() };
        assert_eq!((pointer_key, size_key, end), (1, 2, 0));
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
    fn parameter_size_must_match() {
        assert!(is_filled_by(36, 36) && is_filled_by(36, 40) && is_filled_by(0, 0));
        assert!(!is_filled_by(36, 32) && !is_filled_by(36, 44) && !is_filled_by(8, 16));
        let interface = NativeInterface::new(2, [1; 3]).immediates(12);
        let text = size_mismatch("k", &interface, 36).to_string();
        let expected = "kernel `k`, parameters: the kernel has 36 bytes of parameters, but 28 are \
                        declared: 16 for 2 buffers and their lengths, 12 of immediates";
        assert!(text.starts_with(expected), "{text}");
    }
}
