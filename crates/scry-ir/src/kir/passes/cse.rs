//! Common subexpression elimination, of computations and loads.
//!
//! A value is replaced by an equal one that dominates it: computed before, in this block or an
//! enclosing one. Constants and other instructions without operands are hoisted to the start of the
//! kernel.
//!
//! Reads are replaced as long as the content cannot have changed. A variable is unchanged until it
//! is assigned. Memory is unchanged until this invocation stores to it or executes an atomic
//! operation, or a barrier makes the stores of other invocations visible. Read-only buffers never
//! change. Other concurrent stores are data races, for which either value is correct.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::super::{AddressSpace, Block, FragmentPlace, Inst, Kir, Place, Stmt, Type, Value, Var};
use super::algebraic::commutes;
use super::value_map::{LoopAssignments, ValueMap, always_exits, may_exit};

/// Merges the common subexpressions of a kernel.
pub(super) fn cse(kir: &mut Kir) {
    let body = std::mem::take(&mut kir.body);
    let mut cse = Cse {
        map: ValueMap::new(kir.values.len()),
        loops: LoopAssignments::new(&body),
        start: Vec::new(),
        table: HashMap::default(),
        added: Vec::new(),
        vars: kir.vars.iter().map(|ty| Content::initial(*ty)).collect(),
        var_trail: Vec::new(),
        assigned: Vec::new(),
        memory: Memory::default(),
        kir,
    };
    let rest = cse.block(body);
    let mut body = std::mem::take(&mut cse.start);
    body.extend(rest);
    kir.body = body;
}

/// The key of equal computations: type and instruction, and for a load the version of memory (0 if
/// it never changes).
type Key = (Type, Inst, u32);

/// The content of a variable.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    Unknown,
    /// The initial zero.
    Zero,
    Value(Value),
}

impl Content {
    /// Returns the content of a variable at the start of the kernel. No constant is a matrix.
    fn initial(ty: Type) -> Self {
        if ty.matrix().is_some() { Self::Unknown } else { Self::Zero }
    }
}

struct Cse<'a> {
    kir: &'a mut Kir,
    map: ValueMap,
    loops: LoopAssignments,
    /// Instructions hoisted to the start of the kernel.
    start: Block,
    /// The available expressions; `None` where they are no longer visible. The hash is fast and
    /// seeded per process, so that no source can provoke collisions.
    table: HashMap<Key, Option<Value>, RandomState>,
    /// Keys added to the table, except at the start of the kernel.
    added: Vec<Key>,
    /// The current content of each variable.
    vars: Vec<Content>,
    /// Undo log of contents of variables.
    var_trail: Vec<(Var, Content)>,
    /// Variables that were assigned, in order.
    assigned: Vec<Var>,
    memory: Memory,
}

/// Version numbers of memory. Loads of the same version read the same values.
#[derive(Default)]
struct Memory {
    /// The latest version: each change has a higher one.
    latest: u32,
    /// The version of the last change of all memory.
    all: u32,
    /// The version of the last change of all memory that invocations share.
    shared: u32,
    /// The version of the last change of single address spaces.
    spaces: Vec<(AddressSpace, u32)>,
}

impl Memory {
    /// Returns the current version of an address space.
    fn version(&self, space: AddressSpace) -> u32 {
        let entry = self.spaces.iter().find(|(changed, _)| *changed == space);
        let own = entry.map_or(0, |(_, version)| *version);
        let shared = if matches!(space, AddressSpace::Local(_)) { 0 } else { self.shared };
        own.max(shared).max(self.all)
    }

    /// Records a change of an address space.
    fn change(&mut self, space: AddressSpace) {
        self.latest += 1;
        match self.spaces.iter_mut().find(|(changed, _)| *changed == space) {
            Some((_, version)) => *version = self.latest,
            None => self.spaces.push((space, self.latest)),
        }
    }

    fn change_shared(&mut self) {
        self.latest += 1;
        self.shared = self.latest;
    }

