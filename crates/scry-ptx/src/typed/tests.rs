//! Tests of the text that the typed layer emits, and of whether ptxas accepts it.

use super::hopper::{
    Accumulators, MBarrier, Matrix, MmaType, OperandA, Swizzle, Transposed, descriptor,
};
use super::{Bf16, Bf16x2, F16, F16x2, KernelBuilder, Number, Sign, kernel, pack};
use crate::assembler::assemble;
use crate::{PtxEntry, PtxModule, Target};

/// Returns a kernel's module as text, assembled if there is an assembler.
fn text(target: Target, kernel: PtxEntry) -> String {
    let text = PtxModule::new(target).with(kernel).to_string();
    assemble(&text, target);
    text
}

/// Returns the instructions of a kernel, without its declarations.
fn instructions(write: impl FnOnce(&KernelBuilder)) -> Vec<String> {
    let kernel = kernel("k", Target::SM_80, [32, 1, 1], write);
    assemble(&PtxModule::new(Target::SM_80).with(kernel.clone()).to_string(), Target::SM_80);
    kernel.body.lines().iter().map(|line| line.to_string().trim().to_owned()).collect()
}

#[test]
fn operators_follow_the_type() {
    let lines = instructions(|k| {
        let (i, x) = (k.scalar_param::<u32>("i"), k.scalar_param::<f32>("x"));
        let _ = ((i + 3) * i) >> 2;
        let _ = x.mul_add(x, 1.5) / x;
        let _ = (i.lt(7) & x.ne(x)).select(x, 0.0f32);
        let _ = i.convert::<f32>("rn").cast::<u32>() ^ 1;
        let _ = pack::<Bf16x2>(x, x);
    });
    let expected = [
        "ld.param.b32 %r0, [i];",
        "ld.param.b32 %r1, [x];",
        "add.u32 %r2, %r0, 3;",
        "mul.lo.u32 %r3, %r2, %r0;",
        "shr.u32 %r4, %r3, 2;",
        "fma.rn.f32 %r5, %r1, %r1, 0f3FC00000;",
        "div.full.f32 %r6, %r5, %r1;",
        "setp.lt.u32 %p0, %r0, 7;",
        "setp.neu.f32 %p1, %r1, %r1;",
        "and.pred %p2, %p0, %p1;",
        "selp.b32 %r7, %r1, 0f00000000, %p2;",
        "cvt.rn.f32.u32 %r8, %r0;",
        "xor.b32 %r9, %r8, 1;",
        "cvt.rn.bf16x2.f32 %r10, %r1, %r1;",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn ptxas_accepts_operations_of_every_number() {
    fn emit<T: Number>(k: &KernelBuilder, name: &str) {
        let x = k.scalar_param::<T>(name);
        let _ = (x.min(x).mul_add(x, x) - x * x).max(x + x);
    }
    let kernel = kernel("k", Target::SM_90, [32, 1, 1], |k| {
        emit::<u16>(k, "a");
        emit::<u32>(k, "b");
        emit::<u64>(k, "c");
        emit::<i32>(k, "d");
        emit::<f32>(k, "e");
        emit::<f64>(k, "f");
        emit::<F16>(k, "g");
        emit::<Bf16>(k, "h");
        emit::<F16x2>(k, "i");
        emit::<Bf16x2>(k, "j");
    });
    let text = text(Target::SM_90, kernel);
    for param in [".param .f16 g", ".param .b16 h", ".param .b32 i", ".param .b32 j"] {
        assert!(text.contains(param), "no {param} in {text}");
    }
}

#[test]
fn pointers_fold_constant_offsets() {
    let lines = instructions(|k| {
        let x = k.pointer_param::<f32>("x");
        let tile = k.shared::<f32>(64, 16);
        let i = k.thread_id();
        let [a, b] = x.at(i).at(2).load_constant_vector();
        tile.at(i).offset(4).store_vector([a, b]);
        x.at_wide(i.convert::<u64>("")).store(tile.load());
    });
    let expected = [
        "ld.param.b64 %d0, [x];",
        "cvta.to.global.u64 %d1, %d0;",
        "mov.u32 %r0, shared0;",
        "mov.u32 %r1, %tid.x;",
        "mad.wide.u32 %d2, %r1, 4, %d1;",
        "ld.global.nc.v2.b32 {%r2, %r3}, [%d2+8];",
        "mad.lo.u32 %r4, %r1, 4, %r0;",
        "st.shared.v2.b32 [%r4+4], {%r2, %r3};",
        "cvt.u64.u32 %d3, %r1;",
        "mad.lo.u64 %d4, %d3, 4, %d1;",
        "ld.shared.b32 %r5, [%r0];",
        "st.global.b32 [%d4], %r5;",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn pointers_accept_negative_offsets() {
    let lines = instructions(|k| k.pointer_param::<f32>("x").offset(-4).store(1.0f32));
    assert_eq!(lines.last().unwrap(), "st.global.b32 [%d1+-4], 0f3F800000;");
}

#[test]
fn loops_exit_on_a_true_condition() {
    let lines = instructions(|k| {
        let sum = k.var(0u32);
        k.for_range(0, k.scalar_param::<u32>("n"), 2, |i| {
            k.if_else(i.eq(4), || sum.set(sum.get() + i), || sum.set(7));
        });
    });
    let expected = [
        "mov.b32 %r0, 0;",
        "ld.param.b32 %r1, [n];",
        "mov.b32 %r2, 0;",
        "$L0:",
        "setp.ge.u32 %p0, %r2, %r1;",
        "@%p0 bra $L1;",
        "setp.eq.u32 %p1, %r2, 4;",
        "@!%p1 bra $L2;",
        "add.u32 %r3, %r0, %r2;",
        "mov.b32 %r0, %r3;",
        "bra $L3;",
        "$L2:",
        "mov.b32 %r0, 7;",
        "$L3:",
        "add.u32 %r2, %r2, 2;",
        "bra $L0;",
        "$L1:",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn warp_reduction_is_a_butterfly() {
    let lines = instructions(|k| {
        let _ = k.reduce_warp(k.scalar_param::<f32>("x"), 4, |a, b| a.max(b));
    });
    let expected = [
        "ld.param.b32 %r0, [x];",
        "shfl.sync.bfly.b32 %r1, %r0, 2, 31, 4294967295;",
        "max.f32 %r2, %r0, %r1;",
        "shfl.sync.bfly.b32 %r3, %r2, 1, 31, 4294967295;",
        "max.f32 %r4, %r2, %r3;",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn instructions_of_sm_90_require_their_version() {
    type Write = fn(&KernelBuilder, MBarrier<'_>);
    let all: [(&str, Write); 9] = [
        ("fence_mbarrier_init", |k, _| k.fence_mbarrier_init()),
        ("fence_proxy_async", |k, _| k.fence_proxy_async()),
        ("arrive_expect_tx", |_, done| done.arrive_expect_tx(64)),
        ("arrive_in", |k, done| done.arrive_in(k.constant(0u32))),
        ("prefetch_tensor_map", |k, _| k.prefetch_tensor_map(k.tensor_map_param("a"))),
        ("tma_load", |k, done| {
            let (zero, map) = (k.constant(0u32), k.tensor_map_param("a"));
            k.tma_load(k.dynamic_shared::<u16>(1024), map, [zero; 2], done);
        }),
        ("tma_store", |k, _| {
            let (zero, map) = (k.constant(0u32), k.tensor_map_param("a"));
            k.tma_store(k.dynamic_shared::<u16>(1024), map, [zero; 2]);
        }),
        ("bulk_commit_group", |k, _| k.bulk_commit_group()),
        ("bulk_wait_group_read", |k, _| k.bulk_wait_group_read(0)),
    ];
    for (name, write) in all {
        let kernel = kernel("k", Target::SM_90, [32, 1, 1], |k| {
            write(k, MBarrier::at(k.shared::<u64>(1, 8)));
        });
        let text = text(Target::SM_90, kernel);
        assert!(text.contains(".version 8.0"), "{name}: {text}");
    }
}

/// Emits the product of two tiles that TMA loads, in a cluster of two blocks.
fn tile_product(k: &KernelBuilder) {
    let map = k.tensor_map_param("a");
    let y = k.pointer_param::<f32>("y");
    let tiles = k.dynamic_shared::<u16>(1024);
    let full = MBarrier::at(k.shared::<u64>(1, 8));
    let first = k.thread_id().eq(0);
    k.if_then(first, || {
        k.prefetch_tensor_map(map);
        full.init(1);
        k.fence_mbarrier_init();
    });
    k.sync_cluster();
    k.if_then(first & k.elect_one(), || {
        full.arrive_expect_tx(32768);
        let zero = k.constant(0u32).copied();
        k.tma_load(tiles, map, [zero, zero], full);
        let both = k.constant(3u32).convert::<u16>("");
        k.tma_load_multicast(tiles.at(8192), map, [zero, zero, zero], full, both);
    });
    full.wait(0u32);
    let accumulators = Accumulators::new(k, 64);
    let (a, b) = (descriptor(tiles, 16, 1024, Swizzle::B128), tiles.at(8192));
    let b = descriptor(b, 16, 1024, Swizzle::B128);
    k.wgmma_fence();
    let fresh = k.constant(0u32).ne(0);
    accumulators.multiply(MmaType::Bf16, OperandA::Shared(a), b, fresh, Transposed::default());
    k.wgmma_commit_group();
    k.wgmma_wait_group(0);
    (0..accumulators.columns() as usize / 2)
        .for_each(|nth| y.at(nth as u32).store(accumulators.get(nth)));
    full.arrive_in(k.cluster_rank() ^ 1);
    k.tma_store(tiles, map, [k.thread_id(), k.thread_id()]);
    k.bulk_commit_group();
    k.bulk_wait_group_read(0);
}

#[test]
fn hopper_instructions_assemble() {
    let target = Target::SM_90A;
    let mut kernel = kernel("product", target, [128, 1, 1], tile_product);
    kernel.cluster = Some([2, 1, 1]);
    let text = text(target, kernel);
    for line in [
        ".version 8.0\n.target sm_90a",
        ".param .align 64 .b8 a[128]",
        ".reqnctapercluster 2, 1, 1",
        "cvta.param.u64",
        "mbarrier.init.shared::cta.b64 [%r1], 1;",
        "global.mbarrier::complete_tx::bytes [%r0], [%d1, {",
        "complete_tx::bytes.multicast::cluster [%r0+16384], [%d1, {",
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {",
        ", 1, 1, 0, 0;",
        "mbarrier.arrive.shared::cluster.b64 _, [",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
}

#[test]
fn ampere_instructions_assemble() {
    let lines = instructions(|k| {
        let (x, tile) = (k.pointer_param::<f32>("x"), k.shared::<f32>(256, 16));
        k.cp_async(tile, x, 16);
        k.cp_async_if(k.thread_id().lt(3), tile.at(4), x.at(1), 4);
        k.cp_async_zero_fill(tile.at(8), x, 8, k.scalar_param("read"));
        k.cp_async_commit_group();
        k.cp_async_wait_group(2);
        let (a, b) = (k.ldmatrix(tile), k.ldmatrix_trans(tile));
        let accumulators = std::array::from_fn(|_| k.var(0.0f32));
        k.mma(MmaType::Tf32, &accumulators, a, [b[0], b[1]]);
        k.mma(MmaType::Bf16, &accumulators, a, [b[2], b[3]]);
    });
    for line in [
        "cp.async.cg.shared.global [%r0], [%d1], 16;",
        "@%p0 cp.async.ca.shared.global [%r0+16], [%d1+4], 4;",
        "cp.async.ca.shared.global [%r0+32], [%d1], 8, %r2;",
        "cp.async.wait_group 2;",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r0];",
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r7, %r8, %r9, %r10}, [%r0];",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r11, %r12, %r13, %r14}, \
         {%r3, %r4, %r5, %r6}, {%r7, %r8}, {%r11, %r12, %r13, %r14};",
    ] {
        assert!(lines.iter().any(|found| found == line), "no {line} in {lines:#?}");
    }
}

#[test]
fn matrix_descriptors_share_the_upper_word() {
    let target = Target::SM_90A;
    let kernel = kernel("parts", target, [128, 1, 1], |k| {
        let tile = k.dynamic_shared::<u16>(1024);
        let done = MBarrier::at(k.shared::<u64>(1, 8));
        let map = k.tensor_map_param("a");
        let matrix = Matrix::new(tile, 4096, 1024, Swizzle::B128);
        let zero = k.constant(0u32);
        k.tma_load(tile, map, [zero; 4], done);
        k.tma_load(tile, map, [zero; 5], done);
        k.tma_store(tile, map, [zero; 4]);
        k.tma_store(tile, map, [zero; 5]);
        let _ = matrix.at(32);
        done.arrive_if(k.lane().eq(0));
    });
    let text = text(target, kernel);
    for line in [
        "cp.async.bulk.tensor.4d.shared::cluster",
        "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%d1, {0, 0, 0, 0, 0}]",
        "or.b32 %r5, %r4, 16777216;",
        "add.u32 %r6, %r5, 2;",
        "mov.b64 %d2, {%r6, 1073741888};",
        "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r1];",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
}

#[test]
fn byte_operations_and_int8_mma() {
    let lines = instructions(|k| {
        let (a, b) = (k.scalar_param::<u32>("a"), k.scalar_param::<u32>("b"));
        let _ = k.dp4a(a.byte(2), b, a.signed_byte(3));
        let _ = k.join(k.constant(1u16).copied(), k.constant(2u16).copied()).masked_or(15, b);
        let accumulators = [k.constant(0i32).copied(); 4];
        let _ = k.mma_s8(Sign::Unsigned, [a, b], [a], accumulators);
    });
    let expected = [
        "ld.param.b32 %r0, [a];",
        "ld.param.b32 %r1, [b];",
        "prmt.b32 %r2, %r0, 0, 17474;",
        "prmt.b32 %r3, %r0, 0, 48051;",
        "dp4a.s32.s32 %r4, %r2, %r1, %r3;",
        "mov.b16 %h0, 1;",
        "mov.b16 %h1, 2;",
        "mov.b32 %r5, {%h0, %h1};",
        "and.b32 %r6, %r5, 15;",
        "or.b32 %r7, %r6, %r1;",
        "mov.b32 %r8, 0;",
        "mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%r9, %r10, %r11, %r12}, {%r0, %r1}, \
         {%r0}, {%r8, %r8, %r8, %r8};",
    ];
    assert_eq!(lines, expected);
}
