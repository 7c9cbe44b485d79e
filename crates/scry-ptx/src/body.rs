//! What a kernel does, written instruction by instruction.

use crate::asm::{Address, Arg, Guard, Inst, Label, Line, Opcode};
use crate::module::SharedArray;
use crate::target::{Target, Version};
use crate::types::{Operand, PtxType, Reg, Space};

/// The body of a kernel being written: registers, memory of its own, lines.
///
/// The methods that write instructions check what the assembler would refuse only where that is
/// cheap: operands of the wrong size are found by the assembler.
#[derive(Debug, Clone)]
pub struct Body {
    target: Target,
    version: Version,
    /// Registers in use, by class.
    registers: [u32; 4],
    labels: u32,
    lines: Vec<Line>,
    pub(crate) shared: Vec<SharedArray>,
    /// Arrays of each thread: name and bytes.
    pub(crate) locals: Vec<(String, u32)>,
    /// Numbers that instructions take only from registers, where they are at hand.
    special: Vec<(&'static str, Reg)>,
}

impl Body {
    /// An empty body.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            version: target.version(),
            registers: [0; 4],
            labels: 0,
            lines: Vec::new(),
            shared: Vec::new(),
            locals: Vec::new(),
            special: Vec::new(),
        }
    }

    /// What the code is for.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// The version of the language that the code so far takes.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Says that an instruction came with a version of the language.
    pub fn require(&mut self, major: u8, minor: u8) {
        self.version = self.version.max(Version::new(major, minor));
    }

    /// The lines so far.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Number of registers in use, in the order of
    /// [`RegisterClass::ALL`](crate::RegisterClass::ALL).
    #[must_use]
    pub fn registers(&self) -> [u32; 4] {
        self.registers
    }

    /// A register that holds nothing yet.
    pub fn reg(&mut self, ty: PtxType) -> Reg {
        let class = ty.class();
        let count = &mut self.registers[class as usize];
        *count += 1;
        Reg { class, index: *count - 1 }
    }

    /// An array of bytes of each thread, aligned to 16; its name is given back.
    pub fn local(&mut self, bytes: u32) -> String {
        let name = format!("local{}", self.locals.len());
        self.locals.push((name.clone(), bytes));
        name
    }

    /// An array of bytes that the threads of a block share; its name is given back.
    pub fn shared(&mut self, bytes: u32, align: u32) -> String {
        let name = format!("shared{}", self.shared.len());
        self.shared.push(SharedArray { name: name.clone(), bytes, align });
        name
    }

    /// A remark.
    pub fn comment(&mut self, text: &str) {
        self.lines.push(Line::Comment(text.to_owned()));
    }
}

// These stay calls: there are hundreds, and copies at each would be half of the crate's code.
/// Instructions.
impl Body {
    /// Writes an instruction.
    #[inline(never)]
    pub fn emit(&mut self, opcode: Opcode, args: Vec<Arg>) {
        self.lines.push(Line::Inst(Inst { guard: None, opcode, args }));
    }

    /// Writes an instruction that is executed if `pred` is as `holds` says.
    pub fn emit_if(&mut self, pred: Reg, holds: bool, opcode: Opcode, args: Vec<Arg>) {
        let guard = Some(Guard { pred, holds });
        self.lines.push(Line::Inst(Inst { guard, opcode, args }));
    }

    /// Writes an instruction with one result of type `ty`, and gives that.
    #[inline(never)]
    pub fn op(&mut self, ty: PtxType, opcode: Opcode, operands: &[Operand]) -> Reg {
        let result = self.reg(ty);
        self.op_into(result, opcode, operands);
        result
    }

    /// Writes an instruction whose result goes to a register that exists.
    #[inline(never)]
    pub fn op_into(&mut self, result: Reg, opcode: Opcode, operands: &[Operand]) {
        let mut args = Vec::with_capacity(operands.len() + 1);
        args.push(result.into());
        args.extend(operands.iter().map(|operand| Arg::Operand(*operand)));
        self.emit(opcode, args);
    }

    /// `name.ty result, operands…`: an instruction of one type.
    #[inline(never)]
    pub fn typed(&mut self, name: &str, ty: PtxType, operands: &[Operand]) -> Reg {
        self.op(ty, Opcode::typed(name, ty), operands)
    }

    /// `setp.comparison.ty`: compares two operands.
    #[inline(never)]
    pub fn compare(&mut self, comparison: &str, ty: PtxType, a: Operand, b: Operand) -> Reg {
        self.op(PtxType::Pred, Opcode::new("setp").with(comparison).ty(ty), &[a, b])
    }

    /// `a` where `pred` holds, else `b`.
    #[inline(never)]
    pub fn select(&mut self, ty: PtxType, pred: Reg, a: Operand, b: Operand) -> Reg {
        self.op(ty, Opcode::typed("selp", ty.to_bits()), &[a, b, pred.into()])
    }

    /// Converts; `rounding` is empty or such as `rn`, `rzi`.
    #[inline(never)]
    pub fn convert(&mut self, rounding: &str, to: PtxType, from: PtxType, a: Operand) -> Reg {
        let opcode = Opcode::new("cvt").with_if(!rounding.is_empty(), rounding).ty(to).ty(from);
        self.op(to, opcode, &[a])
    }

    /// Copies an operand into a new register.
    #[inline(never)]
    pub fn copy(&mut self, ty: PtxType, a: Operand) -> Reg {
        self.op(ty, Opcode::typed("mov", ty.to_bits()), &[a])
    }

    /// Assigns a register.
    pub fn assign(&mut self, register: Reg, a: Operand) {
        self.op_into(register, Opcode::typed("mov", register.class.ty()), &[a]);
    }

