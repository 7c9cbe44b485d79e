//! Rewrites a kernel to use hidden bindings: the grid, the report of aborted loops, and the lengths
//! and immediates of a launch.

use super::for_device::{HiddenLength, LaunchBlock, WgslOptions};
use crate::kir::{
    AddressSpace, AtomicOp, BinaryOp, Buffer, Builder, Builtin, Inst, Kir, Label, Place, Stmt,
    Type, Value, for_each_stmt_mut,
};
use crate::{Access, BindingInfo, BufferBindingType, Interface, Scalar, TypeLayout};

/// Iterations of the loop that detects aborted loops.
const ITERATIONS: u32 = 2;

/// Words of the report of aborted loops.
const REPORT_WORDS: u32 = 4;

/// Vectors of a [`LinearisedGrid`](crate::LinearisedGrid).
const GRID_VECTORS: u32 = 2;

/// A kernel with hidden bindings.
pub(super) struct Hidden {
    pub(super) kir: Kir,
    pub(super) interface: Interface,
    pub(super) launch_block: Option<LaunchBlock>,
}

/// Adds the hidden bindings that the options ask for, and a launch block if it is needed.
pub(super) fn add(kir: Kir, interface: &Interface, options: &WgslOptions) -> Hidden {
    let mut hidden = Hidden { kir, interface: interface.clone(), launch_block: None };
    for (i, binding) in (0..).zip(&mut hidden.interface.bindings) {
        (binding.group, binding.binding) = (0, i);
    }
    if options.linearised {
        let grid = hidden.uniform("scry_grid", GRID_VECTORS);
        hidden.kir = linearise(hidden.kir, grid);
    }
    if options.reports_aborted_loops {
        let report = hidden.storage("scry_report", REPORT_WORDS);
        hidden.kir = report_aborted_loops(hidden.kir, report);
    }
    hidden.add_launch_block(options.immediates_in_uniform);
    hidden
}

impl Hidden {
    /// Adds a uniform buffer of `len` vectors of four words; returns its index.
    fn uniform(&mut self, name: &str, len: u32) -> u32 {
        let element = TypeLayout::Vector { len: 4, scalar: Scalar::U32 };
        self.binding(name, BufferBindingType::Uniform, (element, 16), len)
    }

    /// Adds a writable storage buffer of `len` words; returns its index.
    fn storage(&mut self, name: &str, len: u32) -> u32 {
        let element = TypeLayout::Scalar(Scalar::U32);
        self.binding(name, BufferBindingType::Storage, (element, 4), len)
    }

    fn binding(
        &mut self,
        name: &str,
        ty: BufferBindingType,
        (element, stride): (TypeLayout, u32),
        len: u32,
    ) -> u32 {
        let layout = TypeLayout::Array { element: Box::new(element), len: Some(len), stride };
        let index = self.interface.bindings.len() as u32;
        let writable = ty == BufferBindingType::Storage;
        self.kir.buffers.push(Buffer {
            name: name.to_owned(),
            element: Type::U32,
            writable,
            min_size: layout.min_binding_size(),
        });
        self.interface.bindings.push(BindingInfo {
            group: 0,
            binding: index,
            name: name.to_owned(),
            ty,
            access: if writable { Access::ReadWrite } else { Access::Read },
            layout,
        });
        index
    }

    /// Replaces array lengths that the device does not know and, if `with_immediates`, the
    /// immediates by loads from a uniform buffer.
    fn add_launch_block(&mut self, with_immediates: bool) {
        let lengths = hidden_lengths(&self.kir);
        let immediates = if with_immediates { self.kir.immediates } else { 0 };
        if lengths.is_empty() && immediates == 0 {
            return;
        }
        let immediates_offset = (lengths.len() as u32 * 4).next_multiple_of(16);
        let block = LaunchBlock { lengths, immediates_offset, immediates };
        let buffer = AddressSpace::Binding(self.uniform("scry_launch", block.size() / 16));
        for (i, hidden) in (0..).zip(&block.lengths) {
            let place = Place::new(buffer, None, 0, i * 4);
            for definition in &mut self.kir.values {
                if length_of(&definition.inst) == Some(*hidden) {
                    definition.inst = Inst::Load { place, count: 1 };
                }
            }
        }
        if immediates > 0 {
            for definition in &mut self.kir.values {
                if let Inst::Load { place, .. } = &mut definition.inst
                    && place.space == AddressSpace::Immediate
                {
                    (place.space, place.offset) = (buffer, place.offset + immediates_offset);
                }
            }
            self.kir.immediates = 0;
            self.interface.immediates = None;
        }
        self.launch_block = Some(block);
    }
}

/// Returns each length of an array whose elements are not whole words.
fn hidden_lengths(kir: &Kir) -> Vec<HiddenLength> {
    let mut found = Vec::new();
    for length in kir.values.iter().filter_map(|definition| length_of(&definition.inst)) {
        if !length.stride.is_multiple_of(4) && !found.contains(&length) {
            found.push(length);
        }
    }
    found
}

