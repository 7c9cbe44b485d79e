//! What NVIDIA's management library tells of a GPU: clocks, load, power. It comes with the driver,
//! and is opened at run time.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};

use libloading::Library;

/// Where the library is looked for.
const NAMES: [&str; 3] = ["libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1", "nvml.dll"];

/// A GPU as the library knows it.
pub struct Nvml {
    library: Library,
    device: *mut c_void,
}

/// What a GPU does at present; none where the library does not tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    /// Clock of the multiprocessors, in MHz.
    pub processors: Option<u32>,
    /// Clock of the memory, in MHz.
    pub memory: Option<u32>,
    /// Percent of the last moments in which a kernel was running.
    pub load: Option<u32>,
    /// Thousandths of a watt.
    pub power: Option<u32>,
}

/// `nvmlUtilization_t`.
#[repr(C)]
#[derive(Default)]
struct Load {
    kernels: c_uint,
    memory: c_uint,
}

impl Nvml {
    /// The GPU at a PCI address, or what is missing.
    pub fn open(pci: &str) -> Result<Self, String> {
        let library = first_of(&NAMES)?;
        let mut device = std::ptr::null_mut();
        let address = CString::new(pci).map_err(|error| error.to_string())?;
        // SAFETY: the library's header declares the functions so; they take nothing, and a text
        // that ends with a zero and a place for a handle.
        let codes = unsafe {
            type Init = unsafe extern "C" fn() -> c_int;
            type Find = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
            let init = library.get::<Init>(b"nvmlInit_v2\0").map_err(text)?;
            let find = library.get::<Find>(b"nvmlDeviceGetHandleByPciBusId_v2\0").map_err(text)?;
            [init(), find(address.as_ptr(), &raw mut device)]
        };
        match codes {
            [0, 0] => Ok(Self { library, device }),
            [0, code] => Err(format!("NVML does not know the GPU at {pci} (code {code})")),
            [code, _] => Err(format!("NVML was not initialised (code {code})")),
        }
    }

    /// What the GPU does now.
    pub fn sample(&self) -> Sample {
        Sample {
            processors: self.clock(1),
            memory: self.clock(2),
            load: self.load(),
            power: self.power(),
        }
    }

    /// `nvmlClockType_t`: 1 is that of the multiprocessors, 2 that of the memory.
    fn clock(&self, which: c_int) -> Option<u32> {
        type Ask = unsafe extern "C" fn(*mut c_void, c_int, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: the library's header declares the function so; it writes a number.
        let code = unsafe {
            let ask = self.library.get::<Ask>(b"nvmlDeviceGetClockInfo\0").ok()?;
            ask(self.device, which, &raw mut value)
        };
        (code == 0).then_some(value)
    }

    fn power(&self) -> Option<u32> {
        type Ask = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: the library's header declares the function so; it writes a number.
        let code = unsafe {
            let ask = self.library.get::<Ask>(b"nvmlDeviceGetPowerUsage\0").ok()?;
            ask(self.device, &raw mut value)
        };
        (code == 0).then_some(value)
    }

    fn load(&self) -> Option<u32> {
        type Ask = unsafe extern "C" fn(*mut c_void, *mut Load) -> c_int;
        let mut value = Load::default();
        // SAFETY: the library's header declares the function so; it writes two numbers.
        let code = unsafe {
            let ask = self.library.get::<Ask>(b"nvmlDeviceGetUtilizationRates\0").ok()?;
            ask(self.device, &raw mut value)
        };
        (code == 0).then_some(value.kernels)
    }
}

fn first_of(names: &[&str]) -> Result<Library, String> {
    let mut said = String::new();
    for name in names {
        // SAFETY: the library of NVIDIA's driver asks nothing of us when it is opened.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(library),
            Err(error) if said.is_empty() => said = error.to_string(),
            Err(_) => {}
        }
    }
    Err(format!("{said}; it comes with NVIDIA's driver"))
}

fn text(error: libloading::Error) -> String {
    error.to_string()
}
