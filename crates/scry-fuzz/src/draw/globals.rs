//! Structures and global variables.

use super::{Generator, is_readable_anywhere};
use crate::tree::{Global, Space};
use crate::types::{Scalar, Type, for_each_scalar, layout};

/// Minimum number of elements of an input buffer.
const MIN_INPUT_LEN: usize = 16;
/// Number of elements of atomic arrays.
const ATOMIC_ARRAY_LEN: usize = 4;
/// Maximum bytes of an array in workgroup memory: two of them and the other variables fit in
/// 32 KiB, which GPUs have, although Vulkan and WebGPU guarantee only 16 KiB.
const MAX_SHARED_SIZE: usize = 15 << 10;

impl Generator {
    /// Declares structures, which may contain earlier ones.
    pub(super) fn declare_structs(&mut self) {
        for _ in 0..self.random.below(3) {
            let members = (0..self.random.between(1, 4)).map(|_| self.stored_type()).collect();
            self.structs.push(members);
        }
    }

    pub(super) fn declare_globals(&mut self, workgroup_size: [u32; 3], groups: [u32; 3]) {
        let invocations = workgroup_size.iter().chain(&groups).product::<u32>() as usize;
        self.input_for_each_invocation = self.random.one_in(2);
        let inputs = if self.input_for_each_invocation {
            MIN_INPUT_LEN.max(invocations)
        } else {
            MIN_INPUT_LEN
        };
        self.global("words", Space::Input, Type::U32, inputs);
        for _ in 0..self.random.between(1, 2) {
            let ty = self.stored_type();
            self.new_global("in", Space::Input, ty, inputs);
        }
        if self.random.one_in(2) {
            let ty = self.parameter_block();
            self.new_global("parameters", Space::Uniform, ty, 1);
        }
        if self.random.one_in(3) {
            let ty = Type::scalar_or_vector(self.word_type(), self.random.pick(&[1, 2, 4]));
            self.new_global("constant", Space::Immediate, ty, 1);
        }
        for _ in 0..self.random.between(1, 3) {
            let (ty, count) = (self.stored_type(), self.random.between(1, 3));
            self.new_global("out", Space::Output, ty, count);
        }
        if self.random.one_in(2) {
            self.declare_own_atomics();
        }
        for _ in 0..self.random.below(3) {
            let ty = self.variable_type();
            // Private: each invocation has its own copy.
            self.new_global("own", Space::Private, ty, 1);
        }
        let lanes = workgroup_size.iter().product::<u32>() as usize;
        if self.random.below(3) > 0 {
            self.declare_workgroup(lanes);
        }
        for _ in 0..self.random.below(3) {
            let space = self.random.pick(&[Space::FixedStorage, Space::Workgroup]);
            self.declare_atomic(space);
        }
    }

    fn declare_workgroup(&mut self, lanes: usize) {
        for _ in 0..self.random.between(1, 2) {
            let drawn = self.plain_type();
            let array = Type::Array(Box::new(drawn.clone()), lanes);
            let is_large = layout(&array, &self.structs).1 > MAX_SHARED_SIZE;
            let ty = if is_large { Type::U32 } else { drawn };
            self.new_global("shared", Space::Workgroup, Type::Array(Box::new(ty), lanes), 1);
        }
        if self.random.one_in(2) {
            let ty = Type::scalar_or_vector(self.word_type(), self.random.between(1, 4));
            self.new_global("common", Space::Workgroup, ty, 1);
        }
    }

    /// Declares atomics of which each invocation has its own: their old values do not depend on the
    /// order of invocations.
    fn declare_own_atomics(&mut self) {
        let (ty, count) = (self.random.pick(&[Type::I32, Type::U32]), self.random.between(1, 2));
        self.new_global("cells", Space::Output, ty, count);
        if let Some(global) = self.globals.last_mut() {
            global.atomic = true;
        }
    }

    fn declare_atomic(&mut self, space: Space) {
        let element = self.random.pick(&[Type::I32, Type::U32]);
        let ty = Type::Array(Box::new(element), ATOMIC_ARRAY_LEN);
        self.new_global("atomic", space, ty, 1);
        if let Some(global) = self.globals.last_mut() {
            global.atomic = true;
        }
    }

