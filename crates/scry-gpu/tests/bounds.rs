//! Tests of out-of-bounds accesses on each device: the results must be those in the headers of
//! `corpus/bounds/*.wgsl`, and canaries around every buffer must stay unchanged.

use std::path::Path;

use scry_gpu::{Buffer, Device, Element, Slice};
use scry_test_support::devices;

/// Indices in and out of bounds, some of which overflow a 32-bit byte offset.
const INDICES: [i32; 12] = [0, 1, 2, 3, 4, 5, 8, -1, i32::MAX, i32::MIN, 1 << 28, 1 << 30];

/// The value of the bytes around each buffer.
const CANARY: u8 = 0xa5;

/// Canary elements on each side: enough for every device's binding alignment.
const PAD: usize = 256;

/// Returns the source of a kernel of `corpus/bounds`.
fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/bounds");
    let path = path.join(name).with_extension("wgsl");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A range of a buffer with canaries on both sides.
struct Guarded<T: Element> {
    buffer: Buffer<T>,
    len: usize,
}

impl<T: Element + Canary> Guarded<T> {
    fn new(gpu: &Device, data: &[T]) -> Self {
        let mut all = vec![T::canary(); PAD];
        all.extend_from_slice(data);
        all.resize(all.len() + PAD, T::canary());
        Self { buffer: gpu.upload(&all).expect("upload"), len: data.len() }
    }

    fn slice(&self) -> Slice<'_, T> {
        self.buffer.slice(PAD..PAD + self.len).expect("in range")
    }

    /// Returns the data after checking that the canaries are unchanged.
    fn get(&self) -> Vec<T> {
        let all = self.buffer.download().expect("download");
        let (before, rest) = all.split_at(PAD);
        let (data, after) = rest.split_at(self.len);
        let is_unchanged = before.iter().chain(after).all(|word| *word == T::canary());
        assert!(is_unchanged, "a canary changed");
        data.to_vec()
    }
}

/// Element types with a value whose bytes are all [`CANARY`].
trait Canary: Copy + PartialEq {
    fn canary() -> Self;
}

impl Canary for u32 {
    fn canary() -> Self {
        Self::from_ne_bytes([CANARY; 4])
    }
}

impl Canary for f32 {
    fn canary() -> Self {
        Self::from_ne_bytes([CANARY; 4])
    }
}

/// Returns the indices at which two slices differ.
fn changes(before: &[u32], after: &[u32]) -> Vec<usize> {
    (0..before.len()).filter(|&i| before[i] != after[i]).collect()
}

#[test]
fn runtime_array_stays_in_bounds() {
    for gpu in devices() {
        for i in INDICES {
            let before: Vec<u32> = (100..108).collect();
            let data = Guarded::new(&gpu, &before);
            let out = Guarded::new(&gpu, &[0u32; 8]);
            let index = gpu.upload(&[i]).unwrap();
            let bindings: [&dyn scry_gpu::Binding; 3] = [&data.slice(), &index, &out.slice()];
            gpu.dispatch(&source("runtime_array"), &bindings, 1).unwrap();
            let (after, out) = (data.get(), out.get());
            let changed = changes(&before, &after);
            assert_eq!(changed.len(), 1, "{i}: {after:?}");
            assert_eq!(after[changed[0]], 7);
            if (0..8).contains(&i) {
                assert_eq!((changed[0], out[0], out[1]), (i as usize, 100 + i as u32, out[0]));
            }
            assert!(before.contains(&out[0]) && before.contains(&out[1]), "{i}: {out:?}");
            assert_eq!(out[2], 8);
            assert!(after.contains(&out[3]) || before.contains(&out[3]), "{i}: {out:?}");
        }
    }
}

#[test]
fn trailing_runtime_array_stays_in_bounds() {
    for gpu in devices() {
        for i in INDICES {
            let mut before = vec![0u32; 4];
            before.extend((1..5).flat_map(|tail| [tail; 4]));
            let data = Guarded::new(&gpu, &before);
            let out = Guarded::new(&gpu, &[0u32; 4]);
            let index = gpu.upload(&[i as u32]).unwrap();
            let bindings: [&dyn scry_gpu::Binding; 3] = [&data.slice(), &index, &out.slice()];
            gpu.dispatch(&source("trailing_array"), &bindings, 1).unwrap();
            let (after, out) = (data.get(), out.get());
            let changed = changes(&before, &after);
            assert_eq!(changed.len(), 1, "{i}: {after:?}");
            assert!(changed[0] >= 4 && after[changed[0]] == 50, "{i}: {after:?}");
            assert_eq!(out[1], 4);
            if (0..4).contains(&i) {
                assert_eq!((out[0], changed[0]), (i as u32 + 1, 4 * i as usize + 7));
            } else {
                assert!((1..5).contains(&out[0]), "{i}: {out:?}");
            }
        }
    }
}

/// The uniform of `dynamic_components.wgsl`.
#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Small {
    pair: [u32; 2],
    square: [[f32; 2]; 2],
}

