//! An independent check of every index in the SPIR-V of checked kernels: each one is a constant in
//! bounds, or clamped against the length of the object that it indexes.

use std::collections::HashMap;

use crate::support::{CHECKED, code, corpus, every_option, id, load, parse, sources};
use rspirv::dr::{Instruction, Module, Operand};
use rspirv::spirv::Op;
use scry_ir::SpirvOptions;

/// `UMin` of the GLSL instruction set.
const UMIN: u32 = 38;

#[test]
fn checked_kernels_clamp_every_index() {
    for folder in ["", "bounds"] {
        for (name, source) in sources(&corpus(folder)) {
            let program = parse(&name, &source);
            for options in every_option().into_iter().filter(|o| o.checked) {
                let words = program.to_spirv_with_naga(&options).unwrap();
                let found = examine(&words);
                assert_eq!(found.loose, Vec::<String>::new(), "{name} {options:?}");
            }
        }
    }
}

/// The same check finds unclamped indices in unchecked kernels.
#[test]
fn unchecked_kernels_have_unclamped_indices() {
    for (name, source) in sources(&corpus("bounds")) {
        let options = SpirvOptions { checked: false, ..CHECKED };
        let program = parse(&name, &source);
        let checked = examine(&program.to_spirv_with_naga(&CHECKED).unwrap());
        let unchecked = examine(&program.to_spirv_with_naga(&options).unwrap());
        if name == "undefined_arithmetic" {
            continue; // Its indices are constants.
        }
        assert!(checked.clamped > 0, "{name}");
        assert!(unchecked.loose.len() >= checked.clamped, "{name}");
    }
}

/// Kinds of accesses, each with its minimum number of clamped indices.
#[test]
fn every_shape_of_index_is_clamped() {
    let shapes = [
        (2, "let r = list[n.x]; list[n.y] = r;"),
        (1, "list[4000000000u] = 1u;"),
        (3, "deep[n.x][n.y][n.z] = 1.0;"),
        (2, "let m = deep[0][n.x]; deep[1][n.y] = m;"),
        (2, "tail.items[n.x].v[n.y] += 1;"),
        (2, "let copy = tail.fixed; list[0] = copy[n.x][n.y];"),
        (2, "list[0] = tail.fixed[n.x][n.y];"),
        (2, "var copy = tail.fixed; copy[n.x][n.y] = 1u; tail.fixed = copy;"),
        (1, "let v = vec4u(list[0]); list[1] = v[n.x];"),
        (1, "let p = &list[n.x]; *p += 1u;"),
        (2, "let p = &tail.items[n.x]; (*p).v[n.y] = 1;"),
        (1, "list[0] = u32(small[1][n.x]);"),
        (1, "list[0] = by_value(array(1u, 2u, 3u), n.x);"),
        (1, "var a = array(1u, 2u, 3u); list[0] = by_pointer(&a, n.x);"),
        (1, "var a = array(1u, 2u, 3u); raise(&a[n.x]); list[0] = a[1];"),
        (1, "atomicStore(&flags[n.x], 1u);"),
        (1, "list[0] = atomicCompareExchangeWeak(&flags[n.x], 1u, 2u).old_value;"),
        (1, "list[0] = workgroupUniformLoad(&shared_words[n.x]);"),
        (1, "list[0] = array(1u, 2u, 3u)[n.x];"),
        (2, "for (var i = 0u; i < 9u; i++) { let a = array(i, i); list[i] = a[n.x]; }"),
        (1, "if n.x < 3 && list[n.y] > 1u { list[0] = 1u; }"),
    ];
    for (least, body) in shapes {
        let source = format!(
            "struct Item {{ v: vec3i, w: f32 }}
            struct Tail {{ fixed: array<array<u32, 3>, 2>, items: array<Item> }}
            @group(0) @binding(0) var<uniform> n: vec3i;
            @group(0) @binding(1) var<storage, read_write> list: array<u32>;
            @group(0) @binding(2) var<storage, read_write> deep: array<mat4x3f>;
            @group(0) @binding(3) var<storage, read_write> tail: Tail;
            @group(0) @binding(4) var<uniform> small: mat2x2f;
            @group(0) @binding(5) var<storage, read_write> flags: array<atomic<u32>, 5>;
            var<workgroup> shared_words: array<u32, 3>;
            fn by_value(a: array<u32, 3>, i: i32) -> u32 {{ return a[i]; }}
            fn by_pointer(a: ptr<function, array<u32, 3>>, i: i32) -> u32 {{ return (*a)[i]; }}
            fn raise(a: ptr<function, u32>) {{ *a += 1u; }}
            @compute @workgroup_size(1) fn main() {{ {body} }}"
        );
        let words = parse(body, &source).to_spirv_with_naga(&CHECKED).unwrap();
        let found = examine(&words);
        assert_eq!(found.loose, Vec::<String>::new(), "{body}");
        assert!(found.clamped >= least, "{body}: only {} clamped", found.clamped);
    }
}

