//! The kernel's prologue, and the layout of its memory.

use scry_ir::GridSource;
use scry_ir::kir::{AddressSpace, Array, Builtin, Inst, Kir, Place, Stmt, Type, for_each_stmt};

use super::{Lowering, Param, ptx_type};
use crate::asm::{Address, Opcode};
use crate::body::Body;
use crate::types::{Operand, PtxType, Reg, StateSpace};

/// Maximum bytes of static shared memory; more is dynamic and set by the launch.
const MAX_STATIC_SHARED: u32 = 48 << 10;

/// Maximum bytes of a local array that are zeroed by unrolled stores rather than in a loop.
const MAX_UNROLLED_ZEROS: u32 = 4096;

/// Maximum 16-byte stores of every thread that zero shared memory unrolled rather than in a loop;
/// some threads make one more.
const MAX_UNROLLED_STORES: u32 = 16;

/// The state set up by the prologue.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) params: Vec<Param>,
    /// Bytes of dynamic shared memory.
    pub(super) dynamic_shared: u32,
    /// The buffers in use, by their position in the interface, with their addresses.
    pub(super) buffers: Vec<(u32, Reg)>,
    /// The runtime-sized arrays in use, with their lengths.
    pub(super) lengths: Vec<(Param, Reg)>,
    /// Byte offset of each workgroup array in shared memory.
    pub(super) shared_offsets: Vec<u32>,
    /// The address of shared memory, and its symbol.
    pub(super) shared: Option<(Reg, String)>,
    /// Names of the local arrays.
    pub(super) locals: Vec<String>,
    /// The built-in values in use, with their registers.
    pub(super) builtins: Vec<(Builtin, Reg)>,
    /// The state of the cancellation poll in loops that may not terminate.
    pub(super) poll: Option<super::poll::Poll>,
}

impl Entry {
    /// Returns the address of a buffer in use.
    pub(super) fn buffer(&self, nth: u32) -> Reg {
        let found = self.buffers.iter().find(|(position, _)| *position == nth);
        found.expect("the addresses of all buffers in use are read at the start").1
    }

    fn builtin(&self, builtin: Builtin) -> Option<Reg> {
        self.builtins.iter().find(|(other, _)| *other == builtin).map(|(_, register)| *register)
    }
}

/// The built-in values and the memory that a kernel uses.
#[derive(Default)]
pub(super) struct Used {
    buffers: Vec<u32>,
    lengths: Vec<Param>,
    immediates: bool,
    builtins: Vec<Builtin>,
}

/// Returns the name of a parameter in PTX.
pub(super) fn name(param: Param) -> String {
    match param {
        Param::Buffer(nth) => format!("buffer{nth}"),
        Param::Length { buffer, offset, stride } => format!("length{buffer}_{offset}_{stride}"),
        Param::LinearisedGrid => "linearised_grid".to_owned(),
        Param::WorkgroupCounts => "workgroup_counts".to_owned(),
        Param::Immediates(_) => "immediates".to_owned(),
        Param::Epoch => "epoch".to_owned(),
        Param::CancelledEpoch => "cancelled_epoch".to_owned(),
    }
}

