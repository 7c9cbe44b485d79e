//! One invocation after the other, value by value: what a kernel means if no invocation depends on
//! what another one does meanwhile. It shares no code with the machine.

use scry_ir::kir::{
    AtomicOp, BinaryOp, Block, Builtin, Inst, Kir, Label, Place, Space, Stmt, Type, UnaryOp, Value,
};

use super::support::Launch;

/// What is in the buffers after a launch.
pub(super) fn run(kir: &Kir, launch: &Launch) -> Vec<Vec<u8>> {
    let mut buffers = launch.buffers.clone();
    for group in positions(launch.groups) {
        let size = |array: &scry_ir::kir::Array| vec![0; array.size() as usize];
        let mut shared: Vec<_> = kir.workgroup.iter().map(size).collect();
        for local in positions(kir.workgroup_size) {
            let mut invocation = Invocation {
                kir,
                launch,
                group,
                local,
                values: vec![None; kir.values.len()],
                vars: vec![0; kir.vars.len()],
                buffers: &mut buffers,
                shared: &mut shared,
                locals: kir.locals.iter().map(size).collect(),
                turns: 0,
            };
            let _left = invocation.block(&kir.body);
        }
    }
    buffers
}

/// All positions in a box; x is fastest.
fn positions(size: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    let [width, height, depth] = size;
    (0..depth).flat_map(move |z| (0..height).flat_map(move |y| (0..width).map(move |x| [x, y, z])))
}

struct Invocation<'a> {
    kir: &'a Kir,
    launch: &'a Launch,
    group: [u32; 3],
    local: [u32; 3],
    values: Vec<Option<u64>>,
    vars: Vec<u64>,
    buffers: &'a mut Vec<Vec<u8>>,
    shared: &'a mut Vec<Vec<u8>>,
    locals: Vec<Vec<u8>>,
    turns: u32,
}