#[derive(Default)]
struct Found {
    clamped: usize,
    loose: Vec<String>,
}

fn examine(words: &[u32]) -> Found {
    let module = load(words);
    let reader = Reader::new(&module);
    let mut found = Found::default();
    for instruction in code(&module) {
        let operands: Vec<u32> = instruction.operands.iter().filter_map(id).collect();
        match instruction.class.opcode {
            Op::AccessChain | Op::InBoundsAccessChain => {
                let root = reader.root(operands[0]);
                let mut ty = reader.pointee(operands[0]);
                for &index in &operands[1..] {
                    ty = reader.step(ty, index, root, &mut found);
                }
            }
            Op::VectorExtractDynamic => {
                let ty = reader.get(operands[0]).result_type.unwrap();
                reader.step(ty, operands[1], 0, &mut found);
            }
            _ => {}
        }
    }
    found
}

/// Instructions by their result.
struct Reader<'a>(HashMap<u32, &'a Instruction>);

impl<'a> Reader<'a> {
    fn new(module: &'a Module) -> Self {
        let all = module.all_inst_iter();
        Self(all.filter_map(|i| Some((i.result_id?, i))).collect())
    }

    fn get(&self, id: u32) -> &'a Instruction {
        self.0[&id]
    }

    /// Returns the pointee type of a pointer.
    fn pointee(&self, pointer: u32) -> u32 {
        let ty = self.get(self.get(pointer).result_type.unwrap());
        assert_eq!(ty.class.opcode, Op::TypePointer);
        id(&ty.operands[1]).unwrap()
    }

    /// Returns the variable or parameter that a pointer points into.
    fn root(&self, pointer: u32) -> u32 {
        let instruction = self.get(pointer);
        match instruction.class.opcode {
            Op::AccessChain => self.root(id(&instruction.operands[0]).unwrap()),
            _ => pointer,
        }
    }

    fn constant(&self, id: u32) -> Option<u32> {
        match self.get(id) {
            i if i.class.opcode == Op::Constant => match i.operands[0] {
                Operand::LiteralBit32(value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// Checks one index into a type, and returns the type of the element.
    fn step(&self, ty: u32, index: u32, root: u32, found: &mut Found) -> u32 {
        let ty = self.get(ty);
        let inner = |at: usize| id(&ty.operands[at]).unwrap();
        let length = match ty.class.opcode {
            Op::TypeStruct => {
                let member = self.constant(index).expect("members have constant indices");
                return inner(member as usize);
            }
            Op::TypeVector | Op::TypeMatrix => match ty.operands[1] {
                Operand::LiteralBit32(length) => Some(length),
                _ => panic!("a length"),
            },
            Op::TypeArray => Some(self.constant(inner(1)).unwrap()),
            Op::TypeRuntimeArray => None,
            other => panic!("an index into {other:?}"),
        };
        if let (Some(length), Some(index)) = (length, self.constant(index)) {
            assert!(index < length, "a constant out of bounds");
        } else if self.clamped(index, length, root) {
            found.clamped += 1;
        } else {
            found.loose.push(format!("%{index} into {:?}", ty.class.opcode));
        }
        inner(0)
    }

    /// True if an index is a `UMin` with the last valid index.
    fn clamped(&self, index: u32, length: Option<u32>, root: u32) -> bool {
        let min = self.get(index);
        if min.class.opcode != Op::ExtInst
            || min.operands[1] != Operand::LiteralExtInstInteger(UMIN)
        {
            return false;
        }
        let mut limits = min.operands[2..].iter().filter_map(id);
        match length {
            Some(length) => limits.any(|limit| self.constant(limit).is_some_and(|c| c < length)),
            None => limits.any(|limit| self.is_last_of(limit, root)),
        }
    }

    /// True if a value is the length of the runtime-sized array in `root`, less one.
    fn is_last_of(&self, value: u32, root: u32) -> bool {
        let less = self.get(value);
        if less.class.opcode != Op::ISub {
            return false;
        }
        let length = self.get(id(&less.operands[0]).unwrap());
        length.class.opcode == Op::ArrayLength
            && self.root(id(&length.operands[0]).unwrap()) == root
            && self.constant(id(&less.operands[1]).unwrap()) == Some(1)
    }
}
