//! Values of a kernel under construction.

use super::Builder;
use crate::kir::{
    AtomicOp, BinaryOp, Builtin, Const, Definition, FragmentPlace, Inst, MatrixPlace, MatrixType,
    Place, Stmt, SubgroupOp, Type, UnaryOp, Value, Var,
};

// The most common methods are not inlined: copies at hundreds of call sites take long to compile.
/// Values: each method adds an instruction, and returns its result.
impl Builder {
    /// Adds an instruction with a result of type `ty`.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Inst, Type, UnaryOp};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let x = b.u32(7);
    /// let bits = b.value(Type::U32, Inst::Unary(UnaryOp::CountOnes, x)); // as `unary` does
    /// assert_eq!(b.ty(bits), Type::U32);
    /// ```
    #[inline(never)]
    pub fn value(&mut self, ty: Type, inst: Inst) -> Value {
        let value = self.define(ty, inst);
        self.push(Stmt::Let(value));
        value
    }

    fn define(&mut self, ty: Type, inst: Inst) -> Value {
        let value = Value(self.kir.values.len() as u32);
        self.kir.values.push(Definition { ty, inst });
        if let Some(at) = self.at {
            self.kir.source.set_value(value, at);
        }
        value
    }

    /// Adds a constant.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let half = b.constant(Const::f32(0.5));
    /// assert_eq!(b.ty(half), Type::F32);
    /// ```
    pub fn constant(&mut self, constant: Const) -> Value {
        self.value(constant.ty, Inst::Const(constant))
    }

    /// Adds a `u32` constant.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let seven = b.u32(7);
    /// assert_eq!(b.kir().constant(seven), Some(Const::u32(7)));
    /// ```
    pub fn u32(&mut self, value: u32) -> Value {
        self.constant(Const::u32(value))
    }

    /// Adds an `i32` constant.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let minus_one = b.i32(-1);
    /// assert_eq!(b.kir().constant(minus_one), Some(Const::i32(-1)));
    /// ```
    pub fn i32(&mut self, value: i32) -> Value {
        self.constant(Const::i32(value))
    }

    /// Adds an `f32` constant.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let half = b.f32(0.5);
    /// assert_eq!(b.kir().constant(half), Some(Const::f32(0.5)));
    /// ```
    pub fn f32(&mut self, value: f32) -> Value {
        self.constant(Const::f32(value))
    }

    /// Adds the position of the invocation in the grid along an axis, 0 to 2:
    /// `group_id * workgroup_size + local_id`.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let i = b.global_id(0);
    /// assert_eq!(b.ty(i), Type::U32);
    /// ```
    ///
    /// # Panics
    /// For an axis above 2.
    pub fn global_id(&mut self, axis: u8) -> Value {
        let size = self.kir.workgroup_size[usize::from(axis)];
        let group = self.builtin(Builtin::GroupId(axis));
        let size = self.u32(size);
        let first = self.binary(BinaryOp::Mul, group, size);
        let local = self.builtin(Builtin::LocalId(axis));
        self.binary(BinaryOp::Add, first, local)
    }

    /// Adds a built-in value of the invocation, a `u32`.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Builtin, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let x = b.builtin(Builtin::LocalId(0));
    /// assert_eq!(b.ty(x), Type::U32);
    /// ```
    pub fn builtin(&mut self, builtin: Builtin) -> Value {
        self.value(Type::U32, Inst::Builtin(builtin))
    }

