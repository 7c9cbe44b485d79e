//! Keeps truth values in workgroup memory as `u32`.
//!
//! SPIR-V lets a workgroup variable hold `OpTypeBool`, which has no stated size, but drivers are
//! found where an invocation does not see what others have stored to such a variable. So these
//! variables get a twin of their type that has `u32` for `bool`; what is loaded is compared with
//! zero, and what is stored is 0 or 1.
//!
//! Only with [`WORKGROUP_BOOL_AS_U32`](crate::SpirvWorkarounds::WORKGROUP_BOOL_AS_U32).

use naga::proc::Layouter;
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    AddressSpace, ArraySize, Block, Expression, Function, Handle, Module, Range, Scalar,
    ScalarKind, Span, Statement, StructMember, Type, TypeInner, UniqueArena,
};

use crate::spirv::naga::shifts::{each_function, redirect};
use crate::wgsl::naga::handles;
use crate::{ShaderError, ShaderErrorKind};

type Expr = Handle<Expression>;

/// Parts that the loads and stores of whole values may be taken apart into in one function: a bound
/// on what it costs to compile them. A device has workgroup memory for 2^14 truth values or so.
const MOST_PARTS: u64 = 1 << 18;

/// What a pointer to truth values in workgroup memory points to: a type, or a part of a vector.
#[derive(Clone, Copy)]
enum Pointee {
    Whole(Handle<Type>),
    Component,
}

/// True if a workgroup variable holds truth values.
pub(crate) fn needed(module: &Module) -> bool {
    let holds = holding(&module.types);
    module.global_variables.iter().any(|(_, variable)| {
        variable.space == AddressSpace::WorkGroup && holds[variable.ty.index()]
    })
}

/// For each type whether it has truth values in it. A type stands after those that it is made of.
fn holding(types: &UniqueArena<Type>) -> Vec<bool> {
    let mut holds: Vec<bool> = Vec::with_capacity(types.len());
    for (_, ty) in types.iter() {
        holds.push(match &ty.inner {
            TypeInner::Scalar(scalar) | TypeInner::Vector { scalar, .. } => {
                scalar.kind == ScalarKind::Bool
            }
            TypeInner::Array { base, .. } => holds[base.index()],
            TypeInner::Struct { members, .. } => members.iter().any(|m| holds[m.ty.index()]),
            _ => false,
        });
    }
    holds
}

/// Rewrites the variables, and all that loads from them or stores to them. `info` is the
/// validator's of this very module.
///
/// # Errors
/// [`TooComplex`](ShaderErrorKind::TooComplex) where too many arrays, or too large ones, are loaded
/// or stored as a whole.
pub(crate) fn apply(module: &mut Module, info: &ModuleInfo) -> Result<(), ShaderError> {
    let holds = holding(&module.types);
    let pointees: Vec<Vec<_>> = each_function(module, info)
        .map(|(function, info)| pointees(module, &holds, function, info))
        .collect();
    let twins = twins(module, &holds)?;
    let functions = handles::functions_mut(&mut module.functions, &mut module.entry_points);
    for (function, pointees) in functions.into_iter().zip(pointees) {
        if pointees.iter().any(Option::is_some) {
            let types = &module.types;
            Rewriter { types, twins: &twins, pointees: &pointees, function, taken_apart: 0 }
                .run()?;
        }
    }
    for (_, variable) in module.global_variables.iter_mut() {
        if variable.space == AddressSpace::WorkGroup {
            variable.ty = twins[variable.ty.index()];
        }
    }
    Ok(())
}

/// For each expression what it points to, if those are truth values in workgroup memory.
fn pointees(
    module: &Module,
    holds: &[bool],
    function: &Function,
    info: &FunctionInfo,
) -> Vec<Option<Pointee>> {
    let expressions = function.expressions.iter();
    let pointee = |at: Expr| match *info[at].ty.inner_with(&module.types) {
        TypeInner::Pointer { base, space: AddressSpace::WorkGroup } => {
            holds[base.index()].then_some(Pointee::Whole(base))
        }
        TypeInner::ValuePointer { scalar, space: AddressSpace::WorkGroup, .. } => {
            (scalar.kind == ScalarKind::Bool).then_some(Pointee::Component)
        }
        _ => None,
    };
    expressions.map(|(at, _)| pointee(at)).collect()
}

