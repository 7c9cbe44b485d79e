//! Storage buffers. A buffer is declared as several variables, its views: one for each type of its
//! accesses, a runtime-sized array of scalars or of vectors. Views of one buffer alias each other.

use spirv::{Capability, Decoration, Op, StorageClass};

use super::memory::pieces;
use super::module::Id;
use super::state::{View, Views};
use super::{Emitter, Result, lacking};
use crate::BufferBindingType;
use crate::kir::{AddressSpace, Inst, MatrixPlace, Place, Stmt, Type, Value, for_each_stmt};

/// Returns the scalar type of the views for values of a type: unsigned for signed integers.
pub(super) fn view_type(ty: Type) -> Type {
    if ty.is_float() { ty } else { ty.to_unsigned() }
}

impl Emitter<'_> {
    /// Whether a binding is a uniform buffer.
    pub(super) fn is_uniform(&self, binding: u32) -> bool {
        self.interface.bindings[binding as usize].ty == BufferBindingType::Uniform
    }

    /// Declares the views that the kernel needs.
    pub(super) fn declare_views(&mut self) -> Result<()> {
        let mut views = Views::default();
        for_each_stmt(&self.kir.body, &mut |stmt| match stmt {
            Stmt::Let(value) => match *self.kir.inst(*value) {
                Inst::Load { place, count } => {
                    self.add_pieces(&mut views, &place, self.ty(*value), count.into());
                }
                Inst::Atomic { place, .. } => {
                    self.add_pieces(&mut views, &place, self.ty(*value), 1);
                }
                Inst::MatrixLoad(place) => self.add_matrix(&mut views, &place, *value),
                _ => {}
            },
            Stmt::Store { place, values, .. } => {
                self.add_pieces(&mut views, place, self.ty(values[0]), values.len() as u32);
            }
            Stmt::MatrixStore { place, value, .. } => self.add_matrix(&mut views, place, *value),
            _ => {}
        });
        self.add_lengths(&mut views);
        for at in 0..views.list.len() {
            let view = views.list[at];
            let others = views.list.iter().filter(|other| other.binding == view.binding);
            let aliased = others.count() > 1;
            views.list[at].variable = self.declare_view(&view, aliased)?;
        }
        self.views = views;
        Ok(())
    }

    fn add_pieces(&self, views: &mut Views, place: &Place, ty: Type, count: u32) {
        if let AddressSpace::Binding(binding) = place.space
            && !self.is_uniform(binding)
        {
            for (_, width) in pieces(&self.resolve(place), ty.size(), count) {
                views.add(binding, view_type(ty), width);
            }
        }
    }

    /// Adds the view for a matrix access, which is by scalars.
    fn add_matrix(&self, views: &mut Views, place: &MatrixPlace, matrix: Value) {
        if let AddressSpace::Binding(binding) = place.array.space
            && let Type::Matrix(ty) = self.ty(matrix)
        {
            views.add(binding, ty.element.ty(), 1);
        }
    }

    /// Adds the views for array lengths: `OpArrayLength` of a view yields the length if the size of
    /// the view's elements divides offset and stride of the array.
    fn add_lengths(&self, views: &mut Views) {
        // A kernel with an array of 2-byte elements has at least one of the two types.
        let half = if self.native_u16 { Type::U16 } else { Type::F16 };
        for definition in &self.kir.values {
            if let Inst::ArrayLength { binding, offset, stride } = definition.inst
                && views.for_length(binding, offset, stride).is_none()
            {
                let is_words = (offset | stride).is_multiple_of(4);
                views.add(binding, if is_words { Type::U32 } else { half }, 1);
            }
        }
    }

    fn declare_view(&mut self, view: &View, aliased: bool) -> Result<Id> {
        match view.scalar {
            Type::Bool => return Err(lacking("bool in a buffer")),
            ty if ty.size() == 2 => self.m.require(Capability::StorageBuffer16BitAccess),
            _ => {}
        }
        let scalar = self.spirv_ty(view.scalar);
        let element = self.m.vector(scalar, view.width);
        let array = self.m.new_ty(Op::TypeRuntimeArray, &[element]);
        self.m.decorate(array, Decoration::ArrayStride, &[view.size()]);
        let block = self.m.new_ty(Op::TypeStruct, &[array]);
        self.m.decorate(block, Decoration::Block, &[]);
        self.m.decorate_member(block, 0, Decoration::Offset, &[0]);
        if !self.kir.buffers[view.binding as usize].writable {
            self.m.decorate_member(block, 0, Decoration::NonWritable, &[]);
        }
        let variable = self.m.global(StorageClass::StorageBuffer, block, None);
        self.bind(variable, view.binding);
        if aliased {
            self.m.decorate(variable, Decoration::Aliased, &[]);
        }
        let name = self.interface.bindings[view.binding as usize].name.clone();
        self.m.name(variable, &name);
        Ok(variable)
    }

    /// Binds a variable in descriptor set 0.
    pub(super) fn bind(&mut self, variable: Id, binding: u32) {
        self.m.decorate(variable, Decoration::DescriptorSet, &[0]);
        self.m.decorate(variable, Decoration::Binding, &[binding]);
    }

    /// Emits the number of elements of the runtime-sized array at the end of a binding.
    pub(super) fn array_length(&mut self, binding: u32, offset: u32, stride: u32) -> Id {
        let view = self.views.for_length(binding, offset, stride);
        let view = view.expect("views are declared for every length");
        let u32 = self.m.u32_ty();
        let mut length = self.m.op(Op::ArrayLength, u32, &[view.variable, 0]);
        let (skipped, ratio) = (offset / view.size(), stride / view.size());
        if skipped > 0 {
            let skipped = self.m.u32(skipped);
            length = self.m.op(Op::ISub, u32, &[length, skipped]);
        }
        if ratio > 1 {
            let ratio = self.m.u32(ratio);
            length = self.m.op(Op::UDiv, u32, &[length, ratio]);
        }
        length
    }
}
