//! Kernel bodies, built instruction by instruction.

use scry_ir::Location;

use crate::asm::{Address, Arg, Guard, Instruction, Label, Line, Opcode};
use crate::module::SharedArray;
use crate::target::{Target, Version};
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// The body of a kernel: registers, local and shared arrays, instructions.
///
/// Methods that append instructions do not check them: the assembler reports errors, such as
/// operands of the wrong size.
#[derive(Debug, Clone)]
pub struct Body {
    target: Target,
    version: Version,
    /// Allocated registers, by class.
    registers: [u32; 4],
    /// Number of labels.
    labels: u32,
    lines: Vec<Line>,
    /// Name of the source that lines refer to, if they do.
    pub(crate) source: Option<String>,
    pub(crate) shared: Vec<SharedArray>,
    /// Local arrays: name and bytes.
    pub(crate) locals: Vec<(String, u32)>,
    /// Special registers that have been read, with the registers that they were copied to.
    special: Vec<(&'static str, Reg)>,
    /// Whether the code so far waits for the preceding launch.
    has_waited: bool,
}

impl Body {
    /// Creates an empty body.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            version: target.version(),
            registers: [0; 4],
            labels: 0,
            lines: Vec::new(),
            source: None,
            shared: Vec::new(),
            locals: Vec::new(),
            special: Vec::new(),
            has_waited: false,
        }
    }

    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// Returns the PTX version that the code so far requires.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Requires at least this PTX version, which introduced an instruction in use.
    pub fn require(&mut self, major: u8, minor: u8) {
        self.version = self.version.max(Version::new(major, minor));
    }

    /// Waits until the preceding launch is complete (`griddepcontrol.wait`, from `sm_90` on; else
    /// nothing).
    pub(crate) fn pdl_wait(&mut self) {
        self.emit_for_sm_90("griddepcontrol.wait");
    }

    /// Allows the next launch to start (`griddepcontrol.launch_dependents`, from `sm_90` on; else
    /// nothing).
    pub(crate) fn pdl_launch_dependents(&mut self) {
        self.emit_for_sm_90("griddepcontrol.launch_dependents");
    }

    fn emit_for_sm_90(&mut self, name: &'static str) {
        if self.target.has(90) {
            self.require(7, 8);
            self.emit(Opcode::new(name), Vec::new());
            self.has_waited = true;
        }
    }

    /// Returns the opcode of loads from global memory that the kernel does not write.
    /// `ld.global.nc` requires that it is constant while the kernel runs: with PDL, the preceding
    /// launch may write it before the wait.
    pub(crate) fn constant_load(&self) -> Opcode {
        Opcode::new("ld.global").with_if(!self.has_waited, "nc")
    }

    /// Returns the lines so far.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the number of allocated registers of each class, in the order of
    /// [`RegisterClass::ALL`](crate::RegisterClass::ALL).
    #[must_use]
    pub fn registers(&self) -> [u32; 4] {
        self.registers
    }

    /// Allocates a virtual register for values of a type.
    pub fn reg(&mut self, ty: PtxType) -> Reg {
        let class = ty.class();
        let count = &mut self.registers[class as usize];
        *count += 1;
        Reg { class, index: *count - 1 }
    }

    /// Declares a local array of this many bytes, aligned to 16; returns its name.
    pub fn local(&mut self, bytes: u32) -> String {
        let name = format!("local{}", self.locals.len());
        self.locals.push((name.clone(), bytes));
        name
    }

    /// Declares a shared array of this many bytes, or dynamic shared memory if `bytes` is 0;
    /// returns its name. `align` is its alignment in bytes.
    pub fn shared(&mut self, bytes: u32, align: u32) -> String {
        let name = format!("shared{}", self.shared.len());
        self.shared.push(SharedArray { name: name.clone(), bytes, align });
        name
    }

    /// Appends a comment.
    pub fn comment(&mut self, text: &str) {
        self.lines.push(Line::Comment(text.to_owned()));
    }

    /// Says where the following lines are from (`.loc`), in the source of this name. A kernel has
    /// one source: later names are ignored.
    pub fn location(&mut self, source: &str, at: Location) {
        self.source.get_or_insert_with(|| source.to_owned());
        self.lines.push(Line::Location(at));
    }
}