impl Lowering<'_> {
    /// Emits the prologue of the kernel.
    pub(super) fn entry(&mut self) {
        let used = Used::find(self.kir);
        // No block may exit before it has waited.
        let exits_surplus_blocks = self.options.grid == GridSource::Linearised;
        if exits_surplus_blocks {
            self.pdl_entry();
        }
        self.read_params(&used);
        self.compute_builtins(&used);
        self.initialise_memory();
        if !exits_surplus_blocks {
            self.pdl_entry();
        }
        self.cancellation_poll_entry();
    }

    /// Waits for the preceding launch, and allows the next one to start, with PDL. Nothing accesses
    /// global memory before, so that the kernel may start while any other ends: parameters are
    /// read, and workgroup memory is zeroed.
    pub(super) fn pdl_entry(&mut self) {
        if self.options.pdl {
            self.b.pdl_wait();
            self.b.pdl_launch_dependents();
        }
    }

    /// Declares local and shared memory, and zeroes it and the variables.
    pub(super) fn initialise_memory(&mut self) {
        self.zero_variables();
        self.declare_local_memory();
        self.declare_shared_memory();
    }

    /// Adds the parameters for buffers, lengths and immediates; reads all but the immediates.
    pub(super) fn read_params(&mut self, used: &Used) {
        for nth in &used.buffers {
            let address = self.pointer_param(Param::Buffer(*nth));
            self.entry.buffers.push((*nth, address));
        }
        for length in &used.lengths {
            let elements = self.read_param(*length, PtxType::U32);
            self.entry.lengths.push((*length, elements));
        }
        if used.immediates {
            self.entry.params.push(Param::Immediates(self.kir.immediates));
        }
    }

    /// Adds a parameter that is an address, and reads it.
    pub(super) fn pointer_param(&mut self, param: Param) -> Reg {
        let address = self.read_param(param, PtxType::U64).into();
        self.b.op(PtxType::U64, Opcode::new("cvta.to.global.u64"), &[address])
    }

    /// Adds a parameter, and reads it.
    fn read_param(&mut self, param: Param, ty: PtxType) -> Reg {
        self.entry.params.push(param);
        let address = Address::symbol(&name(param), 0);
        self.b.load(StateSpace::Param, ty, address, 1, false)[0]
    }

    /// Computes the built-in values in use; in a linearised grid, exits surplus blocks.
    pub(super) fn compute_builtins(&mut self, used: &Used) {
        if self.options.grid == GridSource::Linearised {
            self.linearised_grid();
        }
        for builtin in &used.builtins {
            if self.entry.builtin(*builtin).is_none() {
                let value = self.compute_builtin(*builtin);
                self.entry.builtins.push((*builtin, value));
            }
        }
    }

    fn compute_builtin(&mut self, builtin: Builtin) -> Reg {
        let axis = |names: [&'static str; 3], axis: u8| names[usize::from(axis)];
        match builtin {
            Builtin::LocalId(n) => self.b.special(axis(["%tid.x", "%tid.y", "%tid.z"], n)),
            Builtin::GroupId(n) => self.b.special(axis(["%ctaid.x", "%ctaid.y", "%ctaid.z"], n)),
            Builtin::GroupCount(n) => {
                self.b.special(axis(["%nctaid.x", "%nctaid.y", "%nctaid.z"], n))
            }
            Builtin::SubgroupSize => self.b.copy(PtxType::U32, Operand::u32(32)),
            Builtin::SubgroupLane => {
                let thread = self.thread_index().into();
                self.b.typed("and", PtxType::B32, &[thread, Operand::u32(31)])
            }
            Builtin::SubgroupId => {
                let thread = self.thread_index().into();
                self.b.typed("shr", PtxType::U32, &[thread, Operand::u32(5)])
            }
            Builtin::SubgroupCount => {
                let count = self.thread_count().div_ceil(32);
                self.b.copy(PtxType::U32, Operand::u32(count))
            }
        }
    }

    /// Returns the number of threads of a block.
    pub(super) fn thread_count(&self) -> u32 {
        self.kir.workgroup_size.iter().product()
    }

    /// Returns the linear index of this thread in its block, x first.
    pub(super) fn thread_index(&mut self) -> Reg {
        let [width, height, depth] = self.kir.workgroup_size;
        let mut position = self.b.special("%tid.x");
        if height > 1 || depth > 1 {
            let mut rows = self.b.special("%tid.y");
            if depth > 1 {
                let z = self.b.special("%tid.z");
                let operands = [z.into(), Operand::u32(height), rows.into()];
                rows = self.b.typed("mad.lo", PtxType::U32, &operands);
            }
            let operands = [rows.into(), Operand::u32(width), position.into()];
            position = self.b.typed("mad.lo", PtxType::U32, &operands);
        }
        position
    }

    /// Returns a built-in value that the prologue has computed.
    pub(super) fn builtin(&mut self, builtin: Builtin) -> Operand {
        match builtin {
            Builtin::SubgroupSize => Operand::u32(32),
            _ => {
                let register = self.entry.builtin(builtin);
                register.expect("built-in values are computed in the prologue").into()
            }
        }
    }

    fn zero_variables(&mut self) {
        for (var, ty) in self.vars.clone().into_iter().zip(&self.kir.vars) {
            let zero = match ptx_type(*ty) {
                PtxType::F16 => PtxType::U16,
                other => other,
            };
            self.b.assign(var, Operand::Imm { bits: 0, ty: zero });
        }
    }

    fn declare_local_memory(&mut self) {
        for array in &self.kir.locals {
            let bytes = size_in_bytes(array).next_multiple_of(16);
            let name = self.b.local(bytes);
            if bytes <= MAX_UNROLLED_ZEROS {
                self.zero_unrolled(&name, bytes);
            } else {
                self.zero_in_loop(&name, bytes);
            }
            self.entry.locals.push(name);
        }
    }

    fn zero_unrolled(&mut self, name: &str, bytes: u32) {
        for offset in (0..bytes).step_by(16) {
            let address = Address::symbol(name, i64::from(offset));
            zero_quad(&mut self.b, StateSpace::Local, address);
        }
    }

    fn zero_in_loop(&mut self, name: &str, bytes: u32) {
        let base = self.b.reg(PtxType::U64);
        self.b.emit(Opcode::new("mov.u64"), vec![base.into(), name.into()]);
        self.b.for_range(Operand::u32(0), Operand::u32(bytes), 16, |b, at| {
            let at = b.convert("", PtxType::U64, PtxType::U32, at.into());
            let address = b.typed("add", PtxType::U64, &[base.into(), at.into()]);
            zero_quad(b, StateSpace::Local, Address::reg(address, 0));
        });
    }

    /// Lays out the workgroup's arrays in shared memory, and zeroes them with all threads of the
    /// block.
    fn declare_shared_memory(&mut self) {
        let mut total = 0;
        for array in &self.kir.workgroup {
            self.entry.shared_offsets.push(total);
            total += size_in_bytes(array).next_multiple_of(16);
        }
        if total == 0 {
            return;
        }
        let is_static = total <= MAX_STATIC_SHARED;
        let name = self.b.shared(if is_static { total } else { 0 }, 16);
        self.entry.dynamic_shared = if is_static { 0 } else { total };
        let base = self.b.reg(PtxType::U32);
        self.b.emit(Opcode::new("mov.u32"), vec![base.into(), name.as_str().into()]);
        self.entry.shared = Some((base, name));
        self.zero_shared(base, total);
        self.b.barrier();
    }

    /// Zeroes shared memory. In each iteration every thread of the block stores 16 bytes; in the
    /// last one, only the threads whose bytes are within the memory.
    fn zero_shared(&mut self, base: Reg, total: u32) {
        let thread = self.thread_index();
        let first = self.b.typed("shl", PtxType::B32, &[thread.into(), Operand::u32(4)]);
        let stride = self.thread_count() * 16;
        let stores = total / stride;
        if stores > MAX_UNROLLED_STORES {
            self.b.for_range(first.into(), Operand::u32(total), stride, |b, at| {
                let address = b.typed("add", PtxType::U32, &[base.into(), at.into()]);
                zero_quad(b, StateSpace::Shared, Address::reg(address, 0));
            });
            return;
        }
        let address = self.b.typed("add", PtxType::U32, &[base.into(), first.into()]);
        for nth in 0..stores {
            let address = Address::reg(address, i64::from(nth * stride));
            zero_quad(&mut self.b, StateSpace::Shared, address);
        }
        if !total.is_multiple_of(stride) {
            let remainder = Operand::u32(total - stores * stride);
            let is_within = self.b.compare("lt", PtxType::U32, first.into(), remainder);
            let address = Address::reg(address, i64::from(stores * stride));
            self.b.if_then(is_within, |b| zero_quad(b, StateSpace::Shared, address));
        }
    }

    /// Computes the position in a linearised grid, and exits surplus blocks.
    fn linearised_grid(&mut self) {
        let base = self.pointer_param(Param::LinearisedGrid);
        // The fields of `LinearisedGrid`, in order.
        let mut load_four = |offset| {
            self.b.load(StateSpace::Global, PtxType::U32, Address::reg(base, offset), 4, true)
        };
        let (first, second) = (load_four(0), load_four(16));
        let (groups, width) = (&first[..3], first[3]);
        let (height, rows, last_row_len) = (second[0], second[1], second[2]);
        let (x, y) = (self.b.special("%ctaid.x"), self.b.special("%ctaid.y"));
        let z = self.b.special("%ctaid.z");
        // The index of the block's row in the launched grid, over y and z.
        let row = self.b.typed("mad.lo", PtxType::U32, &[z.into(), height.into(), y.into()]);
        let is_surplus = self.b.compare("ge", PtxType::U32, row.into(), rows.into());
        self.b.ret_if(is_surplus);
        let last = self.b.typed("sub", PtxType::U32, &[rows.into(), Operand::u32(1)]);
        let in_last = self.b.compare("eq", PtxType::U32, row.into(), last.into());
        let end = self.b.select(PtxType::U32, in_last, last_row_len.into(), width.into());
        let is_surplus = self.b.compare("ge", PtxType::U32, x.into(), end.into());
        self.b.ret_if(is_surplus);
        let linear = self.b.typed("mad.lo", PtxType::U32, &[row.into(), width.into(), x.into()]);
        self.workgroup_position(linear, groups);
    }

    /// Computes a workgroup's position from its linear index.
    pub(super) fn workgroup_position(&mut self, linear: Reg, groups: &[Reg]) {
        let (w, h) = (groups[0].into(), groups[1].into());
        let x = self.b.typed("rem", PtxType::U32, &[linear.into(), w]);
        let rows = self.b.typed("div", PtxType::U32, &[linear.into(), w]);
        let y = self.b.typed("rem", PtxType::U32, &[rows.into(), h]);
        let z = self.b.typed("div", PtxType::U32, &[rows.into(), h]);
        for (axis, id) in (0..).zip([x, y, z]) {
            self.entry.builtins.push((Builtin::GroupId(axis), id));
            self.entry.builtins.push((Builtin::GroupCount(axis), groups[usize::from(axis)]));
        }
    }

    /// Returns the number of elements of the runtime-sized array at the end of a buffer.
    pub(super) fn array_length(&mut self, buffer: u32, offset: u32, stride: u32) -> Operand {
        let param = Param::Length { buffer, offset, stride };
        let found = self.entry.lengths.iter().find(|(other, _)| *other == param);
        found.expect("lengths in use are read in the prologue").1.into()
    }
}

