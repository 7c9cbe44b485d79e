//! Division and remainder.
//!
//! For integer division ptxas emits about thirty dependent instructions, even if the divisor is
//! constant. So the division of an unsigned integer by a constant power of two is emitted as one
//! shift (`shr`), and the remainder as one `and`.

use std::ops::{Div, Rem};

use super::value::{Bits, Divisible, ToOperand, Val};
use crate::asm::Opcode;
use crate::types::{Operand, PtxType};

/// Integer division truncates; `f32` division is accurate to 2 ULP (`div.full`), `f64` division is
/// rounded to nearest. PTX has no division of 16-bit floats.
///
/// ```compile_fail,E0369
/// # use scry_ptx::{Target, typed};
/// typed::kernel("k", Target::SM_80, [32, 1, 1], |k| {
///     let number = k.scalar_param::<typed::F16>("number");
///     let _ = number / number;
/// });
/// ```
impl<'k, T: Divisible, R: ToOperand<T>> Div<R> for Val<'k, T> {
    type Output = Self;
    fn div(self, other: R) -> Self {
        match log2_divisor::<T>(other.operand()) {
            Some(log2) => {
                let opcode = Opcode::typed("shr", T::TYPE);
                self.k.op(opcode, &[self.operand, Operand::u32(log2)])
            }
            None => self.binary(opcode_name(T::TYPE), other),
        }
    }
}

impl<'k, T: Bits, R: ToOperand<T>> Rem<R> for Val<'k, T> {
    type Output = Self;
    fn rem(self, other: R) -> Self {
        let Some(log2) = log2_divisor::<T>(other.operand()) else {
            return self.binary("rem", other);
        };
        let bits = (1u64 << log2) - 1;
        self.bitwise("and", Operand::Imm { bits, ty: T::TYPE })
    }
}

/// Returns the name of the division in the opcode: for floats, the precision is mandatory.
const fn opcode_name(ty: PtxType) -> &'static str {
    match ty {
        PtxType::F32 => "div.full",
        PtxType::F64 => "div.rn",
        _ => "div",
    }
}

/// Returns the exponent of an unsigned constant that is a power of two.
fn log2_divisor<T: Divisible>(operand: Operand) -> Option<u32> {
    let unsigned = matches!(T::TYPE, PtxType::U16 | PtxType::U32 | PtxType::U64);
    match operand {
        Operand::Imm { bits, .. } if unsigned && bits.is_power_of_two() => {
            Some(bits.trailing_zeros())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel;
    use crate::assembler::assemble;
    use crate::{PtxModule, Target};

    #[test]
    fn constant_powers_of_two_use_shifts() {
        let kernel = kernel("k", Target::SM_75, [32, 1, 1], |k| {
            let (i, j) = (k.scalar_param::<u32>("i"), k.scalar_param::<i32>("j"));
            let x = k.scalar_param::<f32>("x");
            let wide = i.convert::<u64>("");
            let _ = (i / 16, i % 16, wide / 4, wide % (1 << 33), i / 1);
            let _ = (i / 12, i % 12, j / 16, j % 16, x / 2.0, i / i);
        });
        let text = PtxModule::new(Target::SM_75).with(kernel).to_string();
        assemble(&text, Target::SM_75);
        let has_line = |line: &str| text.lines().any(|found| found.trim() == line);
        for line in [
            "shr.u32 %r3, %r0, 4;",
            "and.b32 %r4, %r0, 15;",
            "shr.u64 %d1, %d0, 2;",
            "and.b64 %d2, %d0, 8589934591;",
            "shr.u32 %r5, %r0, 0;",
            "div.u32 %r6, %r0, 12;",
            "rem.u32 %r7, %r0, 12;",
            "div.s32 %r8, %r1, 16;",
            "rem.s32 %r9, %r1, 16;",
            "div.full.f32 %r10, %r2, 0f40000000;",
            "div.u32 %r11, %r0, %r0;",
        ] {
            assert!(has_line(line), "no {line} in {text}");
        }
    }

    #[test]
    fn f64_division_is_rounded_to_nearest() {
        let kernel = kernel("k", Target::SM_75, [32, 1, 1], |k| {
            let x = k.scalar_param::<f64>("x");
            let _ = x / x;
        });
        let text = PtxModule::new(Target::SM_75).with(kernel).to_string();
        assemble(&text, Target::SM_75);
        assert!(text.contains("div.rn.f64 %d1, %d0, %d0;"), "{text}");
    }
}