    /// Declares a global variable with a new name.
    fn new_global(&mut self, stem: &str, space: Space, ty: Type, count: usize) {
        let name = self.new_name(stem);
        self.global(&name, space, ty, count);
    }

    /// Declares a global variable with initial content.
    fn global(&mut self, name: &str, space: Space, ty: Type, count: usize) {
        let content = match space {
            Space::Input | Space::FixedStorage | Space::Uniform | Space::Immediate => {
                self.content(&ty, count)
            }
            Space::Private | Space::Workgroup | Space::Output => Vec::new(),
        };
        let (name, owner) = (name.to_owned(), self.random.pick(&["me", "me", "back", "twin"]));
        self.globals.push(Global { name, space, ty, atomic: false, count, content, owner });
    }

    /// Returns a type that is valid in uniform buffers without explicit padding.
    fn parameter_block(&mut self) -> Type {
        let members = (0..self.random.between(1, 4)).map(|_| self.parameter_type()).collect();
        self.structs.push(members);
        Type::Struct(self.structs.len() - 1)
    }

    /// Returns a type for members of uniform structures.
    fn parameter_type(&mut self) -> Type {
        let scalar = self.word_type();
        if scalar == Scalar::F32 && self.random.one_in(3) {
            return Type::Matrix(scalar, self.random.between(2, 4), self.random.between(2, 4));
        }
        Type::scalar_or_vector(scalar, self.random.between(1, 4))
    }

    /// Returns a number type of 32 bits.
    pub(super) fn word_type(&mut self) -> Scalar {
        self.random.pick(&[Scalar::I32, Scalar::U32, Scalar::F32])
    }

    /// Returns random bytes for elements; floats are within the bound of variables.
    fn content(&mut self, ty: &Type, count: usize) -> Vec<u8> {
        let structs = self.structs.clone();
        let (align, size) = layout(ty, &structs);
        let stride = size.next_multiple_of(align);
        let mut bytes = vec![0; stride * count];
        for i in 0..count {
            for_each_scalar(ty, &structs, i * stride, &mut |scalar, at| {
                let word = self.scalar_bytes(scalar);
                bytes[at..at + scalar.size()].copy_from_slice(&word[..scalar.size()]);
            });
        }
        bytes
    }

    fn scalar_bytes(&mut self, scalar: Scalar) -> [u8; 8] {
        if !scalar.is_float() {
            return self.random.integer(scalar.size() as u32 * 8).to_le_bytes();
        }
        // Only positive zeros: the sign of a zero result differs between devices.
        let value = self.float(scalar) + 0.0;
        match scalar {
            Scalar::F16 => u64::from(f16_bits(value)).to_le_bytes(),
            Scalar::F32 => u64::from((value as f32).to_bits()).to_le_bytes(),
            _ => value.to_bits().to_le_bytes(),
        }
    }

    /// Resets the scope to the globals that every function may read, and write unless it is pure.
    pub(super) fn reset_scope(&mut self) {
        self.scope.clear();
        for global in self.globals.clone() {
            if !is_readable_anywhere(global.space) {
                continue;
            }
            let writable = global.space == Space::Private && !self.pure;
            let ty = match global.space {
                Space::Input => Type::Array(Box::new(global.ty), 0),
                _ => global.ty,
            };
            if global.space == Space::Input {
                self.add_value(format!("arrayLength(&{})", global.name), Type::U32);
            }
            if writable {
                self.add_writable(global.name, ty);
            } else {
                self.add_value(global.name, ty);
            }
        }
    }
}

/// Returns the bits of a number that `f16` represents as a normal number, or of 0.
fn f16_bits(value: f64) -> u16 {
    let bits = (value as f32).to_bits();
    let exponent = (bits >> 23) & 0xff;
    if exponent == 0 {
        return 0;
    }
    let sign = (bits >> 16) & 0x8000;
    let rebiased = (exponent + 15 - 127) << 10;
    (sign | rebiased | ((bits >> 13) & 0x3ff)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_bits_follow_ieee_754() {
        for (value, bits) in
            [(0.0, 0), (1.0, 0x3c00), (-2.0, 0xc000), (0.5, 0x3800), (-7.5, 0xc780)]
        {
            assert_eq!(f16_bits(value), bits, "{value}");
        }
    }
}
