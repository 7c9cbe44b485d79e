//! Matrix products by NVIDIA's library cuBLAS, opened at its first use.
//!
//! A device has one cuBLAS handle with one workspace, which its kernels use. So all products, and
//! recordings with products, are issued to the main stream, which executes them in order.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::capture::{CapturedGraph, capture};
use super::params::Range;
use crate::api::error::{DRIVER_FAILED, DriverError, GpuError, OutOfMemoryError, Result};
use crate::api::native::Routine;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::library::functions;
use crate::backend::cuda::ffi::toolkit::ToolkitLibrary;
use crate::backend::cuda::ffi::types::{DevicePtr, Handle, Stream};

/// File names of the cuBLAS library, and its help.
const CUBLAS: ToolkitLibrary = ToolkitLibrary {
    name: "cuBLAS",
    #[cfg(not(windows))]
    files: &[
        (13, "libcublas.so.13"),
        (12, "libcublas.so.12"),
        (11, "libcublas.so.11"),
        (11, "libcublas.so"),
    ],
    #[cfg(windows)]
    files: &[(13, "cublas64_13.dll"), (12, "cublas64_12.dll"), (11, "cublas64_11.dll")],
    help: "install NVIDIA's CUDA toolkit, or its cuBLAS alone (packages libcublas-12-x of \
             NVIDIA's repositories, nvidia-cublas-cu12 of pip with its folder on \
             LD_LIBRARY_PATH), and set CUDA_HOME if the toolkit is not in a usual place; \
             scry_gpu::shaders::matmul needs nothing of that",
};

/// Bytes of the workspace: NVIDIA's recommendation for Hopper, which exceeds that for older GPUs.
const WORKSPACE_SIZE: usize = 32 << 20;

/// `CUBLAS_OP_N`: the matrix is not transposed.
const NO_TRANSPOSE: c_int = 0;
/// `CUBLAS_GEMM_DEFAULT`: cuBLAS chooses the algorithm.
const DEFAULT_ALGORITHM: c_int = -1;

/// `cudaDataType`.
mod data {
    use std::ffi::c_int;

    pub(super) const F32: c_int = 0;
    pub(super) const F16: c_int = 2;
    pub(super) const BF16: c_int = 14;
}

/// `cublasComputeType_t`.
mod compute {
    use std::ffi::c_int;

    pub(super) const F32: c_int = 68;
    /// f32 in every step, independent of environment variables.
    pub(super) const F32_PEDANTIC: c_int = 69;
    pub(super) const TF32: c_int = 77;
}

/// The status that a cuBLAS call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Status(c_int);

impl Status {
    const SUCCESS: Self = Self(0);
    const ALLOC_FAILED: Self = Self(3);

    /// Returns cuBLAS's name of the status.
    fn name(self) -> String {
        let name = match self.0 {
            1 => "CUBLAS_STATUS_NOT_INITIALIZED",
            3 => "CUBLAS_STATUS_ALLOC_FAILED",
            7 => "CUBLAS_STATUS_INVALID_VALUE",
            8 => "CUBLAS_STATUS_ARCH_MISMATCH",
            11 => "CUBLAS_STATUS_MAPPING_ERROR",
            13 => "CUBLAS_STATUS_EXECUTION_FAILED",
            14 => "CUBLAS_STATUS_INTERNAL_ERROR",
            15 => "CUBLAS_STATUS_NOT_SUPPORTED",
            16 => "CUBLAS_STATUS_LICENSE_ERROR",
            code => return format!("code {code}"),
        };
        name.to_owned()
    }

    /// Returns what the user can do about a failure with this status.
    fn help(self) -> &'static str {
        match self.0 {
            1 => "install a cuBLAS for the CUDA version of the driver, or update the driver",
            8 => {
                "the GPU is too old for this element type: use f32 elements, or \
                 scry_gpu::shaders::matmul"
            }
            15 => "the GPU or this cuBLAS lacks this product: use f32 elements, or a newer cuBLAS",
            _ => DRIVER_FAILED,
        }
    }
}

pub(crate) enum BlasMark {}
pub(crate) type BlasHandle = Handle<BlasMark>;

