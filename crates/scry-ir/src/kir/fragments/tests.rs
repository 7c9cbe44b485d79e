//! Tests of [`Inst::LoadFragment`]: where it replaces scalar loads, and that it equals them.

use crate::Access;
use crate::kir::interpret::{InterpretError, Interpreter};
use crate::kir::{
    AddressSpace, BinaryOp, Builder, Builtin, FragmentLayout, FragmentPlace, Inst, Kir, LaneBits,
    MatrixElement, MatrixFragments, MatrixPlace, MatrixSize, MatrixType, MatrixUse, Place, Stmt,
    Type, Value, for_each_stmt, verify,
};

/// Elements of the array in workgroup memory.
const ELEMENTS: u32 = 1024;

/// The layout of the reference interpreter, which is that of PTX, for all tests of fragments: the
/// lanes of a group of four have consecutive pairs of elements of a row, or of a column for right
/// operands.
pub(in crate::kir) const FRAGMENTS: MatrixFragments = {
    let (group, pair) = (LaneBits { shift: 2, scale: 1 }, LaneBits { shift: 0, scale: 2 });
    let rows = FragmentLayout { row: group, column: pair, steps: [[0, 1], [8, 0], [0, 8]] };
    let columns = FragmentLayout { row: pair, column: group, steps: [[1, 0], [8, 0], [0, 8]] };
    MatrixFragments { a: rows, b: columns, c: rows, has_load: false }
};

/// [`FRAGMENTS`] with loads of whole fragments.
const WITH_LOADS: MatrixFragments = MatrixFragments { has_load: true, ..FRAGMENTS };

/// The matrix of a test kernel: its type, and its index, stride and layout in the array.
#[derive(Debug, Clone, Copy)]
struct Case {
    ty: MatrixType,
    index: u32,
    stride: u32,
    row_major: bool,
    /// Whether the load has the length of the array, so that it may be out of bounds.
    checked: bool,
}

impl Case {
    /// Returns the case of an aligned matrix.
    fn new(role: MatrixUse, size: MatrixSize, row_major: bool) -> Self {
        let ty = MatrixType { role, size, element: MatrixElement::F16 };
        Self { ty, index: 24, stride: 40, row_major, checked: true }
    }

    /// Returns a kernel that copies the matrix to a buffer, twice: after a store to its first
    /// element, and after another one.
    fn kernel(self) -> Kir {
        let mut b = Builder::new("copy", [32, 1, 1]);
        let source = AddressSpace::Binding(b.named_buffer("source", Type::F16, Access::Read));
        let out = AddressSpace::Binding(b.named_buffer("out", Type::F16, Access::ReadWrite));
        let tile = b.workgroup_array(Type::F16, ELEMENTS);
        let lane = b.builtin(Builtin::LocalId(0));
        let [first, end, lanes] = [0, ELEMENTS / 32, 32].map(|value| b.u32(value));
        b.for_range(first, end, |b, nth, _| {
            let preceding = b.binary(BinaryOp::Mul, nth, lanes);
            let index = b.binary(BinaryOp::Add, preceding, lane);
            let element = b.load(Type::F16, Place::new(source, Some(index), 2, 0), 1)[0];
            b.store(Place::new(tile, Some(index), 2, 0), vec![element]);
        });
        let [index, stride, len, row] =
            [self.index, self.stride, ELEMENTS, self.ty.size.rows()].map(|value| b.u32(value));
        for nth in 0..2 {
            let one = b.load(Type::F16, Place::new(source, None, 2, nth * 2), 1)[0];
            b.store(Place::new(tile, Some(index), 2, 0), vec![one]);
            let array = Place::new(tile, None, 2, 0);
            let (row_major, len) = (self.row_major, self.checked.then_some(len));
            let place = MatrixPlace { array, len, index, stride, row_major };
            let matrix = b.matrix_load(self.ty, place);
            let array = Place::new(out, None, 2, nth * 512);
            let place =
                MatrixPlace { array, len: None, index: first, stride: row, row_major: true };
            b.matrix_store(place, matrix);
        }
        b.finish()
    }

