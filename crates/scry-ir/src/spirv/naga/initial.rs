//! Stores the first values of variables that hold several vectors.
//!
//! SPIR-V has initialisers for that. But if a constant is stored to one component of such a vector,
//! and nothing else anywhere, NVIDIA's driver 580 has that already in what was loaded before, at an
//! index that is known at run time.
//!
//! Only with [`STORE_INITIAL_VECTORS`](crate::SpirvWorkarounds::STORE_INITIAL_VECTORS).

use naga::valid::ModuleInfo;
use naga::{
    AddressSpace, Arena, Block, Constant, Expression, Function, GlobalVariable, Handle, Module,
    Span, Statement, Type, TypeInner, UniqueArena,
};

use crate::wgsl::naga::handles;

type Expr = Handle<Expression>;

/// A variable as a pointer, and what is to be stored to it.
type Start = (Expression, Expression);

/// True if the module has such variables.
pub(crate) fn needed(module: &Module) -> bool {
    let held = holding(&module.types);
    let mut globals = module.global_variables.iter();
    globals.any(|(_, variable)| is_started(variable, &held))
        || handles::functions(module).iter().any(|function| {
            function.local_variables.iter().any(|(_, local)| held[local.ty.index()])
        })
}

fn is_started(variable: &GlobalVariable, held: &[bool]) -> bool {
    variable.space == AddressSpace::Private && held[variable.ty.index()]
}

/// For each type whether vectors lie side by side in it. A type stands after those that it is made
/// of.
fn holding(types: &UniqueArena<Type>) -> Vec<bool> {
    let mut held: Vec<bool> = Vec::with_capacity(types.len());
    for (_, ty) in types.iter() {
        held.push(match &ty.inner {
            TypeInner::Matrix { .. } => true,
            TypeInner::Array { base, .. } => {
                held[base.index()] || matches!(types[*base].inner, TypeInner::Vector { .. })
            }
            TypeInner::Struct { members, .. } => members.iter().any(|m| held[m.ty.index()]),
            _ => false,
        });
    }
    held
}

/// Stores the values where functions begin. `info` is the validator's of this very module.
pub(crate) fn apply(module: &mut Module, info: &ModuleInfo) {
    let held = holding(&module.types);
    let Module { functions, entry_points, constants, global_expressions, .. } = module;
    for (_, function) in functions.iter_mut() {
        let starts = locals(function, &held, constants, global_expressions);
        store(function, starts);
    }
    for (at, entry) in entry_points.iter_mut().enumerate() {
        let used = info.get_entry_point(at);
        let mut starts = locals(&mut entry.function, &held, constants, global_expressions);
        for (handle, variable) in module.global_variables.iter() {
            if is_started(variable, &held) && !used[handle].is_empty() {
                let value = value(variable.ty, variable.init, constants);
                starts.push((Expression::GlobalVariable(handle), value));
            }
        }
        store(&mut entry.function, starts);
    }
}

/// The variables of a function, whose initialisers are taken away.
fn locals(
    function: &mut Function,
    held: &[bool],
    constants: &mut Arena<Constant>,
    values: &mut Arena<Expression>,
) -> Vec<Start> {
    let Function { local_variables, expressions, .. } = function;
    let mut copies = vec![None; expressions.len()];
    let locals = local_variables.iter_mut().filter(|(_, local)| held[local.ty.index()]);
    locals
        .map(|(handle, local)| {
            let init = local.init.take();
            let init = init.map(|init| copied(expressions, init, values, &mut copies));
            (Expression::LocalVariable(handle), value(local.ty, init, constants))
        })
        .collect()
}

/// A constant expression of a function as one of the module, made once.
fn copied(
    from: &Arena<Expression>,
    at: Expr,
    to: &mut Arena<Expression>,
    copies: &mut [Option<Expr>],
) -> Expr {
    if let Some(copy) = copies[at.index()] {
        return copy;
    }
    let mut copy = from[at].clone();
    handles::in_expression(&mut copy, &mut |part| *part = copied(from, *part, to, copies));
    let copy = to.append(copy, from.get_span(at));
    copies[at.index()] = Some(copy);
    copy
}

/// What a variable starts as.
fn value(ty: Handle<Type>, init: Option<Expr>, constants: &mut Arena<Constant>) -> Expression {
    init.map_or(Expression::ZeroValue(ty), |init| {
        let constant = Constant { name: None, ty, init };
        Expression::Constant(constants.append(constant, Span::UNDEFINED))
    })
}

fn store(function: &mut Function, starts: Vec<Start>) {
    let mut block = Block::with_capacity(starts.len());
    for (variable, value) in starts {
        let [pointer, value] = [variable, value]
            .map(|expression| function.expressions.append(expression, Span::UNDEFINED));
        block.push(Statement::Store { pointer, value }, Span::UNDEFINED);
    }
    function.body.splice(0..0, block);
}
