//! Compiles CUDA C to PTX or machine code by NVIDIA's library NVRTC, opened at its first use.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

use crate::api::error::GpuError;
use crate::backend::cuda::ffi::library::functions;
use crate::backend::cuda::ffi::toolkit::ToolkitLibrary;
use crate::backend::cuda::ffi::types::Handle;

/// File names of the NVRTC library, and its help.
const NVRTC: ToolkitLibrary = ToolkitLibrary {
    name: "NVRTC",
    #[cfg(not(windows))]
    files: &[
        (13, "libnvrtc.so.13"),
        (12, "libnvrtc.so.12"),
        (11, "libnvrtc.so.11.2"),
        (11, "libnvrtc.so"),
    ],
    #[cfg(windows)]
    files: &[(13, "nvrtc64_130_0.dll"), (12, "nvrtc64_120_0.dll"), (11, "nvrtc64_112_0.dll")],
    help: "install NVIDIA's CUDA toolkit, or its NVRTC alone (packages cuda-nvrtc-12-x of \
             NVIDIA's repositories, nvidia-cuda-nvrtc-cu12 of pip with its folder on \
             LD_LIBRARY_PATH), and set CUDA_HOME if the toolkit is not in a usual place; kernels \
             in WGSL and PTX need nothing of that",
};

/// The help for a call of NVRTC that failed without an explanation.
pub(crate) const FAILED: &str =
    "install another NVRTC or driver; if it persists, report it with the output of `scry doctor`";

/// The status that an NVRTC call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Status(c_int);

impl Status {
    const SUCCESS: Self = Self(0);
    /// The source has errors, which are in the log.
    const COMPILATION: Self = Self(6);

    /// Returns NVRTC's name of the status.
    fn name(self) -> String {
        let name = match self.0 {
            1 => "NVRTC_ERROR_OUT_OF_MEMORY",
            2 => "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
            3 => "NVRTC_ERROR_INVALID_INPUT",
            4 => "NVRTC_ERROR_INVALID_PROGRAM",
            5 => "NVRTC_ERROR_INVALID_OPTION",
            6 => "NVRTC_ERROR_COMPILATION",
            7 => "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
            11 => "NVRTC_ERROR_INTERNAL_ERROR",
            code => return format!("code {code}"),
        };
        name.to_owned()
    }
}

pub(crate) enum ProgramMark {}
pub(crate) type Program = Handle<ProgramMark>;

functions! {
    /// The functions of NVRTC 11.2 and newer, without the prefix `nvrtc`, some names shortened.
    Api -> Status {
        version = c"nvrtcVersion" (*mut c_int, *mut c_int);
        get_num_supported_archs = c"nvrtcGetNumSupportedArchs" (*mut c_int);
        get_supported_archs = c"nvrtcGetSupportedArchs" (*mut c_int);
        create_program = c"nvrtcCreateProgram" (
            *mut Program, *const c_char, *const c_char, c_int, *const *const c_char,
            *const *const c_char
        );
        destroy_program = c"nvrtcDestroyProgram" (*mut Program);
        compile_program = c"nvrtcCompileProgram" (Program, c_int, *const *const c_char);
        get_log_size = c"nvrtcGetProgramLogSize" (Program, *mut usize);
        get_log = c"nvrtcGetProgramLog" (Program, *mut c_char);
        get_ptx_size = c"nvrtcGetPTXSize" (Program, *mut usize);
        get_ptx = c"nvrtcGetPTX" (Program, *mut c_char);
        get_cubin_size = c"nvrtcGetCUBINSize" (Program, *mut usize);
        get_cubin = c"nvrtcGetCUBIN" (Program, *mut c_char);
    }
}

/// The opened library.
pub(crate) struct Nvrtc {
    api: Api,
    /// Encoded as the driver's version: 12080 is CUDA 12.8.
    version: c_int,
    /// The supported architectures, such as 90.
    archs: Vec<c_int>,
}

/// What NVRTC compiles for: a GPU and its driver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device {
    /// The compute capability: 10 × major + minor.
    pub(crate) capability: c_int,
    /// The CUDA version of the driver.
    pub(crate) driver: c_int,
}

/// The output of NVRTC.
#[derive(Debug)]
pub(crate) enum Output {
    /// For the driver's assembler.
    Ptx(String),
    /// Machine code for the device.
    Cubin(Vec<u8>),
}

/// Why NVRTC failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The source has errors; the compiler's log.
    Rejected(String),
    /// Another failure: the function and its status.
    Failed(&'static str, String),
}

