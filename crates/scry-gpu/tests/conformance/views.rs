//! Views and untyped buffers as kernel arguments: checked by their element type, and for overlap by
//! their bytes.

use scry_gpu::{DType, Device};

use crate::harness::{assert_says, on_each_device, refused, succeed};

const SCALE: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64)
    fn scale(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { y[id.x] = 3.0 * x[id.x]; }
    }";

/// The alignment of bound slices in bytes.
fn step(gpu: &Device) -> usize {
    (gpu.info().binding_alignment as usize).max(16)
}

#[test]
fn views_bind_as_their_type() {
    on_each_device(|gpu| {
        let step = step(gpu);
        let mut file = vec![7u8; step];
        file.extend([1.0f32, -2.0, 0.5].map(f32::to_le_bytes).concat());
        let file = succeed(gpu.upload(&file));
        let x = succeed(succeed(file.slice(step..)).view_as::<f32>());
        let y = succeed(gpu.alloc::<f32>(3));
        succeed(gpu.dispatch(SCALE, &[&x, &y], 3));
        assert_eq!(succeed(y.download()), [3.0, -6.0, 1.5]);
        let words = succeed(x.view_as::<u32>());
        assert_says(&refused(gpu.dispatch(SCALE, &[&words, &y], 3)), &["`x`", "u32", "f32"]);
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
        let untyped = refused(gpu.dispatch(SCALE, &[&x, &words], 2));
        let typed = succeed(words.typed::<i32>());
        assert_eq!(untyped, refused(gpu.dispatch(SCALE, &[&x, &typed], 2)));
        assert_says(&untyped, &["`y`", "the data is i32, but array<f32> is made of f32"]);
        let short = succeed(gpu.alloc_untyped(DType::F32, 0));
        assert_says(&refused(gpu.dispatch(SCALE, &[&short, &y], 2)), &["`x`", "empty"]);
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
fn overlaps_are_seen_through_views() {
    let packed = "
        @group(0) @binding(0) var<storage, read> bytes: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn first() { y[0] = f32(bytes[0] & 0xffu); }";
    on_each_device(|gpu| {
        let step = step(gpu);
        let all = succeed(gpu.upload(&vec![5u8; 2 * step])).with_label("all");
        let [low, high] = [0..step, step..2 * step].map(|range| succeed(all.owned_slice(range)));
        let y = succeed(succeed(all.view_as::<f32>()).owned_slice(step / 4..));
        let text = refused(gpu.dispatch(packed, &[&high, &y], 1));
        let shared = format!("shares bytes {step} to {} of its buffer", 2 * step - 1);
        assert_says(&text, &["`y`", "(given buffer `all`)", &shared, "`bytes`"]);
        assert_says(&refused(gpu.dispatch(packed, &[&all.untyped(), &y], 1)), &[&shared]);
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
        let text = refused(gpu.dispatch(SCALE, &[&part, &y], 1));
        assert_says(&text, &["`x`", "begins at byte 4"]);
        assert_eq!(text, refused(gpu.dispatch(SCALE, &[&succeed(x.slice(1..)), &y], 1)));
    });
}
