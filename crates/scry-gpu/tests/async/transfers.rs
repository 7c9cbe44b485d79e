//! Tests of uploads, writes, downloads and compilation as futures.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use scry_gpu::testing::{self, Fault, FaultPlan};
use scry_gpu::{Device, DeviceInfo, GpuError};
use scry_test_support::devices;

use crate::harness::{
    CountingWaker, NEVER, SHORT, current_thread, fill, join_all, lock_process, multi_thread,
    on_every_executor, open_hanging, poll_and_drop, poll_once,
};

const ADD: &str = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { x[id.x] += 1u; }
    }";

/// Bytes of a transfer in several chunks: 2 MiB each, 16 MiB for `download_async`. A blocking
/// download has at most 24 MiB in flight.
const LARGE: usize = 34 << 20;

/// Maximum memory that a device keeps for later transfers, in bytes: 24 slots of 2 MiB in the
/// staging ring of uploads, and 3 readback blocks of 16 MiB.
const MAX_KEPT: u64 = (24 * 2 + 3 * 16) << 20;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ (i >> 8)) as u8).collect()
}

#[test]
fn transfers_of_any_size_round_trip() {
    let _lock = lock_process();
    for gpu in devices() {
        on_every_executor(|| {
            let gpu = gpu.clone();
            async move {
                for len in [0, 1, 4099] {
                    let data = bytes(len);
                    let x = gpu.upload_async(&data).await.unwrap();
                    assert_eq!(x.download_async().await.unwrap(), data);
                }
                let x = gpu.upload_async(&[1u32, 2, 3, 4]).await.unwrap();
                x.write_async(&[5, 6, 7, 8]).await.unwrap();
                x.slice(1..3).unwrap().write_async(&[0, 1]).await.unwrap();
                assert_eq!(x.slice(1..).unwrap().download_async().await.unwrap(), [0, 1, 8]);
                let error = x.write_async(&[1]).await.unwrap_err();
                assert!(error.to_string().contains("Buffer::write_async"), "{error}");
            }
        });
        let data = bytes(LARGE);
        pollster::block_on(async {
            let x = gpu.upload_async(&data).await.unwrap();
            assert!(x.download_async().await.unwrap() == data);
            x.fill(0).unwrap();
            x.write_async(&data).await.unwrap();
            assert!(x.download().unwrap() == data);
        });
    }
}

