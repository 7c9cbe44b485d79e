//! The functions of the CUDA driver's library, which is opened at run time.
//!
//! Names and types are those of CUDA 12.0, so that every newer driver has them.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use super::error;
use super::library::{Library, Missing, functions};
use super::types::{
    Code, Context, Device, DevicePtr, Event, Function, Graph, GraphExec, GraphNode, KernelLibrary,
    KernelNode, LaunchConfig, LibraryKernel, LinkState, MemcpyNode, MemoryPool, MemsetNode, Module,
    PoolAccess, PoolProperties, Stream,
};
use crate::backend::Absence;
use crate::lifecycle::fork_guard::Process;

/// Names of the driver's library, in search order.
#[cfg(not(windows))]
const LIBRARIES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"];
#[cfg(windows)]
const LIBRARIES: [&str; 1] = ["nvcuda.dll"];

/// The oldest supported driver: CUDA 12.0.
const MIN_VERSION: c_int = 12000;

/// The help for a missing driver.
const INSTALL: &str = "on a machine with an NVIDIA GPU, install NVIDIA's driver 525 or newer; in a \
    container, start it with the GPU (docker run --gpus all)";
const UPDATE_DRIVER: &str = "update NVIDIA's driver to 525 or newer";

functions! {
    /// The functions of the driver. Fields are named after the functions, without `cu` and the
    /// version suffix; long names are shortened.
    Api -> Code {
        init = c"cuInit" (c_uint);
        get_error_name = c"cuGetErrorName" (Code, *mut *const c_char);
        get_error_string = c"cuGetErrorString" (Code, *mut *const c_char);
        device_get_count = c"cuDeviceGetCount" (*mut c_int);
        device_get = c"cuDeviceGet" (*mut Device, c_int);
        device_get_name = c"cuDeviceGetName" (*mut c_char, c_int, Device);
        device_get_uuid = c"cuDeviceGetUuid_v2" (*mut [u8; 16], Device);
        device_get_attribute = c"cuDeviceGetAttribute" (*mut c_int, c_int, Device);
        device_can_access_peer = c"cuDeviceCanAccessPeer" (*mut c_int, Device, Device);
        device_total_mem = c"cuDeviceTotalMem_v2" (*mut usize, Device);
        device_primary_ctx_retain = c"cuDevicePrimaryCtxRetain" (*mut Context, Device);
        device_primary_ctx_release = c"cuDevicePrimaryCtxRelease_v2" (Device);
        ctx_get_current = c"cuCtxGetCurrent" (*mut Context);
        ctx_push_current = c"cuCtxPushCurrent_v2" (Context);
        ctx_pop_current = c"cuCtxPopCurrent_v2" (*mut Context);
        mem_get_info = c"cuMemGetInfo_v2" (*mut usize, *mut usize);
        mem_alloc = c"cuMemAlloc_v2" (*mut DevicePtr, usize);
        mem_free = c"cuMemFree_v2" (DevicePtr);
        mem_alloc_from_pool_async =
            c"cuMemAllocFromPoolAsync" (*mut DevicePtr, usize, MemoryPool, Stream);
        mem_free_async = c"cuMemFreeAsync" (DevicePtr, Stream);
        mem_pool_create = c"cuMemPoolCreate" (*mut MemoryPool, *const PoolProperties);
        mem_pool_destroy = c"cuMemPoolDestroy" (MemoryPool);
        mem_pool_set_attribute = c"cuMemPoolSetAttribute" (MemoryPool, c_int, *mut c_void);
        mem_pool_set_access =
            c"cuMemPoolSetAccess" (MemoryPool, *const PoolAccess, usize);
        mem_pool_trim_to = c"cuMemPoolTrimTo" (MemoryPool, usize);
        mem_host_alloc = c"cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
        mem_free_host = c"cuMemFreeHost" (*mut c_void);
        mem_host_get_device_pointer =
            c"cuMemHostGetDevicePointer_v2" (*mut DevicePtr, *mut c_void, c_uint);
        memcpy_async = c"cuMemcpyAsync" (DevicePtr, DevicePtr, usize, Stream);
        memset_d32_async = c"cuMemsetD32Async" (DevicePtr, c_uint, usize, Stream);
        module_load_data = c"cuModuleLoadDataEx" (
            *mut Module, *const c_void, c_uint, *mut c_int, *mut *mut c_void
        );
        module_unload = c"cuModuleUnload" (Module);
        module_get_function = c"cuModuleGetFunction" (*mut Function, Module, *const c_char);
        library_load_data = c"cuLibraryLoadData" (
            *mut KernelLibrary, *const c_void, *mut c_int, *mut *mut c_void, c_uint, *mut c_int,
            *mut *mut c_void, c_uint
        );
        library_unload = c"cuLibraryUnload" (KernelLibrary);
        library_get_kernel =
            c"cuLibraryGetKernel" (*mut LibraryKernel, KernelLibrary, *const c_char);
        kernel_get_function = c"cuKernelGetFunction" (*mut Function, LibraryKernel);
        func_get_attribute = c"cuFuncGetAttribute" (*mut c_int, c_int, Function);
        func_set_attribute = c"cuFuncSetAttribute" (Function, c_int, c_int);
        occupancy_max_blocks =
            c"cuOccupancyMaxActiveBlocksPerMultiprocessor" (*mut c_int, Function, c_int, usize);
        link_create =
            c"cuLinkCreate_v2" (c_uint, *mut c_int, *mut *mut c_void, *mut LinkState);
        link_add_data = c"cuLinkAddData_v2" (
            LinkState, c_int, *mut c_void, usize, *const c_char, c_uint, *mut c_int,
            *mut *mut c_void
        );
        link_complete = c"cuLinkComplete" (LinkState, *mut *mut c_void, *mut usize);
        link_destroy = c"cuLinkDestroy" (LinkState);
        stream_create = c"cuStreamCreate" (*mut Stream, c_uint);
        stream_destroy = c"cuStreamDestroy_v2" (Stream);
        stream_query = c"cuStreamQuery" (Stream);
        stream_synchronize = c"cuStreamSynchronize" (Stream);
        stream_wait_event = c"cuStreamWaitEvent" (Stream, Event, c_uint);
        stream_write_value64 = c"cuStreamWriteValue64_v2" (Stream, DevicePtr, u64, c_uint);
        event_create = c"cuEventCreate" (*mut Event, c_uint);
        event_destroy = c"cuEventDestroy_v2" (Event);
        event_record = c"cuEventRecord" (Event, Stream);
        event_query = c"cuEventQuery" (Event);
        event_elapsed_time = c"cuEventElapsedTime" (*mut f32, Event, Event);
        launch_kernel_ex = c"cuLaunchKernelEx" (
            *const LaunchConfig, Function, *mut *mut c_void, *mut *mut c_void
        );
        graph_create = c"cuGraphCreate" (*mut Graph, c_uint);
        graph_add_kernel_node = c"cuGraphAddKernelNode_v2" (
            *mut GraphNode, Graph, *const GraphNode, usize, *const KernelNode
        );
        graph_add_memcpy_node = c"cuGraphAddMemcpyNode" (
            *mut GraphNode, Graph, *const GraphNode, usize, *const MemcpyNode, Context
        );
        graph_add_memset_node = c"cuGraphAddMemsetNode" (
            *mut GraphNode, Graph, *const GraphNode, usize, *const MemsetNode, Context
        );
        graph_add_empty_node =
            c"cuGraphAddEmptyNode" (*mut GraphNode, Graph, *const GraphNode, usize);
        graph_add_child_graph_node =
            c"cuGraphAddChildGraphNode" (*mut GraphNode, Graph, *const GraphNode, usize, Graph);
        stream_begin_capture = c"cuStreamBeginCapture_v2" (Stream, c_uint);
        stream_end_capture = c"cuStreamEndCapture" (Stream, *mut Graph);
        graph_instantiate = c"cuGraphInstantiateWithFlags" (*mut GraphExec, Graph, u64);
        graph_launch = c"cuGraphLaunch" (GraphExec, Stream);
        graph_upload = c"cuGraphUpload" (GraphExec, Stream);
        graph_destroy = c"cuGraphDestroy" (Graph);
        graph_exec_destroy = c"cuGraphExecDestroy" (GraphExec);
    }
}

