//! Compiles PTX to machine code by the driver's compiler.

use std::ffi::{CStr, CString, c_char, c_void};

use crate::api::error::{DriverError, GpuError, Result};
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types::{Code, LinkState, Module, jit};

/// Bytes of each compiler log.
const LOG_SIZE: usize = 16 << 10;

/// Buffers for the compiler's messages.
struct Logs {
    info: Vec<u8>,
    error: Vec<u8>,
}

impl Logs {
    fn new() -> Self {
        Self { info: vec![0; LOG_SIZE], error: vec![0; LOG_SIZE] }
    }

    /// Returns the options that make the compiler write to the buffers, and their values, each
    /// passed as a pointer. The last byte of a buffer is reserved for a zero.
    fn options(&mut self) -> ([i32; 4], [*mut c_void; 4]) {
        let size = std::ptr::without_provenance_mut(LOG_SIZE - 1);
        let keys = [jit::INFO_LOG, jit::INFO_LOG_SIZE, jit::ERROR_LOG, jit::ERROR_LOG_SIZE];
        let (info, error) = (self.info.as_mut_ptr(), self.error.as_mut_ptr());
        (keys, [info.cast(), size, error.cast(), size])
    }
}

/// Returns the text of a log.
fn text(log: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(log).unwrap_or_default();
    text.to_string_lossy().trim().to_owned()
}

/// A compilation of PTX by the driver's linker.
struct Linker<'a> {
    gpu: &'a Gpu,
    state: LinkState,
    /// Written by the driver during the compilation.
    logs: Box<Logs>,
    /// Read by the driver, which also writes the lengths of the logs to it until the `CUlinkState`
    /// is destroyed.
    _values: Box<[*mut c_void; 4]>,
}

/// Compiles PTX for the device; returns the cubin. Errors of the compiler contain `kernel` and the
/// compiler's log. The device's context must be current.
pub(crate) fn compile(gpu: &Gpu, kernel: &str, ptx: String) -> Result<Vec<u8>> {
    let linker = Linker::new(gpu)?;
    let ptx =
        CString::new(ptx).map_err(|error| gpu.defect_error("cuLinkAddData", error.to_string()))?;
    linker.add(kernel, &ptx)?;
    let cubin = linker.complete(kernel)?;
    let log_text = text(&linker.logs.info);
    if !log_text.is_empty() {
        log::debug!("cuda: kernel `{kernel}`: {log_text}");
    }
    Ok(cubin)
}

/// Loads PTX as a module: the driver compiles it without the linker. The context must be current.
pub(crate) fn load_ptx(gpu: &Gpu, kernel: &str, ptx: &CStr) -> Result<Module> {
    let mut logs = Logs::new();
    let (mut keys, mut values) = logs.options();
    let mut module = Module::NULL;
    // SAFETY: the driver reads a zero-terminated text, writes a handle, and writes to the logs
    // until it returns.
    let code = unsafe {
        let (text, count) = (ptx.as_ptr().cast(), keys.len() as u32);
        let (keys, values) = (keys.as_mut_ptr(), values.as_mut_ptr());
        (gpu.api.module_load_data)(&raw mut module, text, count, keys, values)
    };
    let loaded = gpu.check("cuModuleLoadDataEx", code);
    loaded.map_err(|error| add_log(error, kernel, &text(&logs.error)))?;
    Ok(module)
}

impl<'a> Linker<'a> {
    fn new(gpu: &'a Gpu) -> Result<Self> {
        let mut logs = Box::new(Logs::new());
        let (mut keys, values) = logs.options();
        let mut values = Box::new(values);
        let mut state = LinkState::NULL;
        // SAFETY: the context is current; the logs and the values outlive the compilation.
        let code = unsafe {
            let count = keys.len() as u32;
            (gpu.api.link_create)(count, keys.as_mut_ptr(), values.as_mut_ptr(), &raw mut state)
        };
        gpu.check("cuLinkCreate", code)?;
        Ok(Self { gpu, state, logs, _values: values })
    }

    fn add(&self, kernel: &str, ptx: &CStr) -> Result<()> {
        let bytes = ptx.to_bytes_with_nul();
        let start = bytes.as_ptr().cast_mut().cast::<c_void>();
        let name: *const c_char = c"kernel".as_ptr();
        let none = std::ptr::null_mut();
        // SAFETY: the driver reads the text and copies it as needed; there are no options.
        let code = unsafe {
            (self.gpu.api.link_add_data)(
                self.state,
                jit::INPUT_PTX,
                start,
                bytes.len(),
                name,
                0,
                none,
                none.cast(),
            )
        };
        self.check("cuLinkAddData", kernel, code)
    }

    fn complete(&self, kernel: &str) -> Result<Vec<u8>> {
        let (mut start, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: the driver writes an address and a size.
        let code =
            unsafe { (self.gpu.api.link_complete)(self.state, &raw mut start, &raw mut size) };
        self.check("cuLinkComplete", kernel, code)?;
        // SAFETY: `size` bytes are readable until the compilation is destroyed.
        Ok(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), size) }.to_vec())
    }

    fn check(&self, call: &'static str, kernel: &str, code: Code) -> Result<()> {
        let log = || text(&self.logs.error);
        self.gpu.check(call, code).map_err(|error| add_log(error, kernel, &log()))
    }
}

impl Drop for Linker<'_> {
    fn drop(&mut self) {
        // SAFETY: the compilation was created, and its output was copied.
        let code = unsafe { (self.gpu.api.link_destroy)(self.state) };
        if let Err(error) = self.gpu.check("cuLinkDestroy", code) {
            log::error!("cuda: a compilation was not destroyed: {error}");
        }
    }
}

/// Adds the kernel's name and the compiler's log to an error.
fn add_log(mut error: GpuError, kernel: &str, log: &str) -> GpuError {
    if let GpuError::Driver(DriverError { code, .. }) = &mut error {
        *code = format!("kernel `{kernel}`: {code}");
        if !log.is_empty() {
            *code = format!("{code}; the driver's compiler says:\n{log}");
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_contain_kernel_and_log() {
        let error = || {
            let code = "CUDA_ERROR_INVALID_PTX (218): a PTX JIT compilation failed".to_owned();
            GpuError::Driver(DriverError::new("GPU", "cuLinkAddData", code, "update it"))
        };
        let text = add_log(error(), "double", "ptxas fatal: Unresolved extern").to_string();
        assert_eq!(
            text,
            "cuLinkAddData failed on GPU: kernel `double`: CUDA_ERROR_INVALID_PTX (218): a PTX JIT \
             compilation failed; the driver's compiler says:\nptxas fatal: Unresolved extern\n\
             help: update it"
        );
        assert!(!add_log(error(), "double", "").to_string().contains("says"));
    }

    #[test]
    fn log_ends_at_first_zero() {
        let mut logs = Logs::new();
        let (_, [info, size, ..]) = logs.options();
        assert_eq!((info.cast(), size.addr()), (logs.info.as_mut_ptr(), LOG_SIZE - 1));
        logs.info[..6].copy_from_slice(b" said\n");
        assert_eq!(text(&logs.info), "said");
        assert_eq!(text(&logs.error), "");
    }
}
