//! Tests of faults 23 and 24: kernels that do not terminate, launched in processes of their own.

use std::thread;
use std::time::{Duration, Instant};

use scry_gpu::{BackendKind, Buffer, CompileOptions, Device, DeviceKind, GpuError, Kernel, Launch};
use scry_test_support::{devices, null};

use super::child::in_exclusive_child;
use super::devices::{check_works, devices_and_null};

/// How much longer than the time limit a wait may take.
const GRACE: Duration = Duration::from_secs(1);
/// Time limit of the devices.
const LIMIT: Duration = Duration::from_secs(1);

/// Timeout of a child process. While other processes keep a GPU busy with endless work, its driver
/// can need half a minute to open it again.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Declarations for kernels that spin until a word of `go` is not zero.
const SPIN: &str = "
    @group(0) @binding(0) var<storage, read_write> go: array<atomic<u32>>;
    fn wait_for(i: u32) {
        while atomicLoad(&go[i]) == 0u { atomicAdd(&go[63], 1u); }
    }
";

/// Four billion workgroups: practically endless also with Mesa's software driver, which aborts the
/// loops of an invocation after 65535 iterations.
const ENDLESS_GRID: [u32; 3] = [65535, 65535, 1];

/// Returns a kernel that spins forever in the invocations for which the WGSL expression `condition`
/// is true.
fn endless_kernel(condition: &str) -> String {
    format!(
        "{SPIN}
         @compute @workgroup_size(64)
         fn spin(@builtin(local_invocation_index) index: u32) {{
             if {condition} {{ wait_for(0u); }}
         }}"
    )
}

/// Returns the first device of each backend. Others of the backend may be the same hardware, which
/// an earlier test may keep busy.
fn first_of_each_backend() -> Vec<Device> {
    let mut first = devices();
    first.retain(|gpu| gpu.info().index == 0);
    if first.is_empty() {
        println!("skipped: no device to hang");
    }
    first
}

/// Opens the same device again. Retries, because drivers may fail while the hardware is busy.
fn reopen(shared: &Device) -> Device {
    let selector = format!("{}:{}", shared.backend_kind(), shared.info().index);
    let start = Instant::now();
    loop {
        match Device::open(&selector) {
            Ok(gpu) => return gpu,
            Err(error) => assert!(start.elapsed() < TIMEOUT / 2, "{error}"),
        }
        println!("{selector} did not open");
        thread::sleep(LIMIT);
    }
}

/// Opens the same device again and starts endless work on it.
fn open_hung(shared: &Device, source: &str) -> (Device, Kernel, Buffer<u32>) {
    // A device of its own: it may be lost in the test.
    let gpu = reopen(shared);
    let buffer = gpu.upload(&[0u32; 64]).unwrap();
    let kernel = gpu.compile(source).unwrap();
    gpu.run(&kernel, &[&buffer], Launch::workgroups(ENDLESS_GRID)).unwrap();
    (gpu, kernel, buffer)
}

