//! Tests of grids: rejected sizes, native grids, and linearised grids, which run each workgroup
//! once.

use proptest::prelude::*;

use super::*;
use crate::core::check::tests::{device, kernel};

fn size(workgroup: [u32; 3], count: impl Into<Invocations>) -> Result<Grid> {
    let interface = Interface { workgroup_size: workgroup, ..kernel(Vec::new()) };
    grid((&interface).into(), &device(), GridSize::Invocations(count.into()))
}

fn workgroups(workgroup: [u32; 3], groups: [u32; 3]) -> Result<Grid> {
    let interface = Interface { workgroup_size: workgroup, ..kernel(Vec::new()) };
    grid((&interface).into(), &device(), GridSize::Workgroups(groups))
}

/// Returns the workgroup that a physical workgroup runs, as a kernel on a linearised grid computes
/// it.
fn workgroup_id(grid: &LinearisedGrid, [x, y, z]: [u32; 3]) -> Option<[u32; 3]> {
    let row = y.checked_add(z.checked_mul(grid.height)?).expect("rows are numbered in 32 bits");
    if row >= grid.rows || (row == grid.rows - 1 && x >= grid.last_row) {
        return None;
    }
    let flat = row.checked_mul(grid.width).and_then(|it| it.checked_add(x));
    let flat = flat.expect("workgroups are numbered in 32 bits");
    let [width, height, _] = grid.groups;
    Some([flat % width, flat / width % height, flat / width / height])
}

#[test]
fn all_count_types_convert() {
    for count in [
        Invocations::from(7),
        7u32.into(),
        7i64.into(),
        7u64.into(),
        7usize.into(),
        [7].into(),
        [7, 1].into(),
        [7usize, 1, 1].into(),
        (7, 1).into(),
        (7u32, 1u64).into(),
        (7usize, 1, 1).into(),
    ] {
        assert_eq!(count, Invocations([7, 1, 1]));
    }
    assert_eq!(Invocations::from((1, 2, 3)), [1u32, 2, 3].into());
}

#[test]
fn invocations_are_rounded_up_to_workgroups() {
    let grid = size([64, 1, 1], 65).unwrap();
    assert_eq!(grid, Grid { groups: [2, 1, 1], native: [2, 1, 1], linearised: None, empty: false });
    assert_eq!(size([8, 8, 1], (17, 8)).unwrap().native, [3, 1, 1]);
    assert_eq!(size([64, 1, 1], (10, 20, 30)).unwrap().native, [1, 20, 30]);
    assert_eq!(size([4, 4, 4], 1).unwrap().native, [1, 1, 1]);
}

#[test]
fn zero_on_any_axis_is_empty() {
    for count in [Invocations::from(0), (0, 5, 5).into(), (5, 0).into(), (1u64 << 40, 0).into()] {
        assert!(size([64, 1, 1], count).unwrap().empty);
    }
    assert!(workgroups([1, 1, 1], [0, 5, 5]).unwrap().empty);
}

#[test]
fn negative_counts_are_rejected() {
    let error = size([64, 1, 1], (0, -4)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `main`, size of the launch: -4 invocations along y; help: give a number from 0 to \
         4294967295"
    );
}

#[test]
fn axes_are_limited_to_32_bits() {
    let max = u32::MAX;
    assert_eq!(size([1, 1, 1], max).unwrap().groups, [max, 1, 1]);
    assert_eq!(size([64, 1, 1], max - 63).unwrap().groups, [(1 << 26) - 1, 1, 1]);
    let error = size([64, 1, 1], max).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the launch of kernel `main` along x is 4294967295 invocations, 4294967296 in whole \
         workgroups of 64, but Test GPU is limited to 4294967295 (invocations on an axis); help: \
         launch at most 67108863 workgroups along x and let each invocation do several elements, \
         or use another axis"
    );
    let error = workgroups([256, 2, 1], [1, u32::MAX, 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the launch of kernel `main` along y is 8589934590 invocations, 4294967295 workgroups of \
         2, but Test GPU is limited to 4294967295 (invocations on an axis); help: launch at most \
         2147483647 workgroups along y and let each invocation do several elements, or use \
         another axis"
    );
    assert!(size([64, 1, 1], u64::MAX).is_err());
    assert!(size([64, 1, 1], usize::MAX).is_err());
}

#[test]
fn largest_native_grid_stays_native() {
    let grid = workgroups([1, 1, 1], [65535, 65535, 65535]).unwrap();
    assert_eq!((grid.native, grid.linearised), ([65535; 3], None));
}

#[test]
fn one_workgroup_more_is_linearised() {
    let grid = size([1, 1, 1], 65536).unwrap();
    assert_eq!((grid.groups, grid.native), ([65536, 1, 1], [32768, 2, 1]));
    let params = grid.linearised.unwrap();
    assert_eq!((params.groups, params.width, params.rows), ([65536, 1, 1], 32768, 2));
    assert_eq!((params.height, params.last_row), (2, 32768));
}

