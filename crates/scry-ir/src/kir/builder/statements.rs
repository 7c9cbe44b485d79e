//! Statements of a kernel under construction.

use super::Builder;
use crate::kir::{Barrier, BinaryOp, Block, Label, MatrixPlace, Place, Stmt, Type, Value, Var};

/// Statements.
impl Builder {
    /// Appends a statement to the innermost open block, unless the block already ends with an exit.
    ///
    /// ```
    /// use scry_ir::kir::{Barrier, Builder, Stmt};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// b.push(Stmt::Barrier(Barrier::Workgroup, None)); // as `barrier` does
    /// assert_eq!(b.finish().body, [Stmt::Barrier(Barrier::Workgroup, None)]);
    /// ```
    #[inline(never)]
    pub fn push(&mut self, stmt: Stmt) {
        if let Some(block) = self.open.last_mut()
            && !matches!(block.last(), Some(Stmt::Break(_)))
        {
            block.push(stmt);
        }
    }

    /// Assigns a variable.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Stmt, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let (sum, seven) = (b.var(Type::U32), b.u32(7));
    /// b.set(sum, seven);
    /// assert_eq!(b.finish().body.last(), Some(&Stmt::Set(sum, seven)));
    /// ```
    pub fn set(&mut self, var: Var, value: Value) {
        self.push(Stmt::Set(var, value));
    }

    /// Stores one to four contiguous values.
    ///
    /// ```
    /// use scry_ir::kir::{Access, AddressSpace, Builder, Place, Stmt};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let data = b.buffer(Access::ReadWrite);
    /// let (index, seven) = (b.u32(3), b.u32(7));
    /// // data[3] = 7
    /// b.store(Place::new(AddressSpace::Binding(data), Some(index), 4, 0), vec![seven]);
    /// assert!(matches!(b.finish().body.last(), Some(Stmt::Store { .. })));
    /// ```
    pub fn store(&mut self, place: Place, values: Vec<Value>) {
        self.push(Stmt::Store { place, values, at: self.at });
    }

    /// Stores a cooperative matrix.
    ///
    /// ```
    /// use scry_ir::kir::{Access, AddressSpace, Builder, Const, MatrixElement, MatrixPlace};
    /// use scry_ir::kir::{MatrixSize, MatrixType, MatrixUse, Place, Stmt, Type};
    ///
    /// let mut b = Builder::new("example", [32, 1, 1]);
    /// let data = b.named_buffer("data", Type::F32, Access::ReadWrite);
    /// let (index, stride, zero) = (b.u32(0), b.u32(8), b.constant(Const::f32(0.0)));
    /// let (role, size, element) = (MatrixUse::C, MatrixSize::M8, MatrixElement::F32);
    /// let matrix = b.matrix_fill(MatrixType { role, size, element }, zero);
    /// let array = Place::new(AddressSpace::Binding(data), None, 0, 0);
    /// let len = Some(b.array_length(data, 0, 4));
    /// b.matrix_store(MatrixPlace { array, len, index, stride, row_major: true }, matrix);
    /// assert!(matches!(b.finish().body.last(), Some(Stmt::MatrixStore { .. })));
    /// ```
    pub fn matrix_store(&mut self, place: MatrixPlace, value: Value) {
        self.push(Stmt::MatrixStore { place, value, at: self.at });
    }

    /// Adds a barrier. One of the workgroup sets
    /// [`Kir::storage_barriers`](crate::kir::Kir::storage_barriers).
    ///
    /// ```
    /// use scry_ir::kir::{Barrier, Builder, Stmt};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// b.barrier(Barrier::Workgroup);
    /// assert_eq!(b.finish().body, [Stmt::Barrier(Barrier::Workgroup, None)]);
    /// ```
    pub fn barrier(&mut self, barrier: Barrier) {
        self.kir.storage_barriers |= barrier == Barrier::Workgroup;
        self.push(Stmt::Barrier(barrier, self.at));
    }

