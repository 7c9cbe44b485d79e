//! Tests of the library's log messages at level `debug`, under the target `scry`.

use std::cell::RefCell;
use std::sync::Once;

use scry_gpu::{BackendKind, Device};
use scry_test_support::STEP;

thread_local! {
    /// The log lines of this thread; `None` while they are not captured.
    static CAPTURED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Captures the log lines that the filter `scry=debug` accepts.
struct CaptureLogger;

impl log::Log for CaptureLogger {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("scry") && metadata.level() <= log::Level::Debug
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let line = format!("{}: {}", record.target(), record.args());
            CAPTURED.with_borrow_mut(|captured| captured.as_mut().map(|lines| lines.push(line)));
        }
    }

    fn flush(&self) {}
}

/// Returns the lines logged by this thread during a call.
fn capture(call: impl FnOnce()) -> Vec<String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&CaptureLogger).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
    CAPTURED.set(Some(Vec::new()));
    call();
    CAPTURED.take().unwrap()
}

/// Removes the duration at the end of a line, such as ` in 1.25 ms`, which varies.
fn without_duration(line: &str) -> &str {
    let time = line.rsplit_once(" in ").filter(|(_, time)| time.ends_with(" ms"));
    time.map_or(line, |(text, _)| text)
}

#[test]
fn debug_log_covers_each_object() {
    let mut device = None;
    let opened = capture(|| device = Device::with_backend(BackendKind::Null).ok());
    let gpu = device.unwrap();
    let [line] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!(without_duration(line), format!("scry::device: opened {}", gpu.info()));

    let compiled = capture(|| {
        gpu.compile(STEP).unwrap();
        gpu.compile(STEP).unwrap();
    });
    let compiled: Vec<&str> = compiled.iter().map(|line| without_duration(line)).collect();
    assert_eq!(
        compiled,
        [
            "scry::kernel: null:0: compiled kernel `step`",
            "scry::kernel: null:0: found kernel `step` in the memory cache",
        ]
    );

    let (input, output) = (gpu.upload(&[1u32; 64]).unwrap(), gpu.alloc::<u32>(64).unwrap());
    gpu.wait().unwrap();
    let ran = capture(|| gpu.dispatch(STEP, &[&input, &output], 64).unwrap());
    let submission = ran.last().unwrap();
    assert!(submission.starts_with("scry::submit: null:0: submission "), "{ran:?}");
    assert!(submission.contains(", launches: 1, steps: "), "{ran:?}");

    let allocated = capture(|| drop(gpu.alloc::<u32>(64).unwrap()));
    assert_eq!(allocated, ["scry::memory: null:0: allocated 256 bytes of device memory"]);

    let mut batch = gpu.batch();
    batch.fill(&input, 3).unwrap();
    let recording = batch.record().unwrap();
    let replayed = capture(|| drop(recording.replay().unwrap()));
    let text = replayed.last().unwrap();
    assert!(text.contains(", a replay, launches: 0, steps: 1"), "{replayed:?}");
}
