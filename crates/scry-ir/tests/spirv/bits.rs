//! Functions on bits: none of the instructions that a driver gets wrong in the SPIR-V.

use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::Op;

use crate::support::{CHECKED, code, have_validator, id, load, parse, validate};

/// `FindILsb`, `FindSMsb` and `FindUMsb` of GLSL.std.450.
const FIND: [u32; 3] = [73, 74, 75];

fn module(body: &str) -> Module {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> u: array<u32>;
        @group(0) @binding(1) var<storage, read_write> i: array<i32>;
        @group(0) @binding(2) var<storage, read_write> v: array<vec3u>;
        @group(0) @binding(3) var<storage, read_write> w: array<vec2i>;
        const FIVE = 5u;
        @compute @workgroup_size(1) fn main() {{ {body} }}"
    );
    let words = parse(body, &source).to_spirv(&CHECKED).unwrap();
    if have_validator("bits") {
        validate(&words).unwrap_or_else(|e| panic!("{body}: {e}"));
    }
    load(&words)
}

fn count(module: &Module, op: Op) -> usize {
    code(module).filter(|i| i.class.opcode == op).count()
}

/// What is asked for the position of a bit.
fn finds(module: &Module) -> Vec<&Instruction> {
    let is_find = |i: &&Instruction| {
        i.class.opcode == Op::ExtInst
            && FIND.iter().any(|op| i.operands[1] == Operand::LiteralExtInstInteger(*op))
    };
    code(module).filter(is_find).collect()
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
fn fields_that_are_known_take_few_instructions() {
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
fn a_bit_is_looked_for_only_where_there_is_one() {
    for (function, finding) in [
        ("firstLeadingBit", 75),
        ("firstTrailingBit", 73),
        ("countLeadingZeros", 75),
        ("countTrailingZeros", 73),
    ] {
        for place in ["u[0]", "i[0]", "v[0]", "w[0]"] {
            let body = format!("{place} = {function}({place});");
            let module = module(&body);
            let finds = finds(&module);
            let [find] = finds[..] else { panic!("{body}: {finds:?}") };
            assert_eq!(find.operands[1], Operand::LiteralExtInstInteger(finding), "{body}");
            let argument = id(&find.operands[2]);
            let joined = code(&module).find(|i| i.result_id == argument).unwrap();
            assert_eq!(joined.class.opcode, Op::BitwiseOr, "{body}");
            assert_eq!(count(&module, Op::Select), 1, "{body}");
        }
    }
}

#[test]
fn what_has_a_bit_is_not_joined_to_another() {
    let body = "u[0] = firstLeadingBit(u[1] | 4u); v[0] = firstTrailingBit(v[1] | vec3u(4u));";
    let module = module(body);
    assert_eq!((count(&module, Op::Select), count(&module, Op::BitwiseOr)), (0, 2));
}

#[test]
fn statements_keep_their_order_round_what_is_rewritten() {
    let body = "var a = extractBits(u[0], u[1], u[2]); let b = firstLeadingBit(i[a]);
        for (var k = 0u; k < countTrailingZeros(a); k++) {
            if insertBits(a, k, 3u, k) == k { continue; }
            a = a + extractBits(k, 2u, 3u);
        }
        switch extractBits(b, 1u, a) { case 1i: { u[a] = u32(b); } default: {} }";
    let module = module(body);
    assert_eq!(finds(&module).len(), 2);
}
