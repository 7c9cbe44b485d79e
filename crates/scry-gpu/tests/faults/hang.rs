//! Faults 23 and 24: kernels that never end, each in its own process.

use std::thread;
use std::time::{Duration, Instant};

use scry_gpu::{BackendKind, Buffer, CompileOptions, Device, GpuError, Kernel, Launch};

use super::child::in_child_alone;
use super::devices::{check_works, devices, devices_and_null, null};

/// Tolerance of waits above the time limit.
const GRACE: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(1);

/// Timeout of a child. Where a device is busy with endless work of others, opening another one was
/// observed to take half a minute: that is the driver's time, not a limit of this library.
const PATIENCE: Duration = Duration::from_secs(180);

/// Waits until a word is written, which never happens. Mesa's software driver aborts loops after
/// 65535 iterations in total, so the launch is practically endless as well.
const SPIN: &str = "
    @group(0) @binding(0) var<storage, read_write> go: array<atomic<u32>>;
    fn wait_for(i: u32) {
        while atomicLoad(&go[i]) == 0u { atomicAdd(&go[63], 1u); }
    }
";

/// Four billion workgroups.
const ENDLESS: [u32; 3] = [65535, 65535, 1];

/// Spins forever in the invocations for which `who` is true.
fn endless(who: &str) -> String {
    format!(
        "{SPIN}
         @compute @workgroup_size(64)
         fn spin(@builtin(local_invocation_index) index: u32) {{
             if {who} {{ wait_for(0u); }}
         }}"
    )
}

/// Returns the best device of each backend. Several of one backend may be the same hardware, and
/// busy.
fn one_of_each() -> Vec<Device> {
    let mut each = devices();
    each.retain(|gpu| gpu.info().index == 0);
    if each.is_empty() {
        println!("skipped: no device to hang");
    }
    each
}

/// Opens the same device again. Drivers may fail at times while others keep it busy.
fn opened_again(shared: &Device) -> Device {
    let selector = format!("{}:{}", shared.backend_kind(), shared.info().index);
    let start = Instant::now();
    loop {
        match Device::open(&selector) {
            Ok(gpu) => return gpu,
            Err(error) => assert!(start.elapsed() < PATIENCE / 2, "{error}"),
        }
        println!("{selector} did not open");
        thread::sleep(LIMIT);
    }
}

/// Starts endless work on a device.
fn hung(shared: &Device, source: &str) -> (Device, Kernel, Buffer<u32>) {
    // Not the shared one: it may be abandoned.
    let gpu = opened_again(shared);
    let buffer = gpu.upload(&[0u32; 64]).unwrap();
    let kernel = gpu.compile(source).unwrap();
    gpu.run(&kernel, &[&buffer], Launch::workgroups(ENDLESS)).unwrap();
    (gpu, kernel, buffer)
}

/// Returns whether the device skips the remaining workgroups of a cancelled launch. GPUs start all
/// of them, which is too many of them here.
fn can_end_work(gpu: &Device) -> bool {
    gpu.backend_kind() == BackendKind::Cpu
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// A wait ends with the time limit; then the device stays usable, or reports at once that it is
/// lost.
fn ends_with_the_limit(source: &str) {
    one_of_each().iter().for_each(|gpu| ends_with_the_limit_on(gpu, source));
}

fn ends_with_the_limit_on(shared: &Device, source: &str) {
    let (gpu, kernel, buffer) = hung(shared, source);
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
        match can_end_work(&gpu) {
            true => result.unwrap(),
            false => assert!(matches!(result, Err(GpuError::DeviceLost(_))), "{result:?}"),
        }
    }
    if can_end_work(&gpu) {
        goes_on(&gpu, &kernel, &buffer);
    }
    let ((), took) = timed(|| drop((buffer, kernel, gpu)));
    assert!(took < GRACE, "the drop of a device after its time limit took {took:?}");
    println!("hung and came back");
}

