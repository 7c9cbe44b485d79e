//! The kernel's interface and its prologue.

use spirv::{BuiltIn, Capability, Decoration, Op, StorageClass};

use super::memory::{self, memory_type};
use super::module::Id;
use super::state::ArrayVariable;
use super::{Emitter, Result};
use crate::kir::{Barrier, Builtin, Inst, Type};

/// Position of each member in a `LinearisedGrid`, in words.
const GROUPS: u32 = 0;
const WIDTH: u32 = 3;
const HEIGHT: u32 = 4;
const ROWS: u32 = 5;
const LAST_ROW_LEN: u32 = 6;
/// Words of a `LinearisedGrid`.
const GRID_WORDS: u32 = 8;

impl Emitter<'_> {
    /// Declares buffers, immediates, arrays and variables.
    pub(super) fn declare(&mut self) -> Result<()> {
        self.declare_views()?;
        for (i, binding) in (0..).zip(&self.interface.bindings) {
            if self.is_uniform(i) {
                let words = self.declare_words(Some(i), binding.layout.min_binding_size());
                self.words.push(words);
            }
        }
        if self.kir.immediates > 0 {
            let words = self.declare_words(None, self.kir.immediates.into());
            self.words.push(words);
        }
        self.declare_arrays();
        for ty in &self.kir.vars {
            let variable = self.variable(*ty);
            self.vars.push(variable);
        }
        Ok(())
    }

    fn declare_arrays(&mut self) {
        let widths = memory::workgroup_widths(self);
        for (array, width) in self.kir.workgroup.iter().zip(widths) {
            let elements = array.len.div_ceil(width);
            let ty = self.array_ty(array.ty, width, elements);
            let zero = self.options.native_workgroup_zeroing.then(|| self.m.null(ty));
            let class = StorageClass::Workgroup;
            let variable = self.m.global(class, ty, zero);
            self.workgroup.push(ArrayVariable { class, variable, ty: array.ty, width, elements });
        }
        for array in &self.kir.locals {
            let elements = array.len;
            let variable = self.local_array(*array);
            let class = StorageClass::Function;
            self.locals.push(ArrayVariable { class, variable, ty: array.ty, width: 1, elements });
        }
    }

    /// Returns an array type of vectors of `width` scalars.
    pub(super) fn array_ty(&mut self, ty: Type, width: u32, elements: u32) -> Id {
        let scalar = self.spirv_ty(memory_type(ty));
        let (element, count) = (self.m.vector(scalar, width), self.m.u32(elements));
        self.m.ty(Op::TypeArray, &[element, count])
    }

    /// Writes the beginning of the kernel.
    pub(super) fn prologue(&mut self) -> Result<()> {
        if self.options.linearised {
            self.linearised_grid();
        }
        for definition in &self.kir.values {
            if let Inst::Builtin(builtin) = definition.inst
                && !self.builtins.iter().any(|(of, _)| *of == builtin)
            {
                let id = self.read_builtin(builtin);
                self.builtins.push((builtin, id));
            }
        }
        if !self.options.native_workgroup_zeroing && !self.workgroup.is_empty() {
            self.zero_workgroup_memory();
        }
        Ok(())
    }

    /// Returns a built-in value, which the prologue has read.
    pub(super) fn builtin(&self, builtin: Builtin) -> Id {
        let found = self.builtins.iter().find(|(of, _)| *of == builtin);
        found.expect("all built-in values in use are read at the start").1
    }

    fn read_builtin(&mut self, builtin: Builtin) -> Id {
        match builtin {
            Builtin::LocalId(axis) => self.component(BuiltIn::LocalInvocationId, axis),
            Builtin::GroupId(axis) => self.component(BuiltIn::WorkgroupId, axis),
            Builtin::GroupCount(axis) => self.component(BuiltIn::NumWorkgroups, axis),
            Builtin::SubgroupSize => self.word_input(BuiltIn::SubgroupSize),
            Builtin::SubgroupLane => self.word_input(BuiltIn::SubgroupLocalInvocationId),
            Builtin::SubgroupId => self.word_input(BuiltIn::SubgroupId),
            Builtin::SubgroupCount => self.word_input(BuiltIn::NumSubgroups),
        }
    }

    /// Returns the variable of a built-in value, which is declared at most once.
    fn input(&mut self, builtin: BuiltIn, ty: Id) -> Id {
        if let Some((_, variable)) = self.inputs.iter().find(|(of, _)| *of == builtin) {
            return *variable;
        }
        let variable = self.m.input(builtin, ty);
        self.inputs.push((builtin, variable));
        variable
    }

    /// Loads a component of a built-in vector.
    pub(super) fn component(&mut self, builtin: BuiltIn, axis: u8) -> Id {
        let u32 = self.m.u32_ty();
        let vector = self.m.vector(u32, 3);
        let variable = self.input(builtin, vector);
        let axis = self.m.u32(axis.into());
        let pointer = self.pointer_to(StorageClass::Input, u32, &[variable, axis]);
        self.m.op(Op::Load, u32, &[pointer])
    }

    fn word_input(&mut self, builtin: BuiltIn) -> Id {
        self.m.require(Capability::GroupNonUniform);
        let u32 = self.m.u32_ty();
        let variable = self.input(builtin, u32);
        self.m.op(Op::Load, u32, &[variable])
    }

    /// Ends excess workgroups. For the others computes their id in the logical grid and its size.
    fn linearised_grid(&mut self) {
        let u32 = self.m.u32_ty();
        let grid = self.grid_buffer();
        let [x, y, z] = [0, 1, 2].map(|axis| self.component(BuiltIn::WorkgroupId, axis));
        let [gx, gy, gz, width, height, rows, last_row_len] =
            [GROUPS, GROUPS + 1, GROUPS + 2, WIDTH, HEIGHT, ROWS, LAST_ROW_LEN]
                .map(|member| self.grid_word(grid, member));
        let rows_before = self.m.op(Op::IMul, u32, &[z, height]);
        let row = self.m.op(Op::IAdd, u32, &[y, rows_before]);
        let one = self.m.u32(1);
        let last_row = self.m.op(Op::ISub, u32, &[rows, one]);
        let past = self.op(Op::UGreaterThanEqual, Type::Bool, &[row, rows]);
        let in_last = self.op(Op::IEqual, Type::Bool, &[row, last_row]);
        let past_end = self.op(Op::UGreaterThanEqual, Type::Bool, &[x, last_row_len]);
        let past_last = self.op(Op::LogicalAnd, Type::Bool, &[in_last, past_end]);
        let excess = self.op(Op::LogicalOr, Type::Bool, &[past, past_last]);
        let [exit, go_on] = [(); 2].map(|()| self.m.id());
        self.branch_conditional(excess, [exit, go_on], go_on);
        self.begin(exit);
        self.m.run(Op::Return, &[]);
        self.begin(go_on);
        let row_start = self.m.op(Op::IMul, u32, &[row, width]);
        let linear = self.m.op(Op::IAdd, u32, &[row_start, x]);
        let logical_row = self.m.op(Op::UDiv, u32, &[linear, gx]);
        let ids = [
            self.m.op(Op::UMod, u32, &[linear, gx]),
            self.m.op(Op::UMod, u32, &[logical_row, gy]),
            self.m.op(Op::UDiv, u32, &[logical_row, gy]),
        ];
        for (axis, (id, count)) in (0..).zip(ids.into_iter().zip([gx, gy, gz])) {
            self.builtins.push((Builtin::GroupId(axis), id));
            self.builtins.push((Builtin::GroupCount(axis), count));
        }
    }

    /// Declares the uniform buffer with the grid, after the interface's last binding.
    fn grid_buffer(&mut self) -> Id {
        let u32 = self.m.u32_ty();
        let block = self.m.new_ty(Op::TypeStruct, &[u32; GRID_WORDS as usize]);
        self.m.decorate(block, Decoration::Block, &[]);
        for member in 0..GRID_WORDS {
            self.m.decorate_member(block, member, Decoration::Offset, &[member * 4]);
        }
        let variable = self.m.global(StorageClass::Uniform, block, None);
        self.bind(variable, self.interface.bindings.len() as u32);
        variable
    }

    fn grid_word(&mut self, grid: Id, member: u32) -> Id {
        let (u32, member) = (self.m.u32_ty(), self.m.u32(member));
        let pointer = self.pointer_to(StorageClass::Uniform, u32, &[grid, member]);
        self.m.op(Op::Load, u32, &[pointer])
    }

    /// Zeroes workgroup memory, on devices that do not do so themselves.
    fn zero_workgroup_memory(&mut self) {
        let u32 = self.m.u32_ty();
        let size = self.kir.workgroup_size;
        let [x, y, z] = [0, 1, 2].map(|axis| self.component(BuiltIn::LocalInvocationId, axis));
        let [width, height] = [size[0], size[1]].map(|extent| self.m.u32(extent));
        let rows_before = self.m.op(Op::IMul, u32, &[z, height]);
        let row = self.m.op(Op::IAdd, u32, &[y, rows_before]);
        let row_start = self.m.op(Op::IMul, u32, &[row, width]);
        let first = self.m.op(Op::IAdd, u32, &[row_start, x]);
        for array in self.workgroup.clone() {
            self.zero_array(&array, first);
        }
        self.barrier(Barrier::Workgroup);
    }

    /// Zeroes an array: of n invocations, each zeroes every n-th element from `first` on, which is
    /// its index in the workgroup.
    fn zero_array(&mut self, array: &ArrayVariable, first: Id) {
        let u32 = self.m.u32_ty();
        let counter = self.m.local_word();
        self.m.run(Op::Store, &[counter, first]);
        let [header, top, body, exit, next, merge] = [(); 6].map(|()| self.m.id());
        self.branch(header);
        self.begin(header);
        self.m.run(Op::LoopMerge, &[merge, next, 0]);
        self.branch(top);
        self.begin(top);
        let index = self.m.op(Op::Load, u32, &[counter]);
        let count = self.m.u32(array.elements);
        let in_bounds = self.op(Op::ULessThan, Type::Bool, &[index, count]);
        self.branch_conditional(in_bounds, [body, exit], body);
        self.begin(exit);
        self.branch(merge);
        self.begin(body);
        let scalar = self.spirv_ty(memory_type(array.ty));
        let element = self.m.vector(scalar, array.width);
        let pointer = self.pointer_to(array.class, element, &[array.variable, index]);
        let zero = self.m.null(element);
        self.store_to(array.class, pointer, zero);
        self.branch(next);
        self.begin(next);
        let invocations = self.m.u32(self.kir.workgroup_size.iter().product());
        let next_index = self.m.op(Op::IAdd, u32, &[index, invocations]);
        self.m.run(Op::Store, &[counter, next_index]);
        self.branch(header);
        self.begin(merge);
    }
}