/// The driver, opened and initialised.
pub(crate) struct Cuda {
    pub(crate) api: Api,
    /// The driver's CUDA version: 12080 is CUDA 12.8.
    pub(crate) version: c_int,
    /// The process that initialised it.
    process: Process,
}

impl Cuda {
    /// Returns the driver of the process. It is opened at the first call and stays loaded.
    pub(crate) fn shared() -> Result<&'static Self, Absence> {
        static SHARED: OnceLock<Cuda> = OnceLock::new();
        let driver = match SHARED.get() {
            Some(driver) => driver,
            None => {
                let driver = Self::open(&LIBRARIES)?;
                SHARED.get_or_init(|| driver)
            }
        };
        if driver.process.has_forked() { Err(forked()) } else { Ok(driver) }
    }

    fn open(names: &[&str]) -> Result<Self, Absence> {
        let library = Library::open(names).map_err(|message| Absence {
            reason: format!("NVIDIA's driver library could not be opened: {message}"),
            help: INSTALL.to_owned(),
        })?;
        let process = Process::current();
        let version = version(&library)?;
        let name = library.name().to_owned();
        let api = Api::load(library).map_err(|missing| missing_function(&name, missing))?;
        // SAFETY: no call that needs initialisation was made before; 0 is the only valid flag.
        let initialised = unsafe { (api.init)(0) };
        initialised.ok().map_err(|code| api.init_failure(code))?;
        Ok(Self { api, version, process })
    }

    /// Returns the version as text, such as `12.8`.
    pub(crate) fn version_text(&self) -> String {
        version_text(self.version)
    }
}

impl Api {
    /// Returns the file name under which the library was found.
    pub(crate) fn library_name(&self) -> &str {
        self.library.name()
    }