/// Returns whether the device skips the remaining workgroups of a cancelled launch. GPUs start each
/// of them, which takes too long for [`ENDLESS_GRID`].
fn skips_cancelled_workgroups(gpu: &Device) -> bool {
    gpu.backend_kind() == BackendKind::Cpu
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Checks on each backend that the time limit ends a wait for the endless kernel `source`. After
/// that the device is usable, or every call fails at once because it is lost.
fn check_time_limit(source: &str) {
    first_of_each_backend().iter().for_each(|gpu| check_time_limit_on(gpu, source));
}

fn check_time_limit_on(shared: &Device, source: &str) {
    let (gpu, kernel, buffer) = open_hung(shared, source);
    gpu.set_time_limit(Some(LIMIT));
    let (result, took) = timed(|| buffer.download());
    assert!(matches!(result, Err(GpuError::Timeout(_))), "{result:?}");
    assert!(took >= LIMIT && took < LIMIT + GRACE, "{took:?}");
    let (results, took) = timed(|| {
        [
            gpu.wait(),
            gpu.run(&kernel, &[&buffer], 1),
            gpu.alloc::<u32>(1).map(|_| ()),
            buffer.write(&[0; 64]),
            gpu.batch().submit(),
        ]
    });
    assert!(took < Duration::from_millis(200), "{took:?}");
    for result in results {
        match skips_cancelled_workgroups(&gpu) {
            true => result.unwrap(),
            false => assert!(matches!(result, Err(GpuError::DeviceLost(_))), "{result:?}"),
        }
    }
    if skips_cancelled_workgroups(&gpu) {
        check_usable_after_cancellation(&gpu, &kernel, &buffer);
    }
    let ((), took) = timed(|| drop((buffer, kernel, gpu)));
    assert!(took < GRACE, "the drop of a device after its time limit took {took:?}");
}

/// Checks that a device whose endless launch was cancelled cancels the next one too, and then
/// works.
fn check_usable_after_cancellation(gpu: &Device, kernel: &Kernel, buffer: &Buffer<u32>) {
    // The launch of one invocation by `check_time_limit_on` spins as well.
    let result = gpu.wait();
    assert!(matches!(result, Err(GpuError::Timeout(_))), "{result:?}");
    check_works(gpu);
    buffer.write(&[7; 64]).unwrap();
    assert_eq!(buffer.download().unwrap(), [7; 64]);
    // This kernel ends once the word is written.
    gpu.run(kernel, &[buffer], 64).unwrap();
    gpu.wait().unwrap();
}

#[test]
fn fault_23_endless_loop() {
    let name = "hang::fault_23_endless_loop";
    in_exclusive_child(name, TIMEOUT, || check_time_limit(&endless_kernel("true")));
}

#[test]
fn fault_23_endless_loop_in_one_invocation() {
    let name = "hang::fault_23_endless_loop_in_one_invocation";
    in_exclusive_child(name, TIMEOUT, || check_time_limit(&endless_kernel("index == 13u")));
}

#[test]
fn fault_23_barrier_after_endless_loop() {
    let source = "
        @compute @workgroup_size(64)
        fn spin(@builtin(local_invocation_index) index: u32) {
            if index == 13u { wait_for(0u); }
            workgroupBarrier();
            atomicAdd(&go[2], 1u);
        }";
    let source = format!("{SPIN}{source}");
    let name = "hang::fault_23_barrier_after_endless_loop";
    in_exclusive_child(name, TIMEOUT, || check_time_limit(&source));
}

#[test]
fn fault_23_practically_endless_loops() {
    let source = "
        @compute @workgroup_size(64)
        fn count(@builtin(local_invocation_index) index: u32) {
            let n = select(4000000000u, 1u, atomicLoad(&go[0]) != 0u);
            var x = index;
            for (var i = 0u; i < n; i++) {
                for (var j = 0u; j < n; j++) { x = x * 1664525u + 1013904223u; }
            }
            atomicStore(&go[2], x);
        }";
    let source = format!("{SPIN}{source}");
    let name = "hang::fault_23_practically_endless_loops";
    in_exclusive_child(name, TIMEOUT, || check_time_limit(&source));
}

#[test]
fn fault_23_endless_loops_are_cancelled() {
    let with_barriers = "
        var<workgroup> found: u32;
        @compute @workgroup_size(64)
        fn spin(@builtin(local_invocation_index) index: u32) {
            while true {
                if index == 0u { found = atomicLoad(&go[0]); }
                if workgroupUniformLoad(&found) != 0u { break; }
                workgroupBarrier();
            }
        }";
    let name = "hang::fault_23_endless_loops_are_cancelled";
    in_exclusive_child(name, TIMEOUT, || {
        let with_barriers = format!("{SPIN}{with_barriers}");
        for gpu in first_of_each_backend() {
            if gpu.backend_kind() == BackendKind::Wgpu {
                println!("skipped: wgpu cannot cancel a kernel, so that its device is lost");
                continue;
            }
            for source in
                [endless_kernel("true"), endless_kernel("index == 13u"), with_barriers.clone()]
            {
                check_loops_are_cancelled(&gpu, &source);
            }
        }
    });
}

/// Checks that a launch of moderate size with endless loops is cancelled, and that the device stays
/// usable.
fn check_loops_are_cancelled(shared: &Device, source: &str) {
    let gpu = reopen(shared);
    let buffer = gpu.upload(&[0u32; 64]).unwrap();
    let kernel = gpu.compile(source).unwrap();
    let limit = Duration::from_millis(200);
    gpu.set_time_limit(Some(limit));
    // More than a GPU executes at once: those that start later must end as well. Each invocation
    // iterates until its first poll, of which a processor with two cores executes few at once.
    let groups = if gpu.info().kind == DeviceKind::Software { 1024 } else { 8192 };
    gpu.run(&kernel, &[&buffer], Launch::workgroups([groups, 1, 1])).unwrap();
    let (result, took) = timed(|| gpu.wait());
    assert!(matches!(result, Err(GpuError::Timeout(_))), "{gpu:?}: {result:?}");
    assert!(took >= limit && took < limit + GRACE, "{gpu:?}: {took:?}");
    gpu.set_time_limit(None);
    check_works(&gpu);
    buffer.write(&[7; 64]).unwrap();
    assert_eq!(buffer.download().unwrap(), [7; 64]);
    // This kernel ends once the word is written.
    gpu.run(&kernel, &[&buffer], 64).unwrap();
    gpu.wait().unwrap();
}

#[test]
fn fault_23_hung_device_can_be_dropped() {
    let name = "hang::fault_23_hung_device_can_be_dropped";
    in_exclusive_child(name, TIMEOUT, || {
        for gpu in first_of_each_backend() {
            let hung = open_hung(&gpu, &endless_kernel("true"));
            let ((), took) = timed(|| drop(hung));
            let max = Duration::from_secs(if skips_cancelled_workgroups(&gpu) { 1 } else { 10 });
            assert!(took < max, "{gpu:?}: {took:?}");
        }
    });
}

#[test]
fn fault_23_every_waiting_thread_gets_error() {
    let name = "hang::fault_23_every_waiting_thread_gets_error";
    in_exclusive_child(name, TIMEOUT, || {
        first_of_each_backend().iter().for_each(check_every_waiter_gets_error);
        // Other devices are not affected. (The same hardware may still be busy, so it is not
        // tried.)
        check_works(&null());
    });
}

fn check_every_waiter_gets_error(shared: &Device) {
    let (gpu, _kernel, buffer) = open_hung(shared, &endless_kernel("true"));
    let interrupted = thread::scope(|scope| {
        let waiting = scope.spawn(|| gpu.wait());
        thread::sleep(Duration::from_millis(100));
        gpu.interrupt();
        waiting.join().unwrap()
    });
    assert!(matches!(interrupted, Err(GpuError::Interrupted(_))), "{interrupted:?}");
    gpu.set_time_limit(Some(LIMIT));
    let (results, took) = timed(|| {
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..6)
                .map(|i| {
                    let (gpu, buffer) = (&gpu, &buffer);
                    scope.spawn(move || match i % 2 {
                        0 => gpu.wait(),
                        _ => buffer.download().map(|_| ()),
                    })
                })
                .collect();
            let results = waiting.into_iter().map(|thread| thread.join().unwrap());
            results.collect::<Vec<_>>()
        })
    });
    assert!(took < LIMIT + GRACE, "{took:?}");
    let is_expected = |result: &Result<(), GpuError>| {
        matches!(result, Err(GpuError::Timeout(_) | GpuError::DeviceLost(_)))
    };
    assert!(results.iter().all(is_expected), "{results:?}");
    if skips_cancelled_workgroups(&gpu) {
        check_works(&gpu);
    }
}

