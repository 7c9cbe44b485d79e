//! The memory cache of kernels, by full key.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use super::{KernelKey, KeyRef, ValueBits};

/// Maximum number of kernels. Beyond it the least recently used one is evicted.
const CAPACITY: usize = 512;

/// Kernels of one device by key. A hit copies nothing and acquires no exclusive lock.
#[derive(Debug)]
pub(crate) struct MemoryCache<V> {
    capacity: usize,
    seed: u64,
    /// Incremented by each use.
    clock: AtomicU64,
    cached: RwLock<Entries<V>>,
    /// Hashes of the keys that are being built.
    building: Mutex<Vec<u64>>,
    built: Condvar,
}

#[derive(Debug)]
struct Entries<V> {
    /// Sorted by hash; entries with equal hashes are adjacent.
    entries: Vec<Entry<V>>,
}

#[derive(Debug)]
struct Entry<V> {
    hash: u64,
    key: KernelKey,
    value: Arc<V>,
    used: AtomicU64,
}

impl<V> Default for MemoryCache<V> {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl<V> MemoryCache<V> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            capacity,
            seed: RandomState::new().hash_one(0),
            clock: AtomicU64::new(0),
            cached: RwLock::new(Entries { entries: Vec::new() }),
            building: Mutex::default(),
            built: Condvar::new(),
        }
    }

    /// Returns the value of `key`, if present.
    #[cfg(test)]
    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<Arc<V>> {
        self.find(hash(self.seed, key), key)
    }

    /// Returns the value of `key`; if absent, builds and inserts it.
    ///
    /// Concurrent threads with the same key wait for the first one and get its value. If it fails,
    /// each of them builds: failures are not cached.
    ///
    /// # Errors
    ///
    /// Those of `build`.
    pub(crate) fn get_or_build<E>(
        &self,
        key: KeyRef<'_>,
        build: impl FnOnce(&KernelKey) -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let hash = hash(self.seed, key);
        if let Some(value) = self.find(hash, key) {
            return Ok(value);
        }
        let _guard = self.wait_for_others(hash);
        if let Some(value) = self.find(hash, key) {
            return Ok(value);
        }
        let owned = key.to_key();
        let value = Arc::new(build(&owned)?);
        Ok(self.insert(hash, owned, value))
    }

    /// Returns the number of kernels.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.cached.read().unwrap_or_else(PoisonError::into_inner).entries.len()
    }

    fn find(&self, hash: u64, key: KeyRef<'_>) -> Option<Arc<V>> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let entry = cached.find(hash, key)?;
        entry.used.store(self.tick(), Ordering::Relaxed);
        Some(Arc::clone(&entry.value))
    }

    /// If no thread builds for this hash, registers as builder and returns the guard. Otherwise
    /// waits until that build ends, and returns `None`. A thread waits at most once: after a
    /// failure many may build concurrently.
    fn wait_for_others(&self, hash: u64) -> Option<BuildGuard<'_, V>> {
        let mut building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        if !building.contains(&hash) {
            building.push(hash);
            return Some(BuildGuard { cache: self, hash });
        }
        while building.contains(&hash) {
            building = self.built.wait(building).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Inserts and returns a value, or returns the one that another thread inserted first.
    fn insert(&self, hash: u64, key: KernelKey, value: Arc<V>) -> Arc<V> {
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        let bucket = cached.bucket(hash);
        if let Some(entry) = cached.entries[bucket.clone()].iter().find(|entry| entry.key == key) {
            return Arc::clone(&entry.value);
        }
        let used = AtomicU64::new(self.tick());
        cached.entries.insert(bucket.end, Entry { hash, key, value: Arc::clone(&value), used });
        let evicted =
            if cached.entries.len() > self.capacity { cached.remove_oldest() } else { None };
        // Dropped after the lock is released: freeing a kernel may be slow.
        drop(cached);
        drop(evicted);
        value
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

impl<V> Entries<V> {
    fn find(&self, hash: u64, key: KeyRef<'_>) -> Option<&Entry<V>> {
        self.entries[self.bucket(hash)].iter().find(|entry| key.matches(&entry.key))
    }

    /// Returns the range of entries with a hash, or where to insert one.
    fn bucket(&self, hash: u64) -> Range<usize> {
        let start = self.entries.partition_point(|entry| entry.hash < hash);
        let same = self.entries[start..].iter().take_while(|entry| entry.hash == hash);
        start..start + same.count()
    }

    fn remove_oldest(&mut self) -> Option<Entry<V>> {
        let mut oldest: Option<(u64, usize)> = None;
        for (index, entry) in self.entries.iter().enumerate() {
            let used = entry.used.load(Ordering::Relaxed);
            if oldest.is_none_or(|oldest| used < oldest.0) {
                oldest = Some((used, index));
            }
        }
        Some(self.entries.remove(oldest?.1))
    }
}

/// The exclusive right to build for a hash, released on drop, including a panic's unwinding.
struct BuildGuard<'a, V> {
    cache: &'a MemoryCache<V>,
    hash: u64,
}

impl<V> Drop for BuildGuard<'_, V> {
    fn drop(&mut self) {
        let building = self.cache.building.lock();
        let mut building = building.unwrap_or_else(PoisonError::into_inner);
        building.retain(|hash| *hash != self.hash);
        drop(building);
        self.cache.built.notify_all();
    }
}

/// Hashes the parts of a key. Bytewise hashing would be the largest host cost of a dispatch. A weak
/// hash suffices: caches have different seeds and few entries, and keys are compared in full.
fn hash(seed: u64, key: KeyRef<'_>) -> u64 {
    let mut state = [seed, !seed];
    absorb(&mut state, key.source.as_bytes());
    absorb(&mut state, key.entry.unwrap_or_default().as_bytes());
    for (name, value) in key.overrides {
        absorb(&mut state, name.as_bytes());
        let [kind, bits] = ValueBits::from(*value).kind_and_bits();
        state[0] = multiply_fold(state[0] ^ bits, MULTIPLIER ^ kind);
    }
    if let Some(native) = key.native {
        absorb(&mut state, &native.to_bytes());
    }
    state[1] ^= u64::from(key.checked) | u64::from(key.entry.is_some()) << 1;
    multiply_fold(state[0] ^ MULTIPLIER, state[1])
}

/// An odd constant with well-mixed bits: 2⁶⁴ divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes in bytes and their length, in two independent chains of multiplications.
fn absorb(state: &mut [u64; 2], bytes: &[u8]) {
    let mut mix = |block: &[u8; 32]| {
        let word = |at: usize| {
            let bytes = block[at..at + 8].try_into();
            u64::from_le_bytes(bytes.expect("the slice is 8 bytes long"))
        };
        state[0] = multiply_fold(state[0] ^ word(0), MULTIPLIER ^ word(8));
        state[1] = multiply_fold(state[1] ^ word(16), MULTIPLIER ^ word(24));
    };
    let mut rest = bytes;
    while let Some((block, after)) = rest.split_first_chunk::<32>() {
        mix(block);
        rest = after;
    }
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    mix(&last);
    state[0] ^= bytes.len() as u64;
}

/// Returns the exclusive or of the two halves of the 128-bit product.
fn multiply_fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}
