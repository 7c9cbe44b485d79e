//! Buffers with canary words around the bound range.

use scry_gpu::{DeviceInfo, Launch};

use crate::case::{BufferBinding, Case, Data};

/// The word around the bound range, which must stay unchanged.
const CANARY: u32 = 0xcafe_f00d;

/// Creates a case that launches one workgroup. Each binding is a slice of a buffer with canary
/// words on both sides, and unbound buffers of canaries are between them. The runner checks that
/// bytes outside of the bindings stay unchanged.
pub fn guarded(gpu: &DeviceInfo, name: String, source: &str, bindings: &[&[u32]]) -> Case {
    launch_guarded(gpu, name, source, bindings, Launch::workgroups([1, 1, 1]))
}

/// Like [`guarded`], with a given launch.
pub fn launch_guarded(
    gpu: &DeviceInfo,
    name: String,
    source: &str,
    bindings: &[&[u32]],
    launch: Launch,
) -> Case {
    let alignment = (gpu.binding_alignment as usize / 4).max(1);
    let start = 64usize.next_multiple_of(alignment);
    let neighbour = || Data::words(&[CANARY; 64]);
    let mut case = Case::new(name, source).launch(launch);
    case.buffers.push(neighbour());
    for words in bindings {
        let all = [&vec![CANARY; start][..], words, &[CANARY; 67]].concat();
        let part = 4 * start..4 * (start + words.len());
        case.bindings.push(BufferBinding::part(case.buffers.len(), part));
        case.buffers.push(Data::words(&all));
        case.buffers.push(neighbour());
    }
    case
}

/// Returns indices out of the bounds of `len` elements: just past the end, -1, near the sign bit,
/// and indices whose byte offset wraps around 2^32 to the first elements (for strides of 4 to 64
/// bytes).
pub fn out_of_bounds_indices(len: u32) -> Vec<u32> {
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

/// Returns the indices of `len` elements, and [`out_of_bounds_indices`].
pub fn all_indices(len: u32) -> Vec<u32> {
    (0..len).chain(out_of_bounds_indices(len)).collect()
}
