//! Support of the tests: runs the program in a temporary folder, and reads and writes data files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A kernel that does not terminate.
pub const ENDLESS: &str = "\
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn endless() {
    while x[0] < 1u { x[1] += 1u; x[0] = 0u; }
}
";

/// A folder in which the program runs, with a separate cache.
pub struct Workplace {
    folder: TempDir,
    without_driver: bool,
    /// The value of `SCRY_DEVICE`; empty stands for the default device.
    device: String,
    /// Further environment variables.
    variables: Vec<(String, String)>,
}

/// The outcome of one run of the program.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Workplace {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            without_driver: false,
            device: String::new(),
            variables: Vec::new(),
        }
    }

    /// Returns a workplace without any Vulkan driver or CUDA device.
    pub fn without_driver() -> Self {
        Self { without_driver: true, ..Self::new() }
    }

    /// Runs a test on every device, each time in a new workplace.
    pub fn on_each_device(test: impl Fn(&Self)) {
        let document = Self::new().scry(&["devices", "--json"]).json();
        for device in document["result"]["devices"].as_array().expect("a list") {
            let device = device["selector"].as_str().expect("text").to_owned();
            eprintln!("on {device}:");
            test(&Self { device, ..Self::new() });
        }
    }

    /// Sets a variable of the environment for the command lines that follow.
    pub fn set(&mut self, variable: &str, value: &str) {
        self.variables.push((variable.to_owned(), value.to_owned()));
    }

    /// Returns the selector of the device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Returns a workplace if there is a device of this backend; otherwise prints that `test` is
    /// skipped. Panics instead if the environment requires the device: `SCRY_REQUIRE_VULKAN=1`.
    pub fn with_backend(backend: &str, test: &str) -> Option<Self> {
        let place = Self::new();
        let devices = place.scry(&["devices", "--json"]).json();
        let devices = devices["result"]["devices"].as_array().cloned().unwrap_or_default();
        if devices.iter().any(|device| device["backend"] == backend) {
            return Some(place);
        }
        let variable = format!("SCRY_REQUIRE_{}", backend.to_uppercase());
        let required = std::env::var(&variable).is_ok_and(|value| value != "0");
        assert!(!required, "{variable} is set, but there is no device of {backend}");
        eprintln!("skipped {test}: no device of {backend}");
        None
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("the folder is ours");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the command that runs the program with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::SCRY);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("SCRY_CACHE_DIR", self.path("cache"))
            .env("SCRY_DEVICE", &self.device)
            .env_remove("CLICOLOR_FORCE")
            // Help is wrapped to this width.
            .env_remove("COLUMNS")
            .stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if self.without_driver {
            for name in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
                command.env(name, "/nonexistent");
            }
            command.env("CUDA_VISIBLE_DEVICES", "");
            // A loader without drivers is an error to the validation layer, but intended here.
            command.env_remove("SCRY_VALIDATE");
        }
        command
    }

    /// Runs the program, and asserts that it does not panic.
    pub fn scry(&self, arguments: &[&str]) -> Outcome {
        let output = self.command(arguments).output().expect("the program was built");
        let outcome = Outcome {
            code: output.status.code().expect("ended by itself"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        };
        for text in [&outcome.stdout, &outcome.stderr] {
            assert!(!reports_bug(text), "{outcome:#?}");
        }
        outcome
    }
}

/// Returns whether an output reports a panic of the program, or a defect that the library found in
/// itself.
fn reports_bug(text: &str) -> bool {
    ["this is a bug in scry", "panicked", "defect"].iter().any(|word| text.contains(word))
}

impl Outcome {
    /// Asserts the exit code.
    #[track_caller]
    pub fn exits_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Asserts that standard output or standard error contains each of these texts.
    #[track_caller]
    pub fn prints(self, words: &[&str]) -> Self {
        for word in words {
            let is_printed = self.stdout.contains(word) || self.stderr.contains(word);
            assert!(is_printed, "{word:?} is not in {self:#?}");
        }
        self
    }

    /// Returns the JSON document, which must be all of standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        let document: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {self:#?}"));
        assert_eq!(document["version"], 1);
        assert_eq!(document["ok"], self.code == 0);
        document
    }
}

/// Opens a pseudo-terminal. Returns the program's end, and the user's.
#[cfg(unix)]
pub fn terminal() -> (fs::File, fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&user).expect("it is ours");
    unlockpt(&user).expect("it is ours");
    let name = ptsname(&user, Vec::new()).expect("it has a name").into_string().expect("text");
    let program = fs::File::options().read(true).write(true).open(name).expect("it is unlocked");
    (program, user.into())
}

/// Returns the path of a file of the repository.
pub fn repository(path: &str) -> PathBuf {
    scry_test_support::root().join(path)
}

/// Returns a .npy file of version 1 as NumPy writes it.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).expect("short").to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// Returns the bytes of f32 values.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Returns the header and the f32 values of a .npy file.
pub fn read_npy(file: &[u8]) -> (String, Vec<f32>) {
    let end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    let header = String::from_utf8(file[10..end].to_vec()).expect("text");
    (header, read_floats(&file[end..]))
}

/// Returns f32 values from their bytes.
pub fn read_floats(bytes: &[u8]) -> Vec<f32> {
    let numbers = bytes.chunks_exact(4);
    numbers.map(|number| f32::from_le_bytes(number.try_into().expect("four bytes"))).collect()
}

/// Returns width, height and samples (RGBA or grey) of an image that `scry` wrote.
pub fn read_png(path: &Path) -> (u32, u32, Vec<u8>) {
    let file = std::io::BufReader::new(fs::File::open(path).expect("the image was written"));
    let mut reader = png::Decoder::new(file).read_info().expect("it is an image");
    let mut samples = vec![0; reader.output_buffer_size().expect("small")];
    let frame = reader.next_frame(&mut samples).expect("it is whole");
    (frame.width, frame.height, samples)
}

/// Returns a .png file with 8-bit samples.
pub fn png(width: u32, height: u32, color: png::ColorType, samples: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().expect("writing to memory succeeds");
    writer.write_image_data(samples).expect("the number of samples fits");
    writer.finish().expect("writing to memory succeeds");
    file
}

/// Returns a kernel that copies `src` to `dst`, element by element.
pub fn copy_kernel(ty: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read> src: array<{ty}>;
         @group(0) @binding(1) var<storage, read_write> dst: array<{ty}>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{
             if id.x < arrayLength(&src) {{ dst[id.x] = src[id.x]; }}
         }}"
    )
}
