//! Common subexpression elimination, of computations and loads.
//!
//! A value is replaced by an equal one that dominates it: computed before, in this block or an
//! enclosing one. Constants and other instructions without operands are hoisted to the start of the
//! kernel.
//!
//! Reads are replaced as long as the content cannot have changed: a variable until it is assigned,
//! memory until this invocation stores to it, an atomic operation is executed, or a barrier makes
//! the stores of other invocations visible. Read-only buffers never change. Other concurrent stores
//! are data races, for which either value is correct.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::super::{AddressSpace, Block, Inst, Kir, Place, Stmt, Type, Value, Var};
use super::algebraic::commutes;
use super::value_map::{Assigned, ValueMap, diverges, escapes};

/// Merges the common subexpressions of a kernel.
pub(super) fn cse(kir: &mut Kir) {
    let body = std::mem::take(&mut kir.body);
    let mut cse = Cse {
        map: ValueMap::new(kir.values.len()),
        loops: Assigned::new(&body),
        start: Vec::new(),
        table: HashMap::default(),
        added: Vec::new(),
        vars: vec![Content::Zero; kir.vars.len()],
        learned: Vec::new(),
        assigned: Vec::new(),
        memory: Memory::default(),
        kir,
    };
    let rest = cse.block(body);
    let mut body = std::mem::take(&mut cse.start);
    body.extend(rest);
    kir.body = body;
}

/// The key of equal computations: type and instruction, and for a load the version of memory.
type Key = (Type, Inst, u32);

/// The content of a variable.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    Unknown,
    /// The initial zero.
    Zero,
    Value(Value),
}

struct Cse<'a> {
    kir: &'a mut Kir,
    map: ValueMap,
    loops: Assigned,
    /// Instructions hoisted to the start of the kernel.
    start: Block,
    /// The available expressions; `None` where they are no longer visible. The hash is fast and
    /// seeded per process, so that no source can provoke collisions.
    table: HashMap<Key, Option<Value>, RandomState>,
    /// Keys added to the table, except at the start of the kernel.
    added: Vec<Key>,
    vars: Vec<Content>,
    /// Undo log of contents of variables.
    learned: Vec<(Var, Content)>,
    /// Variables that were assigned, in order.
    assigned: Vec<Var>,
    memory: Memory,
}

/// Version numbers of memory, incremented at every change.
#[derive(Default)]
struct Memory {
    clock: u32,
    /// Versions of all memory, and of shared memory.
    everything: u32,
    shared: u32,
    spaces: Vec<(AddressSpace, u32)>,
}

impl Memory {
    fn state(&self, space: AddressSpace) -> u32 {
        let own = self.spaces.iter().find(|(of, _)| *of == space).map_or(0, |(_, at)| *at);
        let shared = if matches!(space, AddressSpace::Local(_)) { 0 } else { self.shared };
        own.max(shared).max(self.everything)
    }

    fn change(&mut self, space: AddressSpace) {
        self.clock += 1;
        match self.spaces.iter_mut().find(|(of, _)| *of == space) {
            Some((_, at)) => *at = self.clock,
            None => self.spaces.push((space, self.clock)),
        }
    }

    fn change_shared(&mut self) {
        self.clock += 1;
        self.shared = self.clock;
    }

    fn change_everything(&mut self) {
        self.clock += 1;
        self.everything = self.clock;
    }
}