    fn change_all(&mut self) {
        self.latest += 1;
        self.all = self.latest;
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
                // An earlier iteration may have changed variables and memory.
                self.memory.change_all();
                for index in 0..self.loops.in_loop(label).len() {
                    self.set_content(self.loops.in_loop(label)[index], Content::Unknown);
                }
                let first = self.assigned.len();
                self.nested(body);
                self.invalidate_from(first);
            }
            Stmt::Scope { ref mut body, .. } => self.scope(body),
            Stmt::Barrier(..) => self.memory.change_shared(),
            Stmt::Store { place, ref values, .. } => self.store(place, values),
            Stmt::MatrixStore { place, .. } => self.memory.change(place.array.space),
            Stmt::Set(..) | Stmt::Break(_) => {}
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
        if !always_exits(else_block) {
            self.invalidate_from(second);
        }
        if !always_exits(then_block) {
            self.invalidate(first, second);
        }
    }

    /// Processes a block whose values are not visible after it.
    fn nested(&mut self, block: &mut Block) {
        let (added, trail) = (self.added.len(), self.var_trail.len());
        *block = self.block(std::mem::take(block));
        self.remove_expressions(added);
        self.restore_contents(trail);
    }

    /// Processes the block of a scope. Its values before the first statement that may exit remain
    /// visible after it.
    fn scope(&mut self, body: &mut Block) {
        let (first, trail) = (self.assigned.len(), self.var_trail.len());
        let mut visible = None;
        let block = std::mem::take(body);
        for stmt in block {
            if visible.is_none() && may_exit(&stmt) {
                visible = Some(self.added.len());
            }
            self.stmt(stmt, body);
        }
        self.remove_expressions(visible.unwrap_or(self.added.len()));
        self.restore_contents(trail);
        self.invalidate_from(first);
    }

    /// Removes all expressions but the first `count` that were added.
    fn remove_expressions(&mut self, count: usize) {
        for key in self.added.drain(count..) {
            self.table.insert(key, None);
        }
    }

    fn set_content(&mut self, var: Var, content: Content) {
        let before = std::mem::replace(&mut self.vars[var.index()], content);
        self.var_trail.push((var, before));
    }

    /// Undoes all changes of contents but the first `count`.
    fn restore_contents(&mut self, count: usize) {
        for (var, before) in self.var_trail.drain(count..).rev() {
            self.vars[var.index()] = before;
        }
    }

    /// Marks the variables that were assigned from `first` on as unknown.
    fn invalidate_from(&mut self, first: usize) {
        self.invalidate(first, self.assigned.len());
    }

    fn invalidate(&mut self, first: usize, end: usize) {
        for index in first..end {
            self.set_content(self.assigned[index], Content::Unknown);
        }
    }

    /// Records an assignment; returns whether it changes the content.
    fn set(&mut self, var: Var, value: Value) -> bool {
        let unchanged = match self.vars[var.index()] {
            Content::Unknown => false,
            Content::Zero => self.kir.constant(value).is_some_and(|constant| constant.bits == 0),
            Content::Value(content) => content == value,
        };
        if !unchanged {
            self.set_content(var, Content::Value(value));
            self.assigned.push(var);
        }
        !unchanged
    }

    /// Records a store; later loads of the same addresses are replaced by the stored values.
    fn store(&mut self, place: Place, values: &[Value]) {
        self.memory.change(place.space);
        let version = self.memory.version(place.space);
        for (index, value) in (0..).zip(values) {
            let ty = self.kir.ty(*value);
            let Some(offset) = place.offset.checked_add(index * ty.size()) else { return };
            let place = Place { offset, ..place };
            let key = key(self.kir, ty, Inst::Load { place, count: 1 }, version);
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
                let is_mutable = self.is_mutable(place.space);
                let version = if is_mutable { self.memory.version(place.space) } else { 0 };
                return self.merge(value, version, count, out);
            }
            inst @ Inst::LoadFragment(FragmentPlace { place, .. }) => {
                let version = self.memory.version(place.space);
                return self.merge(value, version, inst.results() as u8, out);
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
    fn is_mutable(&self, space: AddressSpace) -> bool {
        match space {
            AddressSpace::Binding(binding) => self.kir.buffers[binding as usize].writable,
            AddressSpace::Immediate => false,
            AddressSpace::Workgroup(_) | AddressSpace::Local(_) => true,
        }
    }

    fn get(&mut self, value: Value, var: Var, out: &mut Block) {
        match self.vars[var.index()] {
            Content::Value(content) => self.map.replace(value, content),
            Content::Unknown => {
                self.set_content(var, Content::Value(value));
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
    fn merge(&mut self, value: Value, version: u32, count: u8, out: &mut Block) {
        let definition = self.kir.values[value.index()];
        let key = key(self.kir, definition.ty, definition.inst, version);
        if let Some(Some(same)) = self.table.get(&key) {
            for result in 0..u32::from(count) {
                self.map.replace(Value(value.0 + result), Value(same.0 + result));
            }
            return;
        }
        self.table.insert(key, Some(value));
        self.added.push(key);
        out.push(Stmt::Let(value));
    }
}

/// Returns the key of an instruction in canonical form.
fn key(kir: &Kir, ty: Type, mut inst: Inst, version: u32) -> Key {
    match &mut inst {
        Inst::Binary(op, a, b) if *a > *b && commutes(*op, kir.ty(*a)) => std::mem::swap(a, b),
        Inst::Fma(a, b, _) if *a > *b => std::mem::swap(a, b),
        Inst::Load { place, .. } if place.index.is_none() => place.stride = 0,
        _ => {}
    }
    (ty, inst, version)
}
