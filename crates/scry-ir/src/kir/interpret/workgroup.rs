//! A workgroup being executed: its statements and values.

use std::cell::Cell;

use super::{Event, InterpretError, Interpreter, Invocation, MAX_SUBGROUP_SIZE, Observer, scalar};
use crate::kir::{Array, Barrier, Block, Builtin, Const, Inst, Kir, Label, Stmt, Value};

/// A workgroup being executed. A lane is the index of an invocation in the workgroup; lists of
/// lanes are sorted.
pub(super) struct Workgroup<'a, 'm> {
    pub kir: &'m Kir,
    pub interpreter: &'m mut Interpreter<'a>,
    /// Bytes of each array in workgroup memory.
    pub shared: Vec<Vec<u8>>,
    /// Bytes of each local array, by lane.
    pub locals: Vec<Vec<Vec<u8>>>,
    /// Size of the grid in workgroups.
    groups: [u32; 3],
    /// Position in the grid.
    group: [u32; 3],
    /// Variables of each lane.
    vars: Vec<Vec<Const>>,
    /// Each value by lane; `None`, or no entry, where it is not visible.
    values: Vec<Vec<Option<Const>>>,
    /// Values computed in the open blocks, the outermost first.
    computed: Vec<Value>,
    /// For each label, the lanes that exited the loop or scope and wait at its end.
    exited: Vec<Vec<u32>>,
    /// Number of lanes that execute the kernel.
    lanes: usize,
    iterations: u64,
    observer: Option<&'m mut Observer<'m>>,
}

type Result<T = ()> = std::result::Result<T, InterpretError>;

impl<'a, 'm> Workgroup<'a, 'm> {
    /// Creates a workgroup; arguments are the size of the grid and the position in it.
    pub fn new(
        kir: &'m Kir,
        interpreter: &'m mut Interpreter<'a>,
        [groups, group]: [[u32; 3]; 2],
        observer: Option<&'m mut Observer<'m>>,
    ) -> Result<Self> {
        check_setup(kir, interpreter)?;
        let lanes = kir.workgroup_size.iter().product::<u32>() as usize;
        let zeros = |arrays: &[Array]| -> Vec<Vec<u8>> {
            arrays.iter().map(|array| vec![0; array.size() as usize]).collect()
        };
        let vars: Vec<_> = kir.vars.iter().map(|ty| Const::zero(*ty)).collect();
        Ok(Self {
            kir,
            interpreter,
            shared: zeros(&kir.workgroup),
            locals: vec![zeros(&kir.locals); lanes],
            groups,
            group,
            vars: vec![vars; lanes],
            values: vec![Vec::new(); kir.values.len()],
            computed: Vec::new(),
            exited: vec![Vec::new(); kir.labels.max(1) as usize],
            lanes,
            iterations: 0,
            observer,
        })
    }

    /// Executes the kernel for these lanes.
    pub fn run(&mut self, lanes: Vec<u32>) -> Result {
        self.lanes = lanes.len();
        let kir = self.kir;
        self.block(&kir.body, lanes).map(|_| ())
    }

    pub fn invocation(&self, lane: u32) -> Invocation {
        invocation(self.kir, self.group, lane)
    }

    pub fn subgroup_of(&self, lane: u32) -> u32 {
        lane / self.interpreter.subgroup_size
    }

    pub fn report(&mut self, lane: u32, event: Event) {
        let Some(observer) = &mut self.observer else { return };
        observer(invocation(self.kir, self.group, lane), event);
    }

    /// Returns a value in a lane.
    pub fn get(&self, lane: u32, value: Value) -> Result<Const> {
        self.visible(lane, value).ok_or_else(|| self.not_computed(lane, value))
    }

    fn visible(&self, lane: u32, value: Value) -> Option<Const> {
        self.values[value.index()].get(lane as usize).copied().flatten()
    }

