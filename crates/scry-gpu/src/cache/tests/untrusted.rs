//! Tests of folders and files that other users can write to, and of folders that cannot be written
//! to.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};

use super::*;
use crate::cache::location::{check_private, effective_user_id, prepare, root_in};

/// The id of a user that no test runs as.
const OTHER_USER: u32 = 54321;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn opens(base: &Path) -> bool {
    DiskCache::open_in(base, &device_identity(), 1 << 20).is_some()
}

fn problem(base: &Path) -> String {
    prepare(base, &device_identity().folder_name()).unwrap_err().to_string()
}

#[test]
fn fault_42_files_are_private_to_the_user() {
    let folder = temporary_folder();
    let base = folder.path().join("created/by/the/cache");
    let cache = open(&base);
    cache.store(&key("a"), PLAIN, b"payload");
    let path = path_of(&cache, &key("a"), PLAIN);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&root_in(&base)), 0o700);
    assert_eq!(mode(&base), 0o700);
}

#[test]
fn fault_42_writable_folders_are_not_used() {
    for bits in [0o720, 0o702, 0o777, 0o1777] {
        let folder = temporary_folder();
        let cache = open(folder.path());
        let device = path_of(&cache, &key("a"), PLAIN).parent().unwrap().to_owned();
        for part in [&root_in(folder.path()), &device] {
            set_mode(part, bits);
            assert!(!opens(folder.path()), "{bits:o} {part:?}");
            assert!(problem(folder.path()).contains("is writable by other users"));
            set_mode(part, 0o700);
            assert!(opens(folder.path()));
        }
    }
}

#[test]
fn fault_42_replaceable_folders_are_not_used() {
    let folder = temporary_folder();
    set_mode(folder.path(), 0o777);
    assert!(!opens(folder.path()));
    assert!(problem(folder.path()).contains("is writable by everyone"));
    assert!(!opens(&folder.path().join("below")));
    // As /tmp: only owners can rename.
    set_mode(folder.path(), 0o1777);
    assert!(opens(folder.path()));
}

#[test]
fn fault_42_group_writable_bases_are_not_used() {
    let folder = temporary_folder();
    set_mode(folder.path(), 0o770);
    let metadata = fs::metadata(folder.path()).unwrap();
    // The user's private group is the user.
    assert_eq!(opens(folder.path()), metadata.gid() == metadata.uid());
    if effective_user_id() != 0 {
        return;
    }
    chown(folder.path(), None, Some(OTHER_USER)).unwrap();
    assert!(!opens(folder.path()));
    assert!(problem(folder.path()).contains("is writable by group 54321 (mode 770)"));
    set_mode(folder.path(), 0o1770);
    assert!(opens(folder.path()));
}

#[test]
fn fault_42_writable_entries_are_misses() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    cache.store(&key("a"), PLAIN, b"payload");
    let path = path_of(&cache, &key("a"), PLAIN);
    for bits in [0o620, 0o602, 0o666] {
        set_mode(&path, bits);
        assert_eq!(cache.load(&key("a"), PLAIN), None, "{bits:o}");
    }
    set_mode(&path, 0o644);
    assert!(cache.load(&key("a"), PLAIN).is_some());
}

/// Only root can change a file's owner; other users test `/usr`, which belongs to root.
#[test]
fn fault_42_foreign_files_are_not_used() {
    if effective_user_id() != 0 {
        let problem = check_private(Path::new("/usr")).unwrap_err().to_string();
        assert!(problem.contains("belongs to user 0"), "{problem}");
        assert!(!opens(Path::new("/usr")));
        return;
    }
    let folder = temporary_folder();
    let cache = open(folder.path());
    cache.store(&key("a"), PLAIN, b"payload");
    let path = path_of(&cache, &key("a"), PLAIN);
    chown(&path, Some(OTHER_USER), None).unwrap();
    assert_eq!(cache.load(&key("a"), PLAIN), None);
    chown(&path, Some(0), None).unwrap();
    assert!(cache.load(&key("a"), PLAIN).is_some());
    for part in [path.parent().unwrap(), &root_in(folder.path()), folder.path()] {
        chown(part, Some(OTHER_USER), None).unwrap();
        assert!(!opens(folder.path()), "{part:?}");
        assert!(problem(folder.path()).contains("belongs to user 54321"));
        chown(part, Some(0), None).unwrap();
    }
    assert!(opens(folder.path()));
}

/// Root with another user's HOME creates no files there, which that user could not remove.
#[test]
fn fault_42_root_spares_other_home_folders() {
    if effective_user_id() != 0 {
        assert!(!opens(Path::new("/")), "only root may use root's folders");
        return;
    }
    let home = temporary_folder();
    chown(home.path(), Some(OTHER_USER), None).unwrap();
    assert!(!opens(&home.path().join(".cache")));
    assert!(names(home.path()).is_empty());
}

#[test]
fn fault_41_links_to_folders_are_rejected() {
    let target = temporary_folder();
    let folder = temporary_folder();
    let root = root_in(folder.path());
    symlink(target.path(), &root).unwrap();
    assert!(!opens(folder.path()));
    assert!(problem(folder.path()).contains("is a symbolic link"));
    assert!(crate::cache::clear(&root).is_err());
    fs::remove_file(&root).unwrap();
    fs::create_dir(&root).unwrap();
    set_mode(&root, 0o700);
    let device = root.join(device_identity().folder_name());
    symlink(target.path(), &device).unwrap();
    assert!(!opens(folder.path()));
    if effective_user_id() == 0 {
        lchown(&device, Some(OTHER_USER), None).unwrap();
        assert!(!opens(folder.path()));
    }
    assert!(names(target.path()).is_empty());
}