/// For each type the one that stands for it in workgroup memory: mostly itself.
fn twins(module: &mut Module, holds: &[bool]) -> Result<Vec<Handle<Type>>, ShaderError> {
    let old: Vec<_> = module.types.iter().map(|(handle, ty)| (handle, ty.clone())).collect();
    let mut layouter = Layouter::default();
    let mut twins: Vec<Handle<Type>> = Vec::with_capacity(old.len());
    for (handle, mut ty) in old {
        if !holds[handle.index()] {
            twins.push(handle);
            continue;
        }
        layouter.update(module.to_ctx()).map_err(|error| {
            ShaderError::compiler(format!("a type in workgroup memory has no layout: {error}"))
        })?;
        match &mut ty.inner {
            TypeInner::Scalar(scalar) | TypeInner::Vector { scalar, .. } => *scalar = Scalar::U32,
            TypeInner::Array { base, stride, .. } => {
                *base = twins[base.index()];
                *stride = layouter[*base].to_stride();
            }
            TypeInner::Struct { members, span } => *span = lay_out(members, &twins, &layouter),
            _ => {}
        }
        twins.push(module.types.insert(ty, Span::UNDEFINED));
    }
    Ok(twins)
}

/// Gives the members of a structure their new types and places; the size of it all.
fn lay_out(members: &mut [StructMember], twins: &[Handle<Type>], layouter: &Layouter) -> u32 {
    let (mut end, mut alignment) = (0, naga::proc::Alignment::ONE);
    for member in members {
        member.ty = twins[member.ty.index()];
        let layout = layouter[member.ty];
        member.offset = layout.alignment.round_up(end);
        end = member.offset.saturating_add(layout.size);
        alignment = alignment.max(layout.alignment);
    }
    alignment.round_up(end)
}

struct Rewriter<'a> {
    types: &'a UniqueArena<Type>,
    twins: &'a [Handle<Type>],
    pointees: &'a [Option<Pointee>],
    function: &'a mut Function,
    /// Parts that loads and stores have been taken apart into.
    taken_apart: u64,
}

/// Which way a value is converted.
#[derive(Clone, Copy, PartialEq)]
enum To {
    Value,
    Memory,
}

/// The result of a `workgroupUniformLoad`, in memory's form and converted.
struct Uniform {
    raw: Expr,
    converted: Expr,
    /// What converts it.
    made: Range<Expression>,
}