    fn not_computed(&self, lane: u32, value: Value) -> InterpretError {
        InterpretError::NotComputed { invocation: self.invocation(lane), value }
    }

    /// Executes a block; the values that it computes are not visible afterwards. Returns the lanes
    /// that reach its end.
    fn block(&mut self, block: &Block, active: Vec<u32>) -> Result<Vec<u32>> {
        let first = self.computed.len();
        let end = self.statements(block, active)?;
        for value in self.computed.split_off(first) {
            self.values[value.index()].clear();
        }
        Ok(end)
    }

    /// Executes statements, and returns the lanes that reach their end.
    fn statements(&mut self, block: &Block, mut active: Vec<u32>) -> Result<Vec<u32>> {
        for stmt in block {
            if active.is_empty() {
                break;
            }
            active = self.statement(stmt, active)?;
        }
        Ok(active)
    }

    fn statement(&mut self, stmt: &Stmt, active: Vec<u32>) -> Result<Vec<u32>> {
        match stmt {
            Stmt::Let(value) => self.define(*value, &active)?,
            Stmt::Set(var, value) => {
                for lane in &active {
                    self.vars[*lane as usize][var.index()] = self.get(*lane, *value)?;
                }
            }
            Stmt::Store { place, values, .. } => {
                for lane in &active {
                    for (nth, value) in (0..).zip(values) {
                        let value = self.get(*lane, *value)?;
                        self.write(*lane, place, nth, value)?;
                    }
                }
            }
            Stmt::MatrixStore { .. } => panic!("a kernel with matrices is expanded first"),
            Stmt::If { condition, then_block, else_block, .. } => {
                let (mut then_lanes, mut else_lanes) = (Vec::new(), Vec::new());
                for lane in active {
                    let is_true = self.get(lane, *condition)?.bits != 0;
                    if is_true { &mut then_lanes } else { &mut else_lanes }.push(lane);
                }
                let then_lanes = self.block(then_block, then_lanes)?;
                return Ok(union(then_lanes, self.block(else_block, else_lanes)?));
            }
            Stmt::Loop { label, body, .. } => return self.loop_(*label, body, active),
            Stmt::Scope { label, body } => {
                let end = self.statements(body, active)?;
                return Ok(union(end, std::mem::take(&mut self.exited[label.0 as usize])));
            }
            Stmt::Break(label) => {
                self.exited[label.0 as usize].extend(active);
                return Ok(Vec::new());
            }
            Stmt::Barrier(Barrier::Subgroup, _) => {}
            Stmt::Barrier(Barrier::Workgroup, _) => self.barrier(active.len())?,
        }
        Ok(active)
    }

    /// Executes a loop until all lanes have exited it.
    fn loop_(&mut self, label: Label, body: &Block, mut active: Vec<u32>) -> Result<Vec<u32>> {
        while !active.is_empty() {
            self.iterations += 1;
            let limit = self.interpreter.iteration_limit;
            if self.iterations > limit {
                return Err(InterpretError::IterationLimit { group: self.group, limit });
            }
            active = self.block(body, active)?;
        }
        Ok(union(Vec::new(), std::mem::take(&mut self.exited[label.0 as usize])))
    }

    fn barrier(&self, arrived: usize) -> Result {
        let (group, expected) = (self.group, self.lanes);
        if arrived < expected {
            return Err(InterpretError::DivergentBarrier { group, arrived, expected });
        }
        Ok(())
    }

    /// Executes an instruction for the active lanes, one lane after another. The order matters only
    /// to accesses to memory.
    fn define(&mut self, value: Value, active: &[u32]) -> Result {
        let kir = self.kir;
        if matches!(kir.inst(value), Inst::WorkgroupUniformLoad { .. }) {
            self.barrier(active.len())?;
        }
        for nth in 0..kir.inst(value).results() {
            let result = Value(value.0 + nth);
            // Inactive lanes have no value.
            let lanes = self.vars.len();
            self.values[result.index()].resize(lanes, None);
            for lane in active {
                let computed = self.compute(*lane, value, nth, active)?;
                debug_assert_eq!(computed.ty, kir.ty(result), "{:?}", kir.inst(value));
                self.values[result.index()][*lane as usize] = Some(computed);
                self.report(*lane, Event::Computed(result, computed));
            }
            self.computed.push(result);
        }
        Ok(())
    }

