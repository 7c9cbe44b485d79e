//! Support code for the driver tests of several backends.

pub(super) mod submissions;

use std::time::Duration;

use scry_ir::Program;

use crate::cache::{DeviceIdentity, DiskCache, KernelKey, Kind};
use crate::core::command::{
    Barrier, BoundBuffer, BufferRange, Command, Dispatch, Groups, Role, Stages, Step,
};
use crate::core::driver::{
    CompileJob, Driver, GridSource, KernelId, MemoryId, MemoryKind, SubmissionIndex, Work,
};

/// A timeout longer than anything that a test waits for.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A kernel that doubles words.
pub(super) const DOUBLE: &str = "
    @group(0) @binding(0) var<storage, read> src: array<u32>;
    @group(0) @binding(1) var<storage, read_write> dst: array<u32>;
    @compute @workgroup_size(64)
    fn double(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&dst) { dst[id.x] = 2u * src[id.x]; }
    }";

/// A range from the start of an allocation.
pub(super) fn span(memory: MemoryId, size: u64) -> BufferRange {
    BufferRange { memory, offset: 0, size }
}

/// A command as a step.
pub(super) fn run(command: Command) -> Step {
    Step::Run(command)
}

/// A copy as a step.
pub(super) fn copy(src: BufferRange, dst: BufferRange) -> Step {
    run(Command::Copy { src, dst })
}

/// A barrier as a step.
pub(super) fn barrier(before: Stages, after: Stages) -> Step {
    Step::Barrier(Barrier { before, after })
}

/// A barrier between any two dependent steps, and before host reads.
pub(super) fn full_barrier() -> Step {
    let device = Stages::COMPUTE | Stages::TRANSFER;
    barrier(device, device | Stages::HOST)
}

/// A barrier between dependent dispatches.
pub(super) fn compute_barrier() -> Step {
    barrier(Stages::COMPUTE, Stages::COMPUTE)
}

/// A launch without immediates.
pub(super) fn dispatch(
    kernel: KernelId,
    bindings: &[(BufferRange, bool)],
    groups: [u32; 3],
) -> Step {
    dispatch_with(kernel, bindings, groups, &[])
}

/// A launch.
pub(super) fn dispatch_with(
    kernel: KernelId,
    bindings: &[(BufferRange, bool)],
    groups: [u32; 3],
    immediates: &[u8],
) -> Step {
    run(Command::Dispatch(Dispatch {
        kernel,
        bindings: bindings.iter().map(|&(span, writes)| BoundBuffer { span, writes }).collect(),
        groups: Groups::Direct(groups),
        immediates: immediates.to_vec(),
        role: Role::Launch,
    }))
}

/// Words in device byte order.
pub(super) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Shorthands for driver calls in tests.
pub(super) trait DriverExt: Driver {
    /// Compiles a source with bounds checks.
    fn compiled(&self, source: &str, grid: GridSource) -> KernelId {
        let key = KernelKey {
            source: source.to_owned(),
            entry: None,
            overrides: Vec::new(),
            checked: true,
            native: None,
        };
        let program = Program::parse(source).unwrap();
        let job = CompileJob {
            program: &program,
            grid,
            checked: true,
            key: &key,
            cache: None,
            dump: None,
        };
        self.compile(&job).unwrap()
    }

    /// Allocates uninitialised device memory.
    fn device_memory(&self, size: u64) -> MemoryId {
        self.allocate(MemoryKind::Device, size, "device").unwrap()
    }

    /// Allocates upload memory with these words.
    fn uploaded(&self, words: &[u32]) -> MemoryId {
        let size = words.len() as u64 * 4;
        let memory = self.allocate(MemoryKind::Upload, size, "upload").unwrap();
        Driver::write(self, memory, 0, &bytes(words)).unwrap();
        memory
    }

    /// Submits steps and waits for them.
    fn done(&self, steps: &[Step]) -> SubmissionIndex {
        let submission = self.submit(Work::Once(steps), false).unwrap();
        assert!(self.wait(submission, LONG).unwrap());
        submission
    }

    /// Returns the words of a range, copied after all earlier submissions.
    fn words(&self, of: BufferRange) -> Vec<u32> {
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

impl<D: Driver + ?Sized> DriverExt for D {}

/// A test of one driver. A fixed code generator produces a different program under the same key.
pub(super) fn generators_share_no_kernels(driver: &dyn Driver) {
    let folder = tempfile::tempdir().unwrap();
    let Some(identity) = DeviceIdentity::from_info(driver.info()) else {
        eprintln!("SKIPPED, {} does not report its driver", driver.info().name);
        return;
    };
    let cache = DiskCache::open_in(folder.path(), &identity, 1 << 30).unwrap();
    let key = KernelKey {
        source: DOUBLE.to_owned(),
        entry: None,
        overrides: Vec::new(),
        checked: true,
        native: None,
    };
    let stored = |kind| {
        let files = crate::cache::list(&folder.path().join("scry-gpu")).into_iter();
        files.filter(|file| file.kind == kind).collect::<Vec<_>>()
    };
    let (src, dst) = (driver.uploaded(&[5; 64]), driver.device_memory(256));
    for (factor, expected) in [(2, 1), (3, 2), (2, 2), (3, 2)] {
        let program = Program::parse(&DOUBLE.replace("2u", &format!("{factor}u"))).unwrap();
        let (program, key, cache) = (&program, &key, Some(&cache));
        let job =
            CompileJob { program, grid: GridSource::Native, checked: true, key, cache, dump: None };
        let kernel = driver.compile(&job).unwrap();
        let bindings = [(span(src, 256), false), (span(dst, 256), true)];
        driver.done(&[dispatch(kernel, &bindings, [1; 3])]);
        assert_eq!(driver.words(span(dst, 256)), [5 * factor; 64]);
        driver.free_kernel(kernel);
        // Some drivers store no entries.
        let kept = stored(Kind::Entry).len();
        assert!([0, expected].contains(&kept), "{kept} of {expected} are kept");
        // Another generator does not find them, because its build identity differs.
        for translation in stored(Kind::Translation) {
            std::fs::remove_file(translation.path).unwrap();
        }
    }
}