impl Nvrtc {
    /// Returns the library of the process, opened at the first call. The driver's CUDA version
    /// decides which of several versions is preferred.
    pub(crate) fn shared(driver: c_int) -> Result<&'static Self, GpuError> {
        static SHARED: OnceLock<Nvrtc> = OnceLock::new();
        if let Some(nvrtc) = SHARED.get() {
            return Ok(nvrtc);
        }
        let nvrtc = Self::open(driver)?;
        Ok(SHARED.get_or_init(|| nvrtc))
    }

    fn open(driver: c_int) -> Result<Self, GpuError> {
        let library = NVRTC.open(driver)?;
        let name = library.name().to_owned();
        let api = Api::load(library).map_err(|missing| NVRTC.missing_function(&name, missing))?;
        log::debug!("cuda: NVRTC is {}", api.library.name());
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: NVRTC writes integers.
        let (version, counted) = unsafe {
            let version = (api.version)(&raw mut major, &raw mut minor);
            (version, (api.get_num_supported_archs)(&raw mut count))
        };
        let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for as many integers as NVRTC reported.
        let listed = unsafe { (api.get_supported_archs)(archs.as_mut_ptr()) };
        match [version, counted, listed].into_iter().find(|status| *status != Status::SUCCESS) {
            Some(status) => Err(NVRTC.broken(format!("{name} failed with {}", status.name()))),
            None => Ok(Self { api, version: major * 1000 + minor * 10, archs }),
        }
    }

    /// Returns the library's file.
    pub(crate) fn file(&self) -> &str {
        self.api.library.name()
    }

    /// Returns the version as text, such as `12.8`.
    pub(crate) fn version_text(&self) -> String {
        format!("{}.{}", self.version / 1000, self.version % 1000 / 10)
    }

    /// Returns the target: PTX (`compute`) for the newest architecture up to the device's, or for
    /// the oldest if all are newer. A driver older than NVRTC would reject its PTX: then the target
    /// is machine code (`sm`), if NVRTC supports the device.
    fn architecture(&self, device: Device) -> (&'static str, c_int) {
        let archs = self.archs.iter().copied();
        if self.version > device.driver && self.archs.contains(&device.capability) {
            return ("sm", device.capability);
        }
        let best = archs.clone().filter(|arch| *arch <= device.capability).max();
        ("compute", best.or(archs.min()).unwrap_or(device.capability))
    }

    /// Compiles a source without zero bytes for a device.
    pub(crate) fn compile(
        &self,
        source: &str,
        entry: &str,
        device: Device,
    ) -> Result<Output, Failure> {
        let (kind, arch) = self.architecture(device);
        let options = [
            format!("--gpu-architecture={kind}_{arch}"),
            "--std=c++17".to_owned(),
            "-default-device".to_owned(),
        ];
        let program = NvrtcProgram::new(&self.api, source, entry)?;
        let status = program.compile(&options)?;
        if status == Status::COMPILATION {
            return Err(Failure::Rejected(program.log()?));
        }
        check("nvrtcCompileProgram", status)?;
        match kind {
            "sm" => Ok(Output::Cubin(program.cubin()?)),
            _ => Ok(Output::Ptx(text(program.ptx()?))),
        }
    }
}

/// An `nvrtcProgram`.
struct NvrtcProgram<'a> {
    api: &'a Api,
    raw: Program,
}

