//! Support for the SPIR-V tests: the corpus, the validator, and a SPIR-V reader.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rspirv::dr::{Instruction, Operand};
use scry_ir::{FloatTypes, MatrixProducts, Program, SpirvOptions, SpirvWorkarounds};

/// Options with bounds checks, for a device that zeroes workgroup memory and needs no workarounds.
pub const CHECKED: SpirvOptions = SpirvOptions {
    version: (1, 5),
    checked: true,
    native_workgroup_zeroing: true,
    linearised: false,
    workarounds: SpirvWorkarounds::empty(),
    reports_aborted_loops: false,
    polls: false,
    matrices: MatrixProducts::empty(),
    nan_preserving: FloatTypes::empty(),
    max_workgroup_memory: 32 << 10,
};

/// [`CHECKED`] with all workarounds.
pub const WORKED_AROUND: SpirvOptions =
    SpirvOptions { workarounds: SpirvWorkarounds::all(), ..CHECKED };

/// Returns the path of a folder below the repository's `corpus`.
pub fn corpus(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(folder)
}

/// Returns name and source of each `.wgsl` file of a folder, sorted; there must be some.
pub fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "wgsl"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no sources in {}", folder.display());
    found
}

/// Parses a source, with its error in the panic message.
#[track_caller]
pub fn parse(name: &str, source: &str) -> Program {
    Program::parse(source).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Returns all combinations of the options that are flags, with all workarounds or none, for two
/// versions. Only the newer one polls.
pub fn every_option() -> Vec<SpirvOptions> {
    let mut all = Vec::new();
    for version in [(1, 3), (1, 5)] {
        for bits in 0..32 {
            all.push(SpirvOptions {
                version,
                checked: bits & 1 != 0,
                native_workgroup_zeroing: bits & 2 != 0,
                linearised: bits & 4 != 0,
                workarounds: if bits & 8 != 0 {
                    SpirvWorkarounds::all()
                } else {
                    SpirvWorkarounds::empty()
                },
                reports_aborted_loops: bits & 16 != 0,
                polls: version == (1, 5),
                matrices: MatrixProducts::empty(),
                nan_preserving: if bits & 2 != 0 { FloatTypes::all() } else { FloatTypes::empty() },
                max_workgroup_memory: 32 << 10,
            });
        }
    }
    all
}

/// Returns whether `spirv-val` is installed; otherwise prints that the test is skipped, or fails if
/// `SCRY_REQUIRE_VULKAN` is set, and not to 0.
pub fn have_validator(test: &str) -> bool {
    let found = Command::new("spirv-val")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        let required = std::env::var_os("SCRY_REQUIRE_VULKAN").is_some_and(|v| v != "0");
        assert!(!required, "spirv-val is not installed (Debian: spirv-tools)");
        eprintln!("skipped {test}: spirv-val is not installed (Debian: spirv-tools)");
    }
    found
}

/// Checks words with `spirv-val`.
pub fn validate(words: &[u32]) -> Result<(), String> {
    let mut child = Command::new("spirv-val")
        .args(["--target-env", "vulkan1.2", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Reads words as a module.
pub fn load(words: &[u32]) -> rspirv::dr::Module {
    rspirv::dr::load_words(words).unwrap_or_else(|e| panic!("not SPIR-V: {e}"))
}

/// Returns the instructions of all functions.
pub fn code(module: &rspirv::dr::Module) -> impl Iterator<Item = &Instruction> {
    module
        .functions
        .iter()
        .flat_map(|function| &function.blocks)
        .flat_map(|block| &block.instructions)
}

/// Returns the id that an operand is, if it is one.
pub fn id(operand: &Operand) -> Option<u32> {
    operand.id_ref_any()
}