impl Rewriter<'_> {
    fn run(mut self) -> Result<(), ShaderError> {
        let mut body = std::mem::take(&mut self.function.body);
        self.stores(&mut body)?;
        self.function.body = body;
        let raw = self.rebuild()?;
        results(&mut self.function.body, &raw);
        Ok(())
    }

    /// Converts what is stored, in the arena as it was.
    fn stores(&mut self, block: &mut Block) -> Result<(), ShaderError> {
        let mut rebuilt = Block::with_capacity(block.len());
        for (mut statement, span) in std::mem::take(block).span_into_iter() {
            for inner in blocks_of(&mut statement) {
                self.stores(inner)?;
            }
            if let Statement::Store { pointer, value } = &mut statement
                && let Some(pointee) = self.pointees[pointer.index()]
            {
                let before = self.function.expressions.len();
                *value = self.convert(*value, pointee, To::Memory, span)?;
                // A zero is none of what is evaluated.
                if !matches!(self.function.expressions[*value], Expression::ZeroValue(_)) {
                    let made = self.function.expressions.range_from(before);
                    rebuilt.push(Statement::Emit(made), span);
                }
            }
            rebuilt.push(statement, span);
        }
        *block = rebuilt;
        Ok(())
    }

    /// Copies the function's expressions into a new arena, each load before its conversion. Gives
    /// back the results of `workgroupUniformLoad` that were converted.
    fn rebuild(&mut self) -> Result<Vec<Uniform>, ShaderError> {
        let old = std::mem::take(&mut self.function.expressions);
        let spans: Vec<_> = old.iter().map(|(handle, _)| old.get_span(handle)).collect();
        let mut places: Vec<(Expr, Expr)> = Vec::with_capacity(spans.len());
        let mut raw = Vec::new();
        for (mut expression, span) in old.into_inner().into_iter().zip(spans) {
            let loaded = self.loaded(&mut expression);
            handles::in_expression(&mut expression, &mut |h| *h = places[h.index()].1);
            let is_result = matches!(expression, Expression::WorkGroupUniformLoadResult { .. });
            let first = self.function.expressions.append(expression, span);
            let mut last = first;
            if let Some(pointee) = loaded {
                let before = self.function.expressions.len();
                last = self.convert(first, pointee, To::Value, span)?;
                if is_result {
                    let made = self.function.expressions.range_from(before);
                    raw.push(Uniform { raw: first, converted: last, made });
                }
            }
            places.push((first, last));
        }
        redirect(self.function, &places);
        Ok(raw)
    }

    /// Whether an expression of the old arena loads what has to be converted. The result of a
    /// `workgroupUniformLoad` gets its new type here.
    fn loaded(&self, expression: &mut Expression) -> Option<Pointee> {
        match expression {
            Expression::Load { pointer } => self.pointees[pointer.index()],
            Expression::WorkGroupUniformLoadResult { ty } => {
                let (old, twin) = (*ty, self.twins[ty.index()]);
                *ty = twin;
                (twin != old).then_some(Pointee::Whole(old))
            }
            _ => None,
        }
    }

    fn convert(
        &mut self,
        value: Expr,
        pointee: Pointee,
        to: To,
        span: Span,
    ) -> Result<Expr, ShaderError> {
        match pointee {
            Pointee::Component => Ok(self.leaf(value, to, span)),
            Pointee::Whole(ty) => self.whole(value, ty, to, span),
        }
    }

    /// A scalar or vector.
    fn leaf(&mut self, expr: Expr, to: To, span: Span) -> Expr {
        let (kind, width) = match to {
            To::Value => (ScalarKind::Bool, naga::BOOL_WIDTH),
            To::Memory => (ScalarKind::Uint, 4),
        };
        self.add(Expression::As { expr, kind, convert: Some(width) }, span)
    }

    /// A value of any type, given as it is before the conversion or after.
    fn whole(
        &mut self,
        value: Expr,
        ty: Handle<Type>,
        to: To,
        span: Span,
    ) -> Result<Expr, ShaderError> {
        let twin = self.twins[ty.index()];
        if twin == ty {
            return Ok(value);
        }
        if to == To::Memory && matches!(self.function.expressions[value], Expression::ZeroValue(_))
        {
            return Ok(self.add(Expression::ZeroValue(twin), span));
        }
        let Some(parts) = self.parts(ty)? else {
            return Ok(self.leaf(value, to, span));
        };
        let mut components = Vec::with_capacity(parts.len());
        for (part, index) in parts.into_iter().zip(0..) {
            let part_of = self.add(Expression::AccessIndex { base: value, index }, span);
            components.push(self.whole(part_of, part, to, span)?);
        }
        let ty = if to == To::Memory { twin } else { ty };
        Ok(self.add(Expression::Compose { ty, components }, span))
    }

    /// The types of a composite's parts; nothing for a scalar or vector.
    fn parts(&mut self, ty: Handle<Type>) -> Result<Option<Vec<Handle<Type>>>, ShaderError> {
        let (count, part): (u32, &dyn Fn(usize) -> Handle<Type>) = match &self.types[ty].inner {
            TypeInner::Array { base, size: ArraySize::Constant(len), .. } => {
                (len.get(), &|_| *base)
            }
            TypeInner::Struct { members, .. } => (members.len() as u32, &|i| members[i].ty),
            _ => return Ok(None),
        };
        self.taken_apart += u64::from(count);
        if self.taken_apart > MOST_PARTS {
            return Err(too_many());
        }
        Ok(Some((0..count as usize).map(part).collect()))
    }

    fn add(&mut self, expression: Expression, span: Span) -> Expr {
        self.function.expressions.append(expression, span)
    }
}

fn too_many() -> ShaderError {
    ShaderError::new(
        ShaderErrorKind::TooComplex,
        format!(
            "a function loads or stores more than {MOST_PARTS} elements in workgroup memory by \
             whole arrays that hold truth values: copy the elements in a loop"
        ),
    )
}

/// Lets each `workgroupUniformLoad` give what is in memory, converted after it.
fn results(block: &mut Block, raw: &[Uniform]) {
    let mut rebuilt = Block::with_capacity(block.len());
    for (mut statement, span) in std::mem::take(block).span_into_iter() {
        for inner in blocks_of(&mut statement) {
            results(inner, raw);
        }
        let mut after = None;
        if let Statement::WorkGroupUniformLoad { result, .. } = &mut statement
            && let Some(found) = raw.iter().find(|found| found.converted == *result)
        {
            *result = found.raw;
            after = Some(Statement::Emit(found.made.clone()));
        }
        rebuilt.push(statement, span);
        if let Some(emit) = after {
            rebuilt.push(emit, span);
        }
    }
    *block = rebuilt;
}

/// The blocks that a statement holds.
fn blocks_of(statement: &mut Statement) -> Vec<&mut Block> {
    match statement {
        Statement::Block(inner) => vec![inner],
        Statement::If { accept, reject, .. } => vec![accept, reject],
        Statement::Switch { cases, .. } => cases.iter_mut().map(|case| &mut case.body).collect(),
        Statement::Loop { body, continuing, .. } => vec![body, continuing],
        _ => Vec::new(),
    }
}
