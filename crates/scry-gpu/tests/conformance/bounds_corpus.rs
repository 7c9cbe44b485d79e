//! The kernels in `corpus/bounds`, against the results in their headers.

use std::fs;

use scry_gpu::Device;

use crate::guarded::{all_indices, run_guarded, wrong_indices};
use crate::harness::on_each_device;
use crate::support::root;

fn corpus(name: &str) -> String {
    let path = root().join("corpus/bounds").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs a kernel of the corpus on every device, for each index.
fn for_each_index(name: &str, indices: Vec<u32>, test: impl Fn(&Device, &str, u32)) {
    let source = corpus(name);
    on_each_device(|gpu| {
        for index in &indices {
            test(gpu, &source, *index);
        }
    });
}

/// Returns how many words differ, and asserts that those became `new`.
fn changed(before: &[u32], after: &[u32], new: u32) -> Vec<usize> {
    let differ = |i: &usize| before[*i] != after[*i];
    let places: Vec<usize> = (0..before.len()).filter(differ).collect();
    assert!(places.iter().all(|place| after[*place] == new), "{after:?}");
    places
}

#[test]
fn fault_21_runtime_array() {
    for_each_index("runtime_array.wgsl", all_indices(8), |gpu, source, index| {
        let data: Vec<u32> = (100..108).collect();
        let after = run_guarded(gpu, source, &[&data, &[index], &[0; 8]]);
        let places = changed(&data, &after[0], 7);
        let out = &after[2];
        assert_eq!(places.len(), 1, "index {index}");
        assert_eq!(out[2], 8);
        assert!((100..108).contains(&out[3]) || out[3] == 7 || out[3] == 0);
        if index < 8 {
            assert_eq!(places, [index as usize]);
            assert_eq!(out[..2], [100 + index; 2]);
        } else {
            assert!(out[..2].iter().all(|word| (100..108).contains(word)), "index {index}");
        }
    });
}

#[test]
fn fault_21_runtime_array_in_a_structure() {
    for_each_index("tail.wgsl", all_indices(4), |gpu, source, index| {
        let mut data = vec![0; 4];
        data.extend((1..=4).flat_map(|i| [i; 4]));
        let after = run_guarded(gpu, source, &[&data, &[index], &[0; 4]]);
        let places = changed(&data, &after[0], 50);
        assert_eq!(places.len(), 1, "index {index}");
        assert!(places[0] >= 4, "the head was written for index {index}");
        assert_eq!(after[2][1], 4);
        assert!((1..=5).contains(&after[2][0]));
        if index < 4 {
            assert_eq!(places, [4 + 4 * index as usize + 3]);
            assert_eq!(after[2][0], index + 1);
        }
    });
}

#[test]
fn fault_22_components_in_buffers() {
    let source = corpus("components.wgsl");
    let m: Vec<u32> = (0..3u8)
        .flat_map(|column| (0..4u8).map(move |row| f32::from(10 * column + row).to_bits()))
        .collect();
    let mut u = vec![5, 6];
    u.extend([1.0f32, 2.0, 3.0, 4.0].map(f32::to_bits));
    let mut want = Vec::new();
    want.extend((0..8).map(|i: u32| i.min(3) + 2));
    want.extend((0..8).map(|i: u32| 5 + i.min(1)));
    want.extend((0..8).map(|i: u32| 10 * i.min(2) + i.min(3)));
    want.extend((0..8).map(|i: u32| 1 + 3 * i.min(1)));
    want.extend([9; 8]);
    want.extend([0; 8]);
    on_each_device(|gpu| {
        let after = run_guarded(gpu, &source, &[&[1, 2, 3, 4], &m, &u, &[0; 48]]);
        assert_eq!(after[3], want);
        assert_eq!(after[0], [7; 4]);
    });
}

#[test]
fn fault_22_fixed_arrays_in_every_space() {
    let source = corpus("fixed_arrays.wgsl");
    let grid: Vec<u32> = (0..6).collect();
    let mut pairs: Vec<[u32; 2]> = (0..2).flat_map(|x| (0..3).map(move |y| [x, y])).collect();
    pairs.extend(wrong_indices(2).into_iter().map(|x| [x, 1]));
    pairs.extend(wrong_indices(3).into_iter().map(|y| [0, y]));
    pairs.extend(wrong_indices(3).into_iter().map(|both| [both, both]));
    on_each_device(|gpu| {
        for [x, y] in &pairs {
            let after = run_guarded(gpu, &source, &[&grid, &[*x, *y], &[0; 16]]);
            let (a, b) = ((*x).min(1), (*y).min(2));
            let place = 3 * a + b;
            let want = [place, place, 10 + b, 20 + b, 30 + b, 40 + b, 50 + b];
            assert_eq!(after[2][..7], want, "{x}, {y}");
            assert_eq!(changed(&grid, &after[0], 99), [place as usize], "{x}, {y}");
        }
    });
}

#[test]
fn fault_22_values_indexed_at_run_time() {
    for_each_index("values.wgsl", all_indices(2), |gpu, source, index| {
        let after = run_guarded(gpu, source, &[&[index], &[0; 8]]);
        let k = |last: u32| index.min(last);
        let want = [1 + k(2), 10 * k(1) + k(2), 5 + k(3), 100 + 10 * k(1) + k(2), 1 + k(2)];
        assert_eq!(after[1][..5], want, "index {index}");
    });
}

#[test]
fn fault_22_pointers_to_parts_as_arguments() {
    for_each_index("parts.wgsl", all_indices(4), |gpu, source, index| {
        let after = run_guarded(gpu, source, &[&[index], &[0; 12]]);
        let k = index.min(3) as usize;
        let mut want = vec![1, 2, 3, 4, 17, 6, 0, 0, 0, 0, 10];
        want[k] = k as u32 + 11;
        want[6 + k] = 10;
        assert_eq!(after[1][..11], want, "index {index}");
    });
}

#[test]
fn fault_22_atomics() {
    for_each_index("atomics.wgsl", all_indices(4), |gpu, source, index| {
        let after = run_guarded(gpu, source, &[&[0; 4], &[index], &[0; 2]]);
        let places = changed(&[0; 4], &after[0], 32);
        assert_eq!(places.len(), 1, "index {index}");
        if index < 4 {
            assert_eq!(places, [index as usize]);
        }
        assert_eq!(after[2], [32, 31], "index {index}");
    });
}

#[test]
fn fault_13_arithmetic() {
    let source = corpus("arithmetic.wgsl");
    let input = [7, 0, i32::MIN, -1].map(|number| number as u32);
    let left = 7 << 3;
    let right = i32::MIN >> 3;
    let want = [7, 0, i32::MIN, 0, left, right, left, 0, right, -1, 2_147_483_520, i32::MIN];
    on_each_device(|gpu| {
        let after = run_guarded(gpu, &source, &[&input, &[35], &[0; 12]]);
        assert_eq!(after[2], want.map(|number| number as u32));
    });
}