impl<'a> NvrtcProgram<'a> {
    fn new(api: &'a Api, source: &str, entry: &str) -> Result<Self, Failure> {
        let source = to_c_string("the source", source)?;
        let name = to_c_string("the name of the kernel", &format!("{entry}.cu"))?;
        let mut raw = Program::NULL;
        // SAFETY: both texts are zero-terminated, there are no headers, and NVRTC writes a handle.
        let status = unsafe {
            (api.create_program)(
                &raw mut raw,
                source.as_ptr(),
                name.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        check("nvrtcCreateProgram", status)?;
        Ok(Self { api, raw })
    }

    fn compile(&self, options: &[String]) -> Result<Status, Failure> {
        let options: Vec<CString> =
            options.iter().map(|it| to_c_string("an option", it)).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|it| it.as_ptr()).collect();
        let count = pointers.len() as c_int;
        // SAFETY: the program is alive, and there are `count` zero-terminated options.
        Ok(unsafe { (self.api.compile_program)(self.raw, count, pointers.as_ptr()) })
    }

    fn log(&self) -> Result<String, Failure> {
        let Api { get_log_size, get_log, .. } = *self.api;
        Ok(text(self.bytes("nvrtcGetProgramLog", get_log_size, get_log)?))
    }

    fn ptx(&self) -> Result<Vec<u8>, Failure> {
        let Api { get_ptx_size, get_ptx, .. } = *self.api;
        self.bytes("nvrtcGetPTX", get_ptx_size, get_ptx)
    }

    fn cubin(&self) -> Result<Vec<u8>, Failure> {
        let Api { get_cubin_size, get_cubin, .. } = *self.api;
        self.bytes("nvrtcGetCUBIN", get_cubin_size, get_cubin)
    }

    /// Reads an output through a pair of functions: one returns the size, the other copies.
    fn bytes(
        &self,
        call: &'static str,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        write: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, Failure> {
        let mut length = 0;
        // SAFETY: the program is alive; NVRTC writes an integer.
        check(call, unsafe { size(self.raw, &raw mut length) })?;
        let mut bytes = vec![0u8; length];
        // SAFETY: as above; there is room for as many bytes as NVRTC reported.
        check(call, unsafe { write(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for NvrtcProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is alive, and only this value has its handle.
        let status = unsafe { (self.api.destroy_program)(&raw mut self.raw) };
        if status != Status::SUCCESS {
            log::debug!("cuda: nvrtcDestroyProgram failed with {}", status.name());
        }
    }
}

fn check(call: &'static str, status: Status) -> Result<(), Failure> {
    match status {
        Status::SUCCESS => Ok(()),
        _ => Err(Failure::Failed(call, status.name())),
    }
}

fn to_c_string(what: &str, text: &str) -> Result<CString, Failure> {
    let failure = |_| Failure::Failed("nvrtcCreateProgram", format!("{what} has a zero byte"));
    CString::new(text).map_err(failure)
}

/// Returns the text before the first zero.
fn text(bytes: Vec<u8>) -> String {
    let text = CStr::from_bytes_until_nul(&bytes).map_or(&*bytes, CStr::to_bytes);
    String::from_utf8_lossy(text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Device = Device { capability: 90, driver: 12080 };
    const TWICE: &str = r#"
        extern "C" __global__ void twice(float *x, unsigned long long n) {
            unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
            if (i < n) x[i] = 2.0f * x[i];
        }"#;

    /// Returns NVRTC; prints why it is absent otherwise.
    fn nvrtc() -> Option<&'static Nvrtc> {
        match Nvrtc::shared(H100.driver) {
            Ok(nvrtc) => Some(nvrtc),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("NVRTC is not available: "), "{text}");
                assert!(text.contains("install NVIDIA's CUDA toolkit"), "{text}");
                eprintln!("skipped: {text}");
                None
            }
        }
    }

    #[test]
    fn cuda_c_compiles_to_ptx() {
        let Some(nvrtc) = nvrtc() else { return };
        match nvrtc.compile(TWICE, "twice", Device { driver: nvrtc.version, ..H100 }).unwrap() {
            Output::Ptx(ptx) => {
                assert!(ptx.contains(".visible .entry twice("), "{ptx}");
                assert!(!ptx.ends_with('\0'));
            }
            Output::Cubin(_) => panic!("the driver is as new as the compiler"),
        }
    }

    #[test]
    fn newer_nvrtc_targets_machine_code() {
        let Some(nvrtc) = nvrtc() else { return };
        let capability = nvrtc.archs[0];
        match nvrtc.compile(TWICE, "twice", Device { capability, driver: 11000 }).unwrap() {
            Output::Cubin(cubin) => assert!(cubin.starts_with(b"\x7fELF")),
            Output::Ptx(ptx) => panic!("{ptx}"),
        }
        // For a device that is newer than NVRTC the target is PTX for an older device.
        let (kind, arch) = nvrtc.architecture(Device { capability: 999, driver: 11000 });
        assert_eq!((kind, Some(arch)), ("compute", nvrtc.archs.iter().copied().max()));
    }

    #[test]
    fn errors_contain_compiler_log() {
        let Some(nvrtc) = nvrtc() else { return };
        let wrong = "extern \"C\" __global__ void k() {\n  no_such_thing = 1;\n}";
        match nvrtc.compile(wrong, "k", H100) {
            Err(Failure::Rejected(log)) => {
                assert!(log.contains("k.cu(2)") && log.contains("no_such_thing"), "{log}");
            }
            other => panic!("{other:?}"),
        }
    }
}
