//! Tests of host functions as kernels of the CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use scry_gpu::{
    BackendKind, Device, GpuError, HostArguments, Kernel, Launch, NativeBinding, NativeInterface,
    Scalar,
};
use scry_test_support::{null, succeed};

fn cpu() -> Device {
    succeed(Device::with_backend(BackendKind::Cpu))
}

fn interface() -> NativeInterface {
    NativeInterface::new(
        [
            NativeBinding::read("x", Scalar::U32).with_min_len(2),
            NativeBinding::read_write("y", Scalar::U32),
        ],
        [1; 3],
    )
}

/// `y = factor * x + y`, where `factor` is the only immediate.
fn multiply_add(gpu: &Device) -> Kernel {
    let interface = interface().immediates(4);
    succeed(gpu.host_kernel("multiply_add", &interface, |arguments| {
        let factor: u32 = arguments.immediates();
        let (x, y) = (arguments.read::<u32>(0), arguments.write::<u32>(1));
        y.iter_mut().zip(x).for_each(|(y, x)| *y = y.wrapping_add(factor.wrapping_mul(*x)));
    }))
}

fn once() -> Launch {
    Launch::workgroups([1; 3])
}

#[test]
fn host_functions_run_in_order_with_kernels() {
    let gpu = cpu();
    let host = multiply_add(&gpu);
    let double = succeed(gpu.compile(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&y) { y[id.x] *= 2u; }
         }",
    ));
    let (x, y) = (succeed(gpu.upload(&[1u32, 2, 3])), succeed(gpu.alloc::<u32>(3)));
    let mut batch = gpu.batch();
    succeed(batch.run(&host, &[&x, &y], once().immediates(&10u32)));
    succeed(batch.run(&double, &[&y], 3));
    succeed(batch.run(&host, &[&x, &y], once().immediates(&1u32)));
    let recording = succeed(batch.record());
    succeed(succeed(recording.replay()).wait());
    assert_eq!(succeed(y.download()), [21, 42, 63]);
    succeed(succeed(recording.replay()).wait());
    assert_eq!(succeed(y.download()), [63, 126, 189]);
}

#[test]
fn host_functions_write_slices_only() {
    let gpu = cpu();
    let host = multiply_add(&gpu);
    let (x, y) = (succeed(gpu.upload(&[1u32; 4])), succeed(gpu.alloc::<u32>(12)));
    let middle = succeed(y.slice(4..8));
    succeed(gpu.run(&host, &[&x, &middle], once().immediates(&7u32)));
    assert_eq!(succeed(y.download()), [0, 0, 0, 0, 7, 7, 7, 7, 0, 0, 0, 0]);
}

#[test]
fn arguments_of_host_functions_are_checked() {
    let gpu = cpu();
    let host = multiply_add(&gpu);
    let words = succeed(gpu.alloc::<u32>(8));
    let floats = succeed(gpu.alloc::<f32>(8));
    let one = succeed(gpu.alloc::<u32>(1));
    let text = |bindings: &[&dyn scry_gpu::Binding]| {
        gpu.run(&host, bindings, once().immediates(&1u32)).unwrap_err().to_string()
    };
    let same = text(&[&words, &words]);
    assert!(same.contains("shares bytes 0 to 31") && same.contains("writes `y`"), "{same}");
    let other_type = text(&[&words, &floats]);
    assert!(other_type.contains("`y`") && other_type.contains("f32"), "{other_type}");
    let short = text(&[&one, &words]);
    assert!(short.contains("has 1 elements, but needs at least 2"), "{short}");
    let missing = gpu.run(&host, &[&words, &one], once()).unwrap_err();
    assert!(matches!(missing, GpuError::Argument(_)), "{missing}");
}

#[test]
fn several_slices_are_held_at_once() {
    let gpu = cpu();
    let bindings = ["a", "b", "c"].map(|name| NativeBinding::read_write(name, Scalar::F16));
    let rotate =
        succeed(gpu.host_kernel("rotate", &NativeInterface::new(bindings, [1; 3]), |it| {
            let [a, b, c] = [0, 1, 2].map(|nth| it.write::<u16>(nth));
            a.swap_with_slice(b);
            b.swap_with_slice(c);
            assert_eq!(it.workgroups(), [3, 2, 1]);
        }));
    let buffers = [1.0, 2.0, 3.0].map(|x| succeed(gpu.upload(&[scry_gpu::f16::from_f32(x); 5])));
    let [a, b, c] = &buffers;
    succeed(gpu.run(&rotate, &[a, b, c], Launch::workgroups([3, 2, 1])));
    assert_eq!(buffers.map(|it| succeed(it.get(4)).to_f32()), [2.0, 3.0, 1.0]);
}

