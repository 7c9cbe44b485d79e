//! Puts several expressions in the place of one.
//!
//! Whatever is evaluated stands in the arena in the order of evaluation, but literals may not stand
//! among it. So a function is rebuilt in two rounds: one that only finds out which literals are
//! needed, and one that makes everything behind them.

use naga::{
    Arena, BinaryOperator, Expression, Function, Handle, Literal, MathFunction, ScalarKind, Span,
    Type, VectorSize,
};

use crate::spirv::naga::shifts::redirect;
use crate::wgsl::naga::handles;

type Expr = Handle<Expression>;

/// Makes expressions of one type, which a [`Lowering`] asks for.
pub(crate) struct Maker {
    arena: Arena<Expression>,
    literals: Vec<(Literal, Expr)>,
    span: Span,
    size: Option<VectorSize>,
}

/// What to put in the place of an expression.
pub(crate) trait Lowering {
    /// Components of the expression, if it is a vector.
    fn size(&self) -> Option<VectorSize>;

    /// Makes at least one expression that is evaluated, and gives back the last one.
    fn lower(&self, expression: &Expression, make: &mut Maker) -> Expr;
}

impl Maker {
    fn new() -> Self {
        Self { arena: Arena::new(), literals: Vec::new(), span: Span::UNDEFINED, size: None }
    }

    /// A scalar constant.
    pub(crate) fn literal(&mut self, literal: Literal) -> Expr {
        if let Some((_, made)) = self.literals.iter().find(|(known, _)| *known == literal) {
            return *made;
        }
        let made = self.arena.append(Expression::Literal(literal), Span::UNDEFINED);
        self.literals.push((literal, made));
        made
    }

    /// A constant, the same in all components.
    pub(crate) fn all(&mut self, literal: Literal) -> Expr {
        let value = self.literal(literal);
        self.splat(value)
    }

    /// A scalar, for each component.
    pub(crate) fn splat(&mut self, value: Expr) -> Expr {
        match self.size {
            Some(size) => self.add(Expression::Splat { size, value }),
            None => value,
        }
    }

    pub(crate) fn binary(&mut self, op: BinaryOperator, left: Expr, right: Expr) -> Expr {
        self.add(Expression::Binary { op, left, right })
    }

    pub(crate) fn select(&mut self, condition: Expr, accept: Expr, reject: Expr) -> Expr {
        self.add(Expression::Select { condition, accept, reject })
    }

    /// A function of one or two arguments.
    pub(crate) fn math(&mut self, fun: MathFunction, arg: Expr, arg1: Option<Expr>) -> Expr {
        self.add(Expression::Math { fun, arg, arg1, arg2: None, arg3: None })
    }

    /// The same bits as another kind of number.
    pub(crate) fn bitcast(&mut self, expr: Expr, kind: ScalarKind) -> Expr {
        self.add(Expression::As { expr, kind, convert: None })
    }

    /// A number as one of another width.
    pub(crate) fn convert(&mut self, expr: Expr, kind: ScalarKind, width: u8) -> Expr {
        self.add(Expression::As { expr, kind, convert: Some(width) })
    }

    /// A component of a vector.
    pub(crate) fn part(&mut self, vector: Expr, index: u32) -> Expr {
        self.add(Expression::AccessIndex { base: vector, index })
    }

    /// A vector of these components.
    pub(crate) fn vector(&mut self, ty: Handle<Type>, components: Vec<Expr>) -> Expr {
        self.add(Expression::Compose { ty, components })
    }

    /// An expression as it is.
    pub(crate) fn copy(&mut self, expression: Expression) -> Expr {
        self.add(expression)
    }

    fn add(&mut self, expression: Expression) -> Expr {
        self.arena.append(expression, self.span)
    }
}

/// Copies the function's expressions into a new arena, each that has a lowering as what that makes.
pub(crate) fn rebuild<L: Lowering>(function: &mut Function, lowerings: &[Option<L>]) {
    let old = std::mem::take(&mut function.expressions);
    let spans: Vec<_> = old.iter().map(|(handle, _)| old.get_span(handle)).collect();
    let mut make = literals(&old, lowerings);
    // For each old expression the first of the new ones that stand for it, and the last.
    let mut places: Vec<(Expr, Expr)> = Vec::with_capacity(spans.len());
    for (at, mut expression) in old.into_inner().into_iter().enumerate() {
        handles::in_expression(&mut expression, &mut |h| *h = places[h.index()].1);
        let before = make.arena.len();
        make.span = spans[at];
        let last = match &lowerings[at] {
            Some(lowering) => {
                make.size = lowering.size();
                lowering.lower(&expression, &mut make)
            }
            None => make.add(expression),
        };
        let mut made = make.arena.range_from(before);
        places.push((made.next().expect("one at least"), last));
    }
    function.expressions = make.arena;
    redirect(function, &places);
}

/// A maker that has made all literals that the lowerings ask for, and nothing else.
fn literals<L: Lowering>(old: &Arena<Expression>, lowerings: &[Option<L>]) -> Maker {
    let mut tried = Maker::new();
    for ((_, expression), lowering) in old.iter().zip(lowerings) {
        if let Some(lowering) = lowering {
            tried.size = lowering.size();
            lowering.lower(expression, &mut tried);
        }
    }
    let mut make = Maker::new();
    for (literal, _) in tried.literals {
        make.literal(literal);
    }
    make
}
