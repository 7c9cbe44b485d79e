//! Has a kernel report when the driver ended its loops early.
//!
//! Some drivers give all loops of an invocation, or of a group of invocations that run in lockstep,
//! one budget of iterations, and leave every loop after a single iteration once it is spent. To
//! count iterations in the kernel would neither be exact, since such a group also counts those of
//! its other invocations, nor free. So nothing is counted: after all else, each invocation enters
//! one more loop, of two iterations. If that loop is left after one, the budget is spent, and a
//! word in a buffer of its own says so.
//!
//! The number of iterations comes from that buffer, whose words are zero, so that no compiler can
//! unroll the loop, or conclude from its condition that it ran to its end.

use naga::{
    AddressSpace, BinaryOperator, Block, Expression, Function, GlobalVariable, Handle, Literal,
    LocalVariable, Module, ResourceBinding, Scalar, Span, Statement, StorageAccess, Type,
    TypeInner,
};

use crate::SpirvOptions;
use crate::spirv::naga::fold;

/// Bytes of the buffer: four words, all zero before a launch.
const REPORT_SIZE: u32 = SpirvOptions::ABORTED_LOOPS_SIZE;

/// Iterations of the last loop.
const ITERATIONS: u32 = 2;

type Expr = Handle<Expression>;

/// Adds the report to the only entry point of a module. Returns the binding of its buffer, which
/// no variable of the module had.
pub(crate) fn report(module: &mut Module) -> ResourceBinding {
    let mut insert = |name: Option<&str>, inner| {
        module.types.insert(Type { name: name.map(str::to_owned), inner }, Span::UNDEFINED)
    };
    let u32 = insert(None, TypeInner::Scalar(Scalar::U32));
    let atomic = insert(None, TypeInner::Atomic(Scalar::U32));
    let members = vec![
        fold::member("is_cut", atomic, 0),
        fold::member("most", u32, 4),
        fold::member("start", u32, 8),
        fold::member("count", u32, 12),
    ];
    let report = insert(Some("AbortedLoops"), TypeInner::Struct { members, span: REPORT_SIZE });
    let binding = fold::unused_binding(module);
    let report = module.global_variables.append(
        GlobalVariable {
            name: Some("aborted_loops".into()),
            space: AddressSpace::Storage { access: StorageAccess::LOAD | StorageAccess::STORE },
            binding: Some(binding),
            ty: report,
            init: None,
            memory_decorations: naga::MemoryDecorations::empty(),
        },
        Span::UNDEFINED,
    );
    let entry = &mut module.entry_points[0];
    let mut original = std::mem::take(&mut entry.function);
    original.name = Some(entry.name.clone());
    let mut caller = Caller { function: Function::default() };
    caller.function.arguments.clone_from(&original.arguments);
    let arguments = (0..original.arguments.len() as u32)
        .map(|at| caller.add(Expression::FunctionArgument(at)))
        .collect();
    for argument in &mut original.arguments {
        argument.binding = None;
    }
    let original = module.functions.append(original, Span::UNDEFINED);
    let mut body = Block::new();
    push(&mut body, Statement::Call { function: original, arguments, result: None });
    caller.last_loop(&mut body, report, u32);
    push(&mut body, Statement::Return { value: None });
    caller.function.body = body;
    module.entry_points[0].function = caller.function;
    binding
}

fn push(block: &mut Block, statement: Statement) {
    block.push(statement, Span::UNDEFINED);
}

/// The new entry point, as it is built.
struct Caller {
    function: Function,
}

impl Caller {
    fn add(&mut self, expression: Expression) -> Expr {
        self.function.expressions.append(expression, Span::UNDEFINED)
    }

    fn emit(&mut self, block: &mut Block, expression: Expression) -> Expr {
        let before = self.function.expressions.len();
        let handle = self.add(expression);
        push(block, Statement::Emit(self.function.expressions.range_from(before)));
        handle
    }

    fn binary(&mut self, block: &mut Block, op: BinaryOperator, left: Expr, right: Expr) -> Expr {
        self.emit(block, Expression::Binary { op, left, right })
    }

    fn literal(&mut self, value: u32) -> Expr {
        self.add(Expression::Literal(Literal::U32(value)))
    }

    fn local(&mut self, name: &str, ty: Handle<Type>) -> Expr {
        let local = LocalVariable { name: Some(name.into()), ty, init: None };
        let local = self.function.local_variables.append(local, Span::UNDEFINED);
        self.add(Expression::LocalVariable(local))
    }

    /// `for (i = start; i < most + 2; i++) { count++; }`, then the report if `count` is not 2.
    fn last_loop(&mut self, body: &mut Block, report: Handle<GlobalVariable>, u32: Handle<Type>) {
        use BinaryOperator as Op;
        let report = self.add(Expression::GlobalVariable(report));
        let [one, iterations] = [1, ITERATIONS].map(|value| self.literal(value));
        let [index_at, count_at] = ["index", "count"].map(|name| self.local(name, u32));

        let [is_cut, most, start, count] = [0, 1, 2, 3]
            .map(|index| self.emit(body, Expression::AccessIndex { base: report, index }));
        let [most, start, count] =
            [most, start, count].map(|pointer| self.emit(body, Expression::Load { pointer }));
        let most = self.binary(body, Op::Add, most, iterations);
        push(body, Statement::Store { pointer: index_at, value: start });
        push(body, Statement::Store { pointer: count_at, value: count });

        let mut turn = Block::new();
        let index = self.emit(&mut turn, Expression::Load { pointer: index_at });
        let condition = self.binary(&mut turn, Op::GreaterEqual, index, most);
        let leave = vec![Statement::Break].into();
        push(&mut turn, Statement::If { condition, accept: leave, reject: Block::new() });
        let next = self.binary(&mut turn, Op::Add, index, one);
        push(&mut turn, Statement::Store { pointer: index_at, value: next });
        let count = self.emit(&mut turn, Expression::Load { pointer: count_at });
        let count = self.binary(&mut turn, Op::Add, count, one);
        push(&mut turn, Statement::Store { pointer: count_at, value: count });
        let last = Statement::Loop { body: turn, continuing: Block::new(), break_if: None };
        push(body, last);

        let count = self.emit(body, Expression::Load { pointer: count_at });
        let condition = self.binary(body, Op::NotEqual, count, iterations);
        let accept = vec![Statement::Store { pointer: is_cut, value: one }].into();
        push(body, Statement::If { condition, accept, reject: Block::new() });
    }
}
