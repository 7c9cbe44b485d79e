//! The memory layout of naga's types, by WGSL's rules.

use naga::proc::IndexableLength;
use naga::{ArraySize, Handle, Module, Span, Type, TypeInner};

use crate::wgsl::declarations::Declarations;
use crate::wgsl::report::Report;
use crate::{Member, Scalar, ScalarKind, ShaderErrorKind, TypeLayout};

/// Maximum nodes of a layout tree: the number grows exponentially with the nesting of structures.
const MAX_NODES: u32 = 1 << 16;

/// Maximum nesting of types; WGSL guarantees 15.
const MAX_DEPTH: u32 = 100;

/// Rejects types nested so deeply that recursion over them might overflow the stack.
pub(crate) fn check_depth(
    module: &Module,
    declarations: &Declarations<'_>,
) -> Result<(), Box<Report>> {
    let mut depths: Vec<u32> = Vec::with_capacity(module.types.len());
    for (handle, ty) in module.types.iter() {
        let depth_of = |part: Handle<Type>| depths.get(part.index()).copied().unwrap_or(0);
        let inner_depth = match &ty.inner {
            TypeInner::Array { base, .. }
            | TypeInner::BindingArray { base, .. }
            | TypeInner::Pointer { base, .. } => depth_of(*base),
            TypeInner::Struct { members, .. } => {
                members.iter().map(|member| depth_of(member.ty)).max().unwrap_or(0)
            }
            _ => 0,
        };
        if inner_depth >= MAX_DEPTH {
            let message = format!("a type is nested more than {MAX_DEPTH} deep");
            let report = Report::new(ShaderErrorKind::TooComplex, message);
            let span = module.types.get_span(handle);
            return Err(Box::new(if span.is_defined() {
                report.at(span, "this type")
            } else if let Some(alias) = declarations.find_first("alias") {
                report.at(alias, "the first alias")
            } else {
                report.at(declarations.start(), "in this source")
            }));
        }
        depths.push(inner_depth + 1);
    }
    Ok(())
}

/// The reason why a type has no layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoLayout {
    /// Too many members, where nested ones count at each occurrence.
    TooLarge,
    /// The type cannot be shared with the host.
    NotShareable,
}

impl NoLayout {
    /// Returns the report for a variable of that type.
    pub(crate) fn report(self, variable: &str, span: Span) -> Box<Report> {
        let (kind, why) = match self {
            Self::TooLarge => (
                ShaderErrorKind::TooComplex,
                format!("its type has more than {MAX_NODES} members, nested ones included"),
            ),
            Self::NotShareable => {
                (ShaderErrorKind::Validation, "its type cannot be shared with the host".to_owned())
            }
        };
        let message = format!("`{variable}` cannot be laid out in memory: {why}");
        Box::new(Report::new(kind, message).at(span, "this variable"))
    }
}

/// Returns the layout of a host-shareable type.
pub(crate) fn layout(module: &Module, ty: Handle<Type>) -> Result<TypeLayout, NoLayout> {
    let mut remaining = MAX_NODES;
    LayoutBuilder { module }.layout(ty, &mut remaining)
}

struct LayoutBuilder<'a> {
    module: &'a Module,
}

