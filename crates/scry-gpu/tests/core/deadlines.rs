//! Tests of work that does not terminate, on a device that supports cancellation.

use std::sync::Arc;
use std::time::Duration;

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{Buffer, Device, GpuError, Ticket};

const LIMIT: Duration = Duration::from_millis(50);

/// The number of driver calls before a fault that is not to occur: more than any test makes.
const NEVER: u64 = 1 << 40;

/// Opens a device with the time limit `LIMIT` whose work does not terminate until the plan is
/// changed, and allocates a buffer on it.
fn open_hanging() -> (Device, Arc<FaultPlan>, Buffer<u32>) {
    let plan = FaultPlan::new(Fault::HangUntilCancelled, NEVER);
    let gpu = open_with_faults("null", &plan).unwrap();
    let buffer = gpu.upload(&[1u32; 4]).unwrap();
    gpu.wait().unwrap();
    gpu.set_time_limit(Some(LIMIT));
    plan.fail_after(0);
    (gpu, plan, buffer)
}

fn fill(gpu: &Device, buffer: &Buffer<u32>, value: u32) -> Ticket {
    let mut batch = gpu.batch();
    batch.fill(buffer, value).unwrap();
    batch.submit_async().unwrap()
}

fn is_timeout<T>(result: &Result<T, GpuError>) -> bool {
    matches!(result, Err(GpuError::Timeout(_)))
}

#[test]
fn time_limit_keeps_device_usable() {
    let (gpu, plan, buffer) = open_hanging();
    let before = fill(&gpu, &buffer, 2);
    let waited_for = fill(&gpu, &buffer, 3);
    let error = waited_for.wait().unwrap_err();
    assert!(is_timeout::<()>(&Err(error.clone())), "{error}");
    assert!(error.to_string().contains("the device remains usable"), "{error}");
    // Every waiter for cancelled work gets an error, however late; other work is not affected.
    assert!(is_timeout(&before.wait()) && is_timeout(&waited_for.wait()));
    assert!(is_timeout(&before.is_ready()));
    gpu.wait().unwrap();
    // The next fill does not terminate either.
    buffer.fill(4).unwrap();
    assert!(is_timeout(&gpu.wait()));
    plan.fail_after(NEVER);
    let after = fill(&gpu, &buffer, 5);
    after.wait().unwrap();
    assert_eq!(buffer.download().unwrap(), [5; 4]);
    assert!(is_timeout(&before.wait()));
}

#[test]
fn wait_timeout_cancels_nothing() {
    let (gpu, plan, buffer) = open_hanging();
    gpu.set_time_limit(None);
    let ticket = fill(&gpu, &buffer, 2);
    assert_eq!(ticket.wait_timeout(LIMIT), Ok(false));
    plan.fail_after(NEVER);
    ticket.wait().unwrap();
    assert_eq!(buffer.download().unwrap(), [2; 4]);
}

#[test]
fn cancellation_reaches_every_waiter() {
    let (gpu, _plan, buffer) = open_hanging();
    let tickets: Vec<_> = (0..6).map(|value| fill(&gpu, &buffer, value)).collect();
    std::thread::scope(|scope| {
        let waiting = tickets.iter().map(|ticket| scope.spawn(|| ticket.wait()));
        let waiting: Vec<_> = waiting.collect();
        for waiting in waiting {
            let result = waiting.join().unwrap();
            assert!(is_timeout(&result), "{result:?}");
        }
    });
    gpu.wait().unwrap();
}

#[test]
fn dropped_device_cancels_its_work() {
    let (gpu, plan, buffer) = open_hanging();
    let ticket = fill(&gpu, &buffer, 2);
    let start = std::time::Instant::now();
    drop((gpu, buffer, ticket));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert!(plan.has_failed());
}
