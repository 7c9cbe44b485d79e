//! Tests of fault 35: system calls that signals interrupt (EINTR), and the program's handlers.
#![cfg(unix)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use scry_test_support::null;

use super::child::in_child;
use super::devices::{check_works, devices_and_null, executes_kernels};
use super::threads::{SLOW, slow_result};

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_signal(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Starts a timer that raises SIGALRM every millisecond, which interrupts system calls.
fn start_signal_timer() {
    // SAFETY: the handler only increments an atomic, which is async-signal-safe. The structures are
    // plain data, for which zeros are valid, and outlive the calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = 0;
        assert_eq!(libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()), 0);
        let interval = libc::timeval { tv_sec: 0, tv_usec: 1000 };
        let timer = libc::itimerval { it_interval: interval, it_value: interval };
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()), 0);
    }
}

#[test]
fn fault_35_interrupted_system_calls_are_retried() {
    let name = "signals::fault_35_interrupted_system_calls_are_retried";
    in_child(name, Duration::from_secs(60), || {
        start_signal_timer();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(2) {
            for gpu in devices_and_null() {
                let input = gpu.upload(&vec![7u32; 32768]).unwrap();
                let output = gpu.alloc::<u32>(32768).unwrap();
                gpu.dispatch(SLOW, &[&input, &output], 32768).unwrap();
                let expected = if executes_kernels(&gpu) { slow_result(7) } else { 0 };
                assert!(output.download().unwrap() == vec![expected; 32768], "{gpu:?}");
                check_works(&gpu);
                check_works(&null());
            }
        }
        let signals = SIGNALS.load(Ordering::Relaxed);
        assert!(signals > 200, "only {signals} signals were delivered");
    });
}

#[test]
fn fault_35_program_signal_handlers_are_kept() {
    let name = "signals::fault_35_program_signal_handlers_are_kept";
    in_child(name, Duration::from_secs(60), || {
        const WATCHED: [libc::c_int; 6] =
            [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGINT, libc::SIGPIPE];
        let handlers = || {
            WATCHED.map(|signal| {
                // SAFETY: with a null `act` the call only writes the current action to `action`,
                // which is plain data and outlives the call.
                unsafe {
                    let mut action: libc::sigaction = std::mem::zeroed();
                    assert_eq!(libc::sigaction(signal, std::ptr::null(), &mut action), 0);
                    (action.sa_sigaction, action.sa_flags)
                }
            })
        };
        let before = handlers();
        devices_and_null().iter().for_each(check_works);
        assert_eq!(handlers(), before);
    });
}
