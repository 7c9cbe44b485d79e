//! Tests of `SCRY_DEBUG`, in child processes.

use std::path::Path;
use std::process::{Command, Stdio};

use scry_ir::Program;
use scry_ir::kir::{Kir, KirOptions};

use crate::Device;

/// The test that child processes run, and the variable that selects its task.
const CHILD: &str = "core::dump::tests::child_process";
const TASK: &str = "SCRY_DUMP_TEST_TASK";

const TWICE: &str = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64) fn twice(@builtin(global_invocation_id) id: vec3u) {
    for (var n = 0u; n < 1u; n++) {
        data[id.x] = 2.0 * data[id.x];
    }
}";

/// Runs a task in a child process, and returns what it wrote to standard error.
fn run_child(task: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([CHILD, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env_remove("SCRY_DEBUG").env_remove("SCRY_DEBUG_DIR").env("SCRY_CACHE_DIR", "off");
    command.env(TASK, task).envs(variables.iter().copied()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let [out, errors] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(output.status.success() && out.contains("1 passed"), "{out}{errors}");
    errors
}

/// Returns the text under a title.
fn block<'a>(output: &'a str, title: &str) -> &'a str {
    let title = format!("--- scry: {title} ---\n");
    let (_, rest) = output.split_once(&title).unwrap_or_else(|| panic!("no {title}{output}"));
    rest.split("\n\n--- scry: ").next().unwrap()
}

/// Returns a kernel called `other{index}`.
fn other_kernel(index: u32) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
         @compute @workgroup_size(64) fn other{index}() {{ data[0] += {index}u; }}"
    )
}

#[test]
#[ignore = "the body of the child processes of other tests; does nothing by itself"]
fn child_process() {
    let Some(task) = std::env::var_os(TASK) else { return };
    let open = |backend| Device::open(backend).unwrap();
    match task.to_str().unwrap() {
        "twice" => {
            let gpu = open("cpu");
            gpu.compile(&other_kernel(0)).unwrap();
            for _ in 0..2 {
                gpu.compile(TWICE).unwrap();
                gpu.compile(&other_kernel(0)).unwrap();
            }
        }
        "twice on every thread" => {
            let gpu = open("cpu");
            std::thread::scope(|scope| {
                for index in 0..8 {
                    let gpu = &gpu;
                    scope.spawn(move || gpu.compile(&other_kernel(index)).unwrap());
                }
            });
        }
        "built in Rust" => {
            let kir = Program::parse(TWICE).unwrap().to_kir(&KirOptions { checked: true }).unwrap();
            open("cpu").compile_ir(&kir).unwrap();
        }
        backend => drop(open(backend).compile(TWICE).unwrap()),
    }
}

#[test]
fn each_stage_is_printed() {
    let output = run_child("twice", &[("SCRY_DEBUG", "kir,passes,wgsl:twice")]);
    let program = Program::parse(TWICE).unwrap();
    let expected = program.to_kir(&KirOptions { checked: true }).unwrap();
    let kir = block(&output, "kernel `twice`, kir");
    assert_eq!(kir, expected.with_positions().to_string().trim_end());
    assert!(kir.contains(" @4:"), "{kir}");
    let parsed: Kir = kir.parse().unwrap();
    assert_eq!(parsed.to_string(), expected.to_string());
    let passes = block(&output, "kernel `twice`, passes");
    let stages: Vec<_> = passes.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    // Lowering, renumbering, and the passes between them.
    assert_eq!(stages.len(), 14, "{stages:?}");
    assert_eq!((stages[0], stages[13]), ("lower", "renumber"));
    assert!(stages.iter().any(|stage| stage.ends_with(": unchanged")), "{stages:?}");
    assert!(passes.ends_with(&format!("# renumber\n{kir}")), "{passes}");
    let wgsl = block(&output, "kernel `twice`, wgsl").split("\nscry: ").next().unwrap();
    assert_eq!(Program::parse(wgsl).unwrap().interface().entry_point, "twice");
    // One note about the kernel that is not selected, and each stage once.
    let note = "scry: kernel `other0` is not selected by SCRY_DEBUG=…:twice\n";
    assert_eq!(output.matches(note).count(), 1, "{output}");
    assert_eq!(output.matches("--- scry: ").count(), 3, "{output}");
}

#[test]
fn built_kernels_print_their_passes() {
    let output = run_child("built in Rust", &[("SCRY_DEBUG", "passes,kir")]);
    let passes = block(&output, "kernel `twice`, passes");
    assert!(passes.starts_with("# sanitise\nkernel twice ["), "{passes}");
    let kir = block(&output, "kernel `twice`, kir").trim_end();
    assert!(passes.contains(kir), "{output}");
}

