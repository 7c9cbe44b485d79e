//! Dead code elimination.
//!
//! The roots are the operands of stores, the conditions of branches, and the instructions with
//! effects: atomic operations and uniform loads, which contain barriers. Their operands are live,
//! transitively. A variable that no live value reads loses its assignments; an array that is never
//! read loses its stores. Empty blocks and unreachable statements are removed as well. Subgroup
//! operations and matrix products have no effect: removed from all invocations, they change no
//! other result.

use super::super::{
    AddressSpace, Block, FragmentPlace, Inst, Kir, MatrixPlace, Stmt, Value, Var, for_each_stmt,
};
use super::value_map::always_exits;

/// Removes the dead code of a kernel.
pub(super) fn eliminate(kir: &mut Kir) {
    // An `If` that was removed may have been the only use of its condition. The number of sweeps is
    // limited, to bound the time.
    for _ in 0..4 {
        let removed_branch = sweep(kir);
        if !removed_branch {
            break;
        }
    }
}

/// Runs one iteration; returns whether an `If` was removed.
fn sweep(kir: &mut Kir) -> bool {
    let mut body = std::mem::take(&mut kir.body);
    let read = ReadArrays::new(kir, &body);
    let mut liveness = Liveness {
        values: vec![false; kir.values.len()],
        vars: vec![false; kir.vars.len()],
        sets: vec![Vec::new(); kir.vars.len()],
        pending: Vec::new(),
        read,
        kir,
    };
    for_each_stmt(&body, &mut |stmt| liveness.mark_roots(stmt));
    liveness.propagate();
    let Liveness { values, vars, read, .. } = liveness;
    let mut sweep = Sweep { kir, values, vars, read, removed_branch: false };
    sweep.block(&mut body);
    let removed_branch = sweep.removed_branch;
    kir.body = body;
    removed_branch
}

/// Which arrays in workgroup and local memory are read.
struct ReadArrays {
    workgroup: Vec<bool>,
    locals: Vec<bool>,
}

impl ReadArrays {
    fn new(kir: &Kir, body: &Block) -> Self {
        let (workgroup, locals) = (kir.workgroup.len(), kir.locals.len());
        let mut read = Self { workgroup: vec![false; workgroup], locals: vec![false; locals] };
        for_each_stmt(body, &mut |stmt| read.stmt(kir, stmt));
        read
    }

    fn stmt(&mut self, kir: &Kir, stmt: &Stmt) {
        if let Stmt::Let(value) = stmt
            && let Inst::Load { place, .. }
            | Inst::WorkgroupUniformLoad { place, .. }
            | Inst::Atomic { place, .. }
            | Inst::LoadFragment(FragmentPlace { place, .. })
            | Inst::MatrixLoad(MatrixPlace { array: place, .. }) = kir.inst(*value)
        {
            match place.space {
                AddressSpace::Workgroup(at) => self.workgroup[at as usize] = true,
                AddressSpace::Local(at) => self.locals[at as usize] = true,
                AddressSpace::Binding(_) | AddressSpace::Immediate => {}
            }
        }
    }

    /// Returns whether a store to this memory is observable.
    fn is_observable(&self, space: AddressSpace) -> bool {
        match space {
            AddressSpace::Binding(_) | AddressSpace::Immediate => true,
            AddressSpace::Workgroup(at) => self.workgroup[at as usize],
            AddressSpace::Local(at) => self.locals[at as usize],
        }
    }
}

/// Returns whether an instruction is kept even if its result is unused.
fn is_root(inst: &Inst) -> bool {
    matches!(inst, Inst::Atomic { .. } | Inst::WorkgroupUniformLoad { .. })
}

/// The liveness analysis.
struct Liveness<'a> {
    kir: &'a Kir,
    /// Whether each value is live.
    values: Vec<bool>,
    /// Whether each variable is live.
    vars: Vec<bool>,
    /// Values assigned to each variable. They become live with the variable, and are then removed.
    sets: Vec<Vec<Value>>,
    /// The worklist: live values whose operands have not been marked.
    pending: Vec<Value>,
    read: ReadArrays,
}

impl Liveness<'_> {
    /// Marks the roots in a statement.
    fn mark_roots(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(value) if is_root(self.kir.inst(*value)) => self.mark(*value),
            Stmt::Let(_) => {}
            Stmt::Set(var, value) => self.sets[var.index()].push(*value),
            Stmt::Store { place, .. } if !self.read.is_observable(place.space) => {}
            Stmt::MatrixStore { place, .. } if !self.read.is_observable(place.array.space) => {}
            _ => stmt.for_each_operand(|value| self.mark(value)),
        }
    }

    fn mark(&mut self, value: Value) {
        if !std::mem::replace(&mut self.values[value.index()], true) {
            self.pending.push(value);
        }
    }

    /// Marks the operands of live values.
    fn propagate(&mut self) {
        while let Some(value) = self.pending.pop() {
            let kir = self.kir;
            kir.inst(value).for_each_operand(|operand| self.mark(operand));
            if let Inst::Get(var) = *kir.inst(value) {
                self.mark_var(var);
            }
        }
    }

    fn mark_var(&mut self, var: Var) {
        self.vars[var.index()] = true;
        for value in std::mem::take(&mut self.sets[var.index()]) {
            self.mark(value);
        }
    }
}

/// Removes dead statements.
struct Sweep<'a> {
    kir: &'a mut Kir,
    /// Whether each value is live.
    values: Vec<bool>,
    /// Whether each variable is live.
    vars: Vec<bool>,
    read: ReadArrays,
    /// Whether an `If` was removed.
    removed_branch: bool,
}

impl Sweep<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut reachable = true;
        block.retain_mut(|stmt| {
            let remains = reachable && self.sweep_stmt(stmt);
            reachable = reachable && !(remains && stmt_always_exits(stmt));
            remains
        });
    }

    /// Removes dead statements nested in a statement; returns whether the statement itself remains.
    fn sweep_stmt(&mut self, stmt: &mut Stmt) -> bool {
        for block in stmt.blocks_mut() {
            self.block(block);
        }
        match stmt {
            Stmt::Let(value) => self.is_live(*value),
            Stmt::Set(var, _) => self.vars[var.index()],
            Stmt::Store { place, .. } => self.read.is_observable(place.space),
            Stmt::MatrixStore { place, .. } => self.read.is_observable(place.array.space),
            Stmt::If { then_block, else_block, .. } => {
                let remains = !(then_block.is_empty() && else_block.is_empty());
                self.removed_branch |= !remains;
                remains
            }
            Stmt::Scope { body, .. } => !body.is_empty(),
            Stmt::Loop { .. } | Stmt::Break(_) | Stmt::Barrier(..) => true,
        }
    }

    /// Returns whether a value is live; for a load, whether any of its results is. The dead results
    /// at the end of a load are removed.
    fn is_live(&mut self, value: Value) -> bool {
        let Inst::Load { count, .. } = &mut self.kir.values[value.index()].inst else {
            return self.values[value.index()];
        };
        let live = &self.values[value.index()..][..usize::from(*count)];
        let needed = live.iter().rposition(|live| *live).map_or(0, |last| last + 1);
        *count = needed.max(1) as u8;
        needed > 0
    }
}

/// Returns whether the code after a statement is unreachable.
fn stmt_always_exits(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Break(_) => true,
        Stmt::If { then_block, else_block, .. } => {
            always_exits(then_block) && always_exits(else_block)
        }
        _ => false,
    }
}
