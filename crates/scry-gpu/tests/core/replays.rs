//! Tests of the inputs of replays: the submitted commands and rejected arguments.

use scry_gpu::testing::Counts;
use scry_gpu::{GpuError, Ticket};
use scry_test_support::{STEP, null};

use super::observed;

/// Returns the text of a range error.
fn access_error<T>(result: Result<T, GpuError>) -> String {
    match result {
        Err(error @ GpuError::BufferAccess(_)) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("this should have been rejected"),
    }
}

#[test]
fn inputs_precede_recorded_commands() {
    let (gpu, log) = observed();
    let (a, b) = (gpu.upload(&[0u32; 64]).unwrap(), gpu.upload(&[0u32; 64]).unwrap());
    let kernel = gpu.compile(STEP).unwrap();
    let recording = gpu.batch().run(&kernel, &[&a, &b], 64).unwrap().record().unwrap();
    let _ = log.take();
    drop(recording.replay().unwrap());
    let plain = log.take();
    assert_eq!(plain, Counts { dispatches: 1, barriers: 1, ..Counts::default() });
    for _ in 0..3 {
        let (low, high) = (a.slice(..4).unwrap(), a.slice(4..).unwrap());
        let mut inputs = recording.replay_with();
        drop(inputs.write(low, &[1; 4]).unwrap().write(high, &[2; 60]).unwrap().submit().unwrap());
        // One more barrier: the previous replay's launch reads what the inputs overwrite.
        let expected = Counts { copies: 2, barriers: plain.barriers + 1, ..plain };
        assert_eq!(log.take(), expected);
        // `inputs` is empty after `submit`: this is a replay without inputs.
        drop(inputs.submit().unwrap());
        assert_eq!(log.take(), plain);
    }
}

#[test]
fn input_memory_is_freed() {
    let gpu = null();
    let (a, b) = (gpu.upload(&[0u32; 64]).unwrap(), gpu.alloc::<u32>(64).unwrap());
    let kernel = gpu.compile(STEP).unwrap();
    let recording = gpu.batch().run(&kernel, &[&a, &b], 64).unwrap().record().unwrap();
    let write = |data| recording.replay_with().write(&a, data)?.submit()?.wait();
    write(&[1; 64]).unwrap();
    let before = gpu.memory_usage();
    for _ in 0..1000 {
        write(&[2; 64]).unwrap();
    }
    gpu.wait().unwrap();
    assert_eq!(gpu.memory_usage().allocations, before.allocations);
}

#[test]
fn replays_in_flight_are_bounded() {
    let gpu = null();
    let (a, b) = (gpu.upload(&[0u32; 64]).unwrap(), gpu.alloc::<u32>(64).unwrap());
    let recording = gpu.batch().copy(&a, &b).unwrap().record().unwrap();
    let before = gpu.memory_usage().allocations;
    // Nothing is waited for, and each replay is two submissions: the inputs and the copy.
    for _ in 0..2000 {
        drop(recording.replay_with().write(&a, &[1; 64]).unwrap().submit().unwrap());
    }
    let added = gpu.memory_usage().allocations - before;
    assert!(added <= 256 / 2, "{added} allocations of inputs are kept");
}

#[test]
fn rejects_inputs_of_another_length() {
    let (gpu, log) = observed();
    let a = gpu.upload(&[1u32, 2, 3]).unwrap().with_label("a");
    let b = gpu.alloc::<u32>(3).unwrap();
    let kernel = gpu.compile(STEP).unwrap();
    let recording = gpu.batch().run(&kernel, &[&a, &b], 3).unwrap().record().unwrap();
    let _ = log.take();
    let write = |data: &[u32]| -> Result<Ticket, GpuError> {
        recording.replay_with().write(&a, data)?.submit()
    };
    assert_eq!(
        access_error(write(&[7; 2])),
        "ReplayInputs::write: 2 elements were passed for 3 elements of buffer `a`; help: pass 3 \
         elements, or use a slice of the buffer"
    );
    access_error(write(&[7; 4]));
    access_error(write(&[]));
    assert_eq!(log.take(), Counts::default(), "nothing has run");
    assert_eq!(a.download().unwrap(), [1, 2, 3]);
    // A rejected write keeps those before it.
    let mut inputs = recording.replay_with();
    inputs.write(&a, &[4, 5, 6]).unwrap();
    access_error(inputs.write(&a, &[0; 9]));
    drop(inputs.submit().unwrap());
    assert_eq!(a.download().unwrap(), [4, 5, 6]);
}

