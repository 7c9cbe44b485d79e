//! Builds kernels in Rust, statement by statement.
//!
//! [`Builder`] is to KIR what `FunctionBuilder` is to Cranelift's IR, with these differences:
//!
//! | Cranelift | here |
//! | --- | --- |
//! | `func.signature`, stack slots | [`Builder::buffer`], [`Builder::immediates`], arrays |
//! | `declare_var`, `use_var`, `def_var` | [`Builder::var`], [`Builder::get`], [`Builder::set`] |
//! | `ins().iadd(a, b)` and others | [`Builder::binary`], [`Builder::unary`], [`Builder::fma`] |
//! | `ins().load`, `store`, `atomic_rmw` | [`Builder::load`] and others, of a [`Place`] |
//! | blocks, `brif`, `jump` | [`Builder::if_else`], [`Builder::loop_`], [`Builder::break_to`] |
//! | block parameters | variables: KIR has no phi nodes |
//! | `finalize` | [`Builder::finish`] |
//!
//! Every invocation of the grid executes the kernel. [`global_id`](Builder::global_id) and
//! [`builtin`](Builder::builtin) identify the invocation; [`barrier`](Builder::barrier) waits for
//! the others of its workgroup. The builder checks nothing:
//! [`Program::from_kir`](crate::Program::from_kir) checks the kernel, and makes every access safe.

mod statements;
mod values;

use super::{
    Access, AddressSpace, Array, Block, Buffer, Kir, Label, Place, SourceMap, Type, Value, Var,
};
use crate::Location;

/// Builds a kernel. Statements are appended to the innermost open block. Methods may panic if they
/// receive a value, variable or buffer that the builder has not returned.
///
/// ```
/// use scry_ir::kir::{Access, AddressSpace, BinaryOp, Builder, Builtin, Const, Place, Stmt, Type};
///
/// // out[i] = 2 * i
/// let mut b = Builder::new("double", [64, 1, 1]);
/// let out = b.buffer(Access::ReadWrite);
/// let group = b.builtin(Builtin::GroupId(0));
/// let size = b.constant(Const::u32(64));
/// let first = b.binary(BinaryOp::Mul, group, size);
/// let local = b.builtin(Builtin::LocalId(0));
/// let i = b.binary(BinaryOp::Add, first, local);
/// let length = b.array_length(out, 0, 4);
/// let inside = b.binary(BinaryOp::Lt, i, length);
/// b.if_then(inside, |b| {
///     let twice = b.binary(BinaryOp::Add, i, i);
///     b.store(Place::new(AddressSpace::Binding(out), Some(i), 4, 0), vec![twice]);
/// });
/// let kir = b.finish();
/// assert_eq!(kir.ty(i), Type::U32);
/// assert!(matches!(kir.body.last(), Some(Stmt::If { .. })));
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    kir: Kir,
    /// Open blocks, the outermost first. Never empty.
    open: Vec<Block>,
    /// Source location of what is added.
    at: Option<Location>,
}

impl Place {
    /// Creates the address of byte `index * stride + offset` in an address space.
    #[must_use]
    pub const fn new(space: AddressSpace, index: Option<Value>, stride: u32, offset: u32) -> Self {
        Self { space, index, stride, offset }
    }
}

/// Declarations.
impl Builder {
    /// Creates an empty kernel.
    ///
    /// ```
    /// use scry_ir::kir::Builder;
    ///
    /// let kir = Builder::new("nothing", [8, 8, 1]).finish();
    /// assert_eq!((&*kir.name, kir.workgroup_size), ("nothing", [8, 8, 1]));
    /// assert!(kir.body.is_empty());
    /// ```
    #[must_use]
    pub fn new(name: &str, workgroup_size: [u32; 3]) -> Self {
        let kir = Kir {
            name: name.to_owned(),
            workgroup_size,
            buffers: Vec::new(),
            immediates: 0,
            workgroup: Vec::new(),
            locals: Vec::new(),
            vars: Vec::new(),
            values: Vec::new(),
            body: Vec::new(),
            labels: Label::KERNEL.0 + 1,
            storage_barriers: false,
            source: SourceMap::default(),
        };
        Self { kir, open: vec![Vec::new()], at: None }
    }