/// Runs a kernel that may terminate. Checks that it does, or that the wait times out, or that the
/// driver aborts its loops and the wait reports that.
fn check_ends_or_times_out(source: &str, invocations: u32) {
    for shared in devices() {
        let gpu = reopen(&shared);
        let buffer = gpu.upload(&[0u32; 64]).unwrap();
        gpu.set_time_limit(Some(2 * LIMIT));
        let kernel = gpu.compile(source).unwrap();
        gpu.run(&kernel, &[&buffer], invocations).unwrap();
        let (result, took) = timed(|| gpu.wait());
        println!("{gpu:?}: {result:?} after {took:?}");
        let aborts_loops =
            gpu.info().workarounds.iter().any(|it| it.name == "report-aborted-loops");
        let is_expected = match &result {
            Ok(()) | Err(GpuError::Timeout(_)) => true,
            Err(GpuError::Kernel(_)) => aborts_loops,
            Err(_) => false,
        };
        assert!(is_expected, "{result:?}");
        assert!(took < 2 * LIMIT + GRACE, "{took:?}");
    }
}

#[test]
fn fault_24_barrier_in_non_uniform_control() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<atomic<u32>>;
        var<workgroup> shared_word: u32;
        @compute @workgroup_size(64)
        fn diverge(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x % 3u == atomicLoad(&x[0]) {
                shared_word = id.x;
                workgroupBarrier();
                atomicAdd(&x[1], shared_word);
            } else if id.x % 3u == 1u {
                return;
            }
            atomicAdd(&x[2], 1u);
        }";
    let mut messages = Vec::new();
    for gpu in devices_and_null() {
        // SAFETY: the kernel is not launched unless it compiles.
        let unchecked = unsafe { gpu.compile_unchecked(source, &CompileOptions::new()) };
        for result in [gpu.compile(source), unchecked] {
            let error = result.expect_err("a barrier that some invocations miss");
            assert!(matches!(error, GpuError::Shader(_)), "{gpu:?}: {error:?}");
            messages.push(error.to_string());
        }
        check_works(&gpu);
    }
    let message = &messages[0];
    assert!(messages.iter().all(|other| other == message), "{messages:?}");
    for part in ["workgroupBarrier();", "if id.x % 3u == atomicLoad(&x[0]) {", "uniform control"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn fault_24_workgroups_wait_for_later_ones() {
    // Workgroup i waits for workgroup i + 1: ends only if all of them are resident.
    let source = "
        @compute @workgroup_size(1)
        fn chain(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
            if id.x + 1u < n.x { wait_for(id.x + 1u); }
            atomicStore(&go[id.x], 1u);
        }";
    let source = format!("{SPIN}{source}");
    let name = "hang::fault_24_workgroups_wait_for_later_ones";
    in_exclusive_child(name, TIMEOUT, || check_ends_or_times_out(&source, 60));
}

#[test]
fn fault_24_spin_lock_between_workgroups() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<atomic<u32>>;
        @compute @workgroup_size(1)
        fn locked() {
            while !atomicCompareExchangeWeak(&x[0], 0u, 1u).exchanged {}
            let old = atomicLoad(&x[1]);
            atomicStore(&x[1], old + 1u);
            atomicStore(&x[0], 0u);
        }";
    let name = "hang::fault_24_spin_lock_between_workgroups";
    in_exclusive_child(name, TIMEOUT, || check_ends_or_times_out(source, 64));
}
