//! Bit manipulation functions: the SPIR-V has none of the instructions that a driver miscompiles.

use rspirv::dr::{Module, Operand};
use rspirv::spirv::{Capability, Op};

use crate::support::{WORKED_AROUND, code, have_validator, load, parse, validate};

fn module(body: &str) -> Module {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> u: array<u32>;
        @group(0) @binding(1) var<storage, read_write> i: array<i32>;
        @group(0) @binding(2) var<storage, read_write> v: array<vec3u>;
        @group(0) @binding(3) var<storage, read_write> w: array<vec2i>;
        const FIVE = 5u;
        @compute @workgroup_size(1) fn main() {{ {body} }}"
    );
    let words = parse(body, &source).to_spirv_with_naga(&WORKED_AROUND).unwrap();
    if have_validator("bits") {
        validate(&words).unwrap_or_else(|e| panic!("{body}: {e}"));
    }
    load(&words)
}

fn count(module: &Module, op: Op) -> usize {
    code(module).filter(|i| i.class.opcode == op).count()
}

const EXTRACTS: [&str; 5] = [
    "u[0] = extractBits(u[1], u[2], u[3]);",
    "i[0] = extractBits(i[1], u[2], 5u);",
    "v[0] = extractBits(v[1], 3u, u[3]);",
    "w[0] = extractBits(w[1], u[2], u[3]);",
    "w[0] = extractBits(w[1], 3u, FIVE);",
];

const INSERTS: [&str; 5] = [
    "u[0] = insertBits(u[1], u[0], u[2], u[3]);",
    "i[0] = insertBits(i[1], i[0], u[2], 5u);",
    "v[0] = insertBits(v[1], v[0], 3u, u[3]);",
    "w[0] = insertBits(w[1], w[0], u[2], u[3]);",
    "w[0] = insertBits(w[1], vec2i(1), 3u, FIVE);",
];

#[test]
fn fields_are_shifted_and_masked() {
    for body in EXTRACTS.into_iter().chain(INSERTS) {
        let module = module(body);
        for op in [Op::BitFieldInsert, Op::BitFieldSExtract, Op::BitFieldUExtract] {
            assert_eq!(count(&module, op), 0, "{body}");
        }
        assert!(count(&module, Op::ShiftLeftLogical) > 0, "{body}");
    }
}

#[test]
fn constant_bit_fields_are_cheap() {
    let two_shifts = |module: &Module| {
        count(module, Op::ShiftLeftLogical)
            + count(module, Op::ShiftRightLogical)
            + count(module, Op::ShiftRightArithmetic)
    };
    let extract = module("u[0] = extractBits(u[1], 3u, 5u); i[0] = extractBits(i[1], 30u, 9u);");
    assert_eq!((two_shifts(&extract), count(&extract, Op::Select)), (4, 0));
    let nothing = module("v[0] = extractBits(v[1], 32u, 5u); i[0] = extractBits(i[1], 7u, 0u);");
    assert_eq!((two_shifts(&nothing), count(&nothing, Op::BitwiseAnd)), (0, 2));
    let insert = module("v[0] = insertBits(v[1], v[2], 3u, 5u);");
    assert_eq!((two_shifts(&insert), count(&insert, Op::BitwiseAnd)), (1, 1));
}

#[test]
fn rewrites_preserve_statement_order() {
    let body = "var a = extractBits(u[0], u[1], u[2]); let b = firstLeadingBit(i[a]);
        for (var k = 0u; k < countTrailingZeros(a); k++) {
            if insertBits(a, k, 3u, k) == k { continue; }
            a = a + extractBits(k, 2u, 3u);
        }
        switch extractBits(b, 1u, a) { case 1i: { u[a] = u32(b); } default: {} }";
    let module = module(body);
    assert_eq!(count(&module, Op::Switch), 1);
}

#[test]
fn bytes_are_shifted_and_masked() {
    for body in [
        "w[0] = unpack4xI8(u[0]).xy;",
        "v[0] = unpack4xU8(u[0]).xyz;",
        "u[0] = pack4xI8(w[0].xyxy);",
        "u[0] = pack4xU8(v[0].xyzx);",
        "u[0] = pack4xI8Clamp(w[0].xyxy);",
        "u[0] = pack4xU8Clamp(v[0].xyzx);",
    ] {
        let module = module(body);
        let capabilities: Vec<_> = module.capabilities.iter().map(|i| &i.operands[0]).collect();
        let bytes = Operand::Capability(Capability::Int8);
        assert!(!capabilities.contains(&&bytes), "{body}: {capabilities:?}");
        assert!(count(&module, Op::ShiftLeftLogical) >= 4, "{body}");
        for op in [Op::BitFieldInsert, Op::BitFieldSExtract, Op::BitFieldUExtract] {
            assert_eq!(count(&module, op), 0, "{body}");
        }
    }
}