/// Work submitted after the cancelled work runs, hangs, and is cancelled as well.
fn goes_on(gpu: &Device, kernel: &Kernel, buffer: &Buffer<u32>) {
    // The probe that `ends_with_the_limit_on` started.
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
fn fault_23_an_endless_loop() {
    let name = "hang::fault_23_an_endless_loop";
    in_child_alone(name, PATIENCE, || ends_with_the_limit(&endless("true")));
}

#[test]
fn fault_23_an_endless_loop_in_one_invocation() {
    let name = "hang::fault_23_an_endless_loop_in_one_invocation";
    in_child_alone(name, PATIENCE, || ends_with_the_limit(&endless("index == 13u")));
}

#[test]
fn fault_23_barrier_behind_endless_loop() {
    let source = "
        @compute @workgroup_size(64)
        fn spin(@builtin(local_invocation_index) index: u32) {
            if index == 13u { wait_for(0u); }
            workgroupBarrier();
            atomicAdd(&go[2], 1u);
        }";
    let source = format!("{SPIN}{source}");
    let name = "hang::fault_23_barrier_behind_endless_loop";
    in_child_alone(name, PATIENCE, || ends_with_the_limit(&source));
}

#[test]
fn fault_23_practically_endless_loops() {
    let source = "
        @compute @workgroup_size(64)
        fn count(@builtin(local_invocation_index) index: u32) {
            let turns = select(4000000000u, 1u, atomicLoad(&go[0]) != 0u);
            var x = index;
            for (var i = 0u; i < turns; i++) {
                for (var j = 0u; j < turns; j++) { x = x * 1664525u + 1013904223u; }
            }
            atomicStore(&go[2], x);
        }";
    let source = format!("{SPIN}{source}");
    let name = "hang::fault_23_practically_endless_loops";
    in_child_alone(name, PATIENCE, || ends_with_the_limit(&source));
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
    in_child_alone(name, PATIENCE, || {
        let with_barriers = format!("{SPIN}{with_barriers}");
        for gpu in one_of_each() {
            for source in [endless("true"), endless("index == 13u"), with_barriers.clone()] {
                endless_loop_is_cancelled(&gpu, &source);
            }
        }
    });
}

/// Every backend cancels endless loops of a launch of moderate size, and the device stays usable.
fn endless_loop_is_cancelled(shared: &Device, source: &str) {
    let gpu = opened_again(shared);
    let buffer = gpu.upload(&[0u32; 64]).unwrap();
    let kernel = gpu.compile(source).unwrap();
    let limit = Duration::from_millis(200);
    gpu.set_time_limit(Some(limit));
    gpu.run(&kernel, &[&buffer], Launch::workgroups([8192, 1, 1])).unwrap();
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
fn fault_23_dropping_a_hung_device() {
    let name = "hang::fault_23_dropping_a_hung_device";
    in_child_alone(name, PATIENCE, || {
        for gpu in one_of_each() {
            let hung = hung(&gpu, &endless("true"));
            let ((), took) = timed(|| drop(hung));
            let patience = Duration::from_secs(if can_end_work(&gpu) { 1 } else { 10 });
            assert!(took < patience, "{gpu:?}: {took:?}");
        }
    });
}

#[test]
fn fault_23_every_waiting_thread_gets_error() {
    let name = "hang::fault_23_every_waiting_thread_gets_error";
    in_child_alone(name, PATIENCE, || {
        one_of_each().iter().for_each(every_waiting_thread_gets_error);
        // Devices on other hardware are not affected. The same hardware may still be busy, also for
        // a newly opened device.
        check_works(&null());
    });
}

fn every_waiting_thread_gets_error(shared: &Device) {
    let (gpu, _kernel, buffer) = hung(shared, &endless("true"));
    let interrupted = thread::scope(|scope| {
        let waiting = scope.spawn(|| gpu.wait());
        thread::sleep(Duration::from_millis(100));
        gpu.interrupt();
        waiting.join().unwrap()
    });
    assert!(matches!(interrupted, Err(GpuError::Interrupted(_))), "{interrupted:?}");
    gpu.set_time_limit(Some(LIMIT));
    let (ended, took) = timed(|| {
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
            let ended = waiting.into_iter().map(|thread| thread.join().unwrap());
            ended.collect::<Vec<_>>()
        })
    });
    assert!(took < LIMIT + GRACE, "{took:?}");
    let output = |result: &Result<(), GpuError>| {
        matches!(result, Err(GpuError::Timeout(_) | GpuError::DeviceLost(_)))
    };
    assert!(ended.iter().all(output), "{ended:?}");
    if can_end_work(&gpu) {
        check_works(&gpu);
    }
}

/// Runs a kernel that may end: either it does, or the wait times out, or the driver aborts its
/// loops and the wait reports that.
fn ends_or_times_out(source: &str, invocations: u32) {
    for shared in devices() {
        let gpu = opened_again(&shared);
        let buffer = gpu.upload(&[0u32; 64]).unwrap();
        gpu.set_time_limit(Some(2 * LIMIT));
        let kernel = gpu.compile(source).unwrap();
        gpu.run(&kernel, &[&buffer], invocations).unwrap();
        let (result, took) = timed(|| gpu.wait());
        println!("{gpu:?}: {result:?} after {took:?}");
        let cuts = gpu.info().workarounds.iter().any(|it| it.name == "report-aborted-loops");
        let is_told = match &result {
            Ok(()) | Err(GpuError::Timeout(_)) => true,
            Err(GpuError::Kernel(_)) => cuts,
            Err(_) => false,
        };
        assert!(is_told, "{result:?}");
        assert!(took < 2 * LIMIT + GRACE, "{took:?}");
    }
}

#[test]
fn fault_24_a_barrier_in_non_uniform_control_flow() {
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
fn fault_24_workgroups_waiting_for_later_ones() {
    // Workgroup i waits for workgroup i + 1: ends only if all of them are resident.
    let source = "
        @compute @workgroup_size(1)
        fn chain(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
            if id.x + 1u < n.x { wait_for(id.x + 1u); }
            atomicStore(&go[id.x], 1u);
        }";
    let source = format!("{SPIN}{source}");
    let name = "hang::fault_24_workgroups_waiting_for_later_ones";
    in_child_alone(name, PATIENCE, || ends_or_times_out(&source, 60));
}

#[test]
fn fault_24_a_spin_lock_between_workgroups() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> x: array<atomic<u32>>;
        @compute @workgroup_size(1)
        fn locked() {
            while !atomicCompareExchangeWeak(&x[0], 0u, 1u).exchanged {}
            let old = atomicLoad(&x[1]);
            atomicStore(&x[1], old + 1u);
            atomicStore(&x[0], 0u);
        }";
    let name = "hang::fault_24_a_spin_lock_between_workgroups";
    in_child_alone(name, PATIENCE, || ends_or_times_out(source, 64));
}
