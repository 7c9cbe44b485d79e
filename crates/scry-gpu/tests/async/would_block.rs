//! Tests of a device on a thread that must not block, as in a browser.

use std::sync::Arc;
use std::time::Duration;

use scry_gpu::testing::{FaultPlan, open_with_faults};
use scry_gpu::{Buffer, Device, ErrorKind, GpuError, Result};

use crate::harness::{lock_process, on_every_executor};

/// Maximum number of unfinished submissions.
const MAX_IN_FLIGHT: u32 = 256;

/// Opens a device on which calls that would wait return `GpuError::WouldBlock`; the driver panics
/// if it is asked to block. A submission completes when a future that awaits it is polled.
fn open_nonblocking(selector: &str) -> Device {
    open_with_faults(selector, &FaultPlan::cannot_block()).unwrap()
}

#[test]
fn all_work_runs_without_blocking() {
    let _lock = lock_process();
    on_every_executor(|| async {
        let gpu = open_nonblocking("cpu");
        let double = gpu.compile_async(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
             @compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) {
                 if id.x < arrayLength(&x) { x[id.x] *= 2u; }
             }",
        );
        let double = double.await.unwrap();
        // 36 MiB: several chunks of an upload (2 MiB each) and of a download (16 MiB each).
        let numbers: Vec<u32> = (0..9 << 20).collect();
        let x = gpu.upload_async(&numbers).await.unwrap();
        gpu.run(&double, &[&x], numbers.len()).unwrap();
        let doubled = x.download_async().await.unwrap();
        assert!(doubled.iter().zip(&numbers).all(|(two, one)| *two == 2 * one));
        let mut batch = gpu.batch();
        batch.fill(&x, 7).unwrap().run(&double, &[&x], 2).unwrap();
        let download = batch.download(&x.slice(..2).unwrap()).unwrap();
        assert_eq!(batch.submit_timed_async().await.unwrap().len(), 1);
        assert_eq!(download.get_async().await.unwrap(), [14, 14]);
        gpu.wait_async().await.unwrap();
    });
}

/// The name of a public function that waits, and a call of it.
type Call<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);

macro_rules! calls {
    ($($name:literal => $call:expr),* $(,)?) => {{
        let calls: Vec<Call<'_>> = vec![$(($name, Box::new(|| ($call).map(drop)))),*];
        calls
    }};
}

#[test]
fn blocking_calls_name_async_alternative() {
    let _lock = lock_process();
    let gpu = open_nonblocking("null");
    let x = gpu.alloc::<u32>(8).unwrap();
    let (part, untyped) = (x.slice(..4).unwrap(), x.untyped());
    let ticket = gpu.batch().fill(&x, 3).unwrap().submit_async().unwrap();
    let mut batch = gpu.batch();
    let download = batch.download(&x).unwrap();
    let _ = batch.submit_async().unwrap();
    assert_eq!(ticket.is_ready(), Ok(false));
    let calls = calls! {
        "Batch::submit" => gpu.batch().fill(&x, 1)?.submit(),
        "Batch::submit_timed" => gpu.batch().fill(&x, 1)?.submit_timed(),
        "Buffer::download" => x.download(),
        "Buffer::download_into" => x.download_into(&mut [0; 8]),
        "Buffer::get" => x.get(0),
        "Device::wait" => gpu.wait(),
        "Download::get" => download.get(),
        "Slice::download" => part.download(),
        "Slice::download_into" => part.download_into(&mut [0; 4]),
        "Ticket::wait" => ticket.wait(),
        "Ticket::wait_timeout" => ticket.wait_timeout(Duration::from_secs(1)),
        "UntypedBuffer::download_bytes" => untyped.download_bytes(),
        "UntypedBuffer::download_bytes_into" => untyped.download_bytes_into(&mut [0; 32]),
    };
    let mut texts = String::new();
    for (function, call) in calls {
        let error = call().expect_err(function);
        assert_eq!(error.kind(), ErrorKind::Usage);
        let GpuError::WouldBlock(would_block) = &error else { panic!("{function}: {error}") };
        assert_eq!(would_block.function(), Some(function));
        assert_eq!(would_block.device(), "null device");
        let text = error.to_string();
        let (problem, help) = text.split_once("; ").unwrap();
        let expected =
            format!("{function}: null device has unfinished work, and this thread must not block");
        assert_eq!(problem, expected);
        texts += &format!("{function}: {help}\n");
    }
    assert_eq!(texts, include_str!("would_block.txt"));
    pollster::block_on(&ticket).unwrap();
    assert_eq!((ticket.is_ready(), ticket.wait()), (Ok(true), Ok(())));
}

#[test]
fn full_queue_rejects_blocking_calls() {
    let _lock = lock_process();
    let gpu = open_nonblocking("null");
    let x = gpu.alloc::<u32>(8).unwrap();
    let submit = || gpu.batch().fill(&x, 1).unwrap().submit_async().map(drop);
    for _ in 0..MAX_IN_FLIGHT {
        submit().unwrap();
    }
    let full = submit().unwrap_err();
    assert_eq!(
        full.to_string(),
        "Batch::submit_async: null device has unfinished work, and this thread must not block; \
         help: await Device::ready_async first"
    );
    // An upload submits, too; its error names its own async form.
    let large = vec![0u8; 64 << 20];
    let write = Buffer::upload(&gpu, &large).unwrap_err().to_string();
    assert!(write.ends_with("help: await Device::upload_async"), "{write}");
    pollster::block_on(gpu.ready_async()).unwrap();
    submit().unwrap();
}

#[test]
fn ready_device_accepts_submissions() {
    let _lock = lock_process();
    let gpu = open_nonblocking("null");
    let x = Arc::new(gpu.alloc::<u32>(8).unwrap());
    on_every_executor(|| {
        let (gpu, x) = (gpu.clone(), x.clone());
        async move {
            for value in 0..3 * MAX_IN_FLIGHT {
                gpu.ready_async().await.unwrap();
                drop(gpu.batch().fill(&*x, value).unwrap().submit_async().unwrap());
            }
            assert_eq!(x.download_async().await.unwrap(), [3 * MAX_IN_FLIGHT - 1; 8]);
        }
    });
}