impl Invocation<'_> {
    /// Executes a block; what is being left, if something is.
    fn block(&mut self, block: &Block) -> Option<Label> {
        block.iter().find_map(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<Label> {
        match stmt {
            Stmt::Let(value) => self.define(*value),
            Stmt::Set(var, value) => self.vars[var.index()] = self.get(*value),
            Stmt::Store { place, values } => {
                for (nth, value) in values.iter().enumerate() {
                    let (ty, bits) = (self.kir.ty(*value), self.get(*value));
                    let at = self.at(place) + nth as u64 * u64::from(ty.size());
                    self.write(ty, place.space, at, bits);
                }
            }
            Stmt::If { condition, accept, reject } => {
                return self.block(if self.get(*condition) != 0 { accept } else { reject });
            }
            Stmt::Loop { label, body, .. } => loop {
                self.turns += 1;
                assert!(self.turns < 1_000_000, "a kernel of a test does not end");
                if let Some(left) = self.block(body) {
                    return Some(left).filter(|left| left != label);
                }
            },
            Stmt::Scope { label, body } => {
                return self.block(body).filter(|left| left != label);
            }
            Stmt::Leave(label) => return Some(*label),
            Stmt::Barrier(_) => unreachable!("there is no other invocation"),
        }
        None
    }

    fn get(&self, value: Value) -> u64 {
        self.values[value.index()].expect("it is computed before it is used")
    }

    fn at(&self, place: &Place) -> u64 {
        let index = place.index.map_or(0, |index| self.get(index));
        index * u64::from(place.stride) + u64::from(place.offset)
    }

    fn memory(&mut self, space: Space) -> &mut [u8] {
        match space {
            Space::Binding(number) => &mut self.buffers[number as usize],
            Space::Workgroup(number) => &mut self.shared[number as usize],
            Space::Local(number) => &mut self.locals[number as usize],
            Space::Immediate => unreachable!("immediates are read only"),
        }
    }

    /// Zero if it is out of bounds.
    fn read(&mut self, ty: Type, space: Space, at: u64) -> u64 {
        let size = u64::from(ty.size());
        let bytes = match space {
            Space::Immediate => &self.launch.immediates,
            _ => &*self.memory(space),
        };
        let mut word = [0; 8];
        if at + size <= bytes.len() as u64 {
            word[..size as usize].copy_from_slice(&bytes[at as usize..][..size as usize]);
        }
        u64::from_le_bytes(word)
    }

    /// Nothing if it is out of bounds.
    fn write(&mut self, ty: Type, space: Space, at: u64, bits: u64) {
        let size = u64::from(ty.size());
        let bytes = self.memory(space);
        if at + size <= bytes.len() as u64 {
            let bits = bits.to_le_bytes();
            bytes[at as usize..][..size as usize].copy_from_slice(&bits[..size as usize]);
        }
    }

    fn define(&mut self, value: Value) {
        let ty = self.kir.ty(value);
        let bits = match *self.kir.inst(value) {
            Inst::Load { place, count } => {
                for nth in 0..u32::from(count) {
                    let at = self.at(&place) + u64::from(nth * ty.size());
                    let bits = self.read(ty, place.space, at);
                    self.values[value.index() + nth as usize] = Some(bits);
                }
                return;
            }
            Inst::Const(constant) => constant.bits,
            Inst::Builtin(builtin) => self.builtin(builtin).into(),
            Inst::Get(var) => self.vars[var.index()],
            Inst::ArrayLength { binding, offset, stride } => {
                let size = self.buffers[binding as usize].len() as u64;
                size.saturating_sub(offset.into()) / u64::from(stride)
            }
            Inst::Unary(op, a) => unary(op, self.kir.ty(a), self.get(a)),
            Inst::Binary(op, a, b) if self.kir.ty(a) == Type::F32 => {
                exact(op, self.get(a), self.get(b))
            }
            Inst::Fma(a, b, c) => {
                let product = exact(BinaryOp::Mul, self.get(a), self.get(b));
                exact(BinaryOp::Add, product, self.get(c))
            }
            Inst::Binary(op, a, b) => binary(op, self.kir.ty(a), self.get(a), self.get(b)),
            Inst::Select(condition, a, b) => self.get(if self.get(condition) != 0 { a } else { b }),
            Inst::Convert(a) => convert(ty, number(self.kir.ty(a), self.get(a))),
            Inst::Bitcast(a) => self.get(a),
            Inst::Atomic { op, place, value, compare } => {
                let operands = [value, compare].map(|value| value.map(|value| self.get(value)));
                self.atomic(ty, op, &place, operands)
            }
            inst => unreachable!("{inst:?} needs other tests"),
        };
        self.values[value.index()] = Some(bits);
    }

    fn builtin(&self, builtin: Builtin) -> u32 {
        match builtin {
            Builtin::LocalId(axis) => self.local[usize::from(axis)],
            Builtin::GroupId(axis) => self.group[usize::from(axis)],
            Builtin::GroupCount(axis) => self.launch.groups[usize::from(axis)],
            other => unreachable!("{other:?} needs other tests"),
        }
    }

    fn atomic(&mut self, ty: Type, op: AtomicOp, at: &Place, operands: [Option<u64>; 2]) -> u64 {
        let (byte, space) = (self.at(at), at.space);
        let old = self.read(ty, space, byte);
        let [value, compare] = operands;
        let change = |op| binary(op, ty, old, value.expect("there is an operand"));
        let new = match op {
            AtomicOp::Load => return old,
            AtomicOp::Store | AtomicOp::Exchange => value.expect("there is an operand"),
            AtomicOp::CompareExchange if Some(old) != compare => old,
            AtomicOp::CompareExchange => value.expect("there is an operand"),
            AtomicOp::Add => change(BinaryOp::Add),
            AtomicOp::Sub => change(BinaryOp::Sub),
            AtomicOp::Min => change(BinaryOp::Min),
            AtomicOp::Max => change(BinaryOp::Max),
            AtomicOp::And => change(BinaryOp::And),
            AtomicOp::Or => change(BinaryOp::Or),
            AtomicOp::Xor => change(BinaryOp::Xor),
        };
        self.write(ty, space, byte, new);
        old
    }
}

/// The number that bits of an integer or bool stand for.
fn number(ty: Type, bits: u64) -> i128 {
    assert!(!ty.is_float(), "floats need other tests");
    let unused = 64 - ty.bits();
    if ty.is_signed() { (((bits << unused) as i64) >> unused).into() } else { bits.into() }
}

/// The bits of a number in a type that may be too narrow for it.
fn convert(ty: Type, number: i128) -> u64 {
    match ty {
        Type::Bool => u64::from(number != 0),
        _ => number as u64 & (u64::MAX >> (64 - ty.bits())),
    }
}

fn unary(op: UnaryOp, ty: Type, a: u64) -> u64 {
    let of = number(ty, a);
    match op {
        UnaryOp::Neg => convert(ty, -of),
        UnaryOp::Not if ty == Type::Bool => a ^ 1,
        UnaryOp::Not => convert(ty, !of),
        UnaryOp::Abs => convert(ty, of.abs()),
        UnaryOp::CountOnes => a.count_ones().into(),
        other => unreachable!("{other:?} needs other tests"),
    }
}

/// Of floats of 32 bits that stand for whole numbers, so small that nothing is rounded.
fn exact(op: BinaryOp, a: u64, b: u64) -> u64 {
    let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
    let result = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        other => unreachable!("{other:?} of floats needs other tests"),
    };
    assert!(result.abs() < (1 << 24) as f32, "a result that is not exact");
    result.to_bits().into()
}

fn binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> u64 {
    let shift = b as u32 % ty.bits();
    let (x, y) = (number(ty, a), number(ty, b));
    match op {
        BinaryOp::Add => convert(ty, x + y),
        BinaryOp::Sub => convert(ty, x - y),
        BinaryOp::Mul => convert(ty, x.wrapping_mul(y)),
        BinaryOp::Div => convert(ty, if y == 0 { x } else { x / y }),
        BinaryOp::Rem => convert(ty, if y == 0 { 0 } else { x % y }),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => convert(ty, i128::from(a << shift)),
        BinaryOp::Shr => convert(ty, x >> shift),
        BinaryOp::Min => convert(ty, x.min(y)),
        BinaryOp::Max => convert(ty, x.max(y)),
        BinaryOp::Eq => (x == y).into(),
        BinaryOp::Ne => (x != y).into(),
        BinaryOp::Lt => (x < y).into(),
        BinaryOp::Le => (x <= y).into(),
        BinaryOp::Gt => (x > y).into(),
        BinaryOp::Ge => (x >= y).into(),
        other => unreachable!("{other:?} needs other tests"),
    }
}
