//! Tests of barriers: they are recorded only where accesses to byte ranges conflict.

use super::observed;
use scry_gpu::testing::Counts;
use scry_test_support::STEP;

#[test]
fn dependent_dispatches_have_barriers() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let buffers = [gpu.upload(&[0u32; 64]).unwrap(), gpu.upload(&[0u32; 64]).unwrap()];
    gpu.wait().unwrap();
    let mut batch = gpu.batch();
    for i in 0..100 {
        batch.run(&kernel, &[&buffers[i % 2], &buffers[(i + 1) % 2]], 64).unwrap();
    }
    let _ = log.take();
    batch.submit().unwrap();
    // The first dispatch also has a barrier: it waits for the uploads.
    assert_eq!(log.take(), Counts { dispatches: 100, barriers: 100, ..Default::default() });
}

#[test]
fn disjoint_buffers_need_no_barrier() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let input = gpu.upload(&[1u32; 64]).unwrap();
    let outputs: Vec<_> = (0..100).map(|_| gpu.upload(&[0u32; 64]).unwrap()).collect();
    // This waits for the uploads.
    gpu.run(&kernel, &[&input, &outputs[0]], 64).unwrap();
    gpu.run(&kernel, &[&input, &outputs[0]], 64).unwrap();
    let _ = log.take();
    let mut batch = gpu.batch();
    for output in &outputs[1..] {
        batch.run(&kernel, &[&input, output], 64).unwrap();
    }
    batch.submit().unwrap();
    assert_eq!(log.take(), Counts { dispatches: 99, ..Default::default() });
}

#[test]
fn disjoint_ranges_need_no_barrier() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let input = gpu.upload(&[1u32; 64]).unwrap();
    let output = gpu.upload(&vec![0u32; 6400]).unwrap();
    gpu.run(&kernel, &[&input, &output], 64).unwrap();
    gpu.run(&kernel, &[&input, &output], 64).unwrap();
    let _ = log.take();
    let mut batch = gpu.batch();
    for i in 0..100 {
        let part = output.slice(64 * i..64 * (i + 1)).unwrap();
        batch.run(&kernel, &[&input, &part], 64).unwrap();
    }
    batch.submit().unwrap();
    // The one barrier separates the batch from the launch before it.
    assert_eq!(log.take(), Counts { dispatches: 100, barriers: 1, ..Default::default() });
}

#[test]
fn write_after_read_has_barrier() {
    let (gpu, log) = observed();
    let (a, b, c) = (gpu.alloc::<u32>(4), gpu.alloc::<u32>(4), gpu.alloc::<u32>(4));
    let (a, b, c) = (a.unwrap(), b.unwrap(), c.unwrap());
    for buffer in [&a, &b, &c] {
        buffer.fill(1).unwrap();
    }
    a.copy_to(&b).unwrap();
    let _ = log.take();
    c.copy_to(&a).unwrap();
    assert_eq!(log.take(), Counts { copies: 1, barriers: 1, ..Default::default() });
}

#[test]
fn replays_wait_for_earlier_work() {
    let (gpu, log) = observed();
    let kernel = gpu.compile(STEP).unwrap();
    let (a, b) = (gpu.upload(&[0u32; 64]).unwrap(), gpu.alloc::<u32>(64).unwrap());
    let mut batch = gpu.batch();
    batch.run(&kernel, &[&a, &b], 64).unwrap().run(&kernel, &[&b, &a], 64).unwrap();
    let recording = batch.record().unwrap();
    let _ = log.take();
    for _ in 0..3 {
        recording.replay().unwrap().wait().unwrap();
    }
    let replays = Counts { dispatches: 6, barriers: 6, ..Default::default() };
    // `b` was never written before the first replay, and is zeroed for it.
    assert_eq!(log.take(), Counts { fills: 1, ..replays });
    // Later work waits for the replay.
    gpu.run(&kernel, &[&a, &b], 64).unwrap();
    assert_eq!(log.take(), Counts { dispatches: 1, barriers: 1, ..Default::default() });
}