    /// Adds a unary operation.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const, Type, UnaryOp};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let two = b.constant(Const::f32(2.0));
    /// let root = b.unary(UnaryOp::Sqrt, two);
    /// assert_eq!(b.ty(root), Type::F32);
    /// ```
    #[inline(never)]
    pub fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        self.value(op.result(self.ty(a)), Inst::Unary(op, a))
    }

    /// Adds a binary operation.
    ///
    /// ```
    /// use scry_ir::kir::{BinaryOp, Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let (a, c) = (b.u32(6), b.u32(7));
    /// let product = b.binary(BinaryOp::Mul, a, c);
    /// let equal = b.binary(BinaryOp::Eq, product, a);
    /// assert_eq!((b.ty(product), b.ty(equal)), (Type::U32, Type::Bool));
    /// ```
    #[inline(never)]
    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        self.value(op.result(self.ty(a)), Inst::Binary(op, a, b))
    }

    /// Adds `a * b + c`, rounded once if the target has a fused multiply-add ([`Inst::Fma`]).
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let x = b.constant(Const::f32(3.0));
    /// let y = b.fma(x, x, x); // 12
    /// assert_eq!(b.ty(y), Type::F32);
    /// ```
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.value(self.ty(a), Inst::Fma(a, b, c))
    }

    /// Adds a select: `if_true` if `condition` is true, else `if_false`.
    ///
    /// ```
    /// use scry_ir::kir::{BinaryOp, Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let (a, c) = (b.u32(6), b.u32(7));
    /// let less = b.binary(BinaryOp::Lt, a, c);
    /// let smaller = b.select(less, a, c);
    /// assert_eq!(b.ty(smaller), Type::U32);
    /// ```
    pub fn select(&mut self, condition: Value, if_true: Value, if_false: Value) -> Value {
        self.value(self.ty(if_true), Inst::Select(condition, if_true, if_false))
    }

    /// Converts a value to type `ty`; returns the value itself if it has that type.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let seven = b.u32(7);
    /// let float = b.convert(Type::F32, seven);
    /// assert_eq!(b.ty(float), Type::F32);
    /// assert_eq!(b.convert(Type::F32, float), float);
    /// ```
    pub fn convert(&mut self, ty: Type, a: Value) -> Value {
        if self.ty(a) == ty { a } else { self.value(ty, Inst::Convert(a)) }
    }

    /// Reinterprets the bits of a value as a `ty` of the same size; returns the value itself if it
    /// has that type.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let one = b.constant(Const::f32(1.0));
    /// let bits = b.bitcast(Type::U32, one); // 0x3f800000
    /// assert_eq!(b.ty(bits), Type::U32);
    /// ```
    pub fn bitcast(&mut self, ty: Type, a: Value) -> Value {
        if self.ty(a) == ty { a } else { self.value(ty, Inst::Bitcast(a)) }
    }

    /// Adds the length of the runtime-sized array at byte `offset` of buffer `binding`, in elements
    /// of `stride` bytes.
    ///
    /// ```
    /// use scry_ir::kir::{Access, Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let data = b.buffer(Access::ReadWrite);
    /// let length = b.array_length(data, 0, 4); // of an array<f32>
    /// assert_eq!(b.ty(length), Type::U32);
    /// ```
    pub fn array_length(&mut self, binding: u32, offset: u32, stride: u32) -> Value {
        self.value(Type::U32, Inst::ArrayLength { binding, offset, stride })
    }

    /// Reads a variable.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let sum = b.var(Type::F32);
    /// let now = b.get(sum);
    /// assert_eq!(b.ty(now), Type::F32);
    /// ```
    pub fn get(&mut self, var: Var) -> Value {
        self.value(self.kir.vars[var.index()], Inst::Get(var))
    }

    /// Loads `count` contiguous values (1 to 4) of type `ty`.
    ///
    /// ```
    /// use scry_ir::kir::{Access, AddressSpace, Builder, Place, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let data = b.buffer(Access::Read);
    /// let index = b.u32(3);
    /// // data[3] of an array<vec4<f32>>
    /// let place = Place::new(AddressSpace::Binding(data), Some(index), 16, 0);
    /// let vector = b.load(Type::F32, place, 4);
    /// assert_eq!(vector.len(), 4);
    /// ```
    pub fn load(&mut self, ty: Type, place: Place, count: u8) -> Vec<Value> {
        self.multi_result(ty, Inst::Load { place, count })
    }

    /// Loads `count` contiguous values (1 to 4) of type `ty` from workgroup memory between two
    /// barriers; see [`Inst::WorkgroupUniformLoad`].
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Place, Type, verify};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let flag = b.workgroup_array(Type::U32, 1);
    /// let flag = b.workgroup_uniform_load(Type::U32, Place::new(flag, None, 0, 0), 1)[0];
    /// assert_eq!(b.ty(flag), Type::U32);
    /// assert_eq!(verify(&b.finish()), Ok(()));
    /// ```
    pub fn workgroup_uniform_load(&mut self, ty: Type, place: Place, count: u8) -> Vec<Value> {
        self.multi_result(ty, Inst::WorkgroupUniformLoad { place, count })
    }

    /// Adds an instruction with several results of type `ty`.
    fn multi_result(&mut self, ty: Type, inst: Inst) -> Vec<Value> {
        let first = self.value(ty, inst);
        let mut results = vec![first];
        for n in 1..inst.results() {
            results.push(self.define(ty, Inst::Extra(first, n as u8)));
        }
        results
    }

    /// Adds a cooperative matrix with equal elements.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const, MatrixElement, MatrixUse, MatrixSize, MatrixType};
    /// use scry_ir::kir::Type;
    ///
    /// let (role, size, element) = (MatrixUse::C, MatrixSize::M16, MatrixElement::F32);
    /// let mut b = Builder::new("example", [32, 1, 1]);
    /// let zero = b.constant(Const::f32(0.0));
    /// let sum = b.matrix_fill(MatrixType { role, size, element }, zero);
    /// assert_eq!(b.ty(sum), Type::Matrix(MatrixType { role, size, element }));
    /// ```
    pub fn matrix_fill(&mut self, ty: MatrixType, element: Value) -> Value {
        self.value(Type::Matrix(ty), Inst::MatrixFill(element))
    }

    /// Loads a cooperative matrix.
    ///
    /// ```
    /// use scry_ir::kir::{Access, AddressSpace, Builder, MatrixElement, MatrixPlace, MatrixUse};
    /// use scry_ir::kir::{MatrixSize, MatrixType, Place, Type};
    ///
    /// let mut b = Builder::new("example", [32, 1, 1]);
    /// let data = b.named_buffer("data", Type::F16, Access::Read);
    /// let (index, stride) = (b.u32(0), b.u32(16));
    /// let ty = MatrixType {
    ///     role: MatrixUse::A,
    ///     size: MatrixSize::M16,
    ///     element: MatrixElement::F16,
    /// };
    /// let array = Place::new(AddressSpace::Binding(data), None, 0, 0);
    /// let len = Some(b.array_length(data, 0, 2));
    /// let a = b.matrix_load(ty, MatrixPlace { array, len, index, stride, row_major: true });
    /// assert_eq!(b.ty(a), Type::Matrix(ty));
    /// ```
    pub fn matrix_load(&mut self, ty: MatrixType, place: MatrixPlace) -> Value {
        self.value(Type::Matrix(ty), Inst::MatrixLoad(place))
    }

    /// Adds the product `a * b + c` of cooperative matrices; see [`Inst::MultiplyAdd`].
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const, MatrixElement, MatrixUse, MatrixSize, MatrixType};
    ///
    /// let mut b = Builder::new("example", [32, 1, 1]);
    /// let one = b.constant(Const::f32(1.0));
    /// let [a, x, c] = [MatrixUse::A, MatrixUse::B, MatrixUse::C].map(|role| {
    ///     let (size, element) = (MatrixSize::M8, MatrixElement::F32);
    ///     b.matrix_fill(MatrixType { role, size, element }, one)
    /// });
    /// let nines = b.multiply_add(a, x, c);
    /// assert_eq!(b.ty(nines), b.ty(c));
    /// ```
    pub fn multiply_add(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.value(self.ty(c), Inst::MultiplyAdd(a, b, c))
    }

    /// Loads the elements of a matrix that this lane holds (as PTX's `ldmatrix`); see
    /// [`Inst::LoadFragment`].
    ///
    /// ```
    /// use scry_ir::kir::{Builder, FragmentPlace, Inst, MatrixElement, MatrixSize, MatrixType};
    /// use scry_ir::kir::{MatrixUse, Place, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let tile = b.workgroup_array(Type::F16, 256);
    /// let matrix = MatrixType {
    ///     role: MatrixUse::A,
    ///     size: MatrixSize::M16,
    ///     element: MatrixElement::F16,
    /// };
    /// let (place, stride) = (Place::new(tile, None, 0, 0), b.u32(16));
    /// let elements = b.load_fragment(FragmentPlace { matrix, place, stride, row_major: true });
    /// assert_eq!(elements.len(), 8);
    /// assert!(matches!(b.kir().inst(elements[0]), Inst::LoadFragment(_)));
    /// ```
    pub fn load_fragment(&mut self, from: FragmentPlace) -> Vec<Value> {
        self.multi_result(from.matrix.element.ty(), Inst::LoadFragment(from))
    }

    /// Adds the product `a * b + c` of matrix fragments (as PTX's `mma`); see
    /// [`Inst::MultiplyFragments`].
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Const, Inst, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let zero = b.constant(Const::zero(Type::F32));
    /// let sum = b.multiply_fragments([zero; 4], [zero; 2], [zero; 4]);
    /// assert_eq!(sum.len(), 4);
    /// assert!(matches!(b.kir().inst(sum[0]), Inst::MultiplyFragments { .. }));
    /// ```
    pub fn multiply_fragments(
        &mut self,
        a: [Value; 4],
        b: [Value; 2],
        c: [Value; 4],
    ) -> Vec<Value> {
        self.multi_result(self.ty(c[0]), Inst::MultiplyFragments { a, b, c })
    }

    /// Adds an atomic operation; its result is the previous value. `value` is the operand, which
    /// only a load does not have; `compare` is the comparand, which only a compare-exchange has.
    ///
    /// ```
    /// use scry_ir::kir::{Access, AddressSpace, AtomicOp, Builder, Place, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let counters = b.buffer(Access::ReadWrite);
    /// let one = b.u32(1);
    /// let place = Place::new(AddressSpace::Binding(counters), None, 0, 0);
    /// let before = b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None);
    /// assert_eq!(b.ty(before), Type::U32);
    /// ```
    pub fn atomic(
        &mut self,
        ty: Type,
        op: AtomicOp,
        place: Place,
        value: Option<Value>,
        compare: Option<Value>,
    ) -> Value {
        self.value(ty, Inst::Atomic { op, place, value, compare })
    }

    /// Adds a subgroup operation.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, GroupOperation, Reduction, SubgroupOp, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let one = b.u32(1);
    /// let (op, group) = (Reduction::Add, GroupOperation::Reduce);
    /// let count = b.subgroup(SubgroupOp::Reduce { op, group, value: one });
    /// assert_eq!(b.ty(count), Type::U32);
    /// ```
    pub fn subgroup(&mut self, op: SubgroupOp) -> Value {
        let ty = match op {
            SubgroupOp::Ballot { .. } => Type::U32,
            SubgroupOp::Reduce { value, .. } | SubgroupOp::Shuffle { value, .. } => self.ty(value),
        };
        self.value(ty, Inst::Subgroup(op))
    }
}
