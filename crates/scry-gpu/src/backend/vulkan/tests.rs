//! The driver's methods, driven directly, on the first Vulkan device there is.

mod absence;
mod kernels;
mod memory;
mod order;
mod validation;

use std::process::Command as Process;
use std::time::Duration;

use scry_ir::Program;

use super::VulkanDriver;
use super::adapter;
use super::instance::Instance;
use crate::cache::KernelKey;
use crate::command::{Barrier, Bound, Command, Dispatch, Span, Stages, Step};
use crate::driver::{CompileJob, Driver, KernelId, MemoryId, MemoryKind, Point, Work};

const LONG: Duration = Duration::from_secs(60);

const DOUBLE: &str = "
    @group(0) @binding(0) var<storage, read> src: array<u32>;
    @group(0) @binding(1) var<storage, read_write> dst: array<u32>;
    @compute @workgroup_size(64)
    fn double(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&dst) { dst[id.x] = 2u * src[id.x]; }
    }";

/// The first device; `None`, said aloud, where there is no Vulkan and none is required.
fn driver() -> Option<VulkanDriver> {
    let adapters = Instance::shared().and_then(|instance| adapter::find(&instance));
    match adapters {
        Ok(adapters) => Some(adapters[0].open_driver().unwrap()),
        Err(absence) => {
            let required = std::env::var_os("SCRY_REQUIRE_VULKAN").is_some_and(|v| v != "0");
            assert!(!required, "SCRY_REQUIRE_VULKAN is set, but {absence:?}");
            eprintln!("SKIPPED, no Vulkan device: {}", absence.reason);
            None
        }
    }
}

/// The first device twice: with bindings pushed as far as it can, and with bindings in sets.
fn drivers() -> Vec<VulkanDriver> {
    if driver().is_none() {
        return Vec::new();
    }
    let adapters = adapter::find(&Instance::shared().unwrap()).unwrap();
    let preferring = |sets: bool| {
        let mut gpu = adapters[0].open_gpu().unwrap();
        gpu.prefers_sets = sets;
        VulkanDriver::new(gpu.into()).unwrap()
    };
    [false, true].map(preferring).into()
}

/// Environment variable that tells a child process of a test that it is one.
const CHILD: &str = "SCRY_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// What one test, run in a child process with these variables, prints.
fn told_by_child(test: &str, variables: &[(&str, &str)]) -> String {
    let this = std::env::current_exe().unwrap();
    let output = Process::new(this)
        .args(["--exact", "--nocapture"])
        .arg(format!("backend::vulkan::tests::{test}"))
        .env(CHILD, "1")
        .env_remove("SCRY_REQUIRE_VULKAN")
        .env_remove("SCRY_VALIDATE")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}{errors}");
    told + &errors
}

fn has_loader() -> bool {
    // SAFETY: the system's Vulkan loader has no initialisers that ask anything of us.
    unsafe { ash::Entry::load() }.is_ok()
}

/// A span from the start of an allocation.
fn span(memory: MemoryId, size: u64) -> Span {
    Span { memory, offset: 0, size }
}

fn run(command: Command) -> Step {
    Step::Run(command)
}

fn copy(src: Span, dst: Span) -> Step {
    run(Command::Copy { src, dst })
}

fn barrier(before: Stages, after: Stages) -> Step {
    Step::Barrier(Barrier { before, after })
}

/// Between any two steps that depend on each other, and before the host reads.
fn full_barrier() -> Step {
    let device = Stages::COMPUTE | Stages::TRANSFER;
    barrier(device, device | Stages::HOST)
}

/// Between dispatches that depend on each other.
fn compute_barrier() -> Step {
    barrier(Stages::COMPUTE, Stages::COMPUTE)
}

fn dispatch(kernel: KernelId, bindings: &[(Span, bool)], groups: [u32; 3]) -> Step {
    dispatch_with(kernel, bindings, groups, &[])
}

fn dispatch_with(
    kernel: KernelId,
    bindings: &[(Span, bool)],
    groups: [u32; 3],
    immediates: &[u8],
) -> Step {
    run(Command::Dispatch(Dispatch {
        kernel,
        bindings: bindings.iter().map(|&(span, writes)| Bound { span, writes }).collect(),
        groups,
        immediates: immediates.to_vec(),
        copies: false,
    }))
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl VulkanDriver {
    fn compiled(&self, source: &str, folded: bool) -> KernelId {
        let key = KernelKey {
            source: source.to_owned(),
            entry: None,
            overrides: Vec::new(),
            checked: true,
        };
        let program = Program::parse(source).unwrap();
        let job = CompileJob { program: &program, folded, checked: true, key: &key, cache: None };
        self.compile(&job).unwrap()
    }

    /// Device memory of undefined content.
    fn device_memory(&self, size: u64) -> MemoryId {
        self.allocate(MemoryKind::Device, size, "device").unwrap()
    }

    /// Host memory that holds the words.
    fn uploaded(&self, words: &[u32]) -> MemoryId {
        let size = words.len() as u64 * 4;
        let memory = self.allocate(MemoryKind::Upload, size, "upload").unwrap();
        Driver::write(self, memory, 0, &bytes(words)).unwrap();
        memory
    }

    fn done(&self, steps: &[Step]) -> Point {
        let point = self.submit(Work::Once(steps), false).unwrap();
        assert!(self.wait(point, LONG).unwrap());
        point
    }

    /// The words at a span, copied out after all that was submitted before.
    fn words(&self, of: Span) -> Vec<u32> {
        let out = self.allocate(MemoryKind::Readback, of.size, "out").unwrap();
        let host = barrier(Stages::TRANSFER, Stages::HOST);
        self.done(&[full_barrier(), copy(of, span(out, of.size)), host]);
        let mut bytes = vec![0; of.size as usize];
        Driver::read(self, out, 0, &mut bytes).unwrap();
        self.free(out);
        let words = bytes.chunks_exact(4);
        words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }
}