    /// Returns the address of a function that only newer drivers have.
    pub(crate) fn optional_function(&self, symbol: &'static CStr) -> Option<*const c_void> {
        self.library.function(symbol).ok()
    }

    /// Returns the driver's name and description of a status code.
    pub(crate) fn describe(&self, code: Code) -> Option<(String, String)> {
        let mut texts = [std::ptr::null(); 2];
        // SAFETY: the driver writes the address of a static string, or null.
        let codes = unsafe {
            [
                (self.get_error_name)(code, &raw mut texts[0]),
                (self.get_error_string)(code, &raw mut texts[1]),
            ]
        };
        if codes != [Code::SUCCESS; 2] || texts.iter().any(|text| text.is_null()) {
            return None;
        }
        // SAFETY: both are zero-terminated and never freed.
        let [name, meaning] = texts.map(|text| unsafe { CStr::from_ptr(text) });
        Some((name.to_string_lossy().into_owned(), meaning.to_string_lossy().into_owned()))
    }

    /// Returns why CUDA is absent if `cuInit` failed.
    fn init_failure(&self, code: Code) -> Absence {
        let help = match code {
            Code::NOT_INITIALIZED => return forked(),
            Code::NO_DEVICE => no_device_help(),
            Code::STUB_LIBRARY => {
                "take the toolkit's folder of stubs off LD_LIBRARY_PATH".to_owned()
            }
            _ => "check that nvidia-smi lists the GPU: the driver's library and its kernel module \
                  must be of one version, and this user must be allowed to use /dev/nvidia*"
                .to_owned(),
        };
        let (library, why) = (self.library_name(), error::explain(self, code));
        Absence { reason: format!("cuInit of {library} failed: {why}"), help }
    }
}

/// Returns the driver's version if it is supported. The query works before initialisation.
fn version(library: &Library) -> Result<c_int, Absence> {
    let symbol = library.function(c"cuDriverGetVersion");
    let symbol = symbol.map_err(|missing| missing_function(library.name(), missing))?;
    // SAFETY: the signature is that of the driver's header.
    let get: unsafe extern "C" fn(*mut c_int) -> Code = unsafe { std::mem::transmute(symbol) };
    let mut version = 0;
    // SAFETY: the driver writes an integer.
    let code = unsafe { get(&raw mut version) };
    code.ok().map_err(|Code(code)| Absence {
        reason: format!("cuDriverGetVersion of {} failed with {code}", library.name()),
        help: UPDATE_DRIVER.to_owned(),
    })?;
    check_version(version)
}

fn check_version(version: c_int) -> Result<c_int, Absence> {
    if version >= MIN_VERSION {
        return Ok(version);
    }
    let (found, oldest) = (version_text(version), version_text(MIN_VERSION));
    Err(Absence {
        reason: format!("NVIDIA's driver is for CUDA {found}, older than {oldest}"),
        help: UPDATE_DRIVER.to_owned(),
    })
}

fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn missing_function(library: &str, missing: Missing) -> Absence {
    Absence {
        reason: format!("{library} has no function {}", missing.name()),
        help: UPDATE_DRIVER.to_owned(),
    }
}

/// Returns why CUDA is absent in a child of a process that has used it.
fn forked() -> Absence {
    Absence {
        reason: "CUDA was in use before this process was forked off, and does not work in such a \
                 child process"
            .to_owned(),
        help: "use CUDA after the fork only, or start the child as a new program (`spawn` \
                 rather than `fork` in Python's multiprocessing)"
            .to_owned(),
    }
}

/// Returns the help for a driver without devices: unset variables that hide them, or fix the
/// driver.
pub(crate) fn no_device_help() -> String {
    const VISIBLE_DEVICES: &str = "CUDA_VISIBLE_DEVICES";
    let hidden = std::env::var_os(VISIBLE_DEVICES).map(|value| {
        let value = value.to_string_lossy();
        format!("{VISIBLE_DEVICES}={value} restricts the visible devices: correct or unset it; or ")
    });
    hidden.unwrap_or_default() + "check that nvidia-smi lists a GPU; " + INSTALL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_library_error_has_help() {
        let absence = Cuda::open(&["libscry-is-not-here.so.1"]).err().unwrap();
        assert!(absence.reason.contains("libscry-is-not-here.so.1"), "{absence:?}");
        assert!(absence.help.contains("install NVIDIA's driver"), "{absence:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn missing_function_is_named() {
        let absence = Cuda::open(&["libc.so.6"]).err().unwrap();
        assert_eq!(absence.reason, "libc.so.6 has no function cuDriverGetVersion");
        assert!(absence.help.contains("update"), "{absence:?}");
    }

    #[test]
    fn rejects_drivers_before_cuda_12() {
        assert_eq!(check_version(12000), Ok(12000));
        let absence = check_version(11080).unwrap_err();
        assert_eq!(absence.reason, "NVIDIA's driver is for CUDA 11.8, older than 12.0");
        assert_eq!(absence.help, UPDATE_DRIVER);
    }
}
