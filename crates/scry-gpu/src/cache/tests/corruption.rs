//! Tests of corrupt files.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use std::fs::{self, File};
use std::path::PathBuf;

use super::*;

/// A cache with one entry.
struct Fixture {
    _folder: TempDir,
    cache: DiskCache,
    key: KernelKey,
    path: PathBuf,
    /// The bytes of the valid file.
    valid: Vec<u8>,
}

const PAYLOAD: &[u8] = b"code that only this driver understands";

fn fixture() -> Fixture {
    let folder = temporary_folder();
    let cache = open(folder.path());
    let key = key("@compute fn main() {}");
    cache.store(&key, PLAIN, PAYLOAD);
    let path = path_of(&cache, &key, PLAIN);
    let valid = fs::read(&path).unwrap();
    Fixture { _folder: folder, cache, key, path, valid }
}

impl Fixture {
    /// Asserts that a file with these bytes is a miss.
    #[track_caller]
    fn assert_miss(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).unwrap();
        assert_eq!(self.cache.load(&self.key, PLAIN), None);
    }

    /// Asserts that a store replaces the file.
    #[track_caller]
    fn assert_recovery(&self) {
        self.cache.store(&self.key, PLAIN, PAYLOAD);
        assert_eq!(self.cache.load(&self.key, PLAIN).as_deref(), Some(PAYLOAD));
    }
}

#[test]
fn valid_entries_are_found() {
    let fixture = fixture();
    fixture.assert_recovery();
    assert_eq!(fs::read(&fixture.path).unwrap(), fixture.valid);
}

#[test]
fn fault_37_flipped_bits_are_misses() {
    let fixture = fixture();
    for at in 0..fixture.valid.len() {
        for mask in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut bytes = fixture.valid.clone();
            bytes[at] ^= mask;
            fixture.assert_miss(&bytes);
        }
    }
    fixture.assert_recovery();
}

#[test]
fn fault_37_truncations_are_misses() {
    let fixture = fixture();
    for length in 0..fixture.valid.len() {
        fixture.assert_miss(&fixture.valid[..length]);
        fixture.assert_miss(&fixture.valid[fixture.valid.len() - length..]);
    }
    fixture.assert_recovery();
}

#[test]
fn fault_37_trailing_bytes_are_misses() {
    let fixture = fixture();
    for extra in [1, 7, 16, 4096] {
        let mut bytes = fixture.valid.clone();
        bytes.resize(bytes.len() + extra, 0);
        fixture.assert_miss(&bytes);
    }
    fixture.assert_miss(&fixture.valid.repeat(2));
    fixture.assert_recovery();
}

#[test]
fn fault_37_random_bytes_are_misses() {
    let fixture = fixture();
    let mut random = Random(37);
    for _ in 0..500 {
        let length = random.below(1000) as usize;
        let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        fixture.assert_miss(&bytes);
        // After a valid header.
        let mut bytes = fixture.valid.clone();
        bytes[24..].fill_with(|| random.next() as u8);
        fixture.assert_miss(&bytes);
    }
    fixture.assert_recovery();
}

#[test]
fn fault_37_invalid_lengths_are_misses() {
    let fixture = fixture();
    let lengths = [0, 1, 15, 16, 17, 1 << 31, (1 << 32) - 1, u64::MAX - 39, u64::MAX];
    for key_length in lengths {
        for payload_length in lengths {
            let mut bytes = fixture.valid.clone();
            bytes[12..16].copy_from_slice(&(key_length as u32).to_le_bytes());
            bytes[16..24].copy_from_slice(&payload_length.to_le_bytes());
            fixture.assert_miss(&with_checksum(bytes));
        }
    }
    fixture.assert_recovery();
}

#[test]
fn fault_37_wrong_payloads_are_misses() {
    let fixture = fixture();
    let other = key("@compute fn main() { return; }");
    fixture.cache.store(&other, PLAIN, PAYLOAD);
    let other = fs::read(path_of(&fixture.cache, &other, PLAIN)).unwrap();
    let tail = PAYLOAD.len() + 16;
    let mut bytes = fixture.valid.clone();
    let split = bytes.len() - tail;
    bytes[split..].copy_from_slice(&other[other.len() - tail..]);
    fixture.assert_miss(&bytes);
    fixture.assert_recovery();
}

#[test]
fn fault_37_empty_payloads_are_rejected() {
    let fixture = fixture();
    fixture.cache.store(&fixture.key, LINEARISED, &[]);
    assert!(!path_of(&fixture.cache, &fixture.key, LINEARISED).exists());
    let full = format::full_key(&device_identity().key_part(), &fixture.key, PLAIN);
    fixture.assert_miss(&format::encode(&full, &[]).unwrap());
}

#[test]
fn fault_37_huge_files_are_not_read() {
    let fixture = fixture();
    let file = File::options().write(true).open(&fixture.path).unwrap();
    file.set_len(4 << 30).unwrap();
    let start = std::time::Instant::now();
    assert_eq!(fixture.cache.load(&fixture.key, PLAIN), None);
    assert!(start.elapsed().as_secs() < 1);
    fixture.assert_recovery();
}

#[test]
fn fault_37_oversized_payloads_are_not_stored() {
    let fixture = fixture();
    let payload = vec![1; format::MAX_FILE as usize];
    fixture.cache.store(&fixture.key, LINEARISED, &payload);
    assert_eq!(fixture.cache.load(&fixture.key, LINEARISED), None);
    assert_eq!(names(fixture.path.parent().unwrap()).len(), 1);
}

#[test]
fn fault_37_folders_are_misses() {
    let fixture = fixture();
    fs::remove_file(&fixture.path).unwrap();
    fs::create_dir(&fixture.path).unwrap();
    assert_eq!(fixture.cache.load(&fixture.key, PLAIN), None);
    fixture.cache.store(&fixture.key, PLAIN, PAYLOAD);
    assert_eq!(fixture.cache.load(&fixture.key, PLAIN), None);
    let remaining = names(fixture.path.parent().unwrap());
    assert_eq!(remaining.len(), 1, "a temporary file was not removed: {remaining:?}");
}

#[test]
fn fault_40_hash_collisions_are_misses() {
    let fixture = fixture();
    let other = key("@compute fn main() { return; }");
    // As if both keys had the same hash.
    fs::copy(&fixture.path, path_of(&fixture.cache, &other, PLAIN)).unwrap();
    assert_eq!(fixture.cache.load(&other, PLAIN), None);
    fixture.assert_recovery();
}

/// Returns the file with a valid checksum.
fn with_checksum(mut file: Vec<u8>) -> Vec<u8> {
    let end = file.len() - 16;
    let checksum = format::hash(&file[..end]).to_le_bytes();
    file[end..].copy_from_slice(&checksum);
    file
}

#[test]
fn test_entries_match_the_cache_format() {
    let fixture = fixture();
    assert_eq!(with_checksum(fixture.valid.clone()), fixture.valid);
}