    /// The operand in a register.
    pub fn in_register(&mut self, operand: Operand) -> Reg {
        match operand {
            Operand::Reg(reg) => reg,
            Operand::Imm { ty, .. } => self.copy(ty, operand),
        }
    }

    /// A special register of 32 bits, such as `%tid.x`. It is read where this is called first, so
    /// that has to be at the beginning of the kernel.
    pub fn special(&mut self, name: &'static str) -> Reg {
        if let Some((_, known)) = self.special.iter().find(|(of, _)| *of == name) {
            return *known;
        }
        let result = self.reg(PtxType::U32);
        self.emit(Opcode::new("mov.u32"), vec![result.into(), name.into()]);
        self.special.push((name, result));
        result
    }

    /// Reads `count` values (1, 2 or 4) that lie one after the other, at an address that is a
    /// multiple of their size together. `cached` loads come through the cache for what is not
    /// written while the kernel runs; global memory only.
    pub fn load(
        &mut self,
        space: Space,
        ty: PtxType,
        address: Address,
        count: usize,
        cached: bool,
    ) -> Vec<Reg> {
        let results: Vec<Reg> = (0..count).map(|_| self.reg(ty)).collect();
        let opcode = Opcode::new("ld").space(space).with_if(cached, "nc");
        let opcode = opcode.with_if(count > 1, if count == 2 { "v2" } else { "v4" });
        let first = grouped(&results.iter().map(|r| Operand::Reg(*r)).collect::<Vec<_>>());
        self.emit(opcode.ty(ty.to_bits()), vec![first, address.into()]);
        results
    }

    /// Writes 1, 2 or 4 values one after the other, at an address that is a multiple of their size
    /// together.
    pub fn store(&mut self, space: Space, ty: PtxType, address: Address, values: &[Operand]) {
        let opcode = Opcode::new("st").space(space);
        let opcode = opcode.with_if(values.len() > 1, if values.len() == 2 { "v2" } else { "v4" });
        self.emit(opcode.ty(ty.to_bits()), vec![address.into(), grouped(values)]);
    }
}

/// One operand as it is, several as a vector.
fn grouped(operands: &[Operand]) -> Arg {
    match operands {
        [one] => Arg::Operand(*one),
        several => Arg::Vector(several.to_vec()),
    }
}

/// Control flow.
///
/// The assembler optimises a loop only if a condition that *holds* leaves it, so there is no way to
/// leave one otherwise: [`Body::leave_if`] takes the condition under which it is left.
impl Body {
    /// A label that is nowhere yet.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Puts a label here.
    pub fn place(&mut self, label: Label) {
        self.lines.push(Line::Label(label));
    }

    /// Goes on at a label.
    pub fn branch(&mut self, label: Label) {
        self.emit(Opcode::new("bra"), vec![label.into()]);
    }

    /// Goes on at a label if `pred` holds.
    pub fn branch_if(&mut self, pred: Reg, label: Label) {
        self.emit_if(pred, true, Opcode::new("bra"), vec![label.into()]);
    }

    /// Goes on at a label if `pred` does not hold. Never to leave a loop.
    pub fn branch_unless(&mut self, pred: Reg, label: Label) {
        self.emit_if(pred, false, Opcode::new("bra"), vec![label.into()]);
    }

    /// Writes what is executed if `pred` holds.
    pub fn if_then(&mut self, pred: Reg, then_block: impl FnOnce(&mut Self)) {
        let end = self.label();
        self.branch_unless(pred, end);
        then_block(self);
        self.place(end);
    }

    /// Writes one thing that is executed if `pred` holds, and one if it does not.
    pub fn if_else(
        &mut self,
        pred: Reg,
        then_block: impl FnOnce(&mut Self),
        else_block: impl FnOnce(&mut Self),
    ) {
        let (other, end) = (self.label(), self.label());
        self.branch_unless(pred, other);
        then_block(self);
        self.branch(end);
        self.place(other);
        else_block(self);
        self.place(end);
    }

    /// Writes a loop; the closure gets the label that leaves it.
    pub fn repeat(&mut self, body: impl FnOnce(&mut Self, Label)) {
        let (top, end) = (self.label(), self.label());
        self.place(top);
        body(self, end);
        self.branch(top);
        self.place(end);
    }

    /// Leaves a loop if `pred` holds.
    pub fn leave_if(&mut self, pred: Reg, end: Label) {
        self.branch_if(pred, end);
    }

    /// Writes a loop of a counter over `from`, `from + step`, … below `to`, unsigned 32 bits.
    pub fn for_range(
        &mut self,
        from: Operand,
        to: Operand,
        step: u32,
        body: impl FnOnce(&mut Self, Reg),
    ) {
        let counter = self.copy(PtxType::U32, from);
        self.repeat(|b, end| {
            let done = b.compare("ge", PtxType::U32, counter.into(), to);
            b.leave_if(done, end);
            body(b, counter);
            let add = Opcode::typed("add", PtxType::U32);
            b.op_into(counter, add, &[counter.into(), Operand::u32(step)]);
        });
    }

    /// Waits for all threads of the block that have not ended, in whatever order those of a warp
    /// come. That costs no more than `bar.sync`, which wants them together.
    pub fn barrier(&mut self) {
        self.emit(Opcode::new("barrier.sync"), vec![Operand::u32(0).into()]);
    }

    /// Ends the thread.
    pub fn ret(&mut self) {
        self.emit(Opcode::new("ret"), Vec::new());
    }

    /// Ends the thread if `pred` holds.
    pub fn ret_if(&mut self, pred: Reg) {
        self.emit_if(pred, true, Opcode::new("ret"), Vec::new());
    }
}
