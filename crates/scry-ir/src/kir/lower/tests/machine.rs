//! Executes a kernel, one invocation after the other, as the kernel IR defines it: what tests ask
//! whether a lowered kernel still means the same.

use crate::kir::{
    AtomicOp, BinaryOp, Block, Builtin, Const, Inst, Kir, Label, Place, Space, Stmt, SubgroupOp,
    Type, Value,
};

use crate::kir::interpret::scalar::instruction;

/// More turns of loops than any test takes.
const TURNS: u32 = 1_000_000;

/// A kernel in execution. A subgroup is one invocation.
pub(super) struct Machine<'a> {
    kir: &'a Kir,
    pub buffers: Vec<Vec<u8>>,
    pub immediates: Vec<u8>,
    workgroup: Vec<Vec<u8>>,
    locals: Vec<Vec<u8>>,
    vars: Vec<Const>,
    values: Vec<Const>,
    /// Which values are visible.
    visible: Vec<bool>,
    groups: [u32; 3],
    group: [u32; 3],
    local: [u32; 3],
    turns: u32,
}

impl<'a> Machine<'a> {
    pub fn new(kir: &'a Kir, buffers: Vec<Vec<u8>>) -> Self {
        let zeros = |arrays: &[crate::kir::Array]| {
            arrays.iter().map(|array| vec![0; array.size() as usize]).collect()
        };
        Self {
            kir,
            buffers,
            immediates: vec![0; kir.immediates as usize],
            workgroup: zeros(&kir.workgroup),
            locals: zeros(&kir.locals),
            vars: Vec::new(),
            values: Vec::new(),
            visible: Vec::new(),
            groups: [1; 3],
            group: [0; 3],
            local: [0; 3],
            turns: 0,
        }
    }

    /// Runs all invocations of a grid.
    pub fn run(&mut self, groups: [u32; 3]) {
        self.groups = groups;
        for group in cells(groups) {
            self.workgroup.iter_mut().for_each(|array| array.fill(0));
            for local in cells(self.kir.workgroup_size) {
                (self.group, self.local) = (group, local);
                self.invocation();
            }
        }
    }

    fn invocation(&mut self) {
        self.locals.iter_mut().for_each(|array| array.fill(0));
        self.vars = self.kir.vars.iter().map(|ty| Const::zero(*ty)).collect();
        let count = self.kir.values.len();
        self.values = self.kir.values.iter().map(|value| Const::zero(value.ty)).collect();
        self.visible = vec![false; count];
        let left = self.block(&self.kir.body);
        assert!(matches!(left, None | Some(Label::KERNEL)), "{left:?}");
    }

    /// Executes a block; gives what it leaves. Its values are not visible afterwards.
    fn block(&mut self, block: &Block) -> Option<Label> {
        let before = self.visible.clone();
        let left = block.iter().find_map(|stmt| self.statement(stmt));
        self.visible = before;
        left
    }

    fn statement(&mut self, stmt: &Stmt) -> Option<Label> {
        stmt.for_each_operand(|value| assert!(self.visible[value.index()], "{value}: {stmt:?}"));
        match stmt {
            Stmt::Let(value) => self.compute(*value),
            Stmt::Set(var, value) => {
                assert_eq!(self.kir.vars[var.index()], self.kir.ty(*value), "{stmt:?}");
                self.vars[var.index()] = self.values[value.index()];
            }
            Stmt::Store { place, values } => {
                for (nth, value) in (0..).zip(values) {
                    self.write(place, nth, self.values[value.index()]);
                }
            }
            Stmt::If { condition, accept, reject } => {
                let holds = self.values[condition.index()] == Const::bool(true);
                return self.block(if holds { accept } else { reject });
            }
            Stmt::Loop { label, body, .. } => return self.repeat(*label, body),
            Stmt::Scope { label, body } => {
                return self.block(body).filter(|left| left != label);
            }
            Stmt::Leave(label) => return Some(*label),
            Stmt::Barrier(_) => {}
        }
        None
    }

    fn repeat(&mut self, label: Label, body: &Block) -> Option<Label> {
        loop {
            self.turns += 1;
            assert!(self.turns < TURNS, "the loop has no end");
            if let Some(left) = self.block(body) {
                return Some(left).filter(|left| *left != label);
            }
        }
    }

    fn compute(&mut self, value: Value) {
        let inst = self.kir.inst(value);
        inst.for_each_operand(|value| assert!(self.visible[value.index()], "{value}: {inst:?}"));
        let ty = self.kir.ty(value);
        let result = match *inst {
            Inst::Builtin(builtin) => Const::u32(self.builtin(builtin)),
            Inst::ArrayLength { binding, offset, stride } => {
                let bytes = self.buffers[binding as usize].len() as u32;
                Const::u32((bytes - offset) / stride)
            }
            Inst::Get(var) => self.vars[var.index()],
            Inst::Load { place, count } => {
                for nth in 1..count {
                    let at = value.index() + usize::from(nth);
                    assert_eq!(self.kir.values[at].inst, Inst::Extra(value, nth));
                    (self.values[at], self.visible[at]) = (self.read(&place, nth.into(), ty), true);
                }
                self.read(&place, 0, ty)
            }
            Inst::Atomic { op, place, value, compare } => {
                self.atomic(op, &place, [value, compare], ty)
            }
            Inst::Subgroup(op) => self.subgroup(op),
            Inst::Extra(..) => panic!("{value} is computed by its load"),
            _ => instruction(self.kir, value, |value| self.values[value.index()]),
        };
        assert_eq!(result.ty, ty, "{inst:?}");
        (self.values[value.index()], self.visible[value.index()]) = (result, true);
    }

