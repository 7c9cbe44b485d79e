//! Loads and stores of storage buffers, workgroup arrays and arrays of an invocation.

use spirv::{MemoryAccess, Op, StorageClass};

use super::module::Id;
use super::state::{ArrayVariable, Resolved};
use super::views::view_type;
use super::{Emitter, Result, lacking};
use crate::kir::{AddressSpace, Inst, Kir, Place, Stmt, Type, Value, for_each_stmt};

/// Splits an access to `count` scalars of `size` bytes into aligned accesses to 1, 2 or 4 scalars:
/// for each the index of its first scalar, and their number.
pub(super) fn pieces(place: &Resolved, size: u32, count: u32) -> Vec<(u32, u32)> {
    let mut pieces = Vec::new();
    let mut first = 0;
    while first < count {
        let offset = place.offset + u64::from(first * size);
        let fits = |n: &u32| {
            let bytes = n * size;
            let stride = if place.index.is_some() { place.stride } else { 0 };
            *n <= count - first
                && bytes <= 16
                && stride.is_multiple_of(bytes)
                && offset.is_multiple_of(bytes.into())
        };
        let width = [4, 2].into_iter().find(fits).unwrap_or(1);
        pieces.push((first, width));
        first += width;
    }
    pieces
}

/// Whether a kernel reads memory of a buffer that it may write.
pub(super) fn reads_what_it_writes(kir: &Kir) -> bool {
    let is_writable = |space| match space {
        AddressSpace::Binding(i) => kir.buffers[i as usize].writable,
        _ => false,
    };
    kir.values.iter().any(|definition| match definition.inst {
        Inst::Load { place, .. } | Inst::Atomic { place, .. } => is_writable(place.space),
        Inst::MatrixLoad(place) => is_writable(place.array.space),
        _ => false,
    })
}

/// Returns the number of scalars in an element of each workgroup array: those of the widest aligned
/// access; 1 for arrays with atomics.
pub(super) fn workgroup_widths(emitter: &Emitter<'_>) -> Vec<u32> {
    let kir = emitter.kir;
    let mut widths: Vec<Option<u32>> = vec![Some(1); kir.workgroup.len()];
    let mut widen = |place: &Place, ty: Type, count: usize| {
        if let AddressSpace::Workgroup(i) = place.space {
            let pieces = pieces(&emitter.resolve(place), ty.size(), count as u32);
            let widest = pieces.into_iter().map(|(_, width)| width).max();
            let width = &mut widths[i as usize];
            *width = width.map(|width| width.max(widest.unwrap_or(1)));
        }
    };
    for_each_stmt(&kir.body, &mut |stmt| match stmt {
        Stmt::Let(value) => {
            if let Inst::Load { place, count } | Inst::WorkgroupUniformLoad { place, count } =
                kir.inst(*value)
            {
                widen(place, kir.ty(*value), (*count).into());
            }
        }
        Stmt::Store { place, values, .. } => widen(place, kir.ty(values[0]), values.len()),
        _ => {}
    });
    for definition in &kir.values {
        if let Inst::Atomic { place: Place { space: AddressSpace::Workgroup(i), .. }, .. } =
            definition.inst
        {
            widths[i as usize] = None;
        }
    }
    widths.into_iter().map(|width| width.unwrap_or(1)).collect()
}