    fn compute(&mut self, lane: u32, value: Value, nth: u32, active: &[u32]) -> Result<Const> {
        let (kir, ty) = (self.kir, self.kir.ty(value));
        match *kir.inst(value) {
            Inst::Builtin(builtin) => Ok(Const::u32(self.builtin(lane, builtin))),
            Inst::ArrayLength { binding, offset, stride } => {
                let bytes = self.interpreter.buffers[binding as usize].len() as u32;
                Ok(Const::u32(bytes.saturating_sub(offset) / stride))
            }
            Inst::Get(var) => Ok(self.vars[lane as usize][var.index()]),
            Inst::Load { place, .. } | Inst::WorkgroupUniformLoad { place, .. } => {
                self.read(lane, &place, nth, ty)
            }
            Inst::Atomic { op, place, value, compare } => {
                self.atomic(lane, op, &place, [value, compare], ty)
            }
            Inst::Subgroup(op) => self.subgroup_op(lane, op, active),
            Inst::LoadFragment(from) => self.load_fragment(lane, &from, nth),
            Inst::MultiplyFragments { a, b, c } => {
                self.multiply_fragments(lane, nth as usize, [&a, &b, &c], active)
            }
            _ => {
                let missing = Cell::new(None);
                let get = |operand| {
                    self.visible(lane, operand).unwrap_or_else(|| {
                        missing.set(Some(operand));
                        Const::zero(kir.ty(operand))
                    })
                };
                let result = scalar::instruction(kir, value, get);
                missing.get().map_or(Ok(result), |operand| Err(self.not_computed(lane, operand)))
            }
        }
    }

    fn builtin(&self, lane: u32, builtin: Builtin) -> u32 {
        let size = self.interpreter.subgroup_size;
        let lanes: u32 = self.kir.workgroup_size.iter().product();
        match builtin {
            Builtin::LocalId(axis) => self.invocation(lane).local[usize::from(axis)],
            Builtin::GroupId(axis) => self.group[usize::from(axis)],
            Builtin::GroupCount(axis) => self.groups[usize::from(axis)],
            Builtin::SubgroupSize => size,
            Builtin::SubgroupLane => lane % size,
            Builtin::SubgroupId => self.subgroup_of(lane),
            Builtin::SubgroupCount => lanes.div_ceil(size),
        }
    }
}

fn invocation(kir: &Kir, group: [u32; 3], lane: u32) -> Invocation {
    let [width, height, _] = kir.workgroup_size;
    let local = [lane % width, lane / width % height, lane / (width * height)];
    Invocation { group, local }
}

fn check_setup(kir: &Kir, interpreter: &Interpreter<'_>) -> Result {
    let setup = |what, found, needed| Err(InterpretError::Setup { what, found, needed });
    let (buffers, immediates) = (interpreter.buffers.len(), interpreter.immediates.len());
    if buffers != kir.buffers.len() {
        return setup("number of buffers", buffers, kir.buffers.len());
    }
    if immediates < kir.immediates as usize {
        return setup("bytes of immediates", immediates, kir.immediates as usize);
    }
    match interpreter.subgroup_size {
        1..=MAX_SUBGROUP_SIZE => Ok(()),
        size => Err(InterpretError::SubgroupSize(size)),
    }
}

/// Returns the union of two sets of lanes.
fn union(mut lanes: Vec<u32>, others: Vec<u32>) -> Vec<u32> {
    lanes.extend(others);
    lanes.sort_unstable();
    lanes
}