functions! {
    /// The functions of cuBLAS 11.4 and newer, without the prefix `cublas` and the version.
    Api -> Status {
        create = c"cublasCreate_v2" (*mut BlasHandle);
        destroy = c"cublasDestroy_v2" (BlasHandle);
        get_property = c"cublasGetProperty" (c_int, *mut c_int);
        set_stream = c"cublasSetStream_v2" (BlasHandle, Stream);
        set_workspace = c"cublasSetWorkspace_v2" (BlasHandle, *mut c_void, usize);
        gemm_ex = c"cublasGemmEx" (
            BlasHandle, c_int, c_int, c_int, c_int, c_int, *const c_void, *const c_void, c_int,
            c_int, *const c_void, c_int, c_int, *const c_void, *mut c_void, c_int, c_int, c_int,
            c_int
        );
    }
}

/// Returns the library of the process. It is opened at the first call and stays loaded.
fn shared(driver: c_int) -> Result<&'static Api> {
    static SHARED: OnceLock<Api> = OnceLock::new();
    if let Some(api) = SHARED.get() {
        return Ok(api);
    }
    let library = CUBLAS.open(driver)?;
    let name = library.name().to_owned();
    let api = Api::load(library).map_err(|missing| CUBLAS.missing_function(&name, missing))?;
    log::debug!("cuda: cuBLAS is {}", api.library.name());
    Ok(SHARED.get_or_init(|| api))
}

/// Returns the library's file, which is opened if necessary, and its version, such as `12.8.4`.
pub(crate) fn file_and_version(driver: c_int) -> Result<(String, String)> {
    let api = shared(driver)?;
    let file = api.library.name();
    // The properties 0, 1 and 2 are the major version, the minor version and the patch level.
    let mut version = [0; 3];
    for (property, value) in (0..).zip(&mut version) {
        // SAFETY: cuBLAS writes an integer.
        let status = unsafe { (api.get_property)(property, value) };
        if status != Status::SUCCESS {
            let why = format!("cublasGetProperty of {file} failed with {}", status.name());
            return Err(CUBLAS.broken(why));
        }
    }
    Ok((file.to_owned(), version.map(|number| number.to_string()).join(".")))
}

/// The cuBLAS handle of a device, created at its first use.
#[derive(Default)]
pub(crate) struct LazyBlas(Mutex<Option<Arc<Blas>>>);

impl LazyBlas {
    /// Returns the handle; creates it at the first call.
    pub(crate) fn get(&self, gpu: &Arc<Gpu>) -> Result<Arc<Blas>> {
        let mut blas = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(blas) = &*blas {
            return Ok(Arc::clone(blas));
        }
        let created = Arc::new(Blas::new(gpu, shared(gpu.cuda_version)?)?);
        *blas = Some(Arc::clone(&created));
        Ok(created)
    }
}

/// A cuBLAS handle and its workspace.
pub(crate) struct Blas {
    api: &'static Api,
    raw: BlasHandle,
    workspace: DevicePtr,
    /// The stream that the handle is bound to. The lock is held while a product is issued.
    stream: Mutex<Stream>,
    gpu: Arc<Gpu>,
}

/// A product of row-major matrices, C = A × B. The addresses are those of live allocations with
/// room for m × k, k × n and m × n elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) routine: Routine,
    pub(crate) a: DevicePtr,
    pub(crate) b: DevicePtr,
    pub(crate) c: DevicePtr,
    pub(crate) m: c_int,
    pub(crate) n: c_int,
    pub(crate) k: c_int,
}

impl Product {
    /// Returns the product of these bindings and immediates. `None` unless there are three of each,
    /// the sizes are positive and fit an `int`, and the matrices fit their bindings.
    pub(crate) fn new(routine: Routine, bindings: &[Range], immediates: &[u8]) -> Option<Self> {
        let (words, []) = immediates.as_chunks::<4>() else { return None };
        let size = |word: &[u8; 4]| {
            c_int::try_from(u32::from_ne_bytes(*word)).ok().filter(|size| *size > 0)
        };
        let (&[m, n, k], &[a, b, c]) = (words, bindings) else { return None };
        let [m, n, k] = [size(&m)?, size(&n)?, size(&k)?];
        let fits = |range: Range, rows: c_int, columns: c_int| {
            // No overflow: two positive 31-bit integers and an element size of at most 4.
            rows as u64 * columns as u64 * element_size(routine) <= range.size
        };
        let all_fit = fits(a, m, k) && fits(b, k, n) && fits(c, m, n);
        all_fit.then_some(Self { routine, a: a.address, b: b.address, c: c.address, m, n, k })
    }
}

