//! Makes kernels, statement by statement.

use super::{
    Array, AtomicOp, Barrier, BinaryOp, Block, Buffer, Builtin, Const, Definition, Inst, Kir,
    Label, Place, Space, Stmt, SubgroupOp, Type, UnaryOp, Value, Var,
};

/// A kernel being made. Statements go to the end of the innermost open block.
///
/// ```
/// use scry_ir::kir::{BinaryOp, Builder, Builtin, Const, Place, Space, Stmt, Type};
///
/// // out[i] = 2 * i
/// let mut b = Builder::new("double", [64, 1, 1]);
/// let out = b.buffer(true);
/// let group = b.builtin(Builtin::GroupId(0));
/// let size = b.constant(Const::u32(64));
/// let first = b.binary(BinaryOp::Mul, group, size);
/// let local = b.builtin(Builtin::LocalId(0));
/// let i = b.binary(BinaryOp::Add, first, local);
/// let length = b.array_length(out, 0, 4);
/// let inside = b.binary(BinaryOp::Lt, i, length);
/// b.if_then(inside, |b| {
///     let twice = b.binary(BinaryOp::Add, i, i);
///     b.store(Place::new(Space::Binding(out), Some(i), 4, 0), vec![twice]);
/// });
/// let kir = b.finish();
/// assert_eq!(kir.ty(i), Type::U32);
/// assert!(matches!(kir.body.last(), Some(Stmt::If { .. })));
/// ```
#[derive(Debug)]
pub struct Builder {
    kir: Kir,
    /// Open blocks, the outermost first. Never empty.
    open: Vec<Block>,
}

impl Place {
    /// The place at byte `index * stride + offset` of a space.
    #[must_use]
    pub const fn new(space: Space, index: Option<Value>, stride: u32, offset: u32) -> Self {
        Self { space, index, stride, offset }
    }
}

/// What a kernel has.
impl Builder {
    /// An empty kernel.
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
        };
        Self { kir, open: vec![Vec::new()] }
    }

    /// Adds a buffer, and gives its position.
    pub fn buffer(&mut self, writable: bool) -> u32 {
        self.kir.buffers.push(Buffer { writable, size: 0 });
        self.kir.buffers.len() as u32 - 1
    }

    /// Says how many bytes a buffer has for certain, whatever is bound; nothing is said at first.
    pub fn buffer_size(&mut self, buffer: u32, bytes: u64) {
        self.kir.buffers[buffer as usize].size = bytes;
    }

    /// Sets the size of the immediate block, in bytes.
    pub fn immediates(&mut self, bytes: u32) {
        self.kir.immediates = bytes;
    }

    /// Adds an array that the workgroup shares.
    pub fn workgroup_array(&mut self, ty: Type, len: u32) -> Space {
        self.kir.workgroup.push(Array { ty, len });
        Space::Workgroup(self.kir.workgroup.len() as u32 - 1)
    }

    /// Adds an array of each invocation.
    pub fn local_array(&mut self, ty: Type, len: u32) -> Space {
        self.kir.locals.push(Array { ty, len });
        Space::Local(self.kir.locals.len() as u32 - 1)
    }

    /// Adds a variable.
    pub fn var(&mut self, ty: Type) -> Var {
        self.kir.vars.push(ty);
        Var(self.kir.vars.len() as u32 - 1)
    }

    /// What has been made so far; statements of open blocks are not yet in it.
    #[must_use]
    pub fn kir(&self) -> &Kir {
        &self.kir
    }

    /// The type of a value.
    #[must_use]
    pub fn ty(&self, value: Value) -> Type {
        self.kir.ty(value)
    }

    /// The kernel, with all that was added.
    #[must_use]
    pub fn finish(mut self) -> Kir {
        debug_assert_eq!(self.open.len(), 1, "every block that was opened is closed");
        self.kir.body = self.open.pop().unwrap_or_default();
        self.kir
    }
}

// The commonest of these stay calls: copies at each of a hundred places take long to build.
/// Values.
impl Builder {
    /// Computes a value of type `ty` here.
    #[inline(never)]
    pub fn value(&mut self, ty: Type, inst: Inst) -> Value {
        let value = self.define(ty, inst);
        self.push(Stmt::Let(value));
        value
    }

    fn define(&mut self, ty: Type, inst: Inst) -> Value {
        self.kir.values.push(Definition { ty, inst });
        Value(self.kir.values.len() as u32 - 1)
    }

    /// A constant.
    pub fn constant(&mut self, constant: Const) -> Value {
        self.value(constant.ty, Inst::Const(constant))
    }

    /// A `u32` constant.
    pub fn u32(&mut self, value: u32) -> Value {
        self.constant(Const::u32(value))
    }

    /// A fact about the invocation, a `u32`.
    pub fn builtin(&mut self, builtin: Builtin) -> Value {
        self.value(Type::U32, Inst::Builtin(builtin))
    }