// Methods with hundreds of call sites are `inline(never)`: inlined, they would be half of the
// crate's code.
/// Instructions.
impl Body {
    /// Appends an instruction.
    #[inline(never)]
    pub fn emit(&mut self, opcode: Opcode, args: Vec<Arg>) {
        self.lines.push(Line::Instruction(Instruction { guard: None, opcode, args }));
    }

    /// Appends an instruction that is executed if `pred` equals `holds`.
    pub fn emit_if(&mut self, pred: Reg, holds: bool, opcode: Opcode, args: Vec<Arg>) {
        let guard = Some(Guard { pred, holds });
        self.lines.push(Line::Instruction(Instruction { guard, opcode, args }));
    }

    /// Appends an instruction with one result of type `ty`, and returns the result.
    #[inline(never)]
    pub fn op(&mut self, ty: PtxType, opcode: Opcode, operands: &[Operand]) -> Reg {
        let result = self.reg(ty);
        self.op_into(result, opcode, operands);
        result
    }

    /// Appends an instruction whose result is stored in an existing register.
    #[inline(never)]
    pub fn op_into(&mut self, result: Reg, opcode: Opcode, operands: &[Operand]) {
        let mut args = Vec::with_capacity(operands.len() + 1);
        args.push(result.into());
        args.extend(operands.iter().map(|operand| Arg::Operand(*operand)));
        self.emit(opcode, args);
    }

    /// Appends `name.ty result, operands…` and returns the result.
    #[inline(never)]
    pub fn typed(&mut self, name: &str, ty: PtxType, operands: &[Operand]) -> Reg {
        self.op(ty, Opcode::typed(name, ty), operands)
    }

    /// Compares two operands (`setp.comparison.ty`).
    #[inline(never)]
    pub fn compare(&mut self, comparison: &str, ty: PtxType, a: Operand, b: Operand) -> Reg {
        self.op(PtxType::Pred, Opcode::new("setp").with(comparison).ty(ty), &[a, b])
    }

    /// Returns `a` where `pred` is true, else `b` (`selp`).
    #[inline(never)]
    pub fn select(&mut self, ty: PtxType, pred: Reg, a: Operand, b: Operand) -> Reg {
        self.op(ty, Opcode::typed("selp", ty.to_bits()), &[a, b, pred.into()])
    }

    /// Converts (`cvt`); `rounding` is empty or a modifier such as `rn`, `rzi`.
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

    /// Returns the operand in a register, copying immediates.
    pub fn in_register(&mut self, operand: Operand) -> Reg {
        match operand {
            Operand::Reg(reg) => reg,
            Operand::Imm { ty, .. } => self.copy(ty, operand),
        }
    }

    /// Returns a register with the value of a 32-bit special register, such as `%tid.x`. Only the
    /// first call for a name emits an instruction. It must therefore be in code that dominates that
    /// of the later calls, such as the kernel's beginning.
    pub fn special(&mut self, name: &'static str) -> Reg {
        if let Some((_, copy)) = self.special.iter().find(|(special, _)| *special == name) {
            return *copy;
        }
        let result = self.reg(PtxType::U32);
        self.emit(Opcode::new("mov.u32"), vec![result.into(), name.into()]);
        self.special.push((name, result));
        result
    }

    /// Loads a vector of `count` values (1, 2 or 4) from an address aligned to the vector's size.
    /// `read_only` loads, of global memory only, are non-coherent without PDL: the kernel must not
    /// write to their memory.
    pub fn load(
        &mut self,
        space: StateSpace,
        ty: PtxType,
        address: Address,
        count: usize,
        read_only: bool,
    ) -> Vec<Reg> {
        let results: Vec<Reg> = (0..count).map(|_| self.reg(ty)).collect();
        let opcode = if read_only { self.constant_load() } else { Opcode::new("ld").space(space) };
        let opcode = opcode.with_if(count > 1, if count == 2 { "v2" } else { "v4" });
        let first = scalar_or_vector(&results.iter().map(|r| Operand::Reg(*r)).collect::<Vec<_>>());
        self.emit(opcode.ty(ty.to_bits()), vec![first, address.into()]);
        results
    }

