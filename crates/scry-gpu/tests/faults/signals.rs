//! Fault 35: signals that interrupt every system call.
#![cfg(unix)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::child::in_child;
use super::devices::{check_works, computes, devices_and_null, null};
use super::threads::{SLOW, slow_result};

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Starts a signal each millisecond, which interrupts the thread's system calls.
fn begin_signals() {
    // SAFETY: the handler only counts, which is async-signal-safe; the structures are plain data,
    // zeroed, and outlive the calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = 0;
        assert_eq!(libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()), 0);
        let each = libc::timeval { tv_sec: 0, tv_usec: 1000 };
        let timer = libc::itimerval { it_interval: each, it_value: each };
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()), 0);
    }
}

#[test]
fn fault_35_signals_interrupt_waits_and_files() {
    let name = "signals::fault_35_signals_interrupt_waits_and_files";
    in_child(name, Duration::from_secs(60), || {
        begin_signals();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(2) {
            for gpu in devices_and_null() {
                let input = gpu.upload(&vec![7u32; 32768]).unwrap();
                let output = gpu.alloc::<u32>(32768).unwrap();
                gpu.dispatch(SLOW, &[&input, &output], 32768).unwrap();
                let expected = if computes(&gpu) { slow_result(7) } else { 0 };
                assert!(output.download().unwrap() == vec![expected; 32768], "{gpu:?}");
                check_works(&gpu);
                check_works(&null());
            }
        }
        let signals = SIGNALS.load(Ordering::Relaxed);
        assert!(signals > 200, "only {signals} signals came");
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
                // SAFETY: only a query; the structure is plain data and outlives the call.
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
