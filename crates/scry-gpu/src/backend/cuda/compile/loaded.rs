//! Machine code that the driver has loaded.

use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Arc;

use super::jit;
use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::types::{Code, Function, KernelLibrary, LibraryKernel, Module};

/// Loaded machine code of a kernel, which the drop unloads.
pub(super) struct LoadedCode {
    gpu: Arc<Gpu>,
    handle: Handle,
    function: Function,
}

enum Handle {
    Module(Module),
    Library(KernelLibrary),
}

impl LoadedCode {
    /// Loads a cubin with a kernel `entry`. The device's context must be current.
    pub(super) fn of_cubin(gpu: &Arc<Gpu>, entry: &str, cubin: &[u8]) -> Result<Self> {
        let mut module = Module::NULL;
        let (start, none) = (cubin.as_ptr().cast(), ptr::null_mut());
        // SAFETY: NVIDIA's compiler created the code, and the disk cache has checked its checksum;
        // the driver reads the code and writes a handle.
        let code =
            unsafe { (gpu.api.module_load_data)(&raw mut module, start, 0, none, none.cast()) };
        gpu.check("cuModuleLoadDataEx", code)?;
        Self::of_module(gpu, entry, module)
    }

    /// Compiles PTX with a kernel `entry` without the driver's linker, and loads it. The device's
    /// context must be current.
    pub(super) fn of_ptx(gpu: &Arc<Gpu>, entry: &str, ptx: &CStr) -> Result<Self> {
        // Libraries are compiled by several threads at the same time, modules one after the other.
        match Self::library_of_ptx(gpu, entry, ptx) {
            Ok(loaded) => Ok(loaded),
            Err(code) => {
                // Only the load of a module returns the messages of the compiler: a library may be
                // compiled later, when their buffers are gone.
                log::debug!("cuda: kernel `{entry}` is loaded as a module: {code:?}");
                gpu.check_alive()?;
                Self::of_module(gpu, entry, jit::load_ptx(gpu, entry, ptx)?)
            }
        }
    }

    /// Errors are not recorded as losses of the device: a library may be loaded into contexts of
    /// other devices, too.
    fn library_of_ptx(gpu: &Arc<Gpu>, entry: &str, ptx: &CStr) -> Result<Self, Code> {
        let name = CString::new(entry).map_err(|_| Code::INVALID_VALUE)?;
        let mut library = KernelLibrary::NULL;
        let none = ptr::null_mut::<*mut c_void>();
        // SAFETY: the driver reads a zero-terminated text, of which it keeps a copy unless an
        // option says otherwise, and writes a handle; there are no options.
        let code = unsafe {
            let load = gpu.api.library_load_data;
            let text = ptx.as_ptr().cast();
            load(&raw mut library, text, none.cast(), none, 0, none.cast(), none, 0)
        };
        code.ok()?;
        let mut loaded = Self::new(gpu, Handle::Library(library));
        let mut kernel = LibraryKernel::NULL;
        // SAFETY: the library is alive; the driver reads a zero-terminated name, and writes a
        // handle.
        let code = unsafe { (gpu.api.library_get_kernel)(&raw mut kernel, library, name.as_ptr()) };
        code.ok()?;
        // SAFETY: the kernel belongs to the library, which is alive; the driver writes a handle,
        // of the current context.
        unsafe { (gpu.api.kernel_get_function)(&raw mut loaded.function, kernel) }.ok()?;
        Ok(loaded)
    }

    /// Owns code from here on: the drop unloads it.
    fn new(gpu: &Arc<Gpu>, handle: Handle) -> Self {
        Self { gpu: Arc::clone(gpu), handle, function: Function::NULL }
    }

    /// Returns the kernel.
    pub(super) fn function(&self) -> Function {
        self.function
    }

    fn of_module(gpu: &Arc<Gpu>, entry: &str, module: Module) -> Result<Self> {
        let mut loaded = Self::new(gpu, Handle::Module(module));
        let name = CString::new(entry)
            .map_err(|error| gpu.defect_error("cuModuleGetFunction", error.to_string()))?;
        // SAFETY: the module is alive; the driver reads a zero-terminated name and writes a handle.
        let code = unsafe {
            (gpu.api.module_get_function)(&raw mut loaded.function, module, name.as_ptr())
        };
        gpu.check("cuModuleGetFunction", code)?;
        Ok(loaded)
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        let Some(_current) = self.gpu.current_to_free() else { return };
        // SAFETY: by the contract of `Driver` no unfinished submission uses the code.
        let (call, code) = unsafe {
            match self.handle {
                Handle::Module(module) => ("cuModuleUnload", (self.gpu.api.module_unload)(module)),
                Handle::Library(library) => {
                    ("cuLibraryUnload", (self.gpu.api.library_unload)(library))
                }
            }
        };
        if let Err(error) = self.gpu.check(call, code) {
            log::error!("cuda: the code of a kernel was not unloaded: {error}");
        }
    }
}
