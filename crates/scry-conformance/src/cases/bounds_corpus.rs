//! The kernels in `corpus/bounds`, against the results that the comments at their start describe.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use scry_gpu::DeviceInfo;

use crate::case::Case;
use crate::check::{ensure, ensure_eq};
use crate::guarded::{all_indices, guarded, out_of_bounds_indices};
use crate::outputs::Outputs;

/// The source of a kernel of the corpus.
macro_rules! corpus {
    ($name:literal) => {
        include_str!(concat!("../../../../corpus/bounds/", $name))
    };
}

/// Returns a case for each index. `buffers` returns the contents of the buffers, one of which has
/// the index; `property` checks the contents afterwards.
fn for_each_index(
    gpu: &DeviceInfo,
    source: &str,
    indices: Vec<u32>,
    buffers: impl Fn(u32) -> Vec<Vec<u32>>,
    property: impl Fn(u32, &Outputs) -> Result<(), String> + Copy + 'static,
) -> Vec<Case> {
    let case = |index: u32| {
        let buffers = buffers(index);
        let words: Vec<&[u32]> = buffers.iter().map(Vec::as_slice).collect();
        let case = guarded(gpu, format!("index {index:#x}"), source, &words);
        case.expect(move |out| property(index, out))
    };
    indices.into_iter().map(case).collect()
}

/// Returns the indices of the words that changed, or an error if one of them is not `new`.
fn changed_words(before: &[u32], after: &[u32], new: u32) -> Result<Vec<usize>, String> {
    let differ = |i: &usize| before[*i] != after[*i];
    let changed: Vec<usize> = (0..before.len()).filter(differ).collect();
    ensure!(changed.iter().all(|word| after[*word] == new), "{after:?}");
    Ok(changed)
}

pub(crate) fn fault_21_runtime_array(gpu: &DeviceInfo) -> Vec<Case> {
    let data = || (100..108).collect::<Vec<u32>>();
    let buffers = move |index| vec![data(), vec![index], vec![0; 8]];
    for_each_index(
        gpu,
        corpus!("runtime_array.wgsl"),
        all_indices(8),
        buffers,
        move |index, after| {
            let changed = changed_words(&data(), &after.words(0), 7)?;
            let out = after.words(2);
            ensure_eq!(changed.len(), 1);
            ensure_eq!(out[2], 8);
            ensure!((100..108).contains(&out[3]) || out[3] == 7 || out[3] == 0);
            if index < 8 {
                ensure_eq!(changed, [index as usize]);
                ensure_eq!(out[..2], [100 + index; 2]);
            } else {
                ensure!(out[..2].iter().all(|word| (100..108).contains(word)));
            }
            Ok(())
        },
    )
}

pub(crate) fn fault_21_runtime_array_in_a_structure(gpu: &DeviceInfo) -> Vec<Case> {
    let data = || {
        let mut data = vec![0; 4];
        data.extend((1..=4).flat_map(|i| [i; 4]));
        data
    };
    let buffers = move |index| vec![data(), vec![index], vec![0; 4]];
    for_each_index(
        gpu,
        corpus!("trailing_array.wgsl"),
        all_indices(4),
        buffers,
        move |index, after| {
            let changed = changed_words(&data(), &after.words(0), 50)?;
            let out = after.words(2);
            ensure_eq!(changed.len(), 1);
            ensure!(changed[0] >= 4, "the head was written");
            ensure_eq!(out[1], 4);
            ensure!((1..=5).contains(&out[0]));
            if index < 4 {
                ensure_eq!(changed, [4 + 4 * index as usize + 3]);
                ensure_eq!(out[0], index + 1);
            }
            Ok(())
        },
    )
}

pub(crate) fn fault_22_components_in_buffers(gpu: &DeviceInfo) -> Case {
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
    let buffers: [&[u32]; 4] = [&[1, 2, 3, 4], &m, &u, &[0; 48]];
    guarded(gpu, String::new(), corpus!("dynamic_components.wgsl"), &buffers)
        .expect_words(3, want)
        .expect_words(0, vec![7; 4])
}