impl Blas {
    fn new(gpu: &Arc<Gpu>, api: &'static Api) -> Result<Self> {
        let _current = gpu.current()?;
        let mut raw = BlasHandle::NULL;
        // SAFETY: the context is current; cuBLAS writes a handle.
        let status = unsafe { (api.create)(&raw mut raw) };
        if status != Status::SUCCESS {
            return Err(status_error(gpu, "cublasCreate", status));
        }
        let stream = Mutex::new(Stream::NULL);
        // From here on, the drop frees everything.
        let mut blas = Self { api, raw, workspace: 0, stream, gpu: Arc::clone(gpu) };
        // SAFETY: the context is current; the driver writes an address.
        let code = unsafe { (gpu.api.mem_alloc)(&raw mut blas.workspace, WORKSPACE_SIZE) };
        gpu.check("cuMemAlloc", code)?;
        Ok(blas)
    }

    /// Binds the handle to a stream. cuBLAS resets the workspace whenever the stream is set.
    fn bind(&self, bound: &mut Stream, stream: Stream) -> Result<()> {
        if *bound == stream {
            return Ok(());
        }
        *bound = Stream::NULL;
        // SAFETY: handle and stream are alive, and belong to the context, which is current.
        let status = unsafe { (self.api.set_stream)(self.raw, stream) };
        self.check("cublasSetStream", status)?;
        let workspace = self.workspace as usize as *mut c_void;
        // SAFETY: the workspace lives as long as the handle, and products on it are ordered.
        let status = unsafe { (self.api.set_workspace)(self.raw, workspace, WORKSPACE_SIZE) };
        self.check("cublasSetWorkspace", status)?;
        *bound = stream;
        Ok(())
    }

    /// Captures a product for a recording. The context must be current.
    pub(crate) fn capture(&self, product: &Product) -> Result<CapturedGraph<'_>> {
        let captured = capture(&self.gpu, |stream| self.multiply(stream, product));
        // The captured stream was destroyed, and a later stream may have the same handle.
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = Stream::NULL;
        captured
    }

    /// Issues a product to the main stream, or to a stream under capture. The context must be
    /// current.
    pub(crate) fn multiply(&self, stream: Stream, product: &Product) -> Result<()> {
        let mut bound = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        self.bind(&mut bound, stream)?;
        let Product { routine, a, b, c, m, n, k } = *product;
        let (element, compute) = element_and_compute_type(routine);
        let pointer = |address: DevicePtr| address as usize as *mut c_void;
        let (one, zero) = (1.0f32, 0.0f32);
        // cuBLAS matrices are column-major. A row-major matrix is the transpose of a column-major
        // one, and the transpose of C is that of B times that of A.
        // SAFETY: the handle is alive, and cuBLAS reads the scales before the call returns.
        // `Product::new` checked that the matrices fit their bindings, which stay alive until the
        // work is done.
        let status = unsafe {
            (self.api.gemm_ex)(
                self.raw,
                NO_TRANSPOSE,
                NO_TRANSPOSE,
                n,
                m,
                k,
                (&raw const one).cast(),
                pointer(b),
                element,
                n,
                pointer(a),
                element,
                k,
                (&raw const zero).cast(),
                pointer(c),
                element,
                n,
                compute,
                DEFAULT_ALGORITHM,
            )
        };
        self.check("cublasGemmEx", status)
    }

    fn check(&self, call: &'static str, status: Status) -> Result<()> {
        match status {
            Status::SUCCESS => Ok(()),
            _ => Err(status_error(&self.gpu, call, status)),
        }
    }
}

/// Returns the bytes of an element.
fn element_size(routine: Routine) -> u64 {
    match routine {
        Routine::F32 | Routine::Tf32 => 4,
        Routine::F16 | Routine::Bf16 => 2,
    }
}

