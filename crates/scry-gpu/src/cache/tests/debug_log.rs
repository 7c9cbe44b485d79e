//! Tests of the debug lines of the disk cache: misses, stores, hits and evictions.

use super::*;

/// Prints each log record of the cache's target.
struct Printer;

impl log::Log for Printer {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        if record.target() == "scry::cache" {
            println!("\n{} {}", record.level(), record.args());
        }
    }
    fn flush(&self) {}
}

/// Loads and stores in a cache that holds three entries.
pub(super) fn load_and_store(base: &Path) {
    log::set_logger(&Printer).unwrap();
    log::set_max_level(log::LevelFilter::Debug);
    let cache = DiskCache::open_in(base, &device_identity(), 60 << 10).unwrap();
    assert!(cache.load(&key("0"), PLAIN).is_none());
    for source in ["0", "1", "2", "3"] {
        cache.store(&key(source), PLAIN, &[7; 16 << 10]);
        assert!(cache.load(&key(source), PLAIN).is_some());
    }
}

#[test]
fn loads_stores_and_evictions_are_logged() {
    let folder = temporary_folder();
    let text = run_child(&mut child("debug log", folder.path(), ""));
    let name = device_identity().folder_name();
    let stored = format!("DEBUG disk cache: stored a kernel of 16384 bytes in {name}");
    let hit = format!("DEBUG disk cache hit: a kernel of 16384 bytes in {name}");
    let mut wanted = vec![format!("DEBUG disk cache miss: no kernel in {name}")];
    for _ in 0..3 {
        wanted.extend([stored.clone(), hit.clone()]);
    }
    // The fourth exceeds the limit, and the oldest two are evicted.
    wanted.extend([stored, "DEBUG disk cache: evicted".to_owned(), hit]);
    let logged: Vec<&str> = text.lines().filter(|line| line.starts_with("DEBUG")).collect();
    let shown: Vec<&str> = logged.iter().map(|line| line.split(" least").next().unwrap()).collect();
    assert_eq!(shown, wanted, "{text}");
    let evicted = logged.iter().find(|line| line.contains("evicted")).unwrap();
    assert!(evicted.contains("least recently used entries: 2, 3"), "{evicted}");
    assert_eq!(names(&folder.path().join("scry-gpu").join(name)).len(), 2);
}
