//! Determines the optional features that a pruned module uses. Rejects types that Scry does not
//! support, such as textures.

use naga::{
    AddressSpace, Barrier, Binding, Block, BuiltIn, Expression, Function, Handle, Literal, Module,
    Scalar, ScalarKind, Span, Statement, Type, TypeInner,
};

use crate::wgsl::naga::handles;
use crate::wgsl::report::Report;
use crate::{Features, ShaderErrorKind};

/// Returns the features that the module uses: those of its directives, and those of all code that
/// the entry point reaches.
///
/// # Errors
/// If the module uses textures or other unsupported types, or a feature that is not allowed.
pub(crate) fn features(
    module: &Module,
    directives: &[(Features, Span)],
    allowed: Features,
) -> Result<Features, Box<Report>> {
    check_resources(module)?;
    let mut scan = Scan { module, found: directives.to_vec() };
    scan.types();
    scan.expressions(&module.global_expressions);
    for function in handles::functions(module) {
        scan.function(function);
    }
    let used = scan.found.iter().fold(Features::empty(), |all, (one, _)| all | *one);
    let missing = used.difference(allowed);
    if missing.is_empty() {
        return Ok(used);
    }
    let message = format!("the kernel uses features that the device does not have: {missing}");
    let mut report = Report::new(ShaderErrorKind::UnsupportedFeatures(missing), message);
    for name in missing.iter() {
        let uses = scan.found.iter().filter(|(f, span)| f.intersects(name) && span.is_defined());
        let first = uses.min_by_key(|(_, span)| span.to_range().map(|range| range.start));
        if let Some((_, span)) = first {
            report = report.at(*span, format!("{name} is used here"));
        }
    }
    Err(Box::new(report))
}

struct Scan<'a> {
    module: &'a Module,
    /// The features used, with the span of a use.
    found: Vec<(Features, Span)>,
}

impl Scan<'_> {
    /// Records a use: for each set of features only one, the first that has a position.
    fn add(&mut self, features: Features, span: Span) {
        if features.is_empty() {
            return;
        }
        let recorded = self.found.iter_mut().find(|(recorded, _)| *recorded == features);
        match recorded {
            Some((_, recorded_span)) if !recorded_span.is_defined() => *recorded_span = span,
            Some(_) => {}
            None => self.found.push((features, span)),
        }
    }

    fn types(&mut self) {
        let spans = self.type_spans();
        for (handle, ty) in self.module.types.iter() {
            let span = spans[handle.index()];
            self.add(type_features(&ty.inner), span);
            if let TypeInner::Struct { members, .. } = &ty.inner {
                for member in members {
                    self.binding(member.binding.as_ref(), span);
                }
            }
        }
    }

    /// Returns a span for each type: its declaration, or else a variable whose type contains it.
    fn type_spans(&self) -> Vec<Span> {
        let module = self.module;
        let declared = module.types.iter().map(|(handle, _)| module.types.get_span(handle));
        let mut spans: Vec<Span> = declared.collect();
        let mut fill = |ty: Handle<Type>, span: Span| {
            if !spans[ty.index()].is_defined() {
                spans[ty.index()] = span;
            }
        };
        for (handle, global) in module.global_variables.iter() {
            fill(global.ty, module.global_variables.get_span(handle));
        }
        for function in handles::functions(module) {
            for (handle, local) in function.local_variables.iter() {
                fill(local.ty, function.local_variables.get_span(handle));
            }
        }
        // Component types precede composite types.
        for (handle, ty) in module.types.iter().collect::<Vec<_>>().into_iter().rev() {
            let span = spans[handle.index()];
            let mut fill = |part: Handle<Type>| {
                if !spans[part.index()].is_defined() {
                    spans[part.index()] = span;
                }
            };
            match &ty.inner {
                TypeInner::Array { base, .. } | TypeInner::Pointer { base, .. } => fill(*base),
                TypeInner::Struct { members, .. } => members.iter().for_each(|m| fill(m.ty)),
                _ => {}
            }
        }
        spans
    }

    fn binding(&mut self, binding: Option<&Binding>, span: Span) {
        if let Some(Binding::BuiltIn(
            BuiltIn::NumSubgroups
            | BuiltIn::SubgroupId
            | BuiltIn::SubgroupSize
            | BuiltIn::SubgroupInvocationId,
        )) = binding
        {
            self.add(Features::SUBGROUPS, span);
        }
    }

    fn expressions(&mut self, arena: &naga::Arena<Expression>) {
        for (handle, expression) in arena.iter() {
            self.add(expression_features(expression), arena.get_span(handle));
        }
    }

    fn function(&mut self, function: &Function) {
        for argument in &function.arguments {
            self.binding(argument.binding.as_ref(), self.type_span(argument.ty));
        }
        self.expressions(&function.expressions);
        self.block(&function.body);
    }

    fn type_span(&self, ty: Handle<Type>) -> Span {
        self.module.types.get_span(ty)
    }

    fn block(&mut self, block: &Block) {
        for (statement, span) in block.span_iter() {
            match statement {
                Statement::SubgroupBallot { .. }
                | Statement::SubgroupGather { .. }
                | Statement::SubgroupCollectiveOperation { .. } => {
                    self.add(Features::SUBGROUPS, *span);
                }
                Statement::ControlBarrier(barrier) | Statement::MemoryBarrier(barrier)
                    if barrier.contains(Barrier::SUB_GROUP) =>
                {
                    self.add(Features::SUBGROUPS, *span);
                }
                Statement::CooperativeStore { .. } => {
                    self.add(Features::COOPERATIVE_MATRIX, *span);
                }
                Statement::Block(block) => self.block(block),
                Statement::If { accept, reject, .. } => {
                    self.block(accept);
                    self.block(reject);
                }
                Statement::Switch { cases, .. } => {
                    for case in cases {
                        self.block(&case.body);
                    }
                }
                Statement::Loop { body, continuing, .. } => {
                    self.block(body);
                    self.block(continuing);
                }
                _ => {}
            }
        }
    }
}

