//! Global variables, and hostile data for them.

use super::{ELEMENTS_PER_INVOCATION, HostileGenerator, Mode};
use crate::hostile::tree::{Extent, Global, Kind, Space};
use crate::types::{Scalar, Type, for_each_scalar, layout};

/// Approximate maximum size in bytes of a local or workgroup array.
const MAX_ARRAY_BYTES: usize = 512;

impl HostileGenerator {
    pub(super) fn declare_globals(&mut self) {
        for _ in 0..self.random.below(3) {
            let members = (0..self.random.between(1, 4)).map(|_| self.stored_type()).collect();
            self.structs.push(members);
        }
        self.declare_numbers();
        for _ in 0..self.random.between(1, 3) {
            self.declare_output();
        }
        if self.random.one_in(3) {
            self.declare_uniform();
        }
        for _ in 0..self.random.between(1, 2) {
            let ty = self.array_type();
            // Private: each invocation has its own copy.
            self.global("own", Space::Private, ty, Extent::One);
        }
        if self.mode != Mode::OwnElements {
            for _ in 0..self.random.between(0, 2) {
                let ty = self.array_type();
                self.global("shared", Space::Workgroup, ty, Extent::One);
            }
            self.declare_atomics();
        }
    }

    /// Declares the output `sink`, and inputs of hostile 32-bit numbers.
    fn declare_numbers(&mut self) {
        let count = if self.mode == Mode::OwnElements {
            ELEMENTS_PER_INVOCATION * self.invocations
        } else {
            4
        };
        let extent = Extent::Runtime(count as usize);
        self.named_global("sink", Space::Output, Type::U32, extent);
        let count = self.element_count();
        self.named_global("data", Space::Input, Type::U32, Extent::Runtime(count));
        let count = self.element_count();
        self.named_global("signed", Space::Input, Type::I32, Extent::Runtime(count));
        if self.mode != Mode::InBounds {
            let (ty, count) = (Type::Scalar(Scalar::F32), self.element_count());
            self.named_global("floats", Space::Input, ty, Extent::Runtime(count));
        }
    }

    fn declare_output(&mut self) {
        let ty = self.stored_type();
        if self.mode == Mode::OwnElements {
            let count = (ELEMENTS_PER_INVOCATION * self.invocations) as usize;
            return self.global("out", Space::Output, ty, Extent::Runtime(count));
        }
        let count = self.element_count();
        match self.random.below(4) {
            0 => self.global("out", Space::Output, ty, Extent::RuntimeMember(count)),
            1 => {
                let ty = self.array_type();
                self.global("out", Space::Output, ty, Extent::One);
            }
            _ => self.global("out", Space::Output, ty, Extent::Runtime(count)),
        }
    }

    fn declare_uniform(&mut self) {
        let scalar = self.random.pick(&[Scalar::U32, Scalar::I32, Scalar::F32]);
        let ty = match self.random.below(3) {
            0 if scalar == Scalar::F32 => Type::Matrix(scalar, self.random.between(2, 4), 4),
            0 | 1 => Type::Vector(scalar, 4),
            _ => {
                let element = Type::Vector(scalar, self.random.between(3, 4));
                Type::Array(Box::new(element), self.random.between(1, 5))
            }
        };
        self.global("constants", Space::Uniform, ty, Extent::One);
    }

    fn declare_atomics(&mut self) {
        for space in [Space::Output, Space::Workgroup] {
            if self.random.one_in(2) {
                let element = self.random.pick(&[Type::U32, Type::I32]);
                let fixed = space == Space::Workgroup || self.random.one_in(2);
                if fixed {
                    let ty = Type::Array(Box::new(element), self.random.between(1, 9));
                    self.atomic_global("cells", space, ty, Extent::One);
                } else {
                    let count = self.element_count();
                    self.atomic_global("cells", space, element, Extent::Runtime(count));
                }
            }
        }
    }

    /// Returns the number of elements of a buffer: often 1, at most 20.
    fn element_count(&mut self) -> usize {
        match self.random.below(4) {
            0 => 1,
            1 => self.random.between(2, 4),
            _ => self.random.between(3, 20),
        }
    }

    fn global(&mut self, stem: &str, space: Space, ty: Type, extent: Extent) {
        let name = self.new_name(stem);
        self.add_global(&name, space, ty, extent, false);
    }

    fn atomic_global(&mut self, stem: &str, space: Space, ty: Type, extent: Extent) {
        let name = self.new_name(stem);
        self.add_global(&name, space, ty, extent, true);
    }

    fn named_global(&mut self, name: &str, space: Space, ty: Type, extent: Extent) {
        self.add_global(name, space, ty, extent, false);
    }

    fn add_global(&mut self, name: &str, space: Space, ty: Type, extent: Extent, atomic: bool) {
        let content = self.content(space, &ty, extent);
        self.record_lengths(&ty, extent);
        let name = name.to_owned();
        self.globals.push(Global { name, space, ty, extent, atomic, content });
    }

    /// Records the lengths of arrays: bugs are likely near them.
    pub(super) fn record_lengths(&mut self, ty: &Type, extent: Extent) {
        if let Extent::Runtime(count) | Extent::RuntimeMember(count) = extent {
            self.lengths.push(count as u32);
        }
        if let Type::Array(element, len) = ty {
            self.lengths.push(*len as u32);
            self.record_lengths(element, Extent::One);
        }
    }

