//! Tests of views and untyped buffers as kernel arguments: their element types and overlaps are
//! checked.

use scry_gpu::{DType, Device};
use scry_test_support::{on_each_device, succeed};

use crate::harness::{assert_contains, expect_error};

const SCALE: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn scale(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { y[id.x] = 3.0 * x[id.x]; }
    }";

/// Returns an offset in bytes at which a slice can be bound.
fn aligned_offset(gpu: &Device) -> usize {
    (gpu.info().binding_alignment as usize).max(16)
}

#[test]
fn views_bind_as_their_type() {
    on_each_device(|gpu| {
        let offset = aligned_offset(gpu);
        let mut file = vec![7u8; offset];
        file.extend([1.0f32, -2.0, 0.5].map(f32::to_le_bytes).concat());
        let file = succeed(gpu.upload(&file));
        let x = succeed(succeed(file.slice(offset..)).view_as::<f32>());
        let y = succeed(gpu.alloc::<f32>(3));
        succeed(gpu.dispatch(SCALE, &[&x, &y], 3));
        assert_eq!(succeed(y.download()), [3.0, -6.0, 1.5]);
        let words = succeed(x.view_as::<u32>());
        assert_contains(
            &expect_error(gpu.dispatch(SCALE, &[&words, &y], 3)),
            &["`x`", "u32", "f32"],
        );
        let owned = x.to_owned_slice();
        drop(file);
        succeed(y.fill(0.0));
        succeed(gpu.dispatch(SCALE, &[&owned, &y], 3));
        assert_eq!(succeed(y.download()), [3.0, -6.0, 1.5]);
    });
}

#[test]
fn untyped_buffers_check_their_type() {
    on_each_device(|gpu| {
        let bytes = [1.0f32, 2.0].map(f32::to_le_bytes).concat();
        let x = succeed(gpu.upload_bytes(DType::F32, &bytes));
        let y = succeed(gpu.alloc_untyped(x.dtype(), x.len())).with_label("y");
        succeed(gpu.dispatch(SCALE, &[&x, &y], 2));
        assert_eq!(succeed(y.download_bytes()), [3.0f32, 6.0].map(f32::to_le_bytes).concat());
        let words = succeed(y.view_as(DType::I32));
        let untyped = expect_error(gpu.dispatch(SCALE, &[&x, &words], 2));
        let typed = succeed(words.typed::<i32>());
        assert_eq!(untyped, expect_error(gpu.dispatch(SCALE, &[&x, &typed], 2)));
        assert_contains(&untyped, &["`y`", "the data is i32, but array<f32> is made of f32"]);
        let short = succeed(gpu.alloc_untyped(DType::F32, 0));
        assert_contains(&expect_error(gpu.dispatch(SCALE, &[&short, &y], 2)), &["`x`", "empty"]);
    });
}

#[test]
fn untyped_bytes_fit_structures() {
    let source = "
        struct Particle { position: vec3<f32>, id: u32 }
        @group(0) @binding(0) var<storage, read_write> particles: array<Particle>;
        @compute @workgroup_size(1)
        fn number() {
            for (var i = 0u; i < arrayLength(&particles); i++) { particles[i].id = i + 1u; }
        }";
    on_each_device(|gpu| {
        let particles = succeed(gpu.alloc_untyped(None, 40));
        succeed(gpu.dispatch(source, &[&particles], 1));
        let words = succeed(succeed(particles.typed::<u32>()).download());
        assert_eq!(words, [0, 0, 0, 1, 0, 0, 0, 2, 0, 0]);
    });
}

#[test]
fn overlapping_views_are_rejected() {
    let packed = "
        @group(0) @binding(0) var<storage, read> bytes: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn first() { y[0] = f32(bytes[0] & 0xffu); }";
    on_each_device(|gpu| {
        let offset = aligned_offset(gpu);
        let all = succeed(gpu.upload(&vec![5u8; 2 * offset])).with_label("all");
        let [low, high] =
            [0..offset, offset..2 * offset].map(|range| succeed(all.owned_slice(range)));
        let y = succeed(succeed(all.view_as::<f32>()).owned_slice(offset / 4..));
        let text = expect_error(gpu.dispatch(packed, &[&high, &y], 1));
        let shared = format!("shares bytes {offset} to {} of its memory", 2 * offset - 1);
        assert_contains(&text, &["`y`", "(given buffer `all`)", &shared, "`bytes`"]);
        assert_contains(&expect_error(gpu.dispatch(packed, &[&all.untyped(), &y], 1)), &[&shared]);
        succeed(gpu.dispatch(packed, &[&low.untyped(), &y.untyped()], 1));
        assert_eq!(succeed(y.get(0)), 5.0);
    });
}

#[test]
fn rejects_unaligned_owned_slices() {
    on_each_device(|gpu| {
        if gpu.info().binding_alignment <= 4 {
            return;
        }
        let x = succeed(gpu.upload(&[1.0f32; 64]));
        let y = succeed(gpu.alloc::<f32>(64));
        let part = succeed(x.owned_slice(1..));
        let text = expect_error(gpu.dispatch(SCALE, &[&part, &y], 1));
        assert_contains(&text, &["`x`", "begins at byte 4"]);
        assert_eq!(text, expect_error(gpu.dispatch(SCALE, &[&succeed(x.slice(1..)), &y], 1)));
    });
}
