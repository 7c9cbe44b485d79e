//! Kernels of this process, by full key.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use super::{KernelKey, KeyRef, ValueBits};

/// Kernels kept at once. The one that was not used for longest makes room.
const CAPACITY: usize = 512;

/// Kernels of one device by key. A hit copies nothing and takes no exclusive lock.
#[derive(Debug)]
pub(crate) struct MemoryCache<V> {
    capacity: usize,
    seed: u64,
    /// Grows with each use.
    clock: AtomicU64,
    kept: RwLock<Kept<V>>,
    /// Hashes of the keys that are being built.
    building: Mutex<Vec<u64>>,
    built: Condvar,
}

#[derive(Debug)]
struct Kept<V> {
    /// Sorted by hash. Almost always there is one entry for a hash.
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
            kept: RwLock::new(Kept { entries: Vec::new() }),
            building: Mutex::default(),
            built: Condvar::new(),
        }
    }

    /// The value under `key`, if there is one.
    #[cfg(test)]
    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<Arc<V>> {
        self.find(hash(self.seed, key), key)
    }

    /// The value under `key`; if there is none, what `build` makes, which is then kept.
    ///
    /// Threads that ask for the same key meanwhile wait for the first one and get its value. If it
    /// fails they build for themselves, all at once: nothing of a failure is kept.
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
        let _turn = self.wait_for_others(hash);
        if let Some(value) = self.find(hash, key) {
            return Ok(value);
        }
        let owned = key.to_key();
        let value = Arc::new(build(&owned)?);
        Ok(self.keep(hash, owned, value))
    }

    /// Number of kernels kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).entries.len()
    }

    fn find(&self, hash: u64, key: KeyRef<'_>) -> Option<Arc<V>> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let entry = kept.find(hash, key)?;
        entry.used.store(self.tick(), Ordering::Relaxed);
        Some(Arc::clone(&entry.value))
    }

    /// Registers as builder if nobody builds for this hash, else waits until that ends. A thread
    /// waits once at most: after a failure many may build, none has to queue.
    fn wait_for_others(&self, hash: u64) -> Option<Turn<'_, V>> {
        let mut building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        if !building.contains(&hash) {
            building.push(hash);
            return Some(Turn { cache: self, hash });
        }
        while building.contains(&hash) {
            building = self.built.wait(building).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Keeps a value, unless another thread kept one first: then that one is given.
    fn keep(&self, hash: u64, key: KernelKey, value: Arc<V>) -> Arc<V> {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let bucket = kept.bucket(hash);
        if let Some(entry) = kept.entries[bucket.clone()].iter().find(|entry| entry.key == key) {
            return Arc::clone(&entry.value);
        }
        let used = AtomicU64::new(self.tick());
        kept.entries.insert(bucket.end, Entry { hash, key, value: Arc::clone(&value), used });
        let evicted = if kept.entries.len() > self.capacity { kept.remove_oldest() } else { None };
        // The value goes after the lock: letting go of a kernel may take a while.
        drop(kept);
        drop(evicted);
        value
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

impl<V> Kept<V> {
    fn find(&self, hash: u64, key: KeyRef<'_>) -> Option<&Entry<V>> {
        self.entries[self.bucket(hash)].iter().find(|entry| key.matches(&entry.key))
    }

    /// Where the entries of a hash are, or would be.
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

/// The right to build for a hash, given up when dropped, also by a panic.
struct Turn<'a, V> {
    cache: &'a MemoryCache<V>,
    hash: u64,
}

impl<V> Drop for Turn<'_, V> {
    fn drop(&mut self) {
        let building = self.cache.building.lock();
        let mut building = building.unwrap_or_else(PoisonError::into_inner);
        building.retain(|hash| *hash != self.hash);
        drop(building);
        self.cache.built.notify_all();
    }
}

/// Hashes the parts of a key, a dispatch's largest cost on the host when it is done bytewise. It
/// need not be strong: the seed differs from cache to cache, keys are compared whole, and there
/// are few.
fn hash(seed: u64, key: KeyRef<'_>) -> u64 {
    let mut state = [seed, !seed];
    absorb(&mut state, key.source.as_bytes());
    absorb(&mut state, key.entry.unwrap_or_default().as_bytes());
    for (name, value) in key.overrides {
        absorb(&mut state, name.as_bytes());
        let [kind, bits] = ValueBits::from(*value).numbers();
        state[0] = multiply_fold(state[0] ^ bits, MULTIPLIER ^ kind);
    }
    if let Some(native) = key.native {
        absorb(&mut state, &native.to_bytes());
    }
    state[1] ^= u64::from(key.checked) | u64::from(key.entry.is_some()) << 1;
    multiply_fold(state[0] ^ MULTIPLIER, state[1])
}

/// Odd, with ones and zeros well mixed: the golden ratio's fraction.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes in bytes and their number, in two chains of multiplications that overlap.
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

/// Both halves of a product, one upon the other.
fn multiply_fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}