impl Emitter<'_> {
    /// Folds a constant index into the offset.
    pub(super) fn resolve(&self, place: &Place) -> Resolved {
        let Place { index, stride, offset, .. } = *place;
        let offset = u64::from(offset);
        match index.map(|index| self.kir.constant(index)) {
            None => Resolved { index: None, stride, offset },
            Some(Some(constant)) => {
                let offset = offset + constant.bits * u64::from(stride);
                Resolved { index: None, stride, offset }
            }
            Some(None) => Resolved { index, stride, offset },
        }
    }

    /// Returns the index of the unit of `size` bytes at a place. The stride is a multiple of the
    /// size.
    pub(super) fn unit(&mut self, place: &Resolved, size: u32) -> Id {
        let offset = (place.offset / u64::from(size)) as u32;
        let Some(index) = place.index else { return self.m.u32(offset) };
        let u32 = self.m.u32_ty();
        let mut unit = self.value(index);
        if place.stride != size {
            let ratio = self.m.u32(place.stride / size);
            unit = self.m.op(Op::IMul, u32, &[unit, ratio]);
        }
        if offset > 0 {
            let offset = self.m.u32(offset);
            unit = self.m.op(Op::IAdd, u32, &[unit, offset]);
        }
        unit
    }

    /// Loads contiguous values, of which `value` is the first. Sets the ids of all, and returns
    /// that of the first.
    pub(super) fn load(&mut self, value: Value, place: &Place, count: u8) -> Result<Id> {
        let ty = self.ty(value);
        let resolved = self.resolve(place);
        let loaded = match place.space {
            AddressSpace::Binding(binding) if self.is_uniform(binding) => {
                self.load_words(Some(binding), &resolved, ty, count.into())?
            }
            AddressSpace::Immediate => self.load_words(None, &resolved, ty, count.into())?,
            _ => self.load_pieces(place.space, &resolved, ty, count.into())?,
        };
        for (i, id) in (value.0..).zip(loaded) {
            self.values[i as usize] = id;
        }
        Ok(self.values[value.index()])
    }

    fn load_pieces(
        &mut self,
        space: AddressSpace,
        place: &Resolved,
        ty: Type,
        count: u32,
    ) -> Result<Vec<Id>> {
        let mut loaded = Vec::new();
        for (first, width) in self.pieces_in(space, place, ty, count) {
            let (pointer, memory_ty) = self.piece_pointer(space, place, ty, first, width)?;
            let scalar = self.spirv_ty(memory_ty);
            let vector = self.m.vector(scalar, width);
            let all = self.load_from(class_of(space), vector, pointer);
            for at in 0..width {
                let one = match width {
                    1 => all,
                    _ => self.m.op(Op::CompositeExtract, scalar, &[all, at]),
                };
                loaded.push(self.loaded_value(ty, one));
            }
        }
        Ok(loaded)
    }

    /// Stores contiguous values.
    pub(super) fn store(&mut self, place: &Place, values: &[Value]) -> Result<()> {
        let ty = self.ty(values[0]);
        let resolved = self.resolve(place);
        for (first, width) in self.pieces_in(place.space, &resolved, ty, values.len() as u32) {
            let (pointer, memory_ty) =
                self.piece_pointer(place.space, &resolved, ty, first, width)?;
            let piece: Vec<Id> = values[first as usize..][..width as usize]
                .iter()
                .map(|value| self.stored_value(*value))
                .collect();
            let stored = match piece.as_slice() {
                [one] => *one,
                several => {
                    let scalar = self.spirv_ty(memory_ty);
                    let vector = self.m.vector(scalar, width);
                    self.m.op(Op::CompositeConstruct, vector, several)
                }
            };
            self.store_to(class_of(place.space), pointer, stored);
        }
        Ok(())
    }

    /// Splits an access as [`pieces`] does, but to single scalars where a piece is not a whole
    /// element of the array.
    fn pieces_in(
        &self,
        space: AddressSpace,
        place: &Resolved,
        ty: Type,
        count: u32,
    ) -> Vec<(u32, u32)> {
        let width = match space {
            AddressSpace::Binding(_) => return pieces(place, ty.size(), count),
            AddressSpace::Workgroup(i) => self.workgroup[i as usize].width,
            _ => 1,
        };
        let split = |(first, scalars): (u32, u32)| {
            let (parts, part) = if scalars == width { (1, scalars) } else { (scalars, 1) };
            (0..parts).map(move |at| (first + at, part))
        };
        pieces(place, ty.size(), count).into_iter().flat_map(split).collect()
    }

    /// Returns a pointer to `width` scalars from the `first` on, and their type in memory.
    fn piece_pointer(
        &mut self,
        space: AddressSpace,
        place: &Resolved,
        ty: Type,
        first: u32,
        width: u32,
    ) -> Result<(Id, Type)> {
        match space {
            AddressSpace::Binding(binding) => {
                let memory_ty = view_type(ty);
                Ok((self.buffer_pointer(binding, place, memory_ty, first, width), memory_ty))
            }
            AddressSpace::Workgroup(i) => {
                let array = self.workgroup[i as usize];
                self.array_pointer(&array, place, ty, first, width)
            }
            AddressSpace::Local(i) => {
                let array = self.locals[i as usize];
                self.array_pointer(&array, place, ty, first, width)
            }
            AddressSpace::Immediate => Err(lacking("a store to immediates")),
        }
    }

    /// Returns the memory operands of an access. In the Vulkan memory model, accesses to memory
    /// that other invocations access too must say so for barriers to order them.
    pub(super) fn access(&self, class: StorageClass) -> Option<Id> {
        let shared = matches!(class, StorageClass::StorageBuffer | StorageClass::Workgroup);
        (shared && self.has_matrices).then_some(MemoryAccess::NON_PRIVATE_POINTER.bits())
    }

    /// Loads from a pointer of a storage class.
    pub(super) fn load_from(&mut self, class: StorageClass, ty: Id, pointer: Id) -> Id {
        let operands: Vec<Id> = std::iter::once(pointer).chain(self.access(class)).collect();
        self.m.op(Op::Load, ty, &operands)
    }

    /// Stores to a pointer of a storage class.
    pub(super) fn store_to(&mut self, class: StorageClass, pointer: Id, value: Id) {
        let operands: Vec<Id> = [pointer, value].into_iter().chain(self.access(class)).collect();
        self.m.run(Op::Store, &operands);
    }

    /// Returns a pointer into a view of a storage buffer.
    pub(super) fn buffer_pointer(
        &mut self,
        binding: u32,
        place: &Resolved,
        memory_ty: Type,
        first: u32,
        width: u32,
    ) -> Id {
        let view = self.views.get(binding, memory_ty, width);
        let shifted =
            Resolved { offset: place.offset + u64::from(first * memory_ty.size()), ..*place };
        let index = self.unit(&shifted, view.size());
        let scalar = self.spirv_ty(memory_ty);
        let element = self.m.vector(scalar, width);
        let member = self.m.u32(0);
        self.pointer_to(StorageClass::StorageBuffer, element, &[view.variable, member, index])
    }

    /// Returns a pointer into an array, and the type of its scalars in memory.
    pub(super) fn array_pointer(
        &mut self,
        array: &ArrayVariable,
        place: &Resolved,
        ty: Type,
        first: u32,
        width: u32,
    ) -> Result<(Id, Type)> {
        if ty.size() != array.ty.size() || view_type(ty) != view_type(array.ty) {
            return Err(lacking(&format!("{ty} in an array of {}", array.ty)));
        }
        let memory_ty = memory_type(ty);
        let scalar = self.spirv_ty(memory_ty);
        let (size, element) = (ty.size(), ty.size() * array.width);
        let offset = place.offset + u64::from(first * size);
        let shifted = Resolved { offset, ..*place };
        let stride = if place.index.is_some() { place.stride } else { 0 };
        let chain = if stride.is_multiple_of(element) {
            let index = self.unit(&shifted, element);
            let component = (offset % u64::from(element)) as u32 / size;
            vec![index, self.m.u32(component)]
        } else {
            let u32 = self.m.u32_ty();
            let scalar = self.unit(&shifted, size);
            let [by, mask] =
                [array.width.trailing_zeros(), array.width - 1].map(|word| self.m.u32(word));
            let index = self.m.op(Op::ShiftRightLogical, u32, &[scalar, by]);
            vec![index, self.m.op(Op::BitwiseAnd, u32, &[scalar, mask])]
        };
        let is_whole_element = width == array.width;
        let chain: Vec<Id> = std::iter::once(array.variable)
            .chain(chain.into_iter().take(if is_whole_element { 1 } else { 2 }))
            .collect();
        let target = self.m.vector(scalar, width);
        Ok((self.pointer_to(array.class, target, &chain), memory_ty))
    }

    /// Converts a value from its type in memory.
    pub(super) fn loaded_value(&mut self, ty: Type, loaded: Id) -> Id {
        match ty {
            Type::Bool => {
                let zero = self.m.u32(0);
                self.op(Op::INotEqual, Type::Bool, &[loaded, zero])
            }
            _ => loaded,
        }
    }

    /// Converts a value to its type in memory.
    pub(super) fn stored_value(&mut self, value: Value) -> Id {
        let id = self.value(value);
        match self.ty(value) {
            Type::Bool => {
                let [one, zero] = [1, 0].map(|word| self.m.u32(word));
                self.op(Op::Select, Type::U32, &[id, one, zero])
            }
            _ => id,
        }
    }
}

/// Returns the storage class of an address space; of bindings, that of storage buffers.
fn class_of(space: AddressSpace) -> StorageClass {
    match space {
        AddressSpace::Binding(_) => StorageClass::StorageBuffer,
        AddressSpace::Workgroup(_) => StorageClass::Workgroup,
        AddressSpace::Local(_) => StorageClass::Function,
        AddressSpace::Immediate => StorageClass::PushConstant,
    }
}

/// Returns the type in which arrays store values: bools are stored as `u32`.
pub(super) fn memory_type(ty: Type) -> Type {
    match ty {
        Type::Bool => Type::U32,
        _ => view_type(ty),
    }
}
