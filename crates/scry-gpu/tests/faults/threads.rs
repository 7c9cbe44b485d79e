//! Tests of faults 31 to 33: many threads, drops during work, panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use scry_gpu::{Buffer, Device, Kernel};
use scry_test_support::{STEP, random_f32};

use super::child::prevent_saturation;
use super::devices::{check_works, devices_and_null, executes_kernels};

/// Returns the total duration of the random walks.
fn soak_duration() -> Duration {
    match std::env::var_os("SCRY_SOAK") {
        Some(_) => Duration::from_secs(60),
        None => Duration::from_secs(5),
    }
}

/// Returns the source of a kernel that adds `number` to every element.
fn adder(number: u32) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(64)
         fn add(@builtin(global_invocation_id) id: vec3<u32>) {{
             if id.x < arrayLength(&x) {{ x[id.x] += {number}u; }}
         }}"
    )
}

/// A xorshift generator: the same numbers for the same seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// A buffer and its expected contents.
struct TrackedBuffer {
    buffer: Buffer<u32>,
    expected: Vec<u32>,
}

impl TrackedBuffer {
    fn new(gpu: &Device, rng: &mut Rng) -> Self {
        let (len, first) = (1 + rng.below(5000), rng.below(1000) as u32);
        let expected: Vec<u32> = (first..).take(len).collect();
        let buffer = gpu.upload(&expected).unwrap();
        Self { buffer, expected }
    }

    /// Adds to the expected contents what [`adder`] adds to the buffer.
    fn expect_add(&mut self, gpu: &Device, number: u32) {
        if executes_kernels(gpu) {
            self.expected.iter_mut().for_each(|x| *x = x.wrapping_add(number));
        }
    }

    fn check(&self) {
        let values = self.buffer.download().unwrap();
        assert!(values == self.expected, "{values:?} is not {:?}", self.expected);
    }
}

/// Makes random calls, each checked against the expected contents, until the deadline. Returns
/// their number.
fn random_walk(gpu: &Device, seed: u64, deadline: Instant) -> usize {
    let mut rng = Rng(seed);
    let mut buffers: Vec<TrackedBuffer> = vec![TrackedBuffer::new(gpu, &mut rng)];
    let mut kernels: Vec<(Kernel, u32)> = Vec::new();
    let mut steps = 0;
    while Instant::now() < deadline {
        steps += 1;
        let one = rng.below(buffers.len());
        match rng.below(10) {
            0 if buffers.len() < 8 => buffers.push(TrackedBuffer::new(gpu, &mut rng)),
            1 if buffers.len() > 1 => drop(buffers.swap_remove(one)),
            2 => {
                let number = 1 + rng.below(40) as u32;
                kernels.push((gpu.compile(&adder(number)).unwrap(), number));
                if kernels.len() > 4 {
                    kernels.remove(0);
                }
            }
            3 => {
                let number = 1 + rng.below(8) as u32;
                let it = &mut buffers[one];
                gpu.dispatch(&adder(number), &[&it.buffer], it.expected.len()).unwrap();
                it.expect_add(gpu, number);
            }
            4 if !kernels.is_empty() => run_batch(gpu, &mut buffers[one], &kernels),
            5 => {
                let value = rng.below(100) as u32;
                buffers[one].buffer.fill(value).unwrap();
                buffers[one].expected.fill(value);
            }
            6 => {
                let copy = gpu.alloc(buffers[one].expected.len()).unwrap();
                buffers[one].buffer.copy_to(&copy).unwrap();
                buffers[one].buffer = copy;
            }
            7 => drop(gpu.batch().submit_async().unwrap()),
            8 => gpu.wait().unwrap(),
            _ => buffers[one].check(),
        }
    }
    buffers.iter().for_each(TrackedBuffer::check);
    steps
}

/// Runs every kernel in one batch, with a download after each.
fn run_batch(gpu: &Device, it: &mut TrackedBuffer, kernels: &[(Kernel, u32)]) {
    let mut batch = gpu.batch();
    let mut downloads = Vec::new();
    for (kernel, number) in kernels {
        batch.run(kernel, &[&it.buffer], it.expected.len()).unwrap();
        it.expect_add(gpu, *number);
        downloads.push((batch.download(&it.buffer).unwrap(), it.expected.clone()));
    }
    let ticket = batch.submit_async().unwrap();
    for (download, expected) in downloads {
        assert!(download.get().unwrap() == expected);
    }
    ticket.wait().unwrap();
}

