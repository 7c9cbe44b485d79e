//! Runs tests in child processes.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Environment variable that is set in a child process: the name of the test that it runs.
const CHILD: &str = "SCRY_FAULTS_CHILD";

/// Write-locked by tests that saturate devices, read-locked by tests that measure time.
static DEVICE_LOAD: RwLock<()> = RwLock::new(());

/// Keeps other tests from saturating devices until it is dropped.
pub fn prevent_saturation() -> RwLockReadGuard<'static, ()> {
    DEVICE_LOAD.read().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a child process.
pub struct Outcome {
    /// Its exit status; `None` if it was killed at the timeout.
    pub status: Option<ExitStatus>,
    /// Its standard output, followed by its standard error.
    pub output: String,
    /// Its duration.
    pub duration: Duration,
}

/// Runs `body` in a child process with these environment variables, which is killed after
/// `timeout`. `name` is the name of the calling test: the child runs that test, whose call of this
/// function then runs `body` and exits.
pub fn in_child_with(
    name: &str,
    timeout: Duration,
    variables: &[(&str, OsString)],
    body: impl FnOnce(),
) -> Outcome {
    let _unsaturated = prevent_saturation();
    run_in_child(name, timeout, variables, body)
}

fn run_in_child(
    name: &str,
    timeout: Duration,
    variables: &[(&str, OsString)],
    body: impl FnOnce(),
) -> Outcome {
    if env::var_os(CHILD).is_some_and(|child| child == OsStr::new(name)) {
        body();
        println!("the child is done");
        // Runs the exit handlers of libraries, unlike `abort`.
        std::process::exit(0);
    }
    let this = env::current_exe().expect("the path of the test's executable");
    let mut child = Command::new(this)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test's executable can be started");
    let start = Instant::now();
    let mut streams: Vec<_> = [
        child.stdout.take().map(|it| Box::new(it) as Box<dyn std::io::Read + Send>),
        child.stderr.take().map(|it| Box::new(it) as _),
    ]
    .into_iter()
    .flatten()
    .map(|mut stream| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    })
    .collect();
    let status = wait_until(&mut child, start + timeout);
    let duration = start.elapsed();
    let output = streams.drain(..).filter_map(|stream| stream.join().ok());
    Outcome { status, output: output.collect(), duration }
}

/// Waits for the end of the child; kills it and returns `None` at the deadline.
fn wait_until(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().expect("the child belongs to this process") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("the child belongs to this process");
    let _ = child.wait();
    None
}

/// Calls [`in_child_with`] for a child that must finish its work and exit normally; returns its
/// output.
pub fn in_child(name: &str, timeout: Duration, body: impl FnOnce()) -> String {
    in_child_with(name, timeout, &[], body).assert_finished()
}

/// Like [`in_child`], for work that saturates devices: no other child runs at the same time.
pub fn in_exclusive_child(name: &str, timeout: Duration, body: impl FnOnce()) -> String {
    in_exclusive_child_with(name, timeout, &[], body)
}

/// Like [`in_exclusive_child`], with these environment variables.
pub fn in_exclusive_child_with(
    name: &str,
    timeout: Duration,
    variables: &[(&str, OsString)],
    body: impl FnOnce(),
) -> String {
    let _exclusive = DEVICE_LOAD.write().unwrap_or_else(PoisonError::into_inner);
    run_in_child(name, timeout, variables, body).assert_finished()
}

impl Outcome {
    /// Returns the child's output; panics unless it finished its work and exited normally.
    pub fn assert_finished(self) -> String {
        let Self { status, output, duration } = self;
        let succeeded = status.is_some_and(|status| status.success());
        assert!(
            succeeded && output.contains("the child is done"),
            "{status:?} after {duration:?}: {output}"
        );
        // Repeats the child's messages about what it skipped.
        for line in output.lines().filter(|line| line.starts_with("skipped")) {
            eprintln!("{line}");
        }
        output
    }
}