    fn builtin(&self, builtin: Builtin) -> u32 {
        match builtin {
            Builtin::LocalId(axis) => self.local[usize::from(axis)],
            Builtin::GroupId(axis) => self.group[usize::from(axis)],
            Builtin::GroupCount(axis) => self.groups[usize::from(axis)],
            Builtin::SubgroupSize => 1,
            Builtin::SubgroupLane => 0,
            Builtin::SubgroupId => {
                let [width, height, _] = self.kir.workgroup_size;
                self.local[0] + width * (self.local[1] + height * self.local[2])
            }
            Builtin::SubgroupCount => self.kir.workgroup_size.iter().product(),
        }
    }

    fn atomic(
        &mut self,
        op: AtomicOp,
        place: &Place,
        [value, compare]: [Option<Value>; 2],
        ty: Type,
    ) -> Const {
        let Some(value) = value.map(|value| self.values[value.index()]) else {
            assert_eq!(op, AtomicOp::Load);
            return self.read(place, 0, ty);
        };
        let old = self.read(place, 0, value.ty);
        let compared = compare.map(|compare| self.values[compare.index()]);
        let new = match op {
            AtomicOp::Store | AtomicOp::Exchange => value,
            AtomicOp::CompareExchange if compared == Some(old) => value,
            AtomicOp::CompareExchange => old,
            AtomicOp::Add => Const::int(value.ty, old.as_i64() + value.as_i64()),
            AtomicOp::Sub => Const::int(value.ty, old.as_i64() - value.as_i64()),
            AtomicOp::Max => Const::int(value.ty, old.as_i64().max(value.as_i64())),
            AtomicOp::Min => Const::int(value.ty, old.as_i64().min(value.as_i64())),
            AtomicOp::And => Const { bits: old.bits & value.bits, ..value },
            AtomicOp::Or => Const { bits: old.bits | value.bits, ..value },
            AtomicOp::Xor => Const { bits: old.bits ^ value.bits, ..value },
            AtomicOp::Load => panic!("a load has no operand"),
        };
        self.write(place, 0, new);
        old
    }

    fn subgroup(&self, op: SubgroupOp) -> Const {
        let (SubgroupOp::Ballot { value, .. }
        | SubgroupOp::Reduce { value, .. }
        | SubgroupOp::Shuffle { value, .. }) = op;
        let value = self.values[value.index()];
        match op {
            SubgroupOp::Ballot { word: 0, .. } => Const::u32(value.bits as u32),
            SubgroupOp::Ballot { .. } => Const::u32(0),
            _ => value,
        }
    }

    fn memory(&mut self, place: &Place) -> &mut Vec<u8> {
        match place.space {
            Space::Binding(at) => &mut self.buffers[at as usize],
            Space::Immediate => &mut self.immediates,
            Space::Workgroup(at) => &mut self.workgroup[at as usize],
            Space::Local(at) => &mut self.locals[at as usize],
        }
    }

    fn bytes(&mut self, place: &Place, nth: u32, ty: Type) -> &mut [u8] {
        let size = ty.size();
        assert_eq!((place.stride % size, place.offset % size), (0, 0), "{place:?} of {ty}");
        let index = place.index.map_or(0, |index| self.values[index.index()].bits as usize);
        let first = index * place.stride as usize + (place.offset + nth * size) as usize;
        let memory = self.memory(place);
        assert!(first + size as usize <= memory.len(), "{place:?}[{index}] is out of bounds");
        &mut memory[first..first + size as usize]
    }

    fn read(&mut self, place: &Place, nth: u32, ty: Type) -> Const {
        let mut word = [0; 8];
        word[..ty.size() as usize].copy_from_slice(self.bytes(place, nth, ty));
        Const { ty, bits: u64::from_le_bytes(word) }
    }

    fn write(&mut self, place: &Place, nth: u32, value: Const) {
        let size = value.ty.size() as usize;
        let word = value.bits.to_le_bytes();
        self.bytes(place, nth, value.ty).copy_from_slice(&word[..size]);
    }
}

/// How many instructions of a kernel are such.
pub(super) fn count(kir: &Kir, which: impl Fn(&Inst) -> bool) -> usize {
    kir.values.iter().filter(|value| which(&value.inst)).count()
}

/// How many indices are clamped.
pub(super) fn clamps(kir: &Kir) -> usize {
    count(kir, |inst| matches!(inst, Inst::Binary(BinaryOp::Min, ..)))
}

fn cells([x, y, z]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
}