/// Returns the element type of the matrices, and the compute type.
fn element_and_compute_type(routine: Routine) -> (c_int, c_int) {
    match routine {
        Routine::F32 => (data::F32, compute::F32_PEDANTIC),
        Routine::Tf32 => (data::F32, compute::TF32),
        Routine::F16 => (data::F16, compute::F32),
        Routine::Bf16 => (data::BF16, compute::F32),
    }
}

/// Returns the error for a call that returned `status`.
fn status_error(gpu: &Gpu, call: &'static str, status: Status) -> GpuError {
    if status == Status::ALLOC_FAILED {
        return GpuError::OutOfMemory(OutOfMemoryError {
            function: None,
            device: gpu.info.name.clone(),
            requested: None,
            label: "cuBLAS".to_owned(),
            detail: format!("{call} failed with {}", status.name()),
            help: "drop buffers".to_owned(),
        });
    }
    GpuError::Driver(DriverError::new(&gpu.info.name, call, status.name(), status.help()))
}

impl Drop for Blas {
    fn drop(&mut self) {
        let Some(_current) = self.gpu.current_to_free() else { return };
        // SAFETY: nothing uses the handle any more, and all products are done.
        let status = unsafe { (self.api.destroy)(self.raw) };
        if status != Status::SUCCESS {
            log::debug!("cuda: cublasDestroy failed with {}", status.name());
        }
        if self.workspace != 0 {
            // SAFETY: `new` allocated the workspace, and no product uses it any more.
            let code = unsafe { (self.gpu.api.mem_free)(self.workspace) };
            if let Err(error) = self.gpu.check("cuMemFree", code) {
                log::debug!("cuda: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(sizes: [u32; 3]) -> Vec<u8> {
        sizes.iter().flat_map(|size| size.to_ne_bytes()).collect()
    }

    #[test]
    fn matrices_must_fit_their_bindings() {
        let product = |sizes, bytes: [u64; 3]| {
            let range = |i: usize| Range { address: 0x100 * (i as u64 + 1), size: bytes[i] };
            let bindings = [0, 1, 2].map(range);
            Product::new(Routine::F32, &bindings, &words(sizes))
        };
        let fitting = product([2, 3, 5], [40, 60, 24]).unwrap();
        assert_eq!((fitting.m, fitting.n, fitting.k), (2, 3, 5));
        assert_eq!((fitting.a, fitting.b, fitting.c), (0x100, 0x200, 0x300));
        assert_eq!(product([2, 3, 5], [39, 60, 24]), None);
        assert_eq!(product([2, 3, 5], [40, 59, 24]), None);
        assert_eq!(product([2, 3, 5], [40, 60, 23]), None);
        assert_eq!(product([0, 3, 5], [40, 60, 24]), None);
        assert_eq!(product([1 << 31, 1, 1], [u64::MAX; 3]), None);
        let max = i32::MAX as u32;
        assert!(product([max, max, max], [u64::MAX; 3]).is_some());
        let bindings = [Range { address: 0, size: 9 }; 3];
        assert_eq!(Product::new(Routine::F16, &bindings, &words([1, 1, 1])[..8]), None);
        assert_eq!(Product::new(Routine::F16, &bindings[..2], &words([1, 1, 1])), None);
    }

    #[test]
    fn failures_are_no_defects() {
        for code in [1, 7, 8, 11, 13, 14, 15, 16, 99] {
            let help = Status(code).help();
            assert!(!help.contains("defect"), "{code}: {help}");
        }
        assert!(Status(8).help().contains("too old for this element type"));
        assert_eq!(Status(13).help(), DRIVER_FAILED);
    }

    #[test]
    fn f32_is_pedantic_unless_tf32() {
        assert_eq!(element_and_compute_type(Routine::F32), (0, 69));
        assert_eq!(element_and_compute_type(Routine::Tf32), (0, 77));
        assert_eq!(element_and_compute_type(Routine::F16), (2, 68));
        assert_eq!(element_and_compute_type(Routine::Bf16), (14, 68));
    }

    #[test]
    fn missing_cublas_error_has_help() {
        match shared(12080) {
            Ok(api) => eprintln!("cuBLAS is present: {}", api.library.name()),
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("cuBLAS is not available: none of libcublas"), "{text}");
                assert!(text.contains("install NVIDIA's CUDA toolkit"), "{text}");
                assert!(text.contains("scry_gpu::shaders::matmul"), "{text}");
            }
        }
    }
}
