//! Clocks, load and power of a GPU, from NVML, NVIDIA's management library, which is part of the
//! driver and is opened at run time.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};

use libloading::Library;

/// File names of the library.
const NAMES: [&str; 3] = ["libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1", "nvml.dll"];

/// The library, and a GPU's handle in it.
pub struct Nvml {
    library: Library,
    device: *mut c_void,
}

/// A sample of a GPU's state; `None` where the library does not report it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    /// SM clock in MHz.
    pub sm_clock: Option<u32>,
    /// Memory clock in MHz.
    pub memory_clock: Option<u32>,
    /// Percentage of the last sampling period in which a kernel was running.
    pub load: Option<u32>,
    /// Power in milliwatts.
    pub power: Option<u32>,
}

/// `nvmlUtilization_t`.
#[repr(C)]
#[derive(Default)]
struct Utilization {
    kernels: c_uint,
    memory: c_uint,
}

impl Nvml {
    /// Opens the GPU at a PCI address.
    pub fn open(pci: &str) -> Result<Self, String> {
        let library = open_first(&NAMES)?;
        let mut device = std::ptr::null_mut();
        let address = CString::new(pci).map_err(|error| error.to_string())?;
        // SAFETY: the signatures are those of the library's header; the address is null-terminated,
        // and `device` outlives the call.
        let codes = unsafe {
            type Init = unsafe extern "C" fn() -> c_int;
            type Find = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
            let init = library.get::<Init>(b"nvmlInit_v2\0").map_err(text)?;
            let find = library.get::<Find>(b"nvmlDeviceGetHandleByPciBusId_v2\0").map_err(text)?;
            [init(), find(address.as_ptr(), &raw mut device)]
        };
        match codes {
            [0, 0] => Ok(Self { library, device }),
            [0, code] => Err(format!("NVML does not list the GPU at {pci} (code {code})")),
            [code, _] => Err(format!("NVML was not initialised (code {code})")),
        }
    }

    /// Returns the current state.
    pub fn sample(&self) -> Sample {
        Sample {
            sm_clock: self.clock(1),
            memory_clock: self.clock(2),
            load: self.load(),
            power: self.power(),
        }
    }

    /// Returns a clock by `nvmlClockType_t`: 1 is the SM clock, 2 the memory clock.
    fn clock(&self, which: c_int) -> Option<u32> {
        type Query = unsafe extern "C" fn(*mut c_void, c_int, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: the signature is that of the library's header; `value` outlives the call.
        let code = unsafe {
            let query = self.library.get::<Query>(b"nvmlDeviceGetClockInfo\0").ok()?;
            query(self.device, which, &raw mut value)
        };
        (code == 0).then_some(value)
    }

    fn power(&self) -> Option<u32> {
        type Query = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: the signature is that of the library's header; `value` outlives the call.
        let code = unsafe {
            let query = self.library.get::<Query>(b"nvmlDeviceGetPowerUsage\0").ok()?;
            query(self.device, &raw mut value)
        };
        (code == 0).then_some(value)
    }

    fn load(&self) -> Option<u32> {
        type Query = unsafe extern "C" fn(*mut c_void, *mut Utilization) -> c_int;
        let mut value = Utilization::default();
        // SAFETY: the signature is that of the library's header; `value` outlives the call.
        let code = unsafe {
            let query = self.library.get::<Query>(b"nvmlDeviceGetUtilizationRates\0").ok()?;
            query(self.device, &raw mut value)
        };
        (code == 0).then_some(value.kernels)
    }
}

/// Opens the first library that can be loaded; if none can, returns the error of the first name.
fn open_first(names: &[&str]) -> Result<Library, String> {
    let mut message = String::new();
    for name in names {
        // SAFETY: the initialisers of NVIDIA's library have no preconditions.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(library),
            Err(error) if message.is_empty() => message = error.to_string(),
            Err(_) => {}
        }
    }
    Err(format!("{message}; it is part of NVIDIA's driver"))
}

fn text(error: libloading::Error) -> String {
    error.to_string()
}