pub(crate) fn fault_22_fixed_arrays_in_every_address_space(gpu: &DeviceInfo) -> Vec<Case> {
    let mut pairs: Vec<[u32; 2]> = (0..2).flat_map(|x| (0..3).map(move |y| [x, y])).collect();
    pairs.extend(out_of_bounds_indices(2).into_iter().map(|x| [x, 1]));
    pairs.extend(out_of_bounds_indices(3).into_iter().map(|y| [0, y]));
    pairs.extend(out_of_bounds_indices(3).into_iter().map(|both| [both, both]));
    let case = |[x, y]: [u32; 2]| {
        let grid: Vec<u32> = (0..6).collect();
        let source = corpus!("fixed_arrays.wgsl");
        let case = guarded(gpu, format!("{x}, {y}"), source, &[&grid, &[x, y], &[0; 16]]);
        case.expect(move |after| {
            let (a, b) = (x.min(1), y.min(2));
            let cell = 3 * a + b;
            let want = [cell, cell, 10 + b, 20 + b, 30 + b, 40 + b, 50 + b];
            ensure_eq!(after.words(2)[..7], want);
            ensure_eq!(changed_words(&grid, &after.words(0), 99)?, [cell as usize]);
            Ok(())
        })
    };
    pairs.into_iter().map(case).collect()
}

pub(crate) fn fault_22_values_indexed_at_run_time(gpu: &DeviceInfo) -> Vec<Case> {
    let buffers = |index| vec![vec![index], vec![0; 8]];
    for_each_index(gpu, corpus!("indexed_values.wgsl"), all_indices(2), buffers, |index, after| {
        let clamped = |last: u32| index.min(last);
        let want = [
            1 + clamped(2),
            10 * clamped(1) + clamped(2),
            5 + clamped(3),
            100 + 10 * clamped(1) + clamped(2),
            1 + clamped(2),
        ];
        ensure_eq!(after.words(1)[..5], want);
        Ok(())
    })
}

pub(crate) fn fault_22_pointers_to_parts_as_arguments(gpu: &DeviceInfo) -> Vec<Case> {
    let buffers = |index| vec![vec![index], vec![0; 12]];
    for_each_index(
        gpu,
        corpus!("pointer_arguments.wgsl"),
        all_indices(4),
        buffers,
        |index, after| {
            let k = index.min(3) as usize;
            let mut want = vec![1, 2, 3, 4, 17, 6, 0, 0, 0, 0, 10];
            want[k] = k as u32 + 11;
            want[6 + k] = 10;
            ensure_eq!(after.words(1)[..11], want);
            Ok(())
        },
    )
}

pub(crate) fn fault_22_atomics(gpu: &DeviceInfo) -> Vec<Case> {
    let buffers = |index| vec![vec![0; 4], vec![index], vec![0; 2]];
    for_each_index(gpu, corpus!("atomics.wgsl"), all_indices(4), buffers, |index, after| {
        let changed = changed_words(&[0; 4], &after.words(0), 32)?;
        ensure_eq!(changed.len(), 1);
        if index < 4 {
            ensure_eq!(changed, [index as usize]);
        }
        ensure_eq!(after.words(2), [32, 31]);
        Ok(())
    })
}

pub(crate) fn fault_13_arithmetic(gpu: &DeviceInfo) -> Case {
    let input = [7, 0, i32::MIN, -1].map(|number| number as u32);
    let left = 7 << 3;
    let right = i32::MIN >> 3;
    let want = [7, 0, i32::MIN, 0, left, right, left, 0, right, -1, 2_147_483_520, i32::MIN];
    guarded(gpu, String::new(), corpus!("undefined_arithmetic.wgsl"), &[&input, &[35], &[0; 12]])
        .expect_words(2, want.map(|number| number as u32).into())
}