    /// Exits an enclosing loop or scope.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Label, Stmt};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// b.break_to(Label::KERNEL); // return
    /// b.u32(7); // never executed, and not added
    /// assert_eq!(b.finish().body, [Stmt::Break(Label::KERNEL)]);
    /// ```
    pub fn break_to(&mut self, label: Label) {
        self.push(Stmt::Break(label));
    }

    /// Opens a block; statements are appended to it until it is closed.
    ///
    /// ```
    /// use scry_ir::kir::Builder;
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// b.open();
    /// let seven = b.u32(7);
    /// assert!(b.kir().body.is_empty());
    /// assert_eq!(b.close().len(), 1); // the block with `seven`
    /// # let _ = seven;
    /// ```
    pub fn open(&mut self) {
        self.open.push(Vec::new());
    }

    /// Closes the innermost block and returns it.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Stmt};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// b.open();
    /// b.u32(7);
    /// let body = b.close();
    /// let label = b.label();
    /// b.push(Stmt::Scope { label, body });
    /// assert_eq!(b.finish().body.len(), 1);
    /// ```
    pub fn close(&mut self) -> Block {
        debug_assert!(self.open.len() > 1, "the kernel's own block is closed by `finish`");
        self.open.pop().unwrap_or_default()
    }

    /// Returns a new label.
    ///
    /// ```
    /// use scry_ir::kir::{Builder, Label};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let (first, second) = (b.label(), b.label());
    /// assert!(first != second && first != Label::KERNEL);
    /// ```
    pub fn label(&mut self) -> Label {
        let label = Label(self.kir.labels);
        self.kir.labels += 1;
        if let Some(at) = self.at {
            self.kir.source.set_label(label, at);
        }
        label
    }

    /// Adds a branch: the first closure adds the statements for a true condition, the second those
    /// for a false one.
    ///
    /// ```
    /// use scry_ir::kir::{BinaryOp, Builder, Builtin, Stmt, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let result = b.var(Type::U32);
    /// let (x, limit) = (b.builtin(Builtin::LocalId(0)), b.u32(32));
    /// let low = b.binary(BinaryOp::Lt, x, limit);
    /// b.if_else(low, |b| b.set(result, x), |b| b.set(result, limit));
    /// assert!(matches!(b.finish().body.last(), Some(Stmt::If { .. })));
    /// ```
    pub fn if_else(
        &mut self,
        condition: Value,
        then_block: impl FnOnce(&mut Self),
        else_block: impl FnOnce(&mut Self),
    ) {
        let at = self.at;
        let then_block = self.block(then_block);
        let else_block = self.block(else_block);
        self.push(Stmt::If { condition, then_block, else_block, at });
    }

    /// Adds a branch without an else block.
    ///
    /// ```
    /// use scry_ir::kir::{BinaryOp, Builder, Builtin, Label, Stmt};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let (x, limit) = (b.builtin(Builtin::LocalId(0)), b.u32(32));
    /// let beyond = b.binary(BinaryOp::Ge, x, limit);
    /// b.if_then(beyond, |b| b.break_to(Label::KERNEL));
    /// assert!(matches!(b.finish().body.last(), Some(Stmt::If { .. })));
    /// ```
    pub fn if_then(&mut self, condition: Value, then_block: impl FnOnce(&mut Self)) {
        self.if_else(condition, then_block, |_| ());
    }

    /// Adds a loop; the closure receives its label. There is no claim that the loop terminates:
    /// [`Builder::finite_loop`] makes one.
    ///
    /// ```
    /// use scry_ir::kir::{BinaryOp, Builder, Stmt, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let i = b.var(Type::U32);
    /// let (one, ten) = (b.u32(1), b.u32(10));
    /// b.loop_(|b, end| {
    ///     let now = b.get(i);
    ///     let done = b.binary(BinaryOp::Ge, now, ten);
    ///     b.if_then(done, |b| b.break_to(end));
    ///     let next = b.binary(BinaryOp::Add, now, one);
    ///     b.set(i, next);
    /// });
    /// assert!(matches!(b.finish().body.last(), Some(Stmt::Loop { finite: false, .. })));
    /// ```
    pub fn loop_(&mut self, body: impl FnOnce(&mut Self, Label)) {
        self.add_loop(false, body);
    }

