//! Tests of the math functions: their code is executed instruction by instruction by a model of the
//! hardware.

mod accuracy;
mod assembly;
mod double;
mod edges;
mod machine;
mod parts;
mod semantics;

use scry_ir::kir::{BinaryOp, Builder, Kir, Type, UnaryOp, Value};

use crate::body::Body;
use crate::lower::{Lowering, PtxOptions, ptx_type};
use crate::target::Target;
use crate::types::{Operand, Reg};
use machine::Program;

/// The function under test.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Function {
    One(UnaryOp),
    Two(BinaryOp),
}

use BinaryOp as B;
use UnaryOp as U;

const ALL_FUNCTIONS: [Function; 28] = [
    Function::One(U::Floor),
    Function::One(U::Ceil),
    Function::One(U::Round),
    Function::One(U::Trunc),
    Function::One(U::Fract),
    Function::One(U::Sqrt),
    Function::One(U::InverseSqrt),
    Function::One(U::Exp),
    Function::One(U::Exp2),
    Function::One(U::Log),
    Function::One(U::Log2),
    Function::One(U::Sin),
    Function::One(U::Cos),
    Function::One(U::Tan),
    Function::One(U::Asin),
    Function::One(U::Acos),
    Function::One(U::Atan),
    Function::One(U::Sinh),
    Function::One(U::Cosh),
    Function::One(U::Tanh),
    Function::One(U::Asinh),
    Function::One(U::Acosh),
    Function::One(U::Atanh),
    Function::One(U::FrexpFraction),
    Function::One(U::FrexpExponent),
    Function::Two(B::Pow),
    Function::Two(B::Atan2),
    Function::Two(B::Ldexp),
];

impl Function {
    /// Returns the type of the second operand.
    fn second(self, ty: Type) -> Option<Type> {
        match self {
            Self::One(_) => None,
            Self::Two(B::Ldexp) => Some(Type::I32),
            Self::Two(_) => Some(ty),
        }
    }

    fn result(self, ty: Type) -> Type {
        match self {
            Self::One(op) => op.result(ty),
            Self::Two(op) => op.result(ty),
        }
    }
}

/// Returns a kernel with two values: the operands of a function.
fn operands(ty: Type, second: Type) -> (Kir, [Value; 2]) {
    let mut b = Builder::new("main", [32, 1, 1]);
    let values = [ty, second].map(|ty| {
        let var = b.var(ty);
        b.get(var)
    });
    (b.finish(), values)
}

/// Lowers a function. `begin` allocates the registers of its operands. Returns the body, and the
/// register of the result.
fn lower(
    function: Function,
    ty: Type,
    target: Target,
    begin: impl FnOnce(&mut Body) -> [Reg; 2],
) -> (Body, Reg) {
    let (kir, values) = operands(ty, function.second(ty).unwrap_or(ty));
    let options = PtxOptions::new(target);
    let mut lowering = Lowering::new(&kir, &options);
    let registers = begin(&mut lowering.b);
    for (value, register) in values.iter().zip(registers) {
        lowering.values[value.index()] = Some(Operand::Reg(register));
    }
    let [a, b] = values;
    let result = match function {
        Function::One(op) => lowering.float_function(op, a),
        Function::Two(op) => lowering.float_function_of_two(op, a, b),
    };
    (lowering.b, result)
}

/// Lowers a function for the model of the hardware.
fn compile(function: Function, ty: Type) -> Program {
    let types = [ty, function.second(ty).unwrap_or(ty)];
    let mut inputs = None;
    let (body, result) =
        lower(function, ty, Target::SM_75, |b| *inputs.insert(types.map(|ty| b.reg(ptx_type(ty)))));
    Program::new(&body, inputs.expect("`begin` is called"), result)
}

/// A generator of pseudo-random numbers (SplitMix64), with its state.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// Returns a number between -1 and 1.
    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / 2f64.powi(52) - 1.0
    }
}

/// Inverse hyperbolic cosine: that of the standard library is inaccurate near 1.
fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    if t < 0.0 { f64::NAN } else { (t + (t * (t + 2.0)).sqrt()).ln_1p() }
}