    /// Creates a builder that appends to the body of a kernel.
    pub(crate) fn continuing(mut kir: Kir) -> Self {
        let body = std::mem::take(&mut kir.body);
        Self { kir, open: vec![body], at: None }
    }

    /// Adds a buffer, and returns its index in [`Kir::buffers`].
    ///
    /// ```
    /// use scry_ir::kir::{Access, Builder};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let (input, output) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    /// assert_eq!((input, output), (0, 1));
    /// assert!(b.kir().buffers[1].writable);
    /// ```
    pub fn buffer(&mut self, access: Access) -> u32 {
        let index = self.kir.buffers.len() as u32;
        let name = format!("binding{index}");
        let writable = access.writes();
        self.kir.buffers.push(Buffer { name, element: Type::U32, writable, min_size: 0 });
        index
    }

    /// Sets the name of a buffer and its element type; initially `binding0`, `binding1` and so on,
    /// and `U32`.
    ///
    /// ```
    /// use scry_ir::kir::{Access, Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let input = b.buffer(Access::Read);
    /// b.set_buffer_type(input, "weights", Type::F16);
    /// let buffer = &b.kir().buffers[0];
    /// assert_eq!((&*buffer.name, buffer.element), ("weights", Type::F16));
    /// ```
    pub fn set_buffer_type(&mut self, buffer: u32, name: &str, element: Type) {
        let buffer = &mut self.kir.buffers[buffer as usize];
        (buffer.name, buffer.element) = (name.to_owned(), element);
    }

    /// Sets the minimum size of a buffer in bytes, which is initially 0.
    /// [`Program::from_kir`](crate::Program::from_kir) ignores it, and derives the size from the
    /// kernel's accesses.
    ///
    /// ```
    /// use scry_ir::kir::{Access, Builder};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let table = b.buffer(Access::Read);
    /// b.set_buffer_min_size(table, 1024);
    /// assert_eq!(b.kir().buffers[0].min_size, 1024);
    /// ```
    pub fn set_buffer_min_size(&mut self, buffer: u32, bytes: u64) {
        self.kir.buffers[buffer as usize].min_size = bytes;
    }

    /// Sets the size of the immediate block, in bytes.
    ///
    /// ```
    /// use scry_ir::kir::{AddressSpace, Builder, Place, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// b.immediates(4);
    /// let factor = b.load(Type::F32, Place::new(AddressSpace::Immediate, None, 0, 0), 1)[0];
    /// assert_eq!((b.kir().immediates, b.ty(factor)), (4, Type::F32));
    /// ```
    pub fn immediates(&mut self, bytes: u32) {
        self.kir.immediates = bytes;
    }

    /// Adds a buffer with a name and an element type, and returns its index in [`Kir::buffers`].
    ///
    /// ```
    /// use scry_ir::kir::{Access, Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let weights = b.named_buffer("weights", Type::F16, Access::Read);
    /// assert_eq!(b.kir().buffers[0].element, Type::F16);
    /// # let _ = weights;
    /// ```
    pub fn named_buffer(&mut self, name: &str, element: Type, access: Access) -> u32 {
        let buffer = self.buffer(access);
        self.set_buffer_type(buffer, name, element);
        buffer
    }