impl Cse<'_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        for stmt in block {
            self.stmt(stmt, &mut out);
        }
        out
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Block) {
        self.map.rename_stmt(&mut stmt);
        match stmt {
            Stmt::Let(value) => return self.value(value, out),
            Stmt::Set(var, value) if !self.set(var, value) => return,
            Stmt::If { ref mut then_block, ref mut else_block, .. } => {
                self.branch(then_block, else_block)
            }
            Stmt::Loop { label, ref mut body, .. } => {
                self.memory.change_everything();
                for nth in 0..self.loops.within(label).len() {
                    self.learn(self.loops.within(label)[nth], Content::Unknown);
                }
                let first = self.assigned.len();
                self.nested(body);
                self.forget(first);
            }
            Stmt::Scope { ref mut body, .. } => self.scope(body),
            Stmt::Barrier(..) => self.memory.change_shared(),
            Stmt::Store { place, ref values, .. } => self.store(place, values),
            Stmt::MatrixStore { place, .. } => self.memory.change(place.array.space),
            Stmt::Set(..) | Stmt::Leave(_) => {}
        }
        out.push(stmt);
    }

    /// Processes the two blocks of a branch.
    fn branch(&mut self, then_block: &mut Block, else_block: &mut Block) {
        let first = self.assigned.len();
        self.nested(then_block);
        let second = self.assigned.len();
        self.nested(else_block);
        // Changes in a block that exits do not affect what follows.
        if !diverges(else_block) {
            self.forget(second);
        }
        if !diverges(then_block) {
            self.forget_some(first, second);
        }
    }

    /// Processes a block whose values are not visible after it.
    fn nested(&mut self, block: &mut Block) {
        let (added, learned) = (self.added.len(), self.learned.len());
        *block = self.block(std::mem::take(block));
        self.hide(added);
        self.unlearn(learned);
    }

    /// A scope's values remain visible if it cannot have been left before them.
    fn scope(&mut self, body: &mut Block) {
        let (first, learned) = (self.assigned.len(), self.learned.len());
        let mut visible = None;
        let block = std::mem::take(body);
        for stmt in block {
            if visible.is_none() && escapes(&stmt) {
                visible = Some(self.added.len());
            }
            self.stmt(stmt, body);
        }
        self.hide(visible.unwrap_or(self.added.len()));
        self.unlearn(learned);
        self.forget(first);
    }

    /// Removes the expressions added since the table had `count` entries.
    fn hide(&mut self, count: usize) {
        for key in self.added.drain(count..) {
            self.table.insert(key, None);
        }
    }

    fn learn(&mut self, var: Var, known: Content) {
        let before = std::mem::replace(&mut self.vars[var.index()], known);
        self.learned.push((var, before));
    }

    fn unlearn(&mut self, count: usize) {
        for (var, before) in self.learned.drain(count..).rev() {
            self.vars[var.index()] = before;
        }
    }

    /// Marks assigned variables as unknown.
    fn forget(&mut self, first: usize) {
        self.forget_some(first, self.assigned.len());
    }

    fn forget_some(&mut self, first: usize, end: usize) {
        for nth in first..end {
            self.learn(self.assigned[nth], Content::Unknown);
        }
    }

    /// Records an assignment; returns whether it changes the content.
    fn set(&mut self, var: Var, value: Value) -> bool {
        let unchanged = match self.vars[var.index()] {
            Content::Unknown => false,
            Content::Zero => self.kir.constant(value).is_some_and(|constant| constant.bits == 0),
            Content::Value(known) => known == value,
        };
        if !unchanged {
            self.learn(var, Content::Value(value));
            self.assigned.push(var);
        }
        !unchanged
    }

    fn store(&mut self, place: Place, values: &[Value]) {
        self.memory.change(place.space);
        let state = self.memory.state(place.space);
        for (nth, value) in (0..).zip(values) {
            let ty = self.kir.ty(*value);
            let Some(offset) = place.offset.checked_add(nth * ty.size()) else { return };
            let place = Place { offset, ..place };
            let key = key(self.kir, ty, Inst::Load { place, count: 1 }, state);
            if self.table.insert(key, Some(*value)).flatten().is_none() {
                self.added.push(key);
            }
        }
    }

    fn value(&mut self, value: Value, out: &mut Block) {
        let definition = &mut self.kir.values[value.index()];
        self.map.rename(&mut definition.inst);
        let ty = definition.ty;
        match definition.inst {
            Inst::Get(var) => return self.get(value, var, out),
            Inst::Load { place, count } => {
                let state =
                    if self.changes(place.space) { self.memory.state(place.space) } else { 0 };
                return self.merge(value, state, count, out);
            }
            Inst::Atomic { .. } | Inst::WorkgroupUniformLoad { .. } => self.memory.change_shared(),
            Inst::Const(_) | Inst::Builtin(_) | Inst::ArrayLength { .. } => {
                let key = (ty, definition.inst, 0);
                let start = &mut self.start;
                let same = *self.table.entry(key).or_default().get_or_insert_with(|| {
                    start.push(Stmt::Let(value));
                    value
                });
                return self.map.replace(value, same);
            }
            inst if inst.is_pure() => return self.merge(value, 0, 1, out),
            _ => {}
        }
        out.push(Stmt::Let(value));
    }

    /// Returns whether memory can change while the kernel runs.
    fn changes(&self, space: AddressSpace) -> bool {
        match space {
            AddressSpace::Binding(binding) => self.kir.buffers[binding as usize].writable,
            AddressSpace::Immediate => false,
            AddressSpace::Workgroup(_) | AddressSpace::Local(_) => true,
        }
    }

    fn get(&mut self, value: Value, var: Var, out: &mut Block) {
        match self.vars[var.index()] {
            Content::Value(known) => self.map.replace(value, known),
            Content::Unknown => {
                self.learn(var, Content::Value(value));
                out.push(Stmt::Let(value));
            }
            Content::Zero => {
                let zero = super::super::Const::zero(self.kir.vars[var.index()]);
                self.kir.values[value.index()].inst = Inst::Const(zero);
                self.value(value, out);
            }
        }
    }

    /// Replaces a value by an equal one, or records it as available.
    fn merge(&mut self, value: Value, state: u32, count: u8, out: &mut Block) {
        let definition = self.kir.values[value.index()];
        let key = key(self.kir, definition.ty, definition.inst, state);
        if let Some(Some(same)) = self.table.get(&key) {
            for nth in 0..u32::from(count) {
                self.map.replace(Value(value.0 + nth), Value(same.0 + nth));
            }
            return;
        }
        self.table.insert(key, Some(value));
        self.added.push(key);
        out.push(Stmt::Let(value));
    }
}

/// Returns the key of an instruction in canonical form.
fn key(kir: &Kir, ty: Type, mut inst: Inst, state: u32) -> Key {
    match &mut inst {
        Inst::Binary(op, a, b) if *a > *b && commutes(*op, kir.ty(*a)) => std::mem::swap(a, b),
        Inst::Fma(a, b, _) if *a > *b => std::mem::swap(a, b),
        Inst::Load { place, .. } if place.index.is_none() => place.stride = 0,
        _ => {}
    }
    (ty, inst, state)
}
