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

/// Returns a range at the start of an allocation.
pub(super) fn range(memory: MemoryId, size: u64) -> BufferRange {
    BufferRange { memory, offset: 0, size }
}

/// Returns a step that runs a command.
pub(super) fn run(command: Command) -> Step {
    Step::Run(command)
}

/// Returns a step that copies.
pub(super) fn copy(src: BufferRange, dst: BufferRange) -> Step {
    run(Command::Copy { src, dst })
}

/// Returns a barrier.
pub(super) fn barrier(before: Stages, after: Stages) -> Step {
    Step::Barrier(Barrier { before, after })
}

/// Returns a barrier between any dependent steps, and before host reads.
pub(super) fn full_barrier() -> Step {
    let device = Stages::COMPUTE | Stages::TRANSFER;
    barrier(device, device | Stages::HOST)
}

/// Returns a barrier between dependent dispatches.
pub(super) fn compute_barrier() -> Step {
    barrier(Stages::COMPUTE, Stages::COMPUTE)
}

/// Returns a launch without immediates. Each binding is a range, and whether the kernel writes it.
pub(super) fn dispatch(
    kernel: KernelId,
    bindings: &[(BufferRange, bool)],
    groups: [u32; 3],
) -> Step {
    dispatch_with(kernel, bindings, groups, &[])
}

/// Returns a launch with immediates.
pub(super) fn dispatch_with(
    kernel: KernelId,
    bindings: &[(BufferRange, bool)],
    groups: [u32; 3],
    immediates: &[u8],
) -> Step {
    run(Command::Dispatch(Dispatch {
        kernel,
        bindings: bindings.iter().map(|&(range, writes)| BoundBuffer { range, writes }).collect(),
        groups: Groups::Direct(groups),
        immediates: immediates.to_vec(),
        role: Role::Launch,
    }))
}

/// Returns words as bytes in the device's byte order.
pub(super) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Shorthands for driver calls in tests.
pub(super) trait DriverExt: Driver {
    /// Compiles a WGSL source with bounds checks.
    fn compile_source(&self, source: &str, grid: GridSource) -> KernelId {
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

    /// Allocates upload memory that contains `words`.
    fn upload(&self, words: &[u32]) -> MemoryId {
        let size = words.len() as u64 * 4;
        let memory = self.allocate(MemoryKind::Upload, size, "upload").unwrap();
        Driver::write(self, memory, 0, &bytes(words)).unwrap();
        memory
    }

    /// Submits steps and waits for them.
    fn run_steps(&self, steps: &[Step]) -> SubmissionIndex {
        let submission = self.submit(Work::Once(steps), false).unwrap();
        assert!(self.wait(submission, LONG).unwrap());
        submission
    }

    /// Returns the words of a range, copied after all earlier submissions.
    fn words(&self, src: BufferRange) -> Vec<u32> {
        let out = self.allocate(MemoryKind::Readback, src.size, "out").unwrap();
        let host = barrier(Stages::TRANSFER, Stages::HOST);
        self.run_steps(&[full_barrier(), copy(src, range(out, src.size)), host]);
        let mut bytes = vec![0; src.size as usize];
        Driver::read(self, out, 0, &mut bytes).unwrap();
        self.free(out);
        let words = bytes.chunks_exact(4);
        words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

impl<D: Driver + ?Sized> DriverExt for D {}

/// A test of one driver: a changed code generator gets no kernels of the former one from the disk
/// cache. The generator's change is simulated by different programs under the same key.
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
    let files_of = |kind| {
        let files = crate::cache::list(&folder.path().join("scry-gpu")).into_iter();
        files.filter(|file| file.kind == kind).collect::<Vec<_>>()
    };
    let (src, dst) = (driver.upload(&[5; 64]), driver.device_memory(256));
    // The factor of the program, and the number of entries that are then stored.
    for (factor, expected) in [(2, 1), (3, 2), (2, 2), (3, 2)] {
        let program = Program::parse(&DOUBLE.replace("2u", &format!("{factor}u"))).unwrap();
        let (program, key, cache) = (&program, &key, Some(&cache));
        let job =
            CompileJob { program, grid: GridSource::Native, checked: true, key, cache, dump: None };
        let kernel = driver.compile(&job).unwrap();
        let bindings = [(range(src, 256), false), (range(dst, 256), true)];
        driver.run_steps(&[dispatch(kernel, &bindings, [1; 3])]);
        assert_eq!(driver.words(range(dst, 256)), [5 * factor; 64]);
        driver.free_kernel(kernel);
        // Some drivers store no entries.
        let entries = files_of(Kind::Entry).len();
        assert!([0, expected].contains(&entries), "{entries} of {expected} entries are stored");
        // A changed generator does not find translations, because its build id differs.
        for translation in files_of(Kind::Translation) {
            std::fs::remove_file(translation.path).unwrap();
        }
    }
}