impl LayoutBuilder<'_> {
    fn layout(&self, ty: Handle<Type>, remaining: &mut u32) -> Result<TypeLayout, NoLayout> {
        *remaining = remaining.checked_sub(1).ok_or(NoLayout::TooLarge)?;
        let ty = &self.module.types[ty];
        Ok(match ty.inner {
            TypeInner::Scalar(s) => TypeLayout::Scalar(scalar(s)?),
            TypeInner::Atomic(s) => TypeLayout::Atomic(scalar(s)?),
            TypeInner::Vector { size, scalar: s } => {
                TypeLayout::Vector { len: size as u8, scalar: scalar(s)? }
            }
            TypeInner::Matrix { columns, rows, scalar: s } => TypeLayout::Matrix {
                columns: columns as u8,
                rows: rows as u8,
                scalar: scalar(s)?,
                stride: column_stride(rows, s),
            },
            TypeInner::Array { base, size, stride } => TypeLayout::Array {
                element: Box::new(self.layout(base, remaining)?),
                len: self.array_len(size)?,
                stride,
            },
            TypeInner::Struct { ref members, span } => TypeLayout::Struct {
                name: ty.name.clone().unwrap_or_default(),
                members: members
                    .iter()
                    .map(|member| {
                        Ok(Member {
                            name: member.name.clone().unwrap_or_default(),
                            offset: member.offset,
                            layout: self.layout(member.ty, remaining)?,
                        })
                    })
                    .collect::<Result<_, NoLayout>>()?,
                size: span,
            },
            _ => return Err(NoLayout::NotShareable),
        })
    }

    fn array_len(&self, size: ArraySize) -> Result<Option<u32>, NoLayout> {
        match size.resolve(self.module.to_ctx()) {
            Ok(IndexableLength::Known(len)) => Ok(Some(len)),
            Ok(IndexableLength::Dynamic) => Ok(None),
            Err(_) => Err(NoLayout::NotShareable),
        }
    }
}

fn scalar(scalar: naga::Scalar) -> Result<Scalar, NoLayout> {
    let kind = match scalar.kind {
        naga::ScalarKind::Sint => ScalarKind::Sint,
        naga::ScalarKind::Uint => ScalarKind::Uint,
        naga::ScalarKind::Float => ScalarKind::Float,
        _ => return Err(NoLayout::NotShareable),
    };
    Ok(Scalar { kind, width: scalar.width })
}

/// Returns the stride of the columns of a matrix; columns of three components are padded.
fn column_stride(rows: naga::VectorSize, scalar: naga::Scalar) -> u32 {
    let rows = if rows == naga::VectorSize::Tri { 4 } else { rows as u32 };
    rows * u32::from(scalar.width)
}

/// Returns the size in bytes of any type; saturates. A bool has four bytes. Types precede those
/// that contain them, so that one pass computes every size.
pub(crate) fn size(module: &Module, wanted: Handle<Type>) -> Result<u64, Box<Report>> {
    let builder = LayoutBuilder { module };
    let mut sizes: Vec<u64> = Vec::with_capacity(wanted.index() + 1);
    for (handle, ty) in module.types.iter().take(wanted.index() + 1) {
        let width = |s: naga::Scalar| {
            if s.kind == naga::ScalarKind::Bool { 4 } else { u64::from(s.width) }
        };
        let bytes = match ty.inner {
            TypeInner::Scalar(s) | TypeInner::Atomic(s) => width(s),
            TypeInner::Vector { size, scalar } => u64::from(size as u8) * width(scalar),
            TypeInner::Matrix { columns, rows, scalar } => {
                u64::from(columns as u8) * u64::from(column_stride(rows, scalar))
            }
            TypeInner::Array { base, size, stride } => {
                // Strides in naga's types count bools as one byte.
                let stride = u64::from(stride).max(sizes[base.index()]);
                let len = match builder.array_len(size) {
                    Ok(len) => len.unwrap_or(0),
                    Err(_) if handle == wanted => {
                        let message = "an array's length is not a positive number";
                        return Err(Box::new(
                            Report::new(ShaderErrorKind::Override, message)
                                .at(module.types.get_span(handle), "this array"),
                        ));
                    }
                    Err(_) => 0,
                };
                stride.saturating_mul(u64::from(len))
            }
            TypeInner::Struct { ref members, span } => {
                let sum = members
                    .iter()
                    .fold(0u64, |sum, member| sum.saturating_add(sizes[member.ty.index()]));
                sum.max(u64::from(span))
            }
            _ => 0,
        };
        sizes.push(bytes);
    }
    Ok(sizes[wanted.index()])
}