#[test]
fn downloads_wait_for_earlier_work() {
    let _lock = lock_process();
    for gpu in devices() {
        let kernel = gpu.compile(ADD).unwrap();
        multi_thread().block_on(async {
            let tasks: Vec<_> = (0..200u32)
                .map(|start| (gpu.clone(), kernel.clone(), start))
                .map(|(gpu, kernel, start)| {
                    tokio::spawn(async move {
                        let x = gpu.upload_async(&[start; 100]).await.unwrap();
                        gpu.run(&kernel, &[&x], 100).unwrap();
                        assert_eq!(x.download_async().await.unwrap(), [start + 1; 100]);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

/// Work that was submitted while a download was in flight once changed its last chunks.
#[test]
fn downloads_do_not_see_later_work() {
    const LEN: usize = (49 << 20) + 3;
    let _lock = lock_process();
    let (null, _) = testing::observed(testing::null_info());
    for gpu in devices().into_iter().chain([null]) {
        let x = gpu.alloc::<u8>(LEN).unwrap();
        x.fill(1).unwrap();
        let waker = Arc::new(CountingWaker::default());
        let mut read = Box::pin(x.download_async());
        let first = poll_once(read.as_mut(), &waker);
        x.fill(2).unwrap();
        let bytes = match first {
            Poll::Ready(bytes) => bytes,
            Poll::Pending => pollster::block_on(read),
        };
        assert!(bytes.unwrap() == vec![1; LEN], "{}", gpu.name());
        assert!(x.download().unwrap() == vec![2; LEN]);
    }
}

/// A download that lacks memory for a copy on the device is one submission.
#[test]
fn large_downloads_need_no_memory_of_the_device() {
    let _lock = lock_process();
    let plan = FaultPlan::new(Fault::OutOfMemory, NEVER);
    let (gpu, log) = testing::reporting_with_faults(testing::null_info(), &[], &plan);
    let x = gpu.upload(&vec![7u8; LARGE]).unwrap();
    gpu.wait().unwrap();
    for (fails, copies) in [(false, 4), (true, 3)] {
        let _ = log.take();
        if fails {
            plan.fail_after(0);
        }
        let bytes = pollster::block_on(x.download_async()).unwrap();
        assert!(bytes == vec![7; LARGE]);
        assert_eq!(log.take().copies, copies);
    }
}

#[test]
fn transfers_can_be_dropped_anytime() {
    let _lock = lock_process();
    for gpu in devices() {
        let x = gpu.alloc::<u8>(LARGE).unwrap();
        let ones = vec![1u8; LARGE];
        x.fill(0).unwrap();
        assert!(x.download().unwrap().iter().all(|byte| *byte == 0));
        let before = gpu.memory_usage().bytes;
        for polls in (0..6).cycle().take(18) {
            let is_written = poll_and_drop(x.write_async(&ones), polls);
            poll_and_drop(x.download_async(), polls);
            poll_and_drop(gpu.upload_async(&ones), polls);
            gpu.wait().unwrap();
            let kept = gpu.memory_usage().bytes.saturating_sub(before);
            assert!(kept <= MAX_KEPT, "{kept} bytes kept after {polls} polls");
            let content = x.download().unwrap();
            assert!(content.iter().all(|byte| *byte <= 1));
            assert!(!is_written || content == ones);
        }
        pollster::block_on(x.write_async(&ones)).unwrap();
        assert!(x.download().unwrap() == ones);
    }
}

#[test]
fn full_queue_does_not_block_tasks() {
    let _lock = lock_process();
    let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
    let tickets: Vec<_> = (0..256).map(|value| fill(&gpu, &buffer, value)).collect();
    for polls in 0..3 {
        assert!(!poll_and_drop(buffer.write_async(&[7; 4]), polls));
        assert!(!poll_and_drop(buffer.download_async(), polls));
    }
    let mut written = Box::pin(buffer.write_async(&[8; 4]));
    assert!(poll_once(written.as_mut(), &Arc::new(CountingWaker::default())).is_pending());
    plan.fail_after(NEVER);
    pollster::block_on(async {
        written.await.unwrap();
        assert_eq!(buffer.download_async().await.unwrap(), [8; 4]);
        for result in join_all(tickets.iter().map(IntoFuture::into_future)).await {
            result.unwrap();
        }
    });
}

#[test]
fn downloads_of_recordings_follow_replays() {
    let _lock = lock_process();
    for gpu in devices() {
        let kernel = gpu.compile(ADD).unwrap();
        let x = gpu.alloc::<u32>(100).unwrap();
        let mut batch = gpu.batch();
        batch.run(&kernel, &[&x], 100).unwrap();
        let elements = batch.download(&x).unwrap();
        let error = pollster::block_on(elements.get_async()).unwrap_err();
        assert!(error.to_string().contains("was not submitted"), "{error}");
        let recording = batch.record().unwrap();
        current_thread().block_on(async {
            for replay in 1..=20 {
                let ticket = recording.replay().unwrap();
                assert_eq!(elements.get_async().await.unwrap(), [replay; 100]);
                ticket.await.unwrap();
            }
        });
    }
}

#[test]
fn pending_download_returns_later_replay() {
    let _lock = lock_process();
    let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
    let mut batch = gpu.batch();
    let elements = batch.download(&buffer).unwrap();
    let recording = batch.record().unwrap();
    drop(recording.replay().unwrap());
    let mut pending = Box::pin(elements.get_async());
    assert!(poll_once(pending.as_mut(), &Arc::new(CountingWaker::default())).is_pending());
    // No lock is held: neither the write nor the replay waits for the future.
    buffer.write(&[9; 4]).unwrap();
    drop(recording.replay().unwrap());
    plan.fail_after(NEVER);
    assert_eq!(pollster::block_on(pending).unwrap(), [9; 4]);
}

#[test]
fn awaited_results_report_launch_failures() {
    let _lock = lock_process();
    // A null device on which launch 1, counted from 0, reports a failure.
    let (gpu, _) = testing::reporting(testing::null_info(), &[1]);
    let kernel = gpu.compile(ADD).unwrap();
    let [written, other] = [0, 1].map(|_| gpu.alloc::<u32>(4).unwrap());
    let submit = |x| gpu.batch().run(&kernel, &[x], 4).unwrap().submit_async().unwrap();
    let tickets = [submit(&other), submit(&written), submit(&other)];
    let is_failure = |result: &Result<(), GpuError>| matches!(result, Err(GpuError::Kernel(_)));
    // The tickets are polled on another thread than the one that submitted.
    multi_thread().block_on(async {
        let (gpu, written, other) = (gpu.clone(), written.clone(), other.clone());
        let polled = tokio::spawn(async move {
            assert!(is_failure(&written.download_async().await.map(drop)));
            let results = join_all(tickets.iter().map(IntoFuture::into_future)).await;
            assert_eq!(results.iter().map(is_failure).collect::<Vec<_>>(), [false, true, false]);
            other.download_async().await.unwrap();
            drop(gpu);
        });
        polled.await.unwrap();
    });
}

#[test]
fn time_limit_applies_to_transfers() {
    let _lock = lock_process();
    let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
    gpu.set_time_limit(Some(SHORT));
    let error = pollster::block_on(buffer.download_async()).unwrap_err();
    assert!(matches!(error, GpuError::Timeout(_)), "{error}");
    assert!(error.to_string().starts_with("Buffer::download_async: "), "{error}");
    gpu.set_time_limit(None);
    current_thread().block_on(async {
        assert!(tokio::time::timeout(SHORT, buffer.download_async()).await.is_err());
    });
    plan.fail_after(NEVER);
    pollster::block_on(buffer.download_async()).unwrap();
}

#[test]
fn concurrent_compilations_complete() {
    let _lock = lock_process();
    on_every_executor(|| async {
        let gpu = Device::open_async("cpu").await.unwrap();
        let sources: Vec<_> =
            (0..50).map(|i| format!("@compute @workgroup_size({}) fn f() {{}}", i + 1)).collect();
        let compiled = join_all(sources.iter().map(|source| gpu.compile_async(source))).await;
        for (size, kernel) in (1..).zip(compiled) {
            assert_eq!(kernel.unwrap().workgroup_size(), [size, 1, 1]);
        }
        let error = gpu.compile_async("fn").await.unwrap_err();
        assert!(matches!(error, GpuError::Shader(_)), "{error}");
        assert!(Device::open_async("cpu:99").await.is_err());
        let names = |list: Vec<DeviceInfo>| list.into_iter().map(|info| (info.backend, info.name));
        assert!(names(Device::list_async().await).eq(names(Device::list())));
    });
    // The futures are dropped before the compilation has finished, or after.
    let gpu = Device::open("cpu").unwrap();
    for polls in 0..3 {
        poll_and_drop(gpu.compile_async(ADD), polls);
    }
    std::thread::sleep(Duration::from_millis(1));
    gpu.compile(ADD).unwrap();
}