    /// A function of one operand.
    #[inline(never)]
    pub fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        self.value(op.result(self.ty(a)), Inst::Unary(op, a))
    }

    /// A function of two operands.
    #[inline(never)]
    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        self.value(op.result(self.ty(a)), Inst::Binary(op, a, b))
    }

    /// `a * b + c`.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.value(self.ty(a), Inst::Fma(a, b, c))
    }

    /// `accept` where `condition` holds, else `reject`.
    pub fn select(&mut self, condition: Value, accept: Value, reject: Value) -> Value {
        self.value(self.ty(accept), Inst::Select(condition, accept, reject))
    }

    /// The same number as a `ty`; the value itself if it is one.
    pub fn convert(&mut self, ty: Type, a: Value) -> Value {
        if self.ty(a) == ty { a } else { self.value(ty, Inst::Convert(a)) }
    }

    /// The same bits as a `ty` of the same size; the value itself if it is one.
    pub fn bitcast(&mut self, ty: Type, a: Value) -> Value {
        if self.ty(a) == ty { a } else { self.value(ty, Inst::Bitcast(a)) }
    }

    /// Elements of the runtime-sized array that begins at byte `offset` of a buffer.
    pub fn array_length(&mut self, binding: u32, offset: u32, stride: u32) -> Value {
        self.value(Type::U32, Inst::ArrayLength { binding, offset, stride })
    }

    /// What a variable holds now.
    pub fn get(&mut self, var: Var) -> Value {
        self.value(self.kir.vars[var.index()], Inst::Get(var))
    }

    /// Reads `count` values (1 to 4) of type `ty`, one after the other.
    pub fn load(&mut self, ty: Type, place: Place, count: u8) -> Vec<Value> {
        self.several(ty, Inst::Load { place, count })
    }

    /// Computes values of type `ty` by an instruction that gives several.
    fn several(&mut self, ty: Type, inst: Inst) -> Vec<Value> {
        let first = self.value(ty, inst);
        let mut results = vec![first];
        for nth in 1..inst.results() {
            results.push(self.define(ty, Inst::Extra(first, nth as u8)));
        }
        results
    }

    /// `a * b + c` of matrices; see [`Inst::MultiplyAdd`].
    pub fn multiply_add(&mut self, a: [Value; 4], b: [Value; 2], c: [Value; 4]) -> Vec<Value> {
        self.several(self.ty(c[0]), Inst::MultiplyAdd { a, b, c })
    }

    /// Changes memory as one step; gives what was there before.
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

    /// Exchange within the subgroup.
    pub fn subgroup(&mut self, op: SubgroupOp) -> Value {
        let ty = match op {
            SubgroupOp::Ballot { .. } => Type::U32,
            SubgroupOp::Reduce { value, .. } | SubgroupOp::Shuffle { value, .. } => self.ty(value),
        };
        self.value(ty, Inst::Subgroup(op))
    }
}

/// Statements.
impl Builder {
    /// Adds a statement to the innermost open block, unless that block has been left already.
    #[inline(never)]
    pub fn push(&mut self, stmt: Stmt) {
        if let Some(block) = self.open.last_mut()
            && !matches!(block.last(), Some(Stmt::Leave(_)))
        {
            block.push(stmt);
        }
    }

    /// Assigns a variable.
    pub fn set(&mut self, var: Var, value: Value) {
        self.push(Stmt::Set(var, value));
    }

    /// Writes one to four values, one after the other.
    pub fn store(&mut self, place: Place, values: Vec<Value>) {
        self.push(Stmt::Store { place, values });
    }

    /// Waits for the others.
    pub fn barrier(&mut self, barrier: Barrier) {
        self.push(Stmt::Barrier(barrier));
    }

    /// Goes on after an enclosing loop or scope.
    pub fn leave(&mut self, label: Label) {
        self.push(Stmt::Leave(label));
    }

    /// Opens a block; statements go there until it is closed.
    pub fn open(&mut self) {
        self.open.push(Vec::new());
    }

    /// Closes the innermost block and gives it.
    pub fn close(&mut self) -> Block {
        debug_assert!(self.open.len() > 1, "the kernel's own block is closed by `finish`");
        self.open.pop().unwrap_or_default()
    }

    /// A label that names nothing yet.
    pub fn label(&mut self) -> Label {
        self.kir.labels += 1;
        Label(self.kir.labels - 1)
    }

    /// One of two blocks.
    pub fn if_else(
        &mut self,
        condition: Value,
        accept: impl FnOnce(&mut Self),
        reject: impl FnOnce(&mut Self),
    ) {
        let accept = self.block(accept);
        let reject = self.block(reject);
        self.push(Stmt::If { condition, accept, reject });
    }

    /// A block that is executed if a condition holds.
    pub fn if_then(&mut self, condition: Value, accept: impl FnOnce(&mut Self)) {
        self.if_else(condition, accept, |_| ());
    }

    /// A loop; the closure gets its label. Say that it is finite only if that is proven.
    pub fn repeat(&mut self, finite: bool, body: impl FnOnce(&mut Self, Label)) {
        let label = self.label();
        let body = self.block(|b| body(b, label));
        self.push(Stmt::Loop { label, body, finite });
    }

    /// A block that can be left; the closure gets its label.
    pub fn scope(&mut self, body: impl FnOnce(&mut Self, Label)) {
        let label = self.label();
        let body = self.block(|b| body(b, label));
        self.push(Stmt::Scope { label, body });
    }

    /// Puts all open blocks but the outermost aside: statements go to the outermost, before what
    /// the others will become, until those are brought back.
    pub(crate) fn set_aside(&mut self) -> Vec<Block> {
        self.open.split_off(1)
    }

    /// Opens blocks that were put aside again.
    pub(crate) fn bring_back(&mut self, inner: Vec<Block>) {
        self.open.extend(inner);
    }

    fn block(&mut self, fill: impl FnOnce(&mut Self)) -> Block {
        self.open();
        fill(self);
        self.close()
    }
}
