//! Every expression handle that an expression or a statement holds, to be replaced in place.

use naga::{
    Arena, AtomicFunction, Block, EntryPoint, Expression, Function, GatherMode, Handle, ImageQuery,
    Module, RayPipelineFunction, RayQueryFunction, SampleLevel, Statement,
};

type Expr = Handle<Expression>;

/// Every function of a module, the entry points' last.
pub(crate) fn functions(module: &Module) -> Vec<&Function> {
    let mut all = Vec::with_capacity(module.functions.len() + module.entry_points.len());
    for (_, function) in module.functions.iter() {
        all.push(function);
    }
    for entry in &module.entry_points {
        all.push(&entry.function);
    }
    all
}

/// Every function of the arenas, the entry points' last, to be changed.
pub(crate) fn functions_mut<'a>(
    functions: &'a mut Arena<Function>,
    entry_points: &'a mut [EntryPoint],
) -> Vec<&'a mut Function> {
    let mut all = Vec::with_capacity(functions.len() + entry_points.len());
    for (_, function) in functions.iter_mut() {
        all.push(function);
    }
    for entry in entry_points {
        all.push(&mut entry.function);
    }
    all
}

/// Replaces the operands of an expression.
pub(crate) fn in_expression(expression: &mut Expression, change: &mut dyn FnMut(&mut Expr)) {
    match expression {
        Expression::Literal(_)
        | Expression::Constant(_)
        | Expression::Override(_)
        | Expression::ZeroValue(_)
        | Expression::FunctionArgument(_)
        | Expression::GlobalVariable(_)
        | Expression::LocalVariable(_)
        | Expression::CallResult(_)
        | Expression::AtomicResult { .. }
        | Expression::WorkGroupUniformLoadResult { .. }
        | Expression::RayQueryProceedResult
        | Expression::SubgroupBallotResult
        | Expression::SubgroupOperationResult { .. } => {}
        Expression::Compose { components, .. } => components.iter_mut().for_each(change),
        Expression::Access { base, index } => [base, index].into_iter().for_each(change),
        Expression::AccessIndex { base, .. } => change(base),
        Expression::Splat { value, .. } => change(value),
        Expression::Swizzle { vector, .. } => change(vector),
        Expression::Load { pointer } => change(pointer),
        Expression::Unary { expr, .. }
        | Expression::Derivative { expr, .. }
        | Expression::As { expr, .. }
        | Expression::ArrayLength(expr) => change(expr),
        Expression::Binary { left, right, .. } => [left, right].into_iter().for_each(change),
        Expression::Select { condition, accept, reject } => {
            [condition, accept, reject].into_iter().for_each(change)
        }
        Expression::Relational { argument, .. } => change(argument),
        Expression::Math { arg, arg1, arg2, arg3, .. } => {
            change(arg);
            [arg1, arg2, arg3].into_iter().flatten().for_each(change);
        }
        Expression::RayQueryVertexPositions { query, .. }
        | Expression::RayQueryGetIntersection { query, .. } => change(query),
        Expression::CooperativeLoad { data, .. } => {
            [&mut data.pointer, &mut data.stride].into_iter().for_each(change);
        }
        Expression::CooperativeMultiplyAdd { a, b, c } => {
            [a, b, c].into_iter().for_each(change);
        }
        Expression::ImageSample { .. }
        | Expression::ImageLoad { .. }
        | Expression::ImageQuery { .. } => in_image(expression, change),
    }
}

fn in_image(expression: &mut Expression, change: &mut dyn FnMut(&mut Expr)) {
    match expression {
        Expression::ImageSample {
            image,
            sampler,
            coordinate,
            array_index,
            offset,
            level,
            depth_ref,
            ..
        } => {
            [image, sampler, coordinate].into_iter().for_each(&mut *change);
            [array_index, offset, depth_ref].into_iter().flatten().for_each(&mut *change);
            match level {
                SampleLevel::Auto | SampleLevel::Zero => {}
                SampleLevel::Exact(at) | SampleLevel::Bias(at) => change(at),
                SampleLevel::Gradient { x, y } => [x, y].into_iter().for_each(change),
            }
        }
        Expression::ImageLoad { image, coordinate, array_index, sample, level } => {
            [image, coordinate].into_iter().for_each(&mut *change);
            [array_index, sample, level].into_iter().flatten().for_each(change);
        }
        Expression::ImageQuery { image, query } => {
            change(image);
            if let ImageQuery::Size { level: Some(level) } = query {
                change(level);
            }
        }
        _ => {}
    }
}