#[test]
fn workgroups_beyond_32_bits_are_rejected() {
    let error = workgroups([1, 1, 1], [65536, 65536, 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the launch of kernel `main` is 65536 × 65536 × 1 = 4294967296 workgroups, but Test GPU \
         is limited to 4294967295 workgroups in all, once an axis has more than the device's \
         65535 × 65535 × 65535 (max_native_workgroups); help: use larger workgroups, let each \
         invocation do several elements, or launch parts of the data one after the other"
    );
}

#[test]
fn grids_beyond_the_device_are_rejected() {
    assert_eq!(linearise([9, 1, 1], [2, 2, 2]), None);
    assert!(linearise([8, 1, 1], [2, 2, 2]).is_some());
    assert_eq!(linearise([u32::MAX, 1, 1], [1, u32::MAX, 1]).unwrap().0, [1, u32::MAX, 1]);
}

#[test]
fn native_grids_may_exceed_32_bit_indices() {
    let interface = Interface { workgroup_size: [64, 1, 1], ..kernel(Vec::new()) };
    let mut info = device();
    info.limits.max_native_workgroups[0] = i32::MAX as u32;
    let native = |count| {
        let size = GridSize::Invocations(Invocations::from(count));
        grid(KernelInterface::new(&interface, true), &info, size)
    };
    assert_eq!(native(1u64 << 36).unwrap().native, [1 << 30, 1, 1]);
    assert!(native(1u64 << 37).unwrap_err().to_string().contains("2147483648 × 1 × 1 workgroups"));
    assert!(native(0).unwrap().empty);
}

#[test]
fn immediates_keep_their_bytes_and_type() {
    let launch = Launch::workgroups([1, 2, 3]).immediates(&[1u32, 2]);
    let given = launch.immediates.unwrap();
    assert_eq!(given.bytes, [1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(given.layout, <[u32; 2] as Element>::LAYOUT);
    let raw = Launch::invocations(1).immediate_bytes([1u8, 2]).immediates.unwrap();
    assert_eq!((raw.bytes, raw.layout), (vec![1, 2], ElementLayout::Opaque));
}

proptest! {
    /// Exactly one physical workgroup runs each workgroup, and few are excess.
    #[test]
    fn linearised_grids_cover_workgroups_once(
        groups in prop::array::uniform3(1u32..40),
        max_native in prop::array::uniform3(1u32..24),
    ) {
        let total = groups.iter().product::<u32>() as usize;
        let capacity = max_native.iter().product::<u32>() as usize;
        let Some((native, params)) = linearise(groups, max_native) else {
            // No capacity is lost: only grids above it are rejected.
            prop_assert!(total > capacity);
            return Ok(());
        };
        prop_assert!(total <= capacity);
        prop_assert!(native.iter().zip(max_native).all(|(n, max)| *n >= 1 && *n <= max));
        let mut hits = vec![0u32; total];
        for z in 0..native[2] {
            for y in 0..native[1] {
                for x in 0..native[0] {
                    if let Some([gx, gy, gz]) = workgroup_id(&params, [x, y, z]) {
                        hits[((gz * groups[1] + gy) * groups[0] + gx) as usize] += 1;
                    }
                }
            }
        }
        prop_assert!(hits.iter().all(|n| *n == 1));
        let physical = native.iter().product::<u32>() as usize;
        prop_assert!(physical - total < (native[1] * native[2]) as usize);
    }

    /// Checks large grids without enumeration: the first and last workgroups have the expected
    /// indices, and no number overflows.
    #[test]
    fn large_grids_end_at_last_workgroup(
        total in prop_oneof![65536u32..=u32::MAX, u32::MAX - 70000..=u32::MAX, Just(u32::MAX)],
        axis in 0usize..3,
        max_native in prop_oneof![
            Just([65535; 3]), Just([i32::MAX as u32, 65535, 65535]), Just([u32::MAX; 3]),
            prop::array::uniform3(2000u32..100_000),
        ],
    ) {
        let mut groups = [1; 3];
        groups[axis] = total;
        let (native, params) =
            linearise(groups, max_native).expect("the capacity is at least 8·10⁹");
        prop_assert!(native.iter().zip(max_native).all(|(n, max)| *n >= 1 && *n <= max));
        prop_assert_eq!([params.width, params.height], [native[0], native[1]]);
        let native_id = |flat: u32| {
            let row = flat / params.width;
            [flat % params.width, row % params.height, row / params.height]
        };
        for flat in [0, params.width - 1, total / 2, total - 1] {
            prop_assert!(native_id(flat)[2] < native[2]);
            prop_assert_eq!(workgroup_id(&params, native_id(flat)).map(|it| it[axis]), Some(flat));
        }
        // No workgroup runs twice: all rows except the last are full, and the last one ends with
        // the last workgroup.
        let full = u64::from(params.rows - 1) * u64::from(params.width);
        prop_assert_eq!(full + u64::from(params.last_row), u64::from(total));
        prop_assert!(params.last_row >= 1 && params.last_row <= params.width);
        let rows = u64::from(native[1]) * u64::from(native[2]);
        prop_assert!(u64::from(params.rows) <= rows && rows <= u64::from(u32::MAX));
        let last = native.map(|n| n - 1);
        prop_assert_eq!(workgroup_id(&params, last).is_some(),
            rows == u64::from(params.rows) && params.last_row == params.width);
    }
}