    /// Returns an array type of 1 to 33 elements.
    pub(super) fn array_type(&mut self) -> Type {
        let len: usize = self.random.pick(&[1, 2, 3, 4, 5, 7, 8, 8, 9, 16, 33]);
        let element = match self.random.below(6) {
            0 => Type::Array(Box::new(self.plain_type()), self.random.between(1, 4)),
            1 if !self.structs.is_empty() => Type::Struct(self.random.below(self.structs.len())),
            2 => self.plain_type(),
            _ => Type::Scalar(self.random.pick(&[Scalar::U32, Scalar::U32, Scalar::I32])),
        };
        // lavapipe needs minutes to compile dynamic indices into large variables.
        let size = layout(&element, &self.structs).1;
        Type::Array(Box::new(element), len.min((MAX_ARRAY_BYTES / size).max(1)))
    }

    fn plain_type(&mut self) -> Type {
        let scalar = self.random.pick(&self.scalars);
        if scalar.is_float() && self.random.one_in(3) {
            return Type::Matrix(scalar, self.random.between(2, 4), self.random.between(2, 4));
        }
        Type::scalar_or_vector(scalar, self.random.pick(&[1, 1, 2, 3, 3, 4]))
    }

    /// Returns an element type for buffers.
    fn stored_type(&mut self) -> Type {
        match self.random.below(6) {
            0 => Type::Array(Box::new(self.plain_type()), self.random.between(1, 5)),
            1 if !self.structs.is_empty() => Type::Struct(self.random.below(self.structs.len())),
            2 | 3 => self.plain_type(),
            _ => Type::Scalar(self.random.pick(&self.scalars)),
        }
    }

    /// Returns hostile bytes for a buffer.
    fn content(&mut self, space: Space, ty: &Type, extent: Extent) -> Vec<u8> {
        if matches!(space, Space::Private | Space::Workgroup) {
            return Vec::new();
        }
        let structs = self.structs.clone();
        let (align, size) = layout(ty, &structs);
        let stride = size.next_multiple_of(align);
        let (start, count) = match extent {
            Extent::One => (0, 1),
            Extent::Runtime(count) => (0, count),
            Extent::RuntimeMember(count) => (8usize.next_multiple_of(align), count),
        };
        // WGSL's minimum binding size of a structure whose last member is a runtime-sized array
        // includes one element, and is rounded up to the structure's alignment. The words before
        // the array make that at least 4.
        let min_size = if start > 0 { (start + stride).next_multiple_of(4) } else { 0 };
        let count = count.max(min_size.saturating_sub(start).div_ceil(stride));
        let end = start + stride * count;
        let mut bytes = vec![0; end];
        if extent == Extent::One && self.random.one_in(2) {
            // The buffer is larger than the variable.
            bytes.resize(end + self.random.between(1, 20), 0xee);
        }
        let mut write = |at: usize, data: &[u8]| bytes[at..at + data.len()].copy_from_slice(data);
        if start > 0 {
            write(0, &self.hostile_integer(32).to_le_bytes()[..4]);
            write(4, &self.hostile_integer(32).to_le_bytes()[..4]);
        }
        for i in 0..count {
            for_each_scalar(ty, &structs, start + i * stride, &mut |scalar, at| {
                let word = self.scalar_bytes(scalar, space);
                write(at, &word[..scalar.size()]);
            });
        }
        bytes
    }

    fn scalar_bytes(&mut self, scalar: Scalar, space: Space) -> [u8; 8] {
        let wild = self.mode != Mode::InBounds && space == Space::Input;
        match scalar {
            Scalar::F32 if wild => u64::from(self.wild_float().to_bits()).to_le_bytes(),
            // Integers, which conversions preserve.
            Scalar::F32 => u64::from((self.random.below(300) as f32).to_bits()).to_le_bytes(),
            Scalar::F64 => (self.random.below(300) as f64).to_bits().to_le_bytes(),
            // 1.0, 1.5, 2.0, 3.0, 4.0 and so on, up to 12.0.
            Scalar::F16 => (0x3c00 + 0x200 * self.random.below(8) as u64).to_le_bytes(),
            _ => self.hostile_integer(scalar.size() as u32 * 8).to_le_bytes(),
        }
    }

    fn wild_float(&mut self) -> f32 {
        let floats = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 3e38, 4294967296.0, 2e9];
        match self.random.below(3) {
            0 => self.random.pick(&floats),
            _ => self.random.below(40) as f32 - 2.5,
        }
    }

    /// Returns a number that is often a length, next to a length, or at a limit of its type.
    fn hostile_integer(&mut self, bits: u32) -> u64 {
        match self.random.below(5) {
            0 | 1 => {
                let length = u64::from(self.random.pick(&self.lengths));
                length.wrapping_add(self.random.below(3) as u64).wrapping_sub(1)
            }
            2 => self.random.below(8) as u64,
            _ => self.random.integer(bits),
        }
    }

    /// Returns a 32-bit number from [`Self::hostile_integer`].
    pub(super) fn hostile_u32(&mut self) -> u32 {
        self.hostile_integer(32) as u32
    }

    /// Returns a small number, a length, or a number next to a length.
    pub(super) fn small(&mut self) -> u32 {
        let length = self.random.pick(&self.lengths);
        match self.random.below(4) {
            0 => self.random.below(6) as u32,
            1 => length,
            2 => length + 1,
            _ => length - 1,
        }
    }

    /// Resets the scope to the variables that every function may use.
    pub(super) fn reset_scope(&mut self) {
        self.scope.clear();
        self.arrays.clear();
        self.add_variable("state", Kind::U32);
        self.add_variable("memory", Kind::I32);
        if self.in_main {
            self.add_value("lane", Kind::U32);
            self.add_value("me", Kind::U32);
        }
    }
}