#[test]
fn vector_and_matrix_indices_are_clamped() {
    for gpu in devices() {
        let v = Guarded::new(&gpu, &[1u32, 2, 3, 4]);
        let columns: Vec<f32> = (0..12u8).map(|i| f32::from(10 * (i / 4) + i % 4)).collect();
        let m = Guarded::new(&gpu, &columns);
        let small = Small { pair: [5, 6], square: [[1.0, 2.0], [3.0, 4.0]] };
        let small = gpu.upload(&[small]).unwrap();
        let out = Guarded::new(&gpu, &[0u32; 48]);
        let bindings: [&dyn scry_gpu::Binding; 4] = [&v.slice(), &m.slice(), &small, &out.slice()];
        gpu.dispatch(&source("dynamic_components"), &bindings, 1).unwrap();
        let out = out.get();
        for i in 0..8u32 {
            let at = |base: u32| out[(base + i) as usize];
            assert_eq!(at(0), i.min(3) + 2, "storage vector, {i}");
            assert_eq!(at(8), 5 + i.min(1), "uniform vector, {i}");
            assert_eq!(at(16), 10 * i.min(2) + i.min(3), "storage matrix, {i}");
            assert_eq!(at(24), 1 + 3 * i.min(1), "uniform matrix, {i}");
            assert_eq!(at(32), 9, "marker, {i}");
        }
        assert_eq!(v.get(), [7; 4]);
    }
}

#[test]
fn fixed_array_indices_are_clamped() {
    for gpu in devices() {
        for (x, y) in INDICES.into_iter().zip(INDICES.into_iter().rev()) {
            let before = [0u32, 1, 2, 3, 4, 5];
            let grid = Guarded::new(&gpu, &before);
            let out = Guarded::new(&gpu, &[0u32; 16]);
            let index = gpu.upload(&[x, y]).unwrap();
            let bindings: [&dyn scry_gpu::Binding; 3] = [&grid.slice(), &index, &out.slice()];
            gpu.dispatch(&source("fixed_arrays"), &bindings, 1).unwrap();
            let (a, b) = ((x as u32).min(1), (y as u32).min(2));
            let at = 3 * a + b;
            let expected = [at, at, 10 + b, 20 + b, 30 + b, 40 + b, 50 + b];
            assert_eq!(out.get()[..7], expected, "{x}, {y}");
            let mut after = before;
            after[at as usize] = 99;
            assert_eq!(grid.get(), after, "{x}, {y}");
        }
    }
}

#[test]
fn indices_into_values_are_clamped() {
    for gpu in devices() {
        for i in INDICES {
            let out = Guarded::new(&gpu, &[0u32; 8]);
            let index = gpu.upload(&[i]).unwrap();
            gpu.dispatch(&source("indexed_values"), &[&index, &out.slice()], 1).unwrap();
            let k = |last: u32| (i as u32).min(last);
            let both = 10 * k(1) + k(2);
            let expected = [1 + k(2), both, 5 + k(3), 100 + both, 1 + k(2)];
            assert_eq!(out.get()[..5], expected, "{i}");
        }
    }
}

#[test]
fn atomics_stay_in_bounds() {
    for gpu in devices() {
        for i in INDICES {
            let counts = Guarded::new(&gpu, &[0u32; 4]);
            let out = Guarded::new(&gpu, &[0u32; 2]);
            let index = gpu.upload(&[i as u32]).unwrap();
            let bindings: [&dyn scry_gpu::Binding; 3] = [&counts.slice(), &index, &out.slice()];
            gpu.dispatch(&source("atomics"), &bindings, 32).unwrap();
            let counts = counts.get();
            assert_eq!(counts.iter().sum::<u32>(), 32, "{i}");
            assert!(counts.contains(&32), "{i}: {counts:?}");
            if (0..4).contains(&i) {
                assert_eq!(counts[i as usize], 32, "{i}");
            }
            assert_eq!(out.get(), [32, 31], "{i}");
        }
    }
}

#[test]
fn pointers_to_elements_are_clamped() {
    for gpu in devices() {
        for i in INDICES {
            let out = Guarded::new(&gpu, &[0u32; 12]);
            let index = gpu.upload(&[i as u32]).unwrap();
            gpu.dispatch(&source("pointer_arguments"), &[&index, &out.slice()], 1).unwrap();
            let k = (i as u32).min(3) as usize;
            let mut expected = [1, 2, 3, 4, 17, 6, 0, 0, 0, 0, 10, 0];
            expected[k] = k as u32 + 11;
            expected[6 + k] = 10;
            assert_eq!(out.get(), expected, "{i}");
        }
    }
}

#[test]
fn undefined_hardware_arithmetic_is_defined() {
    for gpu in devices() {
        let input = gpu.upload(&[7, 0, i32::MIN, -1]).unwrap();
        let amount = gpu.upload(&[35u32]).unwrap();
        let out = gpu.alloc::<i32>(12).unwrap();
        gpu.dispatch(&source("undefined_arithmetic"), &[&input, &amount, &out], 1).unwrap();
        // The largest f32 below 2^31.
        let (min, max) = (i32::MIN, 2_147_483_520);
        let expected = [7, 0, min, 0, 56, min >> 3, 56, 0, min >> 3, -1, max, min];
        assert_eq!(out.download().unwrap(), expected);
    }
}
