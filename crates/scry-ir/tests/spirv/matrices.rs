//! Tests of cooperative matrices in SPIR-V. They inspect the module themselves, since validators
//! that are older than the extension do not support it.

use rspirv::spirv::{
    AddressingModel, Capability, Decoration, MemoryAccess, MemoryModel, Op, StorageClass, Word,
};
use scry_ir::{Features, MatrixProducts, Program, ShaderErrorKind, SpirvOptions};

use crate::support::{CHECKED, code, load};

/// A device with the products of most GPUs, and little workgroup memory.
const DEVICE: SpirvOptions = SpirvOptions {
    matrices: MatrixProducts::F16_16X16.union(MatrixProducts::F16_F32_16X16),
    polls: true,
    max_workgroup_memory: 16 << 10,
    ..CHECKED
};

/// A product whose loads and stores may be partly out of bounds, in a loop that may not end.
const PRODUCT: &str = "enable f16; enable wgpu_cooperative_matrix; enable subgroups;
    @group(0) @binding(0) var<storage> a: array<f16>;
    @group(0) @binding(1) var<storage, read_write> c: array<f32>;
    var<workgroup> b: array<vec4<f16>, 64>;
    var<workgroup> tile: array<f16, 256>;
    @compute @workgroup_size(64)
    fn main(@builtin(subgroup_id) s: u32, @builtin(local_invocation_index) i: u32) {
        b[i] = vec4<f16>(f16(i));
        tile[i] = f16(i);
        workgroupBarrier();
        var sum = coop_mat16x16<f32, C>();
        for (var k = u32(a[0]); k != 7u; k += 3u) {
            let left = coopLoad<coop_mat16x16<f16, A>>(&a[s * 16u + k], 24u);
            let right = coopLoadT<coop_mat16x16<f16, B>>(&tile[0], 16u);
            sum = coopMultiplyAdd(left, right, sum);
        }
        coopStore(sum + sum - sum, &c[s * 256u], 16u);
    }";

fn module(source: &str, options: &SpirvOptions) -> rspirv::dr::Module {
    load(&Program::parse(source).unwrap().to_spirv(options).unwrap())
}

fn count(module: &rspirv::dr::Module, op: Op) -> usize {
    code(module).filter(|instruction| instruction.class.opcode == op).count()
}

/// Emits a kernel, which must be rejected; returns the message and the kind of the error.
fn emit_error(source: &str, options: &SpirvOptions) -> (String, ShaderErrorKind) {
    let error = Program::parse(source).unwrap().to_spirv(options).unwrap_err();
    (error.message, error.kind)
}

#[test]
fn matrices_need_vulkan_memory_model() {
    let module = module(PRODUCT, &DEVICE);
    let model = module.memory_model.as_ref().unwrap();
    assert_eq!(model.operands[0].unwrap_addressing_model(), AddressingModel::Logical);
    assert_eq!(model.operands[1].unwrap_memory_model(), MemoryModel::Vulkan);
    let capabilities: Vec<Capability> =
        module.capabilities.iter().map(|one| one.operands[0].unwrap_capability()).collect();
    for expected in [
        Capability::CooperativeMatrixKHR,
        Capability::VulkanMemoryModel,
        Capability::VulkanMemoryModelDeviceScope,
    ] {
        assert!(capabilities.contains(&expected), "{expected:?}");
    }
    let extension = module.extensions[0].operands[0].unwrap_literal_string();
    assert_eq!(extension, "SPV_KHR_cooperative_matrix");
    let forbidden = [Decoration::Volatile, Decoration::Coherent];
    assert!(!module.annotations.iter().any(|annotation| {
        annotation
            .operands
            .iter()
            .any(|operand| forbidden.map(rspirv::dr::Operand::Decoration).contains(operand))
    }));
}

/// Returns the storage class of a pointer.
fn storage_class(module: &rspirv::dr::Module, pointer: Word) -> StorageClass {
    let everything = module.types_global_values.iter().chain(module.all_inst_iter());
    let definition = everything.into_iter().find(|inst| inst.result_id == Some(pointer)).unwrap();
    let ty = definition.result_type.unwrap();
    let ty = module.types_global_values.iter().find(|inst| inst.result_id == Some(ty)).unwrap();
    ty.operands[0].unwrap_storage_class()
}