#[test]
fn panic_of_host_function_loses_device() {
    type Function = fn(&mut HostArguments<'_>);
    let wrong: [(Function, &str); 3] = [
        (|_| panic!("out of {}", "luck"), "host function `f` panicked: out of luck"),
        (
            |it| {
                let _ = it.read::<u32>(1);
            },
            "binding 1 of `f` is not declared as read",
        ),
        (
            |it| {
                let _ = it.immediates::<[u32; 2]>();
            },
            "`f` has 0 bytes of immediates",
        ),
    ];
    for (function, expected) in wrong {
        let gpu = cpu();
        let kernel = succeed(gpu.host_kernel("f", &interface(), function));
        let (x, y) = (succeed(gpu.alloc::<u32>(2)), succeed(gpu.alloc::<u32>(2)));
        succeed(gpu.run(&kernel, &[&x, &y], once()));
        let error = y.download().unwrap_err();
        assert!(matches!(error, GpuError::DeviceLost(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!error.to_string().contains("report"), "{error}");
    }
}

#[test]
fn cancelled_host_functions_are_skipped() {
    let gpu = cpu();
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let slow = succeed(gpu.host_kernel("slow", &interface(), move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(60));
    }));
    let (x, y) = (succeed(gpu.alloc::<u32>(2)), succeed(gpu.alloc::<u32>(2)));
    gpu.set_time_limit(Some(Duration::from_millis(20)));
    for _ in 0..20 {
        succeed(gpu.run(&slow, &[&x, &y], once()));
    }
    let error = gpu.wait().unwrap_err();
    assert!(matches!(error, GpuError::Timeout(_)), "{error}");
    assert!(calls.load(Ordering::Relaxed) < 20, "the launches behind the first were skipped");
    gpu.set_time_limit(None);
    succeed(gpu.run(&multiply_add(&gpu), &[&x, &y], once().immediates(&1u32)));
    assert_eq!(succeed(y.download()), [0, 0]);
}

#[test]
fn other_backends_reject_host_functions() {
    let error = null().host_kernel("f", &interface(), |_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Device::host_kernel: kernel `f` is written in Rust, which this backend does not run: \
         null:0 null device; help: open the CPU (Device::with_backend(BackendKind::Cpu)), or write \
         the kernel in WGSL, which runs on every device"
    );
}

#[test]
fn host_kernels_keep_what_they_capture() {
    let gpu = cpu();
    let captured = Arc::new(());
    let weak = Arc::downgrade(&captured);
    let kernel = succeed(gpu.host_kernel("f", &interface(), move |_| {
        let _ = &captured;
    }));
    let (x, y) = (succeed(gpu.alloc::<u32>(2)), succeed(gpu.alloc::<u32>(2)));
    let prepared = succeed(kernel.prepare(&[&x, &y], once()));
    drop(kernel);
    succeed(prepared.run());
    succeed(gpu.wait());
    assert!(weak.upgrade().is_some());
    drop(prepared);
    assert!(weak.upgrade().is_none(), "the function is dropped with its last handle");
}

#[test]
fn host_functions_share_the_threads() {
    let gpu = cpu();
    let interface = NativeInterface::new([NativeBinding::read_write("y", Scalar::U32)], [1; 3]);
    let both = Arc::new(AtomicUsize::new(0));
    let found = both.clone();
    let squares = succeed(gpu.host_kernel("squares", &interface, move |arguments| {
        let threads = arguments.threads();
        let (y, wanted) = (arguments.write::<u32>(0), threads.count().min(2));
        threads.for_each_chunk(y, 300, |start, chunk| {
            // The first chunks wait for each other, so that one thread cannot compute all.
            found.fetch_add(1, Ordering::SeqCst);
            let begin = Instant::now();
            while found.load(Ordering::SeqCst) < wanted {
                assert!(begin.elapsed() < Duration::from_secs(10), "no other thread helps");
                std::thread::yield_now();
            }
            for (index, y) in (start as u32..).zip(chunk) {
                *y = index * index;
            }
        });
    }));
    let y = succeed(gpu.alloc::<u32>(1000));
    succeed(gpu.run(&squares, &[&y], once()));
    let expected: Vec<u32> = (0..1000).map(|index| index * index).collect();
    assert_eq!(succeed(y.download()), expected);
    assert_eq!(both.load(Ordering::SeqCst), 4);
}

#[test]
fn panic_in_a_chunk_loses_the_device() {
    let gpu = cpu();
    let interface = NativeInterface::new([NativeBinding::read_write("y", Scalar::U32)], [1; 3]);
    let fails = succeed(gpu.host_kernel("fails", &interface, |arguments| {
        let y = arguments.write::<u32>(0);
        arguments.threads().for_each_chunk(y, 1, |start, _| assert!(start != 70, "chunk 70"));
    }));
    let y = succeed(gpu.alloc::<u32>(100));
    succeed(gpu.run(&fails, &[&y], once()));
    let error = y.download().unwrap_err();
    assert!(matches!(error, GpuError::DeviceLost(_)), "{error}");
    assert!(error.to_string().contains("host function `fails` panicked: chunk 70"), "{error}");
}