#[test]
fn rejects_inputs_without_effect() {
    let gpu = null();
    let a = gpu.upload(&[1u32; 8]).unwrap().with_label("a");
    let (b, c) = (gpu.alloc::<u32>(8).unwrap(), gpu.alloc::<u32>(8).unwrap().with_label("c"));
    let kernel = gpu.compile(STEP).unwrap();
    let mut batch = gpu.batch();
    batch.write(a.slice(2..4).unwrap(), &[9; 2]).unwrap();
    let recording = batch.run(&kernel, &[&a, &b], 8).unwrap().record().unwrap();
    let write = |range: std::ops::Range<usize>| -> Result<Ticket, GpuError> {
        let data = vec![5; range.len()];
        recording.replay_with().write(a.slice(range)?, &data)?.submit()
    };
    assert_eq!(
        access_error(recording.replay_with().write(&c, &[5; 8])),
        "ReplayInputs::write: the recording does not use the 8 elements of buffer `c`; help: write \
         elements that it reads"
    );
    let untyped = c.untyped();
    assert!(
        access_error(recording.replay_with().write(&untyped, &[5; 32]))
            .contains("does not use the 8 elements of buffer `c`")
    );
    assert_eq!(
        access_error(write(3..8)),
        "ReplayInputs::write: the recording overwrites some of the 5 elements of buffer `a` before \
         it reads them; help: leave the write, fill or copy of these elements out of the \
         batch that is recorded, and write them for the first replay as well"
    );
    access_error(write(0..8));
    access_error(write(2..4));
    drop(write(0..2).unwrap());
    drop(write(4..8).unwrap());
    assert_eq!(a.download().unwrap(), [5, 5, 9, 9, 5, 5, 5, 5]);
    // An input that is read before it is overwritten has an effect. Empty slices are not inputs.
    let recording = gpu.batch().copy(&c, &b).unwrap().fill(&c, 0).unwrap().record().unwrap();
    drop(recording.replay_with().write(&c, &[3; 8]).unwrap().submit().unwrap());
    assert_eq!(b.download().unwrap(), [3; 8]);
    let nothing = gpu.alloc::<u8>(0).unwrap();
    recording.replay_with().write(&nothing, &[]).unwrap();
    let empty = gpu.batch().record().unwrap();
    access_error(empty.replay_with().write(&c, &[5; 8]));
    empty.replay_with().submit().unwrap().wait().unwrap();
    // An input is also rejected if only a part of it is overwritten before it is read.
    let (low, high) = (c.slice(..4).unwrap(), c.slice(4..).unwrap());
    let recording = gpu.batch().copy(low, high).unwrap().record().unwrap();
    access_error(recording.replay_with().write(&c, &[5; 8]));
    drop(recording.replay_with().write(low, &[6; 4]).unwrap().submit().unwrap());
    assert_eq!(c.download().unwrap(), [6; 8]);
}

#[test]
fn rejects_inputs_of_another_device() {
    let (gpu, other) = (null(), null());
    let (a, b) = (gpu.alloc::<u32>(4).unwrap(), gpu.alloc::<u32>(4).unwrap());
    let recording = gpu.batch().copy(&a, &b).unwrap().record().unwrap();
    let foreign = other.alloc::<u32>(4).unwrap();
    let error = recording.replay_with().write(&foreign, &[1; 4]).map(|_| ()).unwrap_err();
    assert!(matches!(error, GpuError::WrongDevice(_)), "{error}");
}