#[test]
fn accesses_to_shared_memory_are_non_private() {
    let module = module(PRODUCT, &DEVICE);
    let mut shared = 0;
    for inst in code(&module) {
        let operand = match inst.class.opcode {
            Op::Load => 1,
            Op::Store => 2,
            Op::CooperativeMatrixLoadKHR => 3,
            Op::CooperativeMatrixStoreKHR => 4,
            _ => continue,
        };
        let class = storage_class(&module, inst.operands[0].unwrap_id_ref());
        let is_shared = [StorageClass::Workgroup, StorageClass::StorageBuffer].contains(&class);
        let access = inst.operands.get(operand).map(|access| access.unwrap_memory_access());
        let expected = is_shared.then_some(MemoryAccess::NON_PRIVATE_POINTER);
        assert_eq!(access, expected, "{inst:?}");
        shared += usize::from(is_shared);
    }
    assert!(shared >= 8, "{shared}");
}

#[test]
fn matrix_accesses_use_tiles_where_needed() {
    let module = module(PRODUCT, &DEVICE);
    // Loads: of the left operand from its array or from a tile, of the right one from its array
    // only. Stores: of the result to its array or to a tile. Broadcasts: of the left operand's
    // index, which is a variable, and of the stop word.
    let ops = [
        Op::CooperativeMatrixLoadKHR,
        Op::CooperativeMatrixStoreKHR,
        Op::CooperativeMatrixMulAddKHR,
        Op::GroupNonUniformBroadcastFirst,
    ];
    assert_eq!(ops.map(|op| count(&module, op)), [3, 2, 1, 2]);
    let is_matrix =
        |inst: &&rspirv::dr::Instruction| inst.class.opcode == Op::TypeCooperativeMatrixKHR;
    assert_eq!(module.types_global_values.iter().filter(is_matrix).count(), 3);
}

#[test]
fn other_kernels_keep_glsl450_memory_model() {
    let source = "@compute @workgroup_size(32) fn main() {}";
    let model = module(source, &DEVICE).memory_model.unwrap();
    assert_eq!(model.operands[1].unwrap_memory_model(), MemoryModel::GLSL450);
}

#[test]
fn unsupported_matrices_are_rejected_by_name() {
    let none = SpirvOptions { matrices: MatrixProducts::empty(), ..DEVICE };
    let f16_only = SpirvOptions { matrices: MatrixProducts::F16_16X16, ..DEVICE };
    let small = SpirvOptions { max_workgroup_memory: 4096, ..DEVICE };
    let narrow = PRODUCT.replace("@workgroup_size(64)", "@workgroup_size(16)");
    let eight = "enable wgpu_cooperative_matrix;
        @group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(32) fn main() {
            coopStore(coopLoad<coop_mat8x8<f32, C>>(&data[64], 8u), &data[0], 8u);
        }";
    let errors = [
        emit_error(PRODUCT, &none),
        emit_error(PRODUCT, &f16_only),
        emit_error(PRODUCT, &small),
        emit_error(&narrow, &DEVICE),
        emit_error(eight, &DEVICE),
    ];
    let expected = [
        "the device has no f16-f32-16x16 products of matrices; its products are: none; help: use \
         a CUDA or CPU device, or multiply tiles in workgroup memory",
        "the device has no f16-f32-16x16 products of matrices; its products are: f16-16x16; help: \
         use one of these, use a CUDA or CPU device, or multiply tiles in workgroup memory",
        "the kernel needs 1028 bytes of workgroup memory, and its matrices 3072 more, of at most \
         4096, since they may be partly outside of their arrays or misaligned; help: use \
         smaller arrays or fewer invocations in a workgroup",
        "a workgroup with cooperative matrices has 16 invocations along x: subgroups that are all \
         full need a multiple of 32; help: change `@workgroup_size`",
        "the device has no 8x8 matrices of f32; its products are: f16-16x16, f16-f32-16x16; help: \
         use one of these, use a CUDA or CPU device, or multiply tiles in workgroup memory",
    ];
    let features = ShaderErrorKind::UnsupportedFeatures(Features::COOPERATIVE_MATRIX);
    for ((message, kind), expected) in errors.iter().zip(expected) {
        assert_eq!(message, expected);
        let is_size = message.contains("@workgroup_size");
        let expected = if is_size { &ShaderErrorKind::UnsupportedConstruct } else { &features };
        assert_eq!(kind, expected, "{message}");
    }
}