    /// Executes the kernel with and without loads of fragments; returns how many there are.
    #[track_caller]
    fn loads(self) -> usize {
        let [scalars, fragments] = [FRAGMENTS, WITH_LOADS].map(|layout| {
            let kir = self.kernel().with_fragments(&layout);
            verify(&kir).unwrap_or_else(|error| panic!("{error}\n{kir}"));
            (run(&kir).unwrap_or_else(|error| panic!("{error}\n{kir}")), count_loads(&kir))
        });
        assert_eq!(scalars.0, fragments.0, "{self:?}");
        assert_eq!(scalars.1, 0);
        fragments.1
    }
}

fn run(kir: &Kir) -> Result<Vec<u8>, InterpretError> {
    let source = (0..ELEMENTS).flat_map(|n| (n as u16 + 1).to_le_bytes()).collect();
    let mut interpreter = Interpreter::new(kir, vec![source, vec![0; 1024]]);
    interpreter.subgroup_size = 32;
    interpreter.run([1, 1, 1])?;
    Ok(interpreter.buffers.swap_remove(1))
}

fn count_loads(kir: &Kir) -> usize {
    let mut count = 0;
    for_each_stmt(&kir.body, &mut |stmt| {
        let is_load = |value: &Value| matches!(kir.inst(*value), Inst::LoadFragment(_));
        count += usize::from(matches!(stmt, Stmt::Let(value) if is_load(value)));
    });
    count
}

/// Every role, size and layout.
fn cases() -> impl Iterator<Item = Case> {
    let roles = [MatrixUse::A, MatrixUse::B, MatrixUse::C];
    let with_size = |role| [MatrixSize::M8, MatrixSize::M16].map(|size| (role, size));
    let all = roles.into_iter().flat_map(with_size);
    all.flat_map(|(role, size)| [true, false].map(|row_major| Case::new(role, size, row_major)))
}

#[test]
fn aligned_matrices_are_loaded_whole() {
    for case in cases() {
        assert_eq!(case.loads(), 2, "{case:?}");
        assert_eq!(Case { checked: false, ..case }.loads(), 2, "{case:?}");
    }
}

#[test]
fn misaligned_matrices_are_loaded_as_scalars() {
    for case in cases() {
        assert_eq!(Case { index: 20, ..case }.loads(), 0, "{case:?}");
        assert_eq!(Case { stride: 44, ..case }.loads(), 0, "{case:?}");
    }
}

#[test]
fn partial_matrices_are_loaded_as_scalars() {
    for case in cases() {
        let last_line = case.ty.size.rows() - 1;
        let max_index = ELEMENTS - (last_line * case.stride + last_line + 1);
        assert_eq!(Case { index: max_index & !7, ..case }.loads(), 2, "{case:?}");
        assert_eq!(Case { index: (max_index & !7) + 8, ..case }.loads(), 0, "{case:?}");
    }
}

/// Returns a kernel that loads fragments, after a store if `stores`, and stores their elements.
fn repeated(stores: bool) -> Kir {
    let mut b = Builder::new("repeated", [32, 1, 1]);
    b.named_buffer("source", Type::F16, Access::Read);
    let out = AddressSpace::Binding(b.named_buffer("out", Type::F16, Access::ReadWrite));
    let tile = b.workgroup_array(Type::F16, ELEMENTS);
    let (place, stride) = (Place::new(tile, None, 2, 0), b.u32(16));
    let matrix = Case::new(MatrixUse::A, MatrixSize::M8, true).ty;
    let from = FragmentPlace { matrix, place, stride, row_major: true };
    for nth in 0..2 {
        let elements = b.load_fragment(from);
        b.store(Place::new(out, None, 2, nth * 4), elements.clone());
        if stores {
            b.store(Place::new(tile, None, 2, 0), vec![elements[1]]);
        }
    }
    b.finish()
}

#[test]
fn loads_merge_unless_memory_changes() {
    let count = |stores| count_loads(&repeated(stores).with_fragments(&WITH_LOADS));
    assert_eq!([count(false), count(true)], [1, 2]);
}

#[test]
fn interpreter_reports_misaligned_lines() {
    let mut kir = repeated(false);
    assert!(run(&kir).is_ok());
    for definition in &mut kir.values {
        if let Inst::LoadFragment(from) = &mut definition.inst {
            from.place.offset = 8;
        }
    }
    let error = run(&kir).expect_err("the matrix is misaligned");
    assert!(matches!(error, InterpretError::Misaligned { byte: 8, size: 16, .. }), "{error}");
}
