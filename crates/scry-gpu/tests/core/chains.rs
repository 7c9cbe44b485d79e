//! Tests of long chains of dependent launches, which a device may overlap: each launch must see
//! what the one before it wrote, and what others wrote earlier, in batches and in recordings.

use scry_gpu::{Batch, Buffer, Device, Launch};
use scry_ir::Program;
use scry_ir::kir::KirOptions;
use scry_test_support::{devices, succeed};

/// Each invocation reads its own element twice, with a read of a distant one between them: the
/// lines of both were read by the launch before the previous one, which wrote them afterwards.
const MIX: &str = "
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read> table: array<u32>;
    @group(0) @binding(2) var<storage, read_write> y: array<u32>;
    var<immediate> step: u32;
    @compute @workgroup_size(256)
    fn mix(@builtin(global_invocation_id) id: vec3u) {
        let n = arrayLength(&x);
        if id.x >= n { return; }
        let far = x[(id.x * 7919u + step * 257u) % n];
        y[id.x] = (x[id.x] ^ far) * 1664525u + table[(id.x + far) % arrayLength(&table)] + step;
    }";

/// Replaces its elements, one workgroup for all of them.
const SUM: &str = "
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> table: array<u32>;
    var<workgroup> parts: array<u32, 64>;
    @compute @workgroup_size(64)
    fn sum(@builtin(local_invocation_index) at: u32) {
        var part = 0u;
        for (var i = at; i < arrayLength(&x); i += 64u) { part += x[i]; }
        parts[at] = part;
        workgroupBarrier();
        table[at] = table[at] * 3u + parts[(at + 1u) % 64u];
    }";

/// Launches of each chain.
const STEPS: u32 = 24;

struct Chain {
    mix: scry_gpu::Kernel,
    sum: scry_gpu::Kernel,
    values: [Buffer<u32>; 2],
    table: Buffer<u32>,
}

impl Chain {
    /// Compiles the kernels from WGSL or, since those built in the kernel IR overlap their
    /// predecessors more, from the kernel IR of that.
    fn new(gpu: &Device, len: usize, is_from_kir: bool) -> Self {
        let alloc = |len| succeed(gpu.alloc::<u32>(len));
        let compile = |wgsl: &str| match is_from_kir {
            true => {
                let program = Program::parse(wgsl).expect("the kernel is valid");
                let kir = program.with_kir(&KirOptions { checked: false }, |kir| kir);
                succeed(gpu.compile_ir(&kir.expect("the kernel is valid")))
            }
            false => succeed(gpu.compile(wgsl)),
        };
        let (mix, sum) = (compile(MIX), compile(SUM));
        Self { mix, sum, values: [alloc(len), alloc(len)], table: alloc(64) }
    }

    /// Adds `STEPS` launches. Every fifth is of a single workgroup, and writes what the next reads.
    fn add_to(&self, batch: &mut Batch) {
        let len = self.values[0].len() as u32;
        let mut from = 0;
        for step in 0..STEPS {
            let (x, y) = (&self.values[from], &self.values[1 - from]);
            if step % 5 == 4 {
                succeed(batch.run(&self.sum, &[x, &self.table], 64));
            } else {
                let launch = Launch::invocations(len).immediates(&step);
                succeed(batch.run(&self.mix, &[x, &self.table, y], launch));
                from = 1 - from;
            }
        }
    }

    fn start(&self, seed: u32) -> [Vec<u32>; 2] {
        let values = (0..self.values[0].len() as u32).map(|i| i.wrapping_mul(seed) >> 3);
        let table: Vec<u32> = (0..64).map(|i| i * seed).collect();
        let values: Vec<u32> = values.collect();
        succeed(self.values[0].write(&values));
        succeed(self.table.write(&table));
        [values, table]
    }

    fn results(&self) -> [Vec<u32>; 3] {
        [&self.values[0], &self.values[1], &self.table].map(|buffer| succeed(buffer.download()))
    }
}

/// Computes the chain on the host: both buffers of values, and the table.
fn expected([x, mut table]: [Vec<u32>; 2]) -> [Vec<u32>; 3] {
    let (mut values, mut from) = ([x.clone(), vec![0; x.len()]], 0);
    for step in 0..STEPS {
        let x = values[from].clone();
        if step % 5 == 4 {
            let part =
                |at: usize| x.iter().skip(at).step_by(64).fold(0u32, |a, b| a.wrapping_add(*b));
            let parts: Vec<u32> = (0..64).map(part).collect();
            for (at, value) in table.iter_mut().enumerate() {
                *value = value.wrapping_mul(3).wrapping_add(parts[(at + 1) % 64]);
            }
            continue;
        }
        let mix = |i: usize| {
            let far =
                x[((i as u32).wrapping_mul(7919).wrapping_add(step * 257)) as usize % x.len()];
            (x[i] ^ far)
                .wrapping_mul(1_664_525)
                .wrapping_add(table[(i as u32).wrapping_add(far) as usize % 64])
                .wrapping_add(step)
        };
        values[1 - from] = (0..x.len()).map(mix).collect();
        from = 1 - from;
    }
    let [first, second] = values;
    [first, second, table]
}

/// Runs chains over `len` elements as batches and as a recording, with alternating inputs.
fn check(gpu: &Device, len: usize, is_from_kir: bool, repetitions: u32) {
    let chain = Chain::new(gpu, len, is_from_kir);
    let mut batch = gpu.batch();
    chain.add_to(&mut batch);
    let recording = succeed(batch.record());
    let inputs = [3u32, 1_000_003];
    let wanted = inputs.map(|seed| expected(chain.start(seed)));
    for run in 0..repetitions {
        let input = (run / 2) as usize % 2;
        chain.start(inputs[input]);
        if run % 2 == 0 {
            succeed(succeed(recording.replay()).wait());
        } else {
            let mut batch = gpu.batch();
            chain.add_to(&mut batch);
            succeed(batch.submit());
        }
        assert!(chain.results() == wanted[input], "run {run} of {len} elements differs");
    }
}

#[test]
fn each_launch_sees_the_results_of_earlier_ones() {
    for gpu in devices() {
        for len in [64, 1000, 20_000] {
            check(&gpu, len, false, 6);
            check(&gpu, len, true, 6);
        }
    }
}

/// Sizes of less than one to several waves of blocks of a large GPU, many times.
#[test]
#[ignore = "needs a minute on a processor"]
fn soak_of_chains() {
    for gpu in devices() {
        for len in [1, 257, 5_000, 70_000, 300_000, 1 << 20] {
            check(&gpu, len, false, 200);
            check(&gpu, len, true, 200);
        }
    }
}
