//! Buffers with canary words around the bound range.

use scry_gpu::{Binding, Device, Launch, UntypedBuffer};

use crate::harness::{download_words, succeed, upload_words};

/// The word around the bound range, which must stay unchanged.
const CANARY: u32 = 0xcafe_f00d;

/// Words of a buffer, bound as a slice with canaries on both sides.
pub struct Guarded {
    buffer: UntypedBuffer,
    start: usize,
    len: usize,
}

impl Guarded {
    pub fn new(gpu: &Device, words: &[u32]) -> Self {
        let step = (gpu.info().binding_alignment as usize / 4).max(1);
        let start = 64usize.next_multiple_of(step);
        let mut all = vec![CANARY; start];
        all.extend(words);
        all.extend([CANARY; 67]);
        Self { buffer: upload_words(gpu, &all), start, len: words.len() }
    }

    pub fn slice(&self) -> UntypedBuffer {
        succeed(self.buffer.slice(4 * self.start..4 * (self.start + self.len)))
    }

    /// Returns the bound words after checking the canaries.
    #[track_caller]
    pub fn words(&self) -> Vec<u32> {
        let all = download_words(&self.buffer);
        let (before, rest) = all.split_at(self.start);
        let (inside, after) = rest.split_at(self.len);
        for (what, canaries) in [("before", before), ("behind", after)] {
            let broken = canaries.iter().position(|word| *word != CANARY);
            assert_eq!(broken, None, "a canary {what} the bound part was overwritten");
        }
        inside.to_vec()
    }
}

/// Runs one workgroup of a kernel on guarded buffers, and returns their contents. Unbound buffers
/// between them must stay unchanged.
#[track_caller]
pub fn run_guarded(gpu: &Device, source: &str, bindings: &[&[u32]]) -> Vec<Vec<u32>> {
    launch_guarded(gpu, source, bindings, Launch::workgroups([1, 1, 1]))
}

/// As [`run_guarded`], with another launch.
#[track_caller]
pub fn launch_guarded(
    gpu: &Device,
    source: &str,
    bindings: &[&[u32]],
    launch: Launch,
) -> Vec<Vec<u32>> {
    let kernel = succeed(gpu.compile(source));
    let neighbour = || upload_words(gpu, &[CANARY; 64]);
    let mut neighbours = vec![neighbour()];
    let mut guarded = Vec::new();
    for words in bindings {
        guarded.push(Guarded::new(gpu, words));
        neighbours.push(neighbour());
    }
    let slices: Vec<UntypedBuffer> = guarded.iter().map(Guarded::slice).collect();
    let bindings: Vec<&dyn Binding> = slices.iter().map(|slice| slice as &dyn Binding).collect();
    succeed(gpu.run(&kernel, &bindings, launch));
    let after = guarded.iter().map(Guarded::words).collect();
    for neighbour in neighbours {
        assert_eq!(download_words(&neighbour), [CANARY; 64], "a neighbour was written");
    }
    after
}

/// Indices out of the bounds of `len` elements: next to them, -1, sign changes, and where an index
/// times 4, 8, 12, 16 or 32 bytes wraps around 2^32 to the first elements.
pub fn wrong_indices(len: u32) -> Vec<u32> {
    let mut indices = vec![len, len + 1, 2 * len + 3, 1000, 1 << 20, i32::MAX as u32];
    indices.extend([1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX]);
    for stride in [4u64, 8, 12, 16, 24, 32, 64] {
        let wraps = (1u64 << 32).div_ceil(stride);
        indices.extend([wraps as u32, wraps as u32 + 1, (2 * wraps + 1) as u32]);
    }
    indices.retain(|index| *index >= len);
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// The indices of `len` elements, and [`wrong_indices`].
pub fn all_indices(len: u32) -> Vec<u32> {
    (0..len).chain(wrong_indices(len)).collect()
}
