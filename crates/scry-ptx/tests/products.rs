//! Tests of the PTX of matrix products: by tensor cores, or by shuffles and FMAs.

mod support;

use scry_ir::kir::{Access, AddressSpace, BinaryOp, Builder, Builtin, Kir, Place, Type, Value};
use scry_ir::{Program, kir::KirOptions};
use scry_ptx::Target;
use support::{TARGETS, text};

/// Returns a kernel with workgroups of `size` invocations and this number of products, each of
/// which adds to the previous result. Only the first nine invocations multiply if `in_branch`.
fn kernel(size: u32, in_branch: bool, operand: Type, accumulator: Type, times: usize) -> Kir {
    let mut b = Builder::new("kernel", [size, 1, 1]);
    let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let lane = b.builtin(Builtin::LocalId(0));
    let read = |b: &mut Builder, ty: Type, nth: u32| -> Value {
        b.load(ty, Place::new(AddressSpace::Binding(input), Some(lane), 64, 8 * nth), 1)[0]
    };
    let multiply = |b: &mut Builder| {
        let a = [0, 1, 2, 3].map(|nth| read(b, operand, nth));
        let right = [4, 5].map(|nth| read(b, operand, nth));
        let mut c = [0, 2, 4, 6].map(|nth| read(b, accumulator, nth));
        for _ in 0..times {
            let results = b.multiply_fragments(a, right, c);
            c = results.try_into().expect("there are four");
        }
        b.store(Place::new(AddressSpace::Binding(out), Some(lane), 32, 0), c.to_vec());
    };
    let nine = b.u32(9);
    let condition = b.binary(BinaryOp::Lt, lane, nine);
    if in_branch {
        b.if_then(condition, multiply)
    } else {
        multiply(&mut b)
    }
    b.finish()
}

const TYPES: [(Type, Type); 3] =
    [(Type::F16, Type::F16), (Type::F16, Type::F32), (Type::F32, Type::F32)];

#[test]
fn all_products_assemble() {
    for (operand, accumulator) in TYPES {
        for (size, in_branch) in [(64, false), (64, true), (20, false), (48, false)] {
            for times in 1..=3 {
                for target in TARGETS {
                    text(&kernel(size, in_branch, operand, accumulator, times), target);
                }
            }
        }
    }
}

#[track_caller]
fn assert_count(text: &str, what: &str, count: usize) {
    assert_eq!(text.matches(what).count(), count, "{what}:\n{text}");
}

#[test]
fn whole_warps_use_tensor_cores() {
    let (f16, f32) = (Type::F16, Type::F32);
    let ptx = text(&kernel(64, false, f16, f32, 1), Target::SM_75);
    assert_count(&ptx, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {", 1);
    assert_count(&ptx, "shfl", 0);
    let ptx = text(&kernel(64, false, f16, f16, 1), Target::SM_80);
    assert_count(&ptx, "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {", 1);
}

#[test]
fn chained_products_fuse_into_k16() {
    let count = |target, times, shape: &str| {
        let text = text(&kernel(64, false, Type::F16, Type::F32, times), target);
        text.matches(shape).count()
    };
    assert_eq!([count(Target::SM_75, 2, "k8.row"), count(Target::SM_75, 2, "k16")], [2, 0]);
    assert_eq!([count(Target::SM_80, 2, "k8.row"), count(Target::SM_80, 2, "k16")], [0, 1]);
    assert_eq!([count(Target::SM_90, 3, "k8.row"), count(Target::SM_90, 3, "k16")], [1, 1]);
    assert_eq!([count(Target::SM_90, 4, "k8.row"), count(Target::SM_90, 4, "k16")], [0, 2]);
}

#[test]
fn f32_products_use_fma() {
    let floats = text(&kernel(64, false, Type::F32, Type::F32, 1), Target::SM_90);
    assert_count(&floats, "mma.sync", 0);
    assert_count(&floats, "fma.rn.f32", 32);
    assert_count(&floats, "shfl.sync.idx.b32", 32);
    assert_count(&floats, "selp", 0);
}

#[test]
fn missing_lanes_count_as_zeros() {
    let partial_warp = text(&kernel(20, false, Type::F16, Type::F32, 1), Target::SM_90);
    assert_count(&partial_warp, "mma.sync", 0);
    assert_count(&partial_warp, "selp.b32", 32);
    for (size, in_branch, query) in
        [(48, false, "vote.sync.ballot.b32"), (64, true, "activemask.b32")]
    {
        let text = text(&kernel(size, in_branch, Type::F16, Type::F32, 1), Target::SM_90);
        assert_count(&text, query, 1);
        assert_count(&text, "mma.sync", 1);
        assert_count(&text, "fma.rn.f32", 32);
    }
}

/// A matrix product in WGSL, by tiles; K is 64.
const TILES: &str = "enable f16; enable wgpu_cooperative_matrix;
    @group(0) @binding(0) var<storage, read> left: array<f16>;
    @group(0) @binding(1) var<storage, read> right: array<f16>;
    @group(0) @binding(2) var<storage, read_write> results: array<f32>;
    var<workgroup> tile: array<f16, 256>;
    @compute @workgroup_size(32) fn main(@builtin(workgroup_id) g: vec3<u32>,
            @builtin(local_invocation_index) i: u32) {
        var sum = coop_mat16x16<f32, C>();
        for (var k = 0u; k < arrayLength(&left) / 64u; k += 16u) {
            for (var e = i; e < 256u; e += 32u) {
                tile[e] = left[(g.x * 16u + e / 16u) * 64u + k + e % 16u];
            }
            workgroupBarrier();
            let a = coopLoadT<coop_mat16x16<f16, A>>(&tile[0]);
            let b = coopLoad<coop_mat16x16<f16, B>>(&right[g.y * 1024u + k], 64u);
            sum = coopMultiplyAdd(a, b, sum);
            workgroupBarrier();
        }
        coopStoreT(sum, &results[g.x * 1024u + g.y * 16u], 64u);
    }";

#[test]
fn cooperative_matrices_become_mma() {
    let program = Program::parse(TILES);
    let kir = program.expect("the source is valid").to_kir(&KirOptions { checked: true });
    let text = text(&kir.expect("the kernel is within the limits"), Target::SM_90);
    assert_count(&text, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 2);
    assert_count(&text, "activemask", 0);
}