#[test]
fn fault_41_links_to_entries_are_replaced() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    cache.store(&key("a"), PLAIN, b"payload");
    let path = path_of(&cache, &key("a"), PLAIN);
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(cache.load(&key("a"), PLAIN), None);
    cache.store(&key("a"), PLAIN, b"newer");
    assert_eq!(cache.load(&key("a"), PLAIN).as_deref(), Some(&b"newer"[..]));
    assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    assert!(fs::read(&elsewhere).unwrap().windows(7).any(|part| part == b"payload"));
}

#[test]
fn fault_37_named_pipes_are_misses() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    let path = path_of(&cache, &key("a"), PLAIN);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert_eq!(cache.load(&key("a"), PLAIN), None);
    assert!(crate::cache::list(&root_in(folder.path())).is_empty());
}

#[test]
fn fault_41_other_file_types_are_rejected() {
    let folder = temporary_folder();
    let file = folder.path().join("file");
    File::create(&file).unwrap();
    assert!(!opens(&file));
    assert!(!opens(&file.join("below")));
    assert!(!opens(Path::new("/dev/full")));
    File::create(root_in(folder.path())).unwrap();
    assert!(!opens(folder.path()));
    assert!(problem(folder.path()).contains("is not a folder"));
}

/// Root can write to read-only folders too.
#[test]
fn fault_41_read_only_folders_are_tolerated() {
    let folder = temporary_folder();
    let cache = open(folder.path());
    let device = path_of(&cache, &key("a"), PLAIN).parent().unwrap().to_owned();
    set_mode(&device, 0o500);
    cache.store(&key("a"), PLAIN, b"payload");
    assert_eq!(cache.load(&key("a"), PLAIN).is_some(), effective_user_id() == 0);
    set_mode(&device, 0o700);
}

#[test]
fn fault_41_deleted_folders_are_recreated() {
    let folder = temporary_folder();
    let base = folder.path().join("base");
    let cache = open(&base);
    cache.store(&key("a"), PLAIN, b"payload");
    fs::remove_dir_all(&base).unwrap();
    assert_eq!(cache.load(&key("a"), PLAIN), None);
    cache.store(&key("a"), PLAIN, b"payload");
    assert!(cache.load(&key("a"), PLAIN).is_some());
    // A file instead of a folder.
    fs::remove_dir_all(&base).unwrap();
    File::create(&base).unwrap();
    cache.store(&key("a"), PLAIN, b"payload");
    assert_eq!(cache.load(&key("a"), PLAIN), None);
}

/// Prints each warning on a line that starts with WARNING.
struct Printer;

impl log::Log for Printer {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        if record.level() <= log::Level::Warn {
            println!("\nWARNING {}", record.args());
        }
    }
    fn flush(&self) {}
}

/// Opens, stores and loads repeatedly, and prints the log.
pub(super) fn use_and_log(base: &Path) {
    log::set_logger(&Printer).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    for _ in 0..3 {
        let Some(cache) = DiskCache::open_in(base, &device_identity(), 1 << 20) else {
            println!("\nno cache");
            continue;
        };
        for index in 0..5 {
            let key = key(&format!("kernel {index}"));
            cache.store(&key, PLAIN, &payload(index, 0));
            println!("\nfound {}", cache.load(&key, PLAIN).is_some());
        }
    }
}

fn warnings(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("WARNING")).collect()
}

#[test]
fn fault_41_working_caches_log_no_warning() {
    let folder = temporary_folder();
    let text = run_child(&mut child("log", folder.path(), ""));
    assert!(warnings(&text).is_empty(), "{text}");
    assert_eq!(text.matches("found true").count(), 15, "{text}");
}

#[test]
fn fault_41_unusable_folders_warn_once() {
    let folder = temporary_folder();
    let file = folder.path().join("file");
    File::create(&file).unwrap();
    let text = run_child(&mut child("log", &file, ""));
    assert_eq!(text.matches("no cache").count(), 3, "{text}");
    let [warning] = warnings(&text)[..] else {
        panic!("not one warning:\n{text}");
    };
    assert!(warning.contains("file/scry-gpu/10de-2335-"), "{warning}");
    assert!(warning.contains("set SCRY_CACHE_DIR to"), "{warning}");
}

/// No file can grow past 512 or 1024 bytes, as on a disk that fills up in the middle of a write.
#[test]
fn fault_41_full_disks_warn_once() {
    let folder = temporary_folder();
    let text = run_child(&mut child("log", folder.path(), "trap '' XFSZ; ulimit -f 1"));
    assert_eq!(warnings(&text).len(), 1, "{text}");
    assert_eq!(text.matches("found false").count(), 15, "{text}");
    let device = root_in(folder.path()).join(device_identity().folder_name());
    assert!(names(&device).is_empty());
}

/// Exhausts the file descriptors, then uses the cache, then again with descriptors.
pub(super) fn use_without_descriptors(base: &Path) {
    let cache = open(base);
    cache.store(&key("a"), PLAIN, b"payload");
    let mut open_files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        open_files.push(file);
    }
    assert!(open_files.len() < 64, "the limit was not set");
    assert_eq!(cache.load(&key("a"), PLAIN), None);
    cache.store(&key("b"), PLAIN, b"payload");
    drop(open_files);
    assert!(cache.load(&key("a"), PLAIN).is_some());
    assert_eq!(cache.load(&key("b"), PLAIN), None);
    cache.store(&key("b"), PLAIN, b"payload");
    assert!(cache.load(&key("b"), PLAIN).is_some());
}

#[test]
fn fault_36_missing_descriptors_are_misses() {
    let folder = temporary_folder();
    run_child(&mut child("no descriptors", folder.path(), "ulimit -n 48"));
}
