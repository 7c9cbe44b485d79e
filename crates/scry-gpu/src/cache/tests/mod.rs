//! Tests of the caches: corruption, killed writers, concurrency, untrusted files.

mod concurrency;
mod corruption;
mod debug_log;
mod identity;
mod location;
mod memory;
mod size;
#[cfg(unix)]
mod untrusted;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use scry_ir::GridSource;
use scry_ir::{Features, MatrixProducts};
use tempfile::TempDir;

use super::{DeviceIdentity, DiskCache, KernelKey, Part, ValueBits, Variant, format};
use crate::api::info::{BackendKind, DeviceInfo, DeviceKind, Limits};
use crate::api::native::{Language, NativeInterface, NativeSpec};

fn device() -> DeviceInfo {
    DeviceInfo {
        index: 0,
        name: "Test device".to_owned(),
        backend: BackendKind::Vulkan,
        kind: DeviceKind::Discrete,
        vendor_id: 0x10de,
        device_id: 0x2335,
        uuid: Some([7; 16]),
        driver_uuid: Some([9; 16]),
        pci: None,
        driver: "Driver 1.2.3".to_owned(),
        api_version: "1.3.230".to_owned(),
        compute_capability: None,
        multiprocessors: None,
        shared_memory: None,
        peers: Vec::new(),
        memory: 1 << 30,
        memory_budget: None,
        subgroup_size: 32,
        binding_alignment: 16,
        features: Features::empty(),
        matrix_products: MatrixProducts::empty(),
        limits: Limits {
            max_buffer_size: 1 << 30,
            max_storage_binding_size: 1 << 30,
            max_uniform_binding_size: 1 << 16,
            max_storage_bindings: 8,
            max_uniform_bindings: 8,
            max_workgroup_size: [1024, 1024, 64],
            max_workgroup_invocations: 1024,
            max_workgroup_memory: 32 << 10,
            max_immediates: 128,
            max_native_workgroups: [65535; 3],
        },
        workarounds: Vec::new(),
    }
}

fn device_identity() -> DeviceIdentity {
    DeviceIdentity::from_info(&device()).expect("the device and its driver have UUIDs")
}

fn key(source: &str) -> KernelKey {
    KernelKey {
        source: source.to_owned(),
        entry: Some("main".to_owned()),
        overrides: vec![("TILE".to_owned(), ValueBits::Number(16.0f64.to_bits()))],
        checked: true,
        native: None,
    }
}

/// The specification of a native kernel without bindings.
fn native(language: Language) -> NativeSpec {
    NativeSpec { language, interface: NativeInterface::new(0, [1; 3]) }
}

fn open(base: &Path) -> DiskCache {
    DiskCache::open_in(base, &device_identity(), 256 << 20).expect("the folder is private")
}

/// The variant for direct launches, compiled from generated code.
const PLAIN: Variant<'_> = Variant { grid: GridSource::Native, part: Part::Compiled(b"generated") };
/// The variant for linearised grids.
const LINEARISED: Variant<'_> = Variant { grid: GridSource::Linearised, ..PLAIN };
/// The variant for indirect launches.
const INDIRECT: Variant<'_> = Variant { grid: GridSource::Counts, ..PLAIN };

fn path_of(cache: &DiskCache, key: &KernelKey, variant: Variant<'_>) -> PathBuf {
    cache.path(&format::full_key(&device_identity().key_part(), key, variant), variant.part.kind())
}

/// A folder that only the user can access, whatever the umask.
fn temporary_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(folder.path(), private).unwrap();
    }
    folder
}

/// Returns the file names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let items = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        items.map(|item| item.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns whether the long form of the tests is requested.
fn is_soak() -> bool {
    std::env::var_os("SCRY_SOAK").is_some_and(|value| value == "1")
}

/// Pseudo-random numbers by SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A payload that encodes its key and version in each of its parts.
fn payload(key: u64, version: u64) -> Vec<u8> {
    let mut random = Random(key << 32 | version);
    let words = 3 + random.below(2000);
    let mut bytes = Vec::new();
    for word in [key, version, words] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for _ in 0..words {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes
}

/// Returns the version of a payload, which must be that of `key`, not a mix of several.
fn checked_version(found: &[u8], key: u64) -> u64 {
    let version = u64::from_le_bytes(found[8..16].try_into().unwrap());
    assert!(found == payload(key, version), "a mix of payloads for key {key}");
    version
}

/// Name of the test that child processes run: the environment selects the task.
const CHILD: &str = "cache::tests::child_process";
const CHILD_TASK: &str = "SCRY_CACHE_TEST_TASK";
const CHILD_FOLDER: &str = "SCRY_CACHE_TEST_FOLDER";

/// Returns a command that runs a task of [`child_process`] in this test binary. If `before` is not
/// empty, a shell runs it first.
fn child(task: &str, folder: &Path, before: &str) -> Command {
    let binary = std::env::current_exe().unwrap();
    let mut command = if before.is_empty() {
        Command::new(binary)
    } else {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\"")).arg(binary);
        shell
    };
    command
        .args([CHILD, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD_TASK, task)
        .env(CHILD_FOLDER, folder)
        .stdin(Stdio::null());
    command
}

/// Runs a task of [`child_process`] to its end; returns its log and output.
fn run_child(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}:\n{text}", output.status);
    assert!(text.contains("1 passed"), "no test ran:\n{text}");
    text
}

#[test]
#[ignore = "the body of the child processes of other tests; does nothing by itself"]
fn child_process() {
    let Some(task) = std::env::var_os(CHILD_TASK) else {
        return;
    };
    let folder = PathBuf::from(std::env::var_os(CHILD_FOLDER).unwrap());
    match task.to_str().unwrap() {
        "write until killed" => concurrency::write_until_killed(&folder),
        "read and write" => concurrency::read_and_write(&folder),
        "debug log" => debug_log::load_and_store(&folder),
        "list" => location::list_and_print(),
        #[cfg(unix)]
        "log" => untrusted::use_and_log(&folder),
        #[cfg(unix)]
        "no descriptors" => untrusted::use_without_descriptors(&folder),
        other => panic!("no task {other}"),
    }
}
