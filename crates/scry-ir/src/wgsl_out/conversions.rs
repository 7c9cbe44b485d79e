//! Conversions, bitcasts, and 16-bit floats where the kernel has no `f16`.
//!
//! Packing functions make KIR convert to `F16` and `U16` in kernels that do not enable `f16`. There
//! an `F16` is its bits in a `u32`. 16-bit integers always are 32-bit ones (`integers16.rs`).

use super::Emitter;
use super::integers16;
use super::loads_stores::cast;
use crate::kir::{Const, Inst, Type, Value};

impl Emitter<'_> {
    pub(super) fn convert(&self, from: Type, to: Type, x: &str) -> String {
        match (from, to) {
            _ if from == to => x.to_owned(),
            (Type::F32, Type::F16) if !self.native_f16 => {
                format!("pack2x16float(vec2<f32>({x}, 0.0f))")
            }
            (Type::F16, Type::F32) if !self.native_f16 => format!("unpack2x16float({x}).x"),
            (_, Type::U16 | Type::I16) => integers16::converted(from, to, x),
            (Type::U16, Type::U32) | (Type::I16, Type::I32) => x.to_owned(),
            _ => format!("{}({x})", self.type_name(to)),
        }
    }

    /// Returns whether a value may be NaN, for all that its definition says.
    pub(super) fn may_be_nan(&self, value: Value) -> bool {
        self.kir.ty(value).is_float()
            && match *self.kir.inst(value) {
                Inst::Const(_) => !self.is_literal(value),
                Inst::Convert(a) => self.may_be_nan(a),
                _ => true,
            }
    }

    /// Returns an integer that a float was converted to; zero if that is NaN, for which WGSL leaves
    /// the result to the device.
    pub(super) fn zero_if_nan(&self, ty: Type, converted: &str, (from, x): (Type, &str)) -> String {
        let zero = if ty.is_signed() { "0i" } else { "0u" };
        let is_nan = self.compare_magnitude_bits(from, x, ">");
        format!("select({converted}, {zero}, {is_nan})")
    }

    pub(super) fn bitcast(&self, from: Type, to: Type, x: &str) -> String {
        match (from, to) {
            (Type::F16, Type::U16 | Type::I16) => integers16::of_bits(to, &self.bits_of_f16(x)),
            (Type::U16 | Type::I16, Type::F16) => self.f16_of_bits(&integers16::bits_of(from, x)),
            (Type::U16 | Type::I16, _) => integers16::of_bits(to, &integers16::bits_of(from, x)),
            _ => cast(x, from, to, 1),
        }
    }

    /// Returns the bits of an `F16` as a `u32`. naga lacks bitcasts between types of different
    /// sizes.
    pub(super) fn bits_of_f16(&self, x: &str) -> String {
        match self.native_f16 {
            true => format!("pack2x16float(vec2<f32>(f32({x}), 0.0f))"),
            false => x.to_owned(),
        }
    }

    /// Returns the `F16` with the bits of a `u32`, whose upper half is zero.
    pub(super) fn f16_of_bits(&self, bits: &str) -> String {
        match self.native_f16 {
            true => format!("f16(unpack2x16float({bits}).x)"),
            false => bits.to_owned(),
        }
    }

    /// Returns a constant without a literal, from its bits: a bitcast of a constant to NaN or
    /// infinity is an error, but one of a variable is not.
    pub(super) fn value_of_bits(&mut self, constant: Const) -> String {
        let bits = self.literal_variable(&format!("{:#x}u", constant.bits));
        match constant.ty {
            Type::F16 => self.f16_of_bits(&bits),
            ty => format!("bitcast<{ty}>({bits})"),
        }
    }
}
