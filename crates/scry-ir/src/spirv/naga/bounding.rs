//! Gives loops that are not proven to end a counter that ends them, after 2^64 turns.
//!
//! No kernel lives to see that. But a driver that takes a loop without an end for undefined
//! behaviour, and drops what comes after it, then has an end to see. naga's writer can do the same,
//! for all loops of a module or for none.

use naga::{
    BinaryOperator, Block, Expression, Function, Handle, Literal, LocalVariable, Module, Scalar,
    Span, Statement, Type, TypeInner,
};

use crate::wgsl::naga::handles;

type Expr = Handle<Expression>;

/// Bounds the loops whose verdict is false. There is one list of verdicts for each function and
/// then for each entry point, in the order of
/// [`loops::verdicts`](crate::spirv::naga::loops::verdicts).
pub(crate) fn apply(module: &mut Module, verdicts: &[Vec<bool>]) {
    let u32 = module
        .types
        .insert(Type { name: None, inner: TypeInner::Scalar(Scalar::U32) }, Span::UNDEFINED);
    let functions = handles::functions_mut(&mut module.functions, &mut module.entry_points);
    for (function, verdicts) in functions.into_iter().zip(verdicts) {
        let mut body = std::mem::take(&mut function.body);
        let mut bounder = Bounder { function, u32, verdicts: verdicts.iter() };
        bounder.block(&mut body);
        function.body = body;
    }
}

struct Bounder<'a> {
    function: &'a mut Function,
    u32: Handle<Type>,
    verdicts: std::slice::Iter<'a, bool>,
}

impl Bounder<'_> {
    fn block(&mut self, block: &mut Block) {
        for statement in block.iter_mut() {
            match statement {
                Statement::Block(inner) => self.block(inner),
                Statement::If { accept, reject, .. } => {
                    self.block(accept);
                    self.block(reject);
                }
                Statement::Switch { cases, .. } => {
                    cases.iter_mut().for_each(|case| self.block(&mut case.body));
                }
                Statement::Loop { body, continuing, .. } => {
                    let proven = *self.verdicts.next().expect("a verdict for each loop");
                    self.block(body);
                    self.block(continuing);
                    if !proven {
                        let mut bounded = self.count_down();
                        bounded.append(body);
                        *body = bounded;
                    }
                }
                _ => {}
            }
        }
    }

    /// The start of a loop's body: leave if the counter is at zero, else take one from it. The
    /// counter is 64 bits wide, in two halves.
    fn count_down(&mut self) -> Block {
        use BinaryOperator as Op;
        let mut block = Block::new();
        let most = self.literal(u32::MAX);
        let [low_at, high_at] = ["loop_bound", "loop_bound_high"].map(|name| {
            let local = LocalVariable { name: Some(name.into()), ty: self.u32, init: Some(most) };
            let local = self.function.local_variables.append(local, Span::UNDEFINED);
            self.add(Expression::LocalVariable(local))
        });
        let [zero, one] = [0, 1].map(|value| self.literal(value));

        let low = self.emit(&mut block, Expression::Load { pointer: low_at });
        let high = self.emit(&mut block, Expression::Load { pointer: high_at });
        let left = self.binary(&mut block, Op::InclusiveOr, low, high);
        let condition = self.binary(&mut block, Op::Equal, left, zero);
        let leave = vec![Statement::Break].into();
        let reject = Block::new();
        block.push(Statement::If { condition, accept: leave, reject }, Span::UNDEFINED);
        let borrows = self.binary(&mut block, Op::Equal, low, zero);
        let borrow = Expression::Select { condition: borrows, accept: one, reject: zero };
        let borrow = self.emit(&mut block, borrow);
        for (pointer, from, take) in [(low_at, low, one), (high_at, high, borrow)] {
            let value = self.binary(&mut block, Op::Subtract, from, take);
            block.push(Statement::Store { pointer, value }, Span::UNDEFINED);
        }
        block
    }

    fn add(&mut self, expression: Expression) -> Expr {
        let expressions = &mut self.function.expressions;
        expressions.append(expression, Span::UNDEFINED)
    }

    fn literal(&mut self, value: u32) -> Expr {
        self.add(Expression::Literal(Literal::U32(value)))
    }

    fn emit(&mut self, block: &mut Block, expression: Expression) -> Expr {
        let before = self.function.expressions.len();
        let handle = self.add(expression);
        let range = self.function.expressions.range_from(before);
        block.push(Statement::Emit(range), Span::UNDEFINED);
        handle
    }

    fn binary(&mut self, block: &mut Block, op: BinaryOperator, left: Expr, right: Expr) -> Expr {
        self.emit(block, Expression::Binary { op, left, right })
    }
}

#[cfg(test)]
mod tests {
    use naga::valid::{Capabilities, ValidationFlags, Validator};

    use super::*;
    use crate::spirv::naga::loops;

    /// Bounds the unproven loops of a kernel; the number of counters, after validation.
    fn counters(body: &str) -> usize {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
            fn wait(n: u32) -> u32 {{ loop {{ if data[n] == 0u {{ break; }} }} return 1u; }}
            @compute @workgroup_size(1) fn main() {{ {body} }}"
        );
        let mut module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|e| panic!("{}", e.emit_to_string(&source)));
        let verdicts = loops::verdicts(&module);
        apply(&mut module, &verdicts);
        Validator::new(ValidationFlags::all(), Capabilities::empty())
            .validate(&module)
            .unwrap_or_else(|e| panic!("{:#?}", e.into_inner()));
        let entry = &module.entry_points[0].function;
        let waiting = module.functions.iter().next().unwrap().1;
        assert_eq!(waiting.local_variables.len(), 2);
        let locals = entry.local_variables.iter();
        locals.filter(|(_, v)| v.name.as_deref() == Some("loop_bound")).count()
    }

    #[test]
    fn each_unproven_loop_gets_a_counter() {
        assert_eq!(counters("data[1] = wait(2u);"), 0);
        assert_eq!(counters("loop { if wait(1u) == 3u { break; } }"), 1);
        assert_eq!(counters("for (var i = 0u; i < 9u; i++) { data[i] = wait(i); }"), 0);
        assert_eq!(
            counters(
                "for (var i = 0u; i < 9u; i++) {
                    while data[i] != 0u { for (var j = 9u; j > i; j--) { data[j] = i; } }
                    if data[i] == 2u {
                        loop { continuing { data[0] += 1u; break if data[0] > 4u; } }
                    } else {
                        switch data[3] { case 1u: { while data[1] > 3u { continue; } } default: {} }
                    }
                }"
            ),
            3
        );
    }
}