fn length_of(inst: &Inst) -> Option<HiddenLength> {
    match *inst {
        Inst::ArrayLength { binding, offset, stride } => {
            Some(HiddenLength { binding, offset, stride })
        }
        _ => None,
    }
}

/// Makes a kernel compute its position in the grid, and the size of that grid, from a
/// [`LinearisedGrid`](crate::LinearisedGrid). Excess workgroups exit at once.
fn linearise(mut kir: Kir, grid: u32) -> Kir {
    let body = std::mem::take(&mut kir.body);
    let mut b = Builder::continuing(kir);
    let space = AddressSpace::Binding(grid);
    let groups = b.load(Type::U32, Place::new(space, None, 0, 0), 4);
    let rows = b.load(Type::U32, Place::new(space, None, 0, 16), 4);
    let ([gx, gy, gz, width], [height, rows, last_row_len]) =
        ([0, 1, 2, 3].map(|i| groups[i]), [0, 1, 2].map(|i| rows[i]));
    let first_own = b.kir().values.len();
    let [x, y, z] = [0, 1, 2].map(|axis| b.builtin(Builtin::GroupId(axis)));
    let rows_before = b.binary(BinaryOp::Mul, z, height);
    let row = b.binary(BinaryOp::Add, y, rows_before);
    let excess = excess(&mut b, [x, row, rows, last_row_len]);
    b.if_then(excess, |b| b.break_to(Label::KERNEL));
    let row_start = b.binary(BinaryOp::Mul, row, width);
    let linear = b.binary(BinaryOp::Add, row_start, x);
    let logical_row = b.binary(BinaryOp::Div, linear, gx);
    let ids = [
        b.binary(BinaryOp::Rem, linear, gx),
        b.binary(BinaryOp::Rem, logical_row, gy),
        b.binary(BinaryOp::Div, logical_row, gy),
    ];
    let [id_vars, count_vars] = [ids, [gx, gy, gz]].map(|values| {
        values.map(|value| {
            let var = b.var(Type::U32);
            b.set(var, value);
            var
        })
    });
    let mut kir = b.finish();
    for definition in &mut kir.values[..first_own] {
        definition.inst = match definition.inst {
            Inst::Builtin(Builtin::GroupId(axis)) => Inst::Get(id_vars[usize::from(axis)]),
            Inst::Builtin(Builtin::GroupCount(axis)) => Inst::Get(count_vars[usize::from(axis)]),
            other => other,
        };
    }
    kir.body.extend(body);
    kir
}

/// Returns whether a workgroup at `x` of a physical row is in excess.
fn excess(b: &mut Builder, [x, row, rows, last_row_len]: [Value; 4]) -> Value {
    let one = b.u32(1);
    let last_row = b.binary(BinaryOp::Sub, rows, one);
    let past = b.binary(BinaryOp::Ge, row, rows);
    let in_last = b.binary(BinaryOp::Eq, row, last_row);
    let past_end = b.binary(BinaryOp::Ge, x, last_row_len);
    let past_last = b.binary(BinaryOp::And, in_last, past_end);
    b.binary(BinaryOp::Or, past, past_last)
}

/// Appends a loop of two iterations, whose bounds are loaded from the report, so that no compiler
/// can unroll it. Sets the first word of the report if the driver left the loop before its end.
fn report_aborted_loops(mut kir: Kir, report: u32) -> Kir {
    let mut body = std::mem::take(&mut kir.body);
    let label = Label(kir.labels);
    kir.labels += 1;
    for_each_stmt_mut(&mut body, &mut |stmt| {
        if let Stmt::Break(to @ Label::KERNEL) = stmt {
            *to = label;
        }
    });
    let mut b = Builder::continuing(kir);
    b.push(Stmt::Scope { label, body });
    let space = AddressSpace::Binding(report);
    let words = b.load(Type::U32, Place::new(space, None, 0, 4), 3);
    let iterations = b.u32(ITERATIONS);
    let end = b.binary(BinaryOp::Add, words[0], iterations);
    let (index, count) = (b.var(Type::U32), b.var(Type::U32));
    b.set(index, words[1]);
    b.set(count, words[2]);
    b.loop_(|b, label| {
        let at = b.get(index);
        let done = b.binary(BinaryOp::Ge, at, end);
        b.if_then(done, |b| b.break_to(label));
        for var in [index, count] {
            let (before, one) = (b.get(var), b.u32(1));
            let after = b.binary(BinaryOp::Add, before, one);
            b.set(var, after);
        }
    });
    let count = b.get(count);
    let was_aborted = b.binary(BinaryOp::Ne, count, iterations);
    b.if_then(was_aborted, |b| {
        let one = b.u32(1);
        b.atomic(Type::U32, AtomicOp::Store, Place::new(space, None, 0, 0), Some(one), None);
    });
    b.finish()
}