    /// Adds a loop with the claim that it terminates; the closure receives its label.
    /// [`Program::from_kir`](crate::Program::from_kir) ignores the claim.
    ///
    /// ```
    /// use scry_ir::kir::{BinaryOp, Builder, Stmt, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let i = b.var(Type::U32);
    /// let (one, ten) = (b.u32(1), b.u32(10));
    /// b.finite_loop(|b, end| {
    ///     let now = b.get(i);
    ///     let done = b.binary(BinaryOp::Ge, now, ten);
    ///     b.if_then(done, |b| b.break_to(end));
    ///     let next = b.binary(BinaryOp::Add, now, one);
    ///     b.set(i, next);
    /// });
    /// assert!(matches!(b.finish().body.last(), Some(Stmt::Loop { finite: true, .. })));
    /// ```
    pub fn finite_loop(&mut self, body: impl FnOnce(&mut Self, Label)) {
        self.add_loop(true, body);
    }

    fn add_loop(&mut self, finite: bool, body: impl FnOnce(&mut Self, Label)) {
        let label = self.label();
        let body = self.block(|b| body(b, label));
        self.push(Stmt::Loop { label, body, finite });
    }

    /// Adds a loop with a counter, a `u32` from `first` up to, but not including, `end`; the
    /// closure receives the counter's value and the loop's label.
    ///
    /// ```
    /// use scry_ir::kir::{BinaryOp, Builder, Stmt, Type};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let sum = b.var(Type::U32);
    /// let (first, end) = (b.u32(0), b.u32(10));
    /// b.for_range(first, end, |b, i, _| {
    ///     let before = b.get(sum);
    ///     let after = b.binary(BinaryOp::Add, before, i);
    ///     b.set(sum, after);
    /// });
    /// assert!(matches!(b.finish().body.last(), Some(Stmt::Loop { .. })));
    /// ```
    pub fn for_range(
        &mut self,
        first: Value,
        end: Value,
        body: impl FnOnce(&mut Self, Value, Label),
    ) {
        let counter = self.var(Type::U32);
        let one = self.u32(1);
        self.set(counter, first);
        self.loop_(|b, label| {
            let now = b.get(counter);
            let done = b.binary(BinaryOp::Ge, now, end);
            b.if_then(done, |b| b.break_to(label));
            let next = b.binary(BinaryOp::Add, now, one);
            b.set(counter, next);
            body(b, now, label);
        });
    }

    /// Adds a scope: a block that [`Builder::break_to`] can exit early. The closure receives its
    /// label.
    ///
    /// ```
    /// use scry_ir::kir::{BinaryOp, Builder, Builtin, Stmt};
    ///
    /// let mut b = Builder::new("example", [64, 1, 1]);
    /// let (x, limit) = (b.builtin(Builtin::LocalId(0)), b.u32(32));
    /// let beyond = b.binary(BinaryOp::Ge, x, limit);
    /// b.scope(|b, end| {
    ///     b.if_then(beyond, |b| b.break_to(end)); // skips what follows in the scope
    ///     b.u32(7);
    /// });
    /// assert!(matches!(b.finish().body.last(), Some(Stmt::Scope { .. })));
    /// ```
    pub fn scope(&mut self, body: impl FnOnce(&mut Self, Label)) {
        let label = self.label();
        let body = self.block(|b| body(b, label));
        self.push(Stmt::Scope { label, body });
    }

    /// Suspends all open blocks but the outermost: until [`Builder::bring_back`] restores them,
    /// statements are appended to the outermost block, and so precede those of the suspended ones.
    pub(crate) fn set_aside(&mut self) -> Vec<Block> {
        self.open.split_off(1)
    }

    /// Restores suspended blocks.
    pub(crate) fn bring_back(&mut self, inner: Vec<Block>) {
        self.open.extend(inner);
    }

    fn block(&mut self, fill: impl FnOnce(&mut Self)) -> Block {
        self.open();
        fill(self);
        self.close()
    }
}
