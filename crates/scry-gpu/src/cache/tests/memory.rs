//! Tests of the memory cache.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use super::Random;
use crate::api::native::Language;
use crate::cache::{KeyRef, MemoryCache};

fn key(source: &str) -> KeyRef<'_> {
    KeyRef { source, entry: None, overrides: &[], checked: true, native: None }
}

fn build(cache: &MemoryCache<String>, key: KeyRef<'_>, value: &str) -> Arc<String> {
    let built = cache.get_or_build(key, |_| Ok::<_, ()>(value.to_owned()));
    built.expect("the builder does not fail")
}

#[test]
fn each_key_field_is_compared() {
    let cache = MemoryCache::default();
    let names = [("A".to_owned(), 1.0.into()), ("B".to_owned(), 2.0.into())];
    let negative_zero = [("A".to_owned(), (-0.0).into())];
    let zero = [("A".to_owned(), 0.0.into())];
    let no = [("A".to_owned(), false.into())];
    let natives = [Language::Ptx, Language::CudaC].map(super::native);
    let mut keys = Vec::new();
    for source in ["", "a", "b", "a\0"] {
        for entry in [None, Some(""), Some("a"), Some("main")] {
            for overrides in [&[][..], &names[..1], &names, &negative_zero, &zero, &no] {
                for checked in [false, true] {
                    keys.push(KeyRef { source, entry, overrides, checked, native: None });
                }
                for native in &natives {
                    let native = Some(native);
                    keys.push(KeyRef { source, entry, overrides, checked: false, native });
                }
            }
        }
    }
    for (index, key) in keys.iter().enumerate() {
        assert!(cache.get(*key).is_none());
        build(&cache, *key, &index.to_string());
    }
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(*cache.get(*key).unwrap(), index.to_string());
        let owned = key.to_key();
        assert!(key.matches(&owned));
        assert_eq!(keys.iter().filter(|other| other.matches(&owned)).count(), 1);
    }
    assert_eq!(cache.len(), keys.len());
}

#[test]
fn nan_overrides_equal_themselves() {
    let cache = MemoryCache::default();
    let overrides = [("A".to_owned(), f64::NAN.into())];
    let key = KeyRef { overrides: &overrides, ..key("a") };
    let value = build(&cache, key, "x");
    assert!(Arc::ptr_eq(&value, &cache.get(key).unwrap()));
}

#[test]
fn keys_compare_content_not_addresses() {
    let cache = MemoryCache::default();
    let mut source = "aaaa".to_owned();
    build(&cache, key(&source), "a");
    source.replace_range(.., "bbbb");
    assert!(cache.get(key(&source)).is_none());
}

#[test]
fn least_recently_used_kernel_is_evicted() {
    let cache = MemoryCache::with_capacity(3);
    for source in ["a", "b", "c"] {
        build(&cache, key(source), source);
    }
    cache.get(key("a")).unwrap();
    build(&cache, key("d"), "d");
    assert_eq!(cache.len(), 3);
    assert!(cache.get(key("b")).is_none());
    for source in ["a", "c", "d"] {
        assert_eq!(*cache.get(key(source)).unwrap(), source);
    }
}

#[test]
fn capacity_is_512_kernels() {
    let cache = MemoryCache::default();
    for index in 0..2000 {
        build(&cache, key(&index.to_string()), "x");
        assert!(cache.len() <= 512);
    }
    assert!(cache.get(key("1999")).is_some());
    assert!(cache.get(key("1487")).is_none());
}

#[test]
fn failures_are_not_cached() {
    let cache = MemoryCache::<String>::default();
    let failed = cache.get_or_build(key("a"), |_| Err("first"));
    assert_eq!(failed, Err("first"));
    let failed = cache.get_or_build(key("a"), |_| Err("second"));
    assert_eq!(failed, Err("second"));
    assert_eq!(*build(&cache, key("a"), "value"), "value");
}

#[test]
fn fault_33_panicking_builds_release_waiters() {
    let cache = MemoryCache::<String>::default();
    let panicked = thread::scope(|scope| {
        let build = || cache.get_or_build(key("a"), |_| -> Result<_, ()> { panic!("as planned") });
        scope.spawn(build).join().is_err()
    });
    assert!(panicked);
    assert_eq!(*build(&cache, key("a"), "value"), "value");
}

#[test]
fn concurrent_builds_run_once() {
    for _ in 0..20 {
        let cache = MemoryCache::default();
        let builds = AtomicUsize::new(0);
        let barrier = Barrier::new(16);
        let values: Vec<Arc<usize>> = thread::scope(|scope| {
            let lookup = || {
                barrier.wait();
                cache.get_or_build(key("a"), |key| {
                    assert_eq!(key.source, "a");
                    thread::sleep(Duration::from_millis(1));
                    Ok::<_, ()>(builds.fetch_add(1, Ordering::Relaxed))
                })
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(lookup)).collect();
            let values = threads.into_iter().map(|thread| thread.join().unwrap());
            values.map(|value| value.unwrap()).collect()
        });
        assert_eq!(builds.load(Ordering::Relaxed), 1);
        assert!(values.iter().all(|value| Arc::ptr_eq(value, &values[0])));
        assert_eq!(cache.len(), 1);
    }
}

#[test]
fn fault_15_concurrent_failures_all_report() {
    let cache = MemoryCache::<()>::default();
    let barrier = Barrier::new(16);
    thread::scope(|scope| {
        let lookup = || {
            barrier.wait();
            cache.get_or_build(key("a"), |_| Err("bad"))
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(lookup)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Err("bad"));
        }
    });
    assert_eq!(cache.len(), 0);
}

#[test]
fn concurrent_keys_are_independent() {
    let cache = MemoryCache::with_capacity(8);
    thread::scope(|scope| {
        for seed in 0..16 {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..500 {
                    let source = random.below(32).to_string();
                    assert_eq!(*build(cache, key(&source), &source), source);
                }
            });
        }
    });
    assert!(cache.len() <= 8);
}

/// Takes the minimum of many rounds, because other programs run too.
#[test]
fn hits_are_fast() {
    let cache = MemoryCache::default();
    let sources: Vec<String> =
        (0..500).map(|index| format!("{}{index:04}", "x = x + 1; // text\n".repeat(108))).collect();
    for source in &sources {
        assert!(source.len() >= 2048);
        build(&cache, key(source), "x");
    }
    let mut best = Duration::MAX;
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..50 {
            let source = std::hint::black_box(&sources[7]);
            assert!(cache.get(key(source)).is_some());
        }
        best = best.min(start.elapsed() / 50);
    }
    println!("a hit takes {best:?}");
    // Without optimisation the arithmetic is about 20 times slower.
    let limit = if cfg!(debug_assertions) { 20 } else { 1 };
    assert!(best <= Duration::from_micros(limit), "a hit takes {best:?}");
}