    /// Returns the address of element `index` of a buffer, as an array of its element type.
    ///
    /// ```
    /// use scry_ir::kir::{Access, AddressSpace, Builder, Place, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let x = b.named_buffer("x", Type::F32, Access::ReadWrite);
    /// let i = b.global_id(0);
    /// let place = b.element(x, i);
    /// assert_eq!(place, Place::new(AddressSpace::Binding(x), Some(i), 4, 0));
    /// let value = b.load(Type::F32, place, 1)[0];
    /// b.store(place, vec![value]);
    /// ```
    #[must_use]
    pub fn element(&self, buffer: u32, index: Value) -> Place {
        let stride = self.kir.buffers[buffer as usize].element.size();
        Place::new(AddressSpace::Binding(buffer), Some(index), stride, 0)
    }

    /// Adds an array in workgroup memory.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, AddressSpace, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let tile = b.workgroup_array(Type::F32, 256);
    /// assert_eq!(tile, AddressSpace::Workgroup(0));
    /// assert_eq!(b.kir().workgroup[0].size(), 1024);
    /// ```
    pub fn workgroup_array(&mut self, ty: Type, len: u32) -> AddressSpace {
        self.kir.workgroup.push(Array { ty, len });
        AddressSpace::Workgroup(self.kir.workgroup.len() as u32 - 1)
    }

    /// Adds an array in the local memory of each invocation.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, AddressSpace, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let stack = b.local_array(Type::U32, 16);
    /// assert_eq!(stack, AddressSpace::Local(0));
    /// assert_eq!(b.kir().locals[0].len, 16);
    /// ```
    pub fn local_array(&mut self, ty: Type, len: u32) -> AddressSpace {
        self.kir.locals.push(Array { ty, len });
        AddressSpace::Local(self.kir.locals.len() as u32 - 1)
    }

    /// Adds a variable.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let sum = b.var(Type::F32); // zero at first
    /// let now = b.get(sum);
    /// let next = b.fma(now, now, now);
    /// b.set(sum, next);
    /// assert_eq!(b.kir().vars, [Type::F32]);
    /// ```
    pub fn var(&mut self, ty: Type) -> Var {
        self.kir.vars.push(ty);
        Var(self.kir.vars.len() as u32 - 1)
    }

    /// Sets the source location of what is added from now on. Errors show it, with the name of the
    /// source if the finished kernel has one ([`SourceMap::name`] of `Kir::source`).
    ///
    /// ```
    /// use scry_ir::Location;
    /// use scry_ir::kir::Builder;
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// b.set_position(Some(Location { line: 12, column: 5 }));
    /// let seven = b.u32(7);
    /// assert_eq!(b.kir().source.value(seven).map(|at| at.line), Some(12));
    /// ```
    pub fn set_position(&mut self, at: Option<Location>) {
        self.at = at;
    }

    /// Returns the source location that what is added receives.
    pub(crate) fn position(&self) -> Option<Location> {
        self.at
    }

    /// Returns the declarations and definitions so far. The body is empty: [`Builder::finish`] adds
    /// it.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Inst};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let seven = b.u32(7);
    /// assert!(matches!(b.kir().inst(seven), Inst::Const(_)));
    /// ```
    #[must_use]
    pub fn kir(&self) -> &Kir {
        &self.kir
    }

    /// Returns the type of a value.
    ///
    /// ```
    /// use scry_ir::kir::{BinaryOp, Builder, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let (one, two) = (b.u32(1), b.u32(2));
    /// let less = b.binary(BinaryOp::Lt, one, two);
    /// assert_eq!((b.ty(one), b.ty(less)), (Type::U32, Type::Bool));
    /// ```
    #[must_use]
    pub fn ty(&self, value: Value) -> Type {
        self.kir.ty(value)
    }

    /// Returns the finished kernel.
    ///
    /// ```
    /// use scry_ir::kir::Builder;
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let seven = b.u32(7);
    /// let kir = b.finish();
    /// assert_eq!(kir.constant(seven).map(|constant| constant.bits), Some(7));
    /// ```
    #[must_use]
    pub fn finish(mut self) -> Kir {
        debug_assert_eq!(self.open.len(), 1, "every block that was opened is closed");
        self.kir.body = self.open.pop().unwrap_or_default();
        self.kir
    }
}
