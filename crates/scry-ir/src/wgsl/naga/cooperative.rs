//! Cooperative matrices: whether a module has them, and an order of statements to put right.

use naga::{Block, Expression, Function, Module, Statement, Type, TypeInner};

use crate::wgsl::naga::handles;

/// True if the module has cooperative matrices. Those that no variable holds have no type of the
/// module; the loads that they come from tell.
pub(crate) fn used(module: &Module) -> bool {
    let is_matrix = |ty: &Type| matches!(ty.inner, TypeInner::CooperativeMatrix { .. });
    let loads = |function: &Function| {
        let mut expressions = function.expressions.iter();
        expressions.any(|(_, e)| matches!(e, Expression::CooperativeLoad { .. }))
    };
    module.types.iter().any(|(_, ty)| is_matrix(ty))
        || module.functions.iter().any(|(_, function)| loads(function))
        || module.entry_points.iter().any(|entry| loads(&entry.function))
}

/// Puts the operands of each `coopStore` before it.
///
/// naga's front end appends the store to the block first and the evaluation of its operands after
/// it, where nobody finds them in time.
pub(crate) fn order_operands(module: &mut Module) {
    for function in handles::functions_mut(&mut module.functions, &mut module.entry_points) {
        let mut body = std::mem::take(&mut function.body);
        order_block(&mut body);
        handles::each_statement(&mut body, &mut |statement| match statement {
            Statement::Block(block) => order_block(block),
            Statement::If { accept, reject, .. } => {
                order_block(accept);
                order_block(reject);
            }
            Statement::Switch { cases, .. } => {
                for case in cases {
                    order_block(&mut case.body);
                }
            }
            Statement::Loop { body, continuing, .. } => {
                order_block(body);
                order_block(continuing);
            }
            _ => {}
        });
        function.body = body;
    }
}

fn order_block(block: &mut Block) {
    // One store may be followed by several ranges, split round the literals among its operands.
    for at in (0..block.len()).rev() {
        let Statement::CooperativeStore { target, data } = &block[at] else {
            continue;
        };
        // Expressions stand in the arena in the order of the source: whatever is evaluated after
        // the store and stands before its last operand is one of its operands.
        let last = target.index().max(data.pointer.index()).max(data.stride.index());
        let mut place = at;
        while let Some(Statement::Emit(range)) = block.get(place + 1) {
            if range.index_range().start as usize > last {
                break;
            }
            block.swap(place, place + 1);
            place += 1;
        }
    }
}