/// Stores 16 bytes of zeros.
fn zero_quad(b: &mut Body, space: StateSpace, address: Address) {
    b.store(space, PtxType::B32, address, &[Operand::u32(0); 4]);
}

/// Returns the size of an array in bytes.
fn size_in_bytes(array: &Array) -> u32 {
    u32::try_from(array.size()).expect("arrays of one kernel are within 4 GiB")
}

impl Used {
    /// Finds what a kernel uses.
    pub(super) fn find(kir: &Kir) -> Self {
        let mut used = Self::default();
        for definition in &kir.values {
            match definition.inst {
                Inst::Builtin(builtin) => used.builtins.push(builtin),
                Inst::ArrayLength { binding: buffer, offset, stride } => {
                    used.add_length(Param::Length { buffer, offset, stride });
                }
                Inst::Load { place, .. }
                | Inst::WorkgroupUniformLoad { place, .. }
                | Inst::Atomic { place, .. } => used.add_place(&place),
                _ => {}
            }
        }
        for_each_stmt(&kir.body, &mut |stmt| {
            if let Stmt::Store { place, .. } = stmt {
                used.add_place(place);
            }
        });
        // Each buffer once, in the order of the interface.
        let mut is_used = vec![false; kir.buffers.len()];
        used.buffers.iter().for_each(|nth| is_used[*nth as usize] = true);
        used.buffers = (0..).zip(is_used).filter(|it| it.1).map(|it| it.0).collect();
        used
    }

    fn add_length(&mut self, length: Param) {
        if !self.lengths.contains(&length) {
            self.lengths.push(length);
        }
    }

    fn add_place(&mut self, place: &Place) {
        match place.space {
            AddressSpace::Binding(nth) => self.buffers.push(nth),
            AddressSpace::Immediate => self.immediates = true,
            AddressSpace::Workgroup(_) | AddressSpace::Local(_) => {}
        }
    }
}

/// Returns the type of a value in memory: bools are bytes.
pub(super) const fn memory_type(ty: Type) -> PtxType {
    match ty {
        Type::Bool => PtxType::U8,
        other => ptx_type(other).to_bits(),
    }
}