fn scalar_features(scalar: Scalar) -> Features {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 2) => Features::F16,
        (ScalarKind::Float, 8) => Features::F64,
        (ScalarKind::Sint | ScalarKind::Uint, 2) => Features::I16,
        (ScalarKind::Sint | ScalarKind::Uint, 8) => Features::I64,
        _ => Features::empty(),
    }
}

fn type_features(ty: &TypeInner) -> Features {
    match *ty {
        TypeInner::Scalar(scalar)
        | TypeInner::Vector { scalar, .. }
        | TypeInner::Matrix { scalar, .. }
        | TypeInner::ValuePointer { scalar, .. } => scalar_features(scalar),
        TypeInner::Atomic(scalar) => match (scalar.kind, scalar.width) {
            (ScalarKind::Float, 4) => Features::F32_ATOMICS,
            (_, 8) => scalar_features(scalar) | Features::I64_ATOMICS,
            _ => scalar_features(scalar),
        },
        TypeInner::CooperativeMatrix { scalar, .. } => {
            scalar_features(scalar) | Features::COOPERATIVE_MATRIX
        }
        _ => Features::empty(),
    }
}

/// Returns the features of an expression. Optional scalar types need no check here unless a literal
/// or a conversion introduces them: the module's types are scanned separately.
fn expression_features(expression: &Expression) -> Features {
    match *expression {
        Expression::Literal(literal) => match literal {
            Literal::F64(_) => Features::F64,
            Literal::F16(_) => Features::F16,
            Literal::U64(_) | Literal::I64(_) => Features::I64,
            Literal::U16(_) | Literal::I16(_) => Features::I16,
            _ => Features::empty(),
        },
        Expression::As { kind, convert: Some(width), .. } => {
            scalar_features(Scalar { kind, width })
        }
        Expression::SubgroupBallotResult | Expression::SubgroupOperationResult { .. } => {
            Features::SUBGROUPS
        }
        Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. } => {
            Features::COOPERATIVE_MATRIX
        }
        _ => Features::empty(),
    }
}

/// Rejects textures, samplers, ray tracing and arrays of bindings.
fn check_resources(module: &Module) -> Result<(), Box<Report>> {
    for (handle, global) in module.global_variables.iter() {
        let unsupported_space = match global.space {
            AddressSpace::TaskPayload => Some("task payload"),
            AddressSpace::RayPayload | AddressSpace::IncomingRayPayload => Some("ray payload"),
            _ => None,
        };
        if let Some(what) =
            unsupported_space.or_else(|| unsupported_type(&module.types[global.ty].inner))
        {
            let span = module.global_variables.get_span(handle);
            return Err(unsupported_error(global.name.as_deref(), what, span));
        }
    }
    for function in handles::functions(module) {
        for (handle, local) in function.local_variables.iter() {
            if let Some(what) = unsupported_type(&module.types[local.ty].inner) {
                let span = function.local_variables.get_span(handle);
                return Err(unsupported_error(local.name.as_deref(), what, span));
            }
        }
    }
    Ok(())
}

/// Returns the name of a type that Scry does not support; `None` for a supported one.
fn unsupported_type(ty: &TypeInner) -> Option<&'static str> {
    use naga::{ImageClass, ImageDimension};
    Some(match *ty {
        TypeInner::Sampler { comparison: true } => "sampler_comparison",
        TypeInner::Sampler { .. } => "sampler",
        TypeInner::AccelerationStructure { .. } => "acceleration_structure",
        TypeInner::RayQuery { .. } => "ray_query",
        TypeInner::BindingArray { .. } => "binding_array",
        TypeInner::Image { dim, class, .. } => match (class, dim) {
            (ImageClass::Storage { .. }, _) => "storage texture",
            (ImageClass::Depth { .. }, _) => "depth texture",
            (ImageClass::External, _) => "external texture",
            (ImageClass::Sampled { .. }, ImageDimension::D1) => "texture_1d",
            (ImageClass::Sampled { .. }, ImageDimension::D2) => "texture_2d",
            (ImageClass::Sampled { .. }, ImageDimension::D3) => "texture_3d",
            (ImageClass::Sampled { .. }, ImageDimension::Cube) => "texture_cube",
        },
        _ => return None,
    })
}

fn unsupported_error(name: Option<&str>, what: &str, span: Span) -> Box<Report> {
    let name = name.unwrap_or("a variable");
    let message = format!("`{name}` is a {what}: kernels have buffers only");
    let report = Report::new(ShaderErrorKind::UnsupportedConstruct, message).at(span, what);
    Box::new(report.note("help: pass the data in a storage buffer, `array<u32>` or `array<f32>`"))
}