    /// Stores a vector of 1, 2 or 4 values to an address aligned to the vector's size.
    pub fn store(&mut self, space: StateSpace, ty: PtxType, address: Address, values: &[Operand]) {
        let opcode = Opcode::new("st").space(space);
        let opcode = opcode.with_if(values.len() > 1, if values.len() == 2 { "v2" } else { "v4" });
        self.emit(opcode.ty(ty.to_bits()), vec![address.into(), scalar_or_vector(values)]);
    }
}

/// Returns one operand as a scalar, several as a vector.
fn scalar_or_vector(operands: &[Operand]) -> Arg {
    match operands {
        [one] => Arg::Operand(*one),
        several => Arg::Vector(several.to_vec()),
    }
}

/// Control flow.
///
/// ptxas optimises a loop only if its exit branch is taken when the condition is *true*: exit loops
/// by [`Body::break_if`].
impl Body {
    /// Creates a label, to be placed by [`Body::place`].
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        self.lines.push(Line::Label(label));
    }

    /// Branches to a label.
    pub fn branch(&mut self, label: Label) {
        self.emit(Opcode::new("bra"), vec![label.into()]);
    }

    /// Branches to a label if `pred` is true.
    pub fn branch_if(&mut self, pred: Reg, label: Label) {
        self.emit_if(pred, true, Opcode::new("bra"), vec![label.into()]);
    }

    /// Branches to a label if `pred` is false. Must not exit a loop: ptxas would not optimise it.
    pub fn branch_unless(&mut self, pred: Reg, label: Label) {
        self.emit_if(pred, false, Opcode::new("bra"), vec![label.into()]);
    }

    /// Appends code that is executed if `pred` is true.
    pub fn if_then(&mut self, pred: Reg, then_block: impl FnOnce(&mut Self)) {
        let end = self.label();
        self.branch_unless(pred, end);
        then_block(self);
        self.place(end);
    }

    /// Appends code for both values of `pred`.
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

    /// Appends an endless loop, which [`Body::break_if`] exits; the closure receives the exit
    /// label.
    pub fn loop_(&mut self, body: impl FnOnce(&mut Self, Label)) {
        let (top, end) = (self.label(), self.label());
        self.place(top);
        body(self, end);
        self.branch(top);
        self.place(end);
    }

    /// Exits a loop if `pred` is true.
    pub fn break_if(&mut self, pred: Reg, end: Label) {
        self.branch_if(pred, end);
    }

    /// Appends a loop whose counter, a `u32`, is `from`, `from + step`, … as long as it is below
    /// `to`.
    pub fn for_range(
        &mut self,
        from: Operand,
        to: Operand,
        step: u32,
        body: impl FnOnce(&mut Self, Reg),
    ) {
        let counter = self.copy(PtxType::U32, from);
        self.loop_(|b, end| {
            let done = b.compare("ge", PtxType::U32, counter.into(), to);
            b.break_if(done, end);
            body(b, counter);
            let add = Opcode::typed("add", PtxType::U32);
            b.op_into(counter, add, &[counter.into(), Operand::u32(step)]);
        });
    }

    /// Waits for all threads of the block that have not exited (`barrier.sync`). The warp may be
    /// divergent; this costs no more than `bar.sync`, which requires convergence.
    pub fn barrier(&mut self) {
        self.emit(Opcode::new("barrier.sync"), vec![Operand::u32(0).into()]);
    }

    /// Exits the thread.
    pub fn ret(&mut self) {
        self.emit(Opcode::new("ret"), Vec::new());
    }

    /// Exits the thread if `pred` is true.
    pub fn ret_if(&mut self, pred: Reg) {
        self.emit_if(pred, true, Opcode::new("ret"), Vec::new());
    }
}
