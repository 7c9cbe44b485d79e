//! Writes operations on numbers, most of them integers, as what has WGSL's result on every driver,
//! all in one pass. Divisions and bytes are always rewritten; the rest is for defects of drivers.

use naga::valid::ModuleInfo;
use naga::{Expression, Handle, MathFunction, Module, VectorSize};

use crate::SpirvWorkarounds;
use crate::spirv::naga::bits::{self, Bits};
use crate::spirv::naga::bytes::{self, Bytes};
use crate::spirv::naga::divisions::{self, Division};
use crate::spirv::naga::numbers::{self, Number};
use crate::spirv::naga::operations::Context;
use crate::spirv::naga::rebuild::{Lowering, Maker, rebuild};
use crate::spirv::naga::shifts::each_function;
use crate::wgsl::naga::handles;

type Expr = Handle<Expression>;

/// How one operation is written.
enum Change {
    Bits(Bits),
    Bytes(Bytes),
    Division(Division),
    Number(Number),
}

/// True if the module has operations that have to be written otherwise.
pub(crate) fn needed(module: &Module, info: &ModuleInfo, workarounds: SpirvWorkarounds) -> bool {
    contexts(module, info, workarounds).any(|context| context.changes().iter().any(Option::is_some))
}

/// Rewrites the operations. `info` is the validator's of this very module.
pub(crate) fn apply(module: &mut Module, info: &ModuleInfo, workarounds: SpirvWorkarounds) {
    let contexts = contexts(module, info, workarounds);
    let mut all: Vec<Vec<_>> = contexts.map(|context| context.changes()).collect();
    for change in all.iter_mut().flatten().flatten() {
        match change {
            Change::Bytes(bytes) => bytes.settle(&mut module.types),
            Change::Division(division) => division.settle(&mut module.types),
            Change::Bits(_) | Change::Number(_) => {}
        }
    }
    let functions = handles::functions_mut(&mut module.functions, &mut module.entry_points);
    for (function, changes) in functions.into_iter().zip(all) {
        if changes.iter().any(Option::is_some) {
            rebuild(function, &changes);
        }
    }
}

fn contexts<'a>(
    module: &'a Module,
    info: &'a ModuleInfo,
    workarounds: SpirvWorkarounds,
) -> impl Iterator<Item = Context<'a>> {
    each_function(module, info).map(move |(function, info)| Context {
        module,
        function,
        info,
        workarounds,
    })
}

impl Context<'_> {
    fn changes(&self) -> Vec<Option<Change>> {
        let bounded = self.bounded();
        let expressions = self.function.expressions.iter();
        expressions.map(|(at, expression)| self.change(expression, bounded[at.index()])).collect()
    }

    /// For each expression whether `min`, `max` or the like is taken of it.
    fn bounded(&self) -> Vec<bool> {
        use MathFunction as F;
        let mut bounded = vec![false; self.function.expressions.len()];
        for (_, expression) in self.function.expressions.iter() {
            if let Expression::Math {
                fun: F::Min | F::Max | F::Clamp | F::Abs | F::Sign,
                arg,
                arg1,
                arg2,
                ..
            } = *expression
            {
                [Some(arg), arg1, arg2]
                    .into_iter()
                    .flatten()
                    .for_each(|x| bounded[x.index()] = true);
            }
        }
        bounded
    }

    fn change(&self, expression: &Expression, is_bounded: bool) -> Option<Change> {
        let on = |workaround| self.workarounds.contains(workaround).then_some(());
        let number = || {
            on(SpirvWorkarounds::EXPAND_SIGNS)?;
            numbers::number(self, expression, is_bounded).map(Change::Number)
        };
        match *expression {
            Expression::Binary { .. } => {
                let division = divisions::division(self, expression).map(Change::Division);
                division.or_else(number)
            }
            Expression::Math { fun, .. } => {
                let bits = || {
                    on(SpirvWorkarounds::EXPAND_BIT_FIELDS)?;
                    bits::bits(self, expression).map(Change::Bits)
                };
                bytes::bytes(fun).map(Change::Bytes).or_else(bits).or_else(number)
            }
            Expression::Unary { .. } => number(),
            _ => None,
        }
    }
}

impl Lowering for Change {
    fn size(&self) -> Option<VectorSize> {
        match self {
            Self::Bits(bits) => bits.size(),
            Self::Bytes(bytes) => bytes.size(),
            Self::Division(division) => division.size(),
            Self::Number(number) => number.size(),
        }
    }

    fn lower(&self, expression: &Expression, make: &mut Maker) -> Expr {
        match self {
            Self::Bits(bits) => bits.lower(expression, make),
            Self::Bytes(bytes) => bytes.lower(expression, make),
            Self::Division(division) => division.lower(expression, make),
            Self::Number(number) => number.lower(expression, make),
        }
    }
}