#[test]
fn fault_31_thirty_two_threads_share_a_device() {
    let _unsaturated = prevent_saturation();
    let all = devices_and_null();
    let duration = soak_duration() / all.len() as u32;
    for gpu in all {
        gpu.wait().unwrap();
        let deadline = Instant::now() + duration;
        let steps: usize = thread::scope(|scope| {
            let gpu = &gpu;
            let threads: Vec<_> = (1..=32)
                .map(|seed| scope.spawn(move || random_walk(gpu, seed * 0x9e37_79b9, deadline)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(steps > 32, "{gpu:?}: only {steps} steps");
        check_works(&gpu);
    }
}

/// A slow kernel, with fewer than the 65535 iterations after which Mesa's software driver (at least
/// version 22.3) aborts an invocation.
pub const SLOW: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(64)
    fn slow(@builtin(global_invocation_id) id: vec3<u32>) {
        var x = input[id.x];
        for (var i = 0u; i < 20000u; i++) { x = x * 1664525u + 1013904223u; }
        output[id.x] = x;
    }
";

/// Returns what [`SLOW`] computes.
pub fn slow_result(mut x: u32) -> u32 {
    for _ in 0..20000 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
    x
}

#[test]
fn fault_32_objects_dropped_during_batch() {
    for shared in devices_and_null() {
        let gpu = Device::open(&format!("{}", shared.backend_kind())).unwrap();
        let mut batch = gpu.batch();
        let download = {
            let input = gpu.upload(&vec![3u32; 4096]).unwrap();
            let output = gpu.alloc::<u32>(4096).unwrap();
            let kernel = gpu.compile(SLOW).unwrap();
            batch.run(&kernel, &[&input, &output], 4096).unwrap();
            batch.download(&output).unwrap()
        };
        drop(batch.submit_async().unwrap());
        drop(gpu);
        let expected = if executes_kernels(&shared) { slow_result(3) } else { 0 };
        assert!(download.get().unwrap() == vec![expected; 4096], "{shared:?}");
    }
}

#[test]
fn fault_32_device_dropped_while_threads_wait() {
    for shared in devices_and_null() {
        for round in 0..4 {
            let gpu = Device::open(&format!("{}", shared.backend_kind())).unwrap();
            let input = gpu.upload(&vec![5u32; 4096]).unwrap();
            let output = gpu.alloc::<u32>(4096).unwrap();
            gpu.dispatch(SLOW, &[&input, &output], 4096).unwrap();
            let ticket = {
                let mut batch = gpu.batch();
                batch.copy(&output, &input).unwrap();
                batch.submit_async().unwrap()
            };
            let compiling = gpu.clone();
            let barrier = Barrier::new(4);
            thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    barrier.wait();
                    ticket.wait()
                });
                let reading = scope.spawn(|| {
                    barrier.wait();
                    input.download()
                });
                let compiled = scope.spawn(|| {
                    barrier.wait();
                    let kernel = compiling.compile(&adder(round));
                    drop(compiling);
                    kernel.map(|kernel| kernel.binding_count())
                });
                barrier.wait();
                drop(gpu);
                waiting.join().unwrap().unwrap();
                assert_eq!(compiled.join().unwrap().unwrap(), 1);
                let expected = if executes_kernels(&shared) { slow_result(5) } else { 0 };
                assert!(reading.join().unwrap().unwrap() == vec![expected; 4096]);
            });
        }
    }
}

#[test]
fn fault_33_device_survives_panicking_threads() {
    for gpu in devices_and_null() {
        let panics = AtomicUsize::new(0);
        thread::scope(|scope| {
            for i in 0..16 {
                let (gpu, panics) = (gpu.clone(), &panics);
                scope.spawn(move || {
                    let panicked = catch_unwind(AssertUnwindSafe(|| panic_with_objects(&gpu, i)));
                    panics.fetch_add(usize::from(panicked.is_err()), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(panics.load(Ordering::Relaxed), 16, "{gpu:?}");
        check_works(&gpu);
        gpu.wait().unwrap();
    }
}

/// Panics with an unfinished batch, a pending ticket, a kernel and buffers.
fn panic_with_objects(gpu: &Device, i: u32) {
    let data = random_f32(i.into(), 3000);
    let buffer = gpu.upload(&data).unwrap();
    let words = gpu.alloc::<u32>(64).unwrap();
    let kernel = gpu.compile(&adder(1000 + i % 4)).unwrap();
    let mut submitted = gpu.batch();
    submitted.run(&kernel, &[&words], 64).unwrap();
    let download = submitted.download(&buffer).unwrap();
    let ticket = submitted.submit_async().unwrap();
    let mut unfinished = gpu.batch();
    unfinished.write(&buffer, &vec![0.0; 3000]).unwrap();
    if i.is_multiple_of(2) {
        assert!(download.get().unwrap() == data);
    }
    std::panic::resume_unwind(Box::new((i, ticket.is_ready().is_ok(), STEP)));
}

#[test]
fn fault_31_threads_open_their_own_devices() {
    for shared in devices_and_null() {
        let selector = format!("{}", shared.backend_kind());
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        check_works(&Device::open(&selector).unwrap());
                    }
                });
            }
        });
    }
}
