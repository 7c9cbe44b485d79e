//! Tests of the wakers of submissions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::task::{Wake, Waker};
use std::time::Instant;

use super::*;

/// Submits a kernel that does not terminate, and a fill that has to wait for it.
fn submit_blocked(driver: &CpuDriver) -> [SubmissionIndex; 2] {
    let kernel = driver.kernel(&endless_kernel());
    let a = driver.allocate_with(&[1; 16]);
    let hung = driver.submit_once(&[dispatch(kernel, &[], [100, 1, 1])]);
    [hung, driver.submit_once(&[fill(range(a, 0, 16), 2)])]
}

/// A waker that counts its calls.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn wait_for(&self, value: usize) {
        let start = Instant::now();
        while self.get() < value {
            assert!(start.elapsed() < LONG, "woken {} times", self.get());
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

#[test]
fn each_waker_is_woken_once() {
    let driver = driver();
    let [hung, filled] = submit_blocked(&driver);
    let (first, second) = (Arc::new(Count::default()), Arc::new(Count::default()));
    for (submission, count) in [(hung, &first), (filled, &second), (filled, &second)] {
        assert_eq!(driver.notify(submission, &Waker::from(count.clone())), Ok(true));
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((first.get(), second.get()), (0, 0));
    assert_eq!(driver.cancel(hung), Ok(Some(Cancelled { first: hung, last: hung })));
    driver.wait_for(filled);
    second.wait_for(2);
    assert_eq!((first.get(), second.get()), (1, 2));
    // The thread that wakes drops a waker after it was woken.
    let start = Instant::now();
    while Arc::strong_count(&second) > 1 {
        assert!(start.elapsed() < LONG, "a waker is kept");
        std::thread::sleep(Duration::from_micros(100));
    }
    // A submission that is already done wakes immediately.
    assert_eq!(driver.notify(hung, &Waker::from(first.clone())), Ok(true));
    assert_eq!(first.get(), 2);
}

#[test]
fn lost_device_wakes_all_wakers() {
    let driver = driver();
    let [hung, filled] = submit_blocked(&driver);
    let count = Arc::new(Count::default());
    for submission in [hung, filled] {
        assert_eq!(driver.notify(submission, &Waker::from(count.clone())), Ok(true));
    }
    driver.abandon();
    assert_eq!(count.get(), 2);
    assert_eq!(driver.notify(filled, &Waker::from(count.clone())), Ok(true));
    assert_eq!(count.get(), 3);
}

/// A waker that panics.
struct Panic;

impl Wake for Panic {
    fn wake(self: Arc<Self>) {
        panic!("a waker of a test panics");
    }
}

#[test]
fn panicking_wakers_do_not_stop_the_worker() {
    let driver = driver();
    let [hung, filled] = submit_blocked(&driver);
    let count = Arc::new(Count::default());
    assert_eq!(driver.notify(hung, &Waker::from(Arc::new(Panic))), Ok(true));
    assert_eq!(driver.notify(hung, &Waker::from(count.clone())), Ok(true));
    assert_eq!(driver.cancel(hung), Ok(Some(Cancelled { first: hung, last: hung })));
    count.wait_for(1);
    driver.wait_for(filled);
    let memory = driver.allocate(MemoryKind::Device, 64 << 20, "").unwrap();
    driver.wait_for(driver.submit_once(&[fill(range(memory, 0, 64 << 20), 1)]));
}

/// A waker that drops a driver, and sends whether it had the last handle.
struct Owner(Mutex<Option<Arc<CpuDriver>>>, Sender<bool>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        let driver = self.0.lock().unwrap().take().unwrap();
        self.1.send(Arc::into_inner(driver).is_some()).unwrap();
    }
}

#[test]
fn wakers_may_drop_the_driver() {
    let driver = Arc::new(driver());
    let has_ended = driver.queue.exit_check();
    let memory = driver.allocate(MemoryKind::Device, 128 << 20, "").unwrap();
    let submission = driver.submit_once(&[fill(range(memory, 0, 128 << 20), 1)]);
    let (sender, dropped) = channel();
    let owner = Arc::new(Owner(Mutex::new(Some(driver.clone())), sender));
    assert_eq!(driver.notify(submission, &Waker::from(owner)), Ok(true));
    drop(driver);
    assert_eq!(dropped.recv_timeout(LONG), Ok(true));
    let start = Instant::now();
    while !has_ended() {
        assert!(start.elapsed() < Duration::from_secs(2), "the worker waits for itself");
        std::thread::sleep(Duration::from_micros(100));
    }
}
