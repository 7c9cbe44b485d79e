//! Tests of cooperative matrices at any address.

use crate::Access;
use crate::Program;
use crate::kir::fragments::tests::FRAGMENTS;
use crate::kir::interpret::Interpreter;
use crate::kir::{
    AddressSpace, BinaryOp, Builder, FragmentPlace, Inst, Kir, KirOptions, MatrixElement,
    MatrixPlace, MatrixSize, MatrixType, MatrixUse, Place, Stmt, Type,
};

const LENGTH: u32 = 100;

/// A kernel that copies a matrix to the same place of another buffer, and claims that it is in
/// bounds.
fn copy(index: u32, stride: u32, row_major: bool, from: AddressSpace) -> Kir {
    let (role, size, element) = (MatrixUse::C, MatrixSize::M8, MatrixElement::F32);
    let mut b = Builder::new("copy", [32, 1, 1]);
    b.named_buffer("source", Type::F32, Access::Read);
    b.named_buffer("target", Type::F32, Access::ReadWrite);
    b.workgroup_array(Type::F32, LENGTH);
    // Two values that the copy of the kernel does not keep in this order.
    let (unused, zero) = (b.u32(7), b.u32(0));
    b.binary(BinaryOp::Add, unused, zero);
    let (index, stride) = (b.u32(index), b.u32(stride));
    let place = |space| {
        let array = Place::new(space, None, 0, 0);
        MatrixPlace { array, len: None, index, stride, row_major }
    };
    let matrix = b.matrix_load(MatrixType { role, size, element }, place(from));
    b.matrix_store(place(AddressSpace::Binding(1)), matrix);
    b.finish()
}

fn run(kir: &Kir) -> Vec<f32> {
    let program = Program::from_kir(kir).unwrap();
    let safe = program.to_kir(&KirOptions { checked: true }).unwrap();
    let safe = safe.with_fragments(&FRAGMENTS);
    let source = (0..LENGTH).flat_map(|n| (n as f32 + 1.0).to_le_bytes()).collect();
    let mut interpreter = Interpreter::new(&safe, vec![source, vec![0; 4 * LENGTH as usize]]);
    interpreter.subgroup_size = 32;
    interpreter.run([1, 1, 1]).unwrap();
    let bytes = interpreter.buffers[1].chunks_exact(4);
    bytes.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn claims_of_bounds_are_dropped() {
    for index in [0, 36, 37, 43, 44, 99, 100, 1 << 31, u32::MAX] {
        for stride in [0, 1, 8, 13, 1 << 31, u32::MAX] {
            for row_major in [true, false] {
                let mut expected = vec![0.0; LENGTH as usize];
                for (line, position) in (0..64u64).map(|n| (n / 8, n % 8)) {
                    let element = u64::from(index) + line * u64::from(stride) + position;
                    if element < u64::from(LENGTH) {
                        expected[element as usize] = element as f32 + 1.0;
                    }
                }
                let kir = copy(index, stride, row_major, AddressSpace::Binding(0));
                assert_eq!(run(&kir), expected, "{index}, {stride}");
            }
        }
        assert_eq!(run(&copy(index, 13, true, AddressSpace::Workgroup(0))), vec![0.0; 100]);
    }
}

#[test]
fn arrays_of_matrices_have_no_index() {
    // The copy of the kernel numbers values anew, those of the prologue first.
    let kir = copy(0, 8, true, AddressSpace::Binding(0));
    let with_index = |place: &mut MatrixPlace| {
        place.array = Place { index: Some(place.index), stride: 4, ..place.array };
    };
    let mut load = kir.clone();
    for definition in &mut load.values {
        if let Inst::MatrixLoad(place) = &mut definition.inst {
            with_index(place);
        }
    }
    let mut store = kir;
    for stmt in &mut store.body {
        if let Stmt::MatrixStore { place, .. } = stmt {
            with_index(place);
        }
    }
    for (kir, array) in [(load, "binding0[%3 * 4]"), (store, "binding1[%3 * 4]")] {
        let error = Program::from_kir(&kir).err().expect("the kernel is rejected").to_string();
        let expected = format!("the array of a matrix, {array}, has an index");
        assert!(error.contains(&expected), "{error}");
        assert!(error.contains("help: add it to the index of the matrix"), "{error}");
    }
}

#[test]
fn loads_of_fragments_are_rejected() {
    let mut b = Builder::new("fragments", [32, 1, 1]);
    let place = Place::new(b.workgroup_array(Type::F16, 64), None, 0, 0);
    let (role, size, element) = (MatrixUse::A, MatrixSize::M8, MatrixElement::F16);
    let matrix = MatrixType { role, size, element };
    let stride = b.u32(8);
    b.load_fragment(FragmentPlace { matrix, place, stride, row_major: true });
    let error = Program::from_kir(&b.finish()).err().expect("the kernel is rejected").to_string();
    assert!(error.contains("help: use `matrix_load`"), "{error}");
}