#[test]
fn invalid_settings_are_reported_once() {
    let output = run_child("twice", &[("SCRY_DEBUG", "kri,ptx:twice")]);
    let warning = "scry: SCRY_DEBUG=kri,ptx:twice: unknown stage `kri`; help: ";
    assert_eq!(output.matches(warning).count(), 1, "{output}");
    let note = "scry: kernel `twice`, ptx: not available: cpu:0 does not compile ptx; help: ";
    assert_eq!(output.matches(note).count(), 1, "{output}");
    assert_eq!(output.matches("scry: ").count(), 3, "{output}");
}

#[test]
fn nothing_is_printed_by_default() {
    for variables in [&[][..], &[("SCRY_DEBUG", "")], &[("SCRY_DEBUG_DIR", "/nowhere")]] {
        let output = run_child("twice", variables);
        assert!(!output.contains("scry: "), "{output}");
    }
}

#[test]
fn stages_are_written_to_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let stages = [("SCRY_DEBUG", "kir,passes,wgsl"), ("SCRY_DEBUG_DIR", path.to_str().unwrap())];
    let output = run_child("twice", &stages);
    let mut names: Vec<_> = std::fs::read_dir(&path)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = ["other0", "twice"]
        .map(|kernel| ["kir", "passes.txt", "wgsl"].map(|stage| format!("{kernel}.{stage}")));
    assert_eq!(names, expected.concat());
    let kir = std::fs::read_to_string(path.join("twice.kir")).unwrap();
    assert!(kir.parse::<Kir>().is_ok(), "{kir}");
    let wrote = format!("scry: wrote {}\n", path.join("twice.wgsl").display());
    assert!(output.contains(&wrote) && !output.contains("--- scry"), "{output}");
}

#[test]
fn unwritable_folders_are_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().join("folder");
    let stages = [("SCRY_DEBUG", "kir,wgsl:twice"), ("SCRY_DEBUG_DIR", path.to_str().unwrap())];
    let output = run_child("twice", &stages);
    let note = format!("scry: {} was not written: ", path.join("twice.kir").display());
    assert!(output.contains(&note) && output.contains("help: set SCRY_DEBUG_DIR"), "{output}");
    assert_eq!(output.matches("was not written").count(), 1, "{output}");
    assert!(block(&output, "kernel `twice`, kir").starts_with("kernel twice "));
    assert!(block(&output, "kernel `twice`, wgsl").contains("fn twice("));
}

#[test]
fn output_of_threads_is_not_interleaved() {
    let output = run_child("twice on every thread", &[("SCRY_DEBUG", "kir")]);
    for index in 0..8 {
        let kir = block(&output, &format!("kernel `other{index}`, kir"));
        let name = kir.parse::<Kir>().unwrap().name;
        assert_eq!(name, format!("other{index}"));
    }
}

/// Returns whether a test that needs the backend is skipped.
fn is_skipped(backend: &str, required: &str) -> bool {
    let missing = Device::open(backend).is_err();
    assert!(!missing || std::env::var_os(required).is_none(), "{required} is set");
    if missing {
        eprintln!("skipped: no {backend} device");
    }
    missing
}

/// Compiles for a backend without and with an entry in the disk cache, and returns the contents of
/// a file that is written each time.
fn dump_with_cold_and_warm_cache(backend: &str, stage: &str, file: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [first, second] = ["first", "second"].map(|name| {
        let folder = path(name);
        let variables = [
            ("SCRY_DEBUG", stage),
            ("SCRY_DEBUG_DIR", &folder),
            ("SCRY_CACHE_DIR", &path("cache")),
        ];
        run_child(backend, &variables);
        std::fs::read(Path::new(&folder).join(file)).unwrap()
    });
    assert_eq!(first, second);
    first
}

#[test]
fn spirv_is_printed_on_cache_hits() {
    if is_skipped("vulkan", "SCRY_REQUIRE_VULKAN") {
        return;
    }
    let bytes = dump_with_cold_and_warm_cache("vulkan", "spirv:twice", "twice.spv");
    assert_eq!(bytes[..4], 0x0723_0203_u32.to_le_bytes());
    let output = run_child("vulkan", &[("SCRY_DEBUG", "spirv,ptx:twice")]);
    let text = block(&output, "kernel `twice`, spirv");
    assert!(text.starts_with("; SPIR-V 1.") && text.contains("\"twice\""), "{text}");
    assert!(output.contains("vulkan:0 does not compile ptx; help: open a CUDA"), "{output}");
}

#[test]
fn ptx_is_printed_on_cache_hits() {
    if is_skipped("cuda", "SCRY_REQUIRE_CUDA") {
        return;
    }
    let ptx =
        String::from_utf8(dump_with_cold_and_warm_cache("cuda", "ptx:twice", "twice.ptx")).unwrap();
    assert!(ptx.contains(".visible .entry twice("), "{ptx}");
    let output = run_child("cuda", &[("SCRY_DEBUG", "ptx")]);
    assert_eq!(block(&output, "kernel `twice`, ptx").trim_end(), ptx.trim_end());
}