/// Calls `change` with every block that a statement holds, and then with the statement itself.
pub(crate) fn each_statement(block: &mut Block, change: &mut dyn FnMut(&mut Statement)) {
    for statement in block.iter_mut() {
        match statement {
            Statement::Block(inner) => each_statement(inner, change),
            Statement::If { accept, reject, .. } => {
                each_statement(accept, change);
                each_statement(reject, change);
            }
            Statement::Switch { cases, .. } => {
                for case in cases {
                    each_statement(&mut case.body, change);
                }
            }
            Statement::Loop { body, continuing, .. } => {
                each_statement(body, change);
                each_statement(continuing, change);
            }
            _ => {}
        }
        change(statement);
    }
}

/// Replaces the operands and results of a statement, not those of the blocks in it and not the
/// range of an `Emit`.
pub(crate) fn in_statement(statement: &mut Statement, change: &mut dyn FnMut(&mut Expr)) {
    match statement {
        Statement::Emit(_)
        | Statement::Block(_)
        | Statement::Break
        | Statement::Continue
        | Statement::Kill
        | Statement::ControlBarrier(_)
        | Statement::MemoryBarrier(_) => {}
        Statement::If { condition, .. } => change(condition),
        Statement::Switch { selector, .. } => change(selector),
        Statement::Loop { break_if, .. } => break_if.iter_mut().for_each(change),
        Statement::Return { value } => value.iter_mut().for_each(change),
        Statement::Store { pointer, value } => [pointer, value].into_iter().for_each(change),
        Statement::Atomic { pointer, fun, value, result } => {
            [pointer, value].into_iter().for_each(&mut *change);
            in_atomic(fun, change);
            result.iter_mut().for_each(change);
        }
        Statement::WorkGroupUniformLoad { pointer, result } => {
            [pointer, result].into_iter().for_each(change);
        }
        Statement::Call { arguments, result, .. } => {
            arguments.iter_mut().chain(result).for_each(change)
        }
        Statement::SubgroupBallot { result, predicate } => {
            change(result);
            predicate.iter_mut().for_each(change);
        }
        Statement::SubgroupGather { mode, argument, result } => {
            in_gather(mode, change);
            [argument, result].into_iter().for_each(change);
        }
        Statement::SubgroupCollectiveOperation { argument, result, .. } => {
            [argument, result].into_iter().for_each(change)
        }
        Statement::CooperativeStore { target, data } => {
            [target, &mut data.pointer, &mut data.stride].into_iter().for_each(change);
        }
        Statement::ImageStore { .. }
        | Statement::ImageAtomic { .. }
        | Statement::RayQuery { .. }
        | Statement::RayPipelineFunction(_) => in_graphics(statement, change),
    }
}

fn in_graphics(statement: &mut Statement, change: &mut dyn FnMut(&mut Expr)) {
    match statement {
        Statement::ImageStore { image, coordinate, array_index, value } => {
            [image, coordinate, value].into_iter().for_each(&mut *change);
            array_index.iter_mut().for_each(change);
        }
        Statement::ImageAtomic { image, coordinate, array_index, fun, value } => {
            [image, coordinate, value].into_iter().for_each(&mut *change);
            in_atomic(fun, change);
            array_index.iter_mut().for_each(change);
        }
        Statement::RayQuery { query, fun } => {
            change(query);
            match fun {
                RayQueryFunction::Initialize { acceleration_structure, descriptor } => {
                    [acceleration_structure, descriptor].into_iter().for_each(change)
                }
                RayQueryFunction::Proceed { result: at }
                | RayQueryFunction::GenerateIntersection { hit_t: at } => change(at),
                RayQueryFunction::ConfirmIntersection | RayQueryFunction::Terminate => {}
            }
        }
        Statement::RayPipelineFunction(RayPipelineFunction::TraceRay {
            acceleration_structure,
            descriptor,
            payload,
        }) => [acceleration_structure, descriptor, payload].into_iter().for_each(change),
        _ => {}
    }
}

fn in_atomic(fun: &mut AtomicFunction, change: &mut dyn FnMut(&mut Expr)) {
    match fun {
        AtomicFunction::Exchange { compare } => compare.iter_mut().for_each(change),
        AtomicFunction::Add
        | AtomicFunction::Subtract
        | AtomicFunction::And
        | AtomicFunction::ExclusiveOr
        | AtomicFunction::InclusiveOr
        | AtomicFunction::Min
        | AtomicFunction::Max => {}
    }
}

fn in_gather(mode: &mut GatherMode, change: &mut dyn FnMut(&mut Expr)) {
    match mode {
        GatherMode::BroadcastFirst | GatherMode::QuadSwap(_) => {}
        GatherMode::Broadcast(at)
        | GatherMode::Shuffle(at)
        | GatherMode::ShuffleDown(at)
        | GatherMode::ShuffleUp(at)
        | GatherMode::ShuffleXor(at)
        | GatherMode::QuadBroadcast(at) => change(at),
    }
}
