//! Rejects layouts that naga computes wrongly: it forgets the `@align` of a member when the
//! struct of that member stands inside another type, in offsets, sizes and strides.

use std::collections::BTreeMap;

use naga::proc::Alignment;
use naga::{AddressSpace, Handle, Module, Span, Type, TypeInner};

use crate::ShaderErrorKind;
use crate::wgsl::declarations::Declarations;
use crate::wgsl::report::Report;

/// An `@align` attribute.
struct Attribute {
    member: String,
    /// Its value, where it is a number or the name of one.
    value: Option<u32>,
    span: Span,
}

/// What WGSL demands of a type.
#[derive(Clone, Copy)]
struct Demand {
    align: u32,
    /// The attribute that the alignment comes from, if one does.
    from: Option<Span>,
}

/// Checks every type that the host shares.
pub(crate) fn check(module: &Module, outline: &Declarations<'_>) -> Result<(), Box<Report>> {
    let attributes = attributes(outline);
    if attributes.is_empty() {
        return Ok(());
    }
    let (shared, nested) = shared_types(module);
    let mut demands: Vec<Demand> = Vec::with_capacity(module.types.len());
    for (handle, ty) in module.types.iter() {
        let own = ty.name.as_ref().and_then(|name| attributes.get(name.as_str()));
        let own = own.map_or(&[][..], Vec::as_slice);
        let demand = demand(&ty.inner, own, &demands);
        if shared[handle.index()] {
            holds(ty, &demands, demand)?;
            let unknown = own.iter().find(|attribute| attribute.value.is_none());
            if let (Some(attribute), true) = (unknown, nested[handle.index()]) {
                return Err(unreadable(ty, attribute));
            }
        }
        demands.push(demand);
    }
    Ok(())
}

/// The `@align` attributes of each struct.
fn attributes<'a>(outline: &Declarations<'a>) -> BTreeMap<&'a str, Vec<Attribute>> {
    let mut found: BTreeMap<&str, Vec<Attribute>> = BTreeMap::new();
    for (name, body) in &outline.structs {
        let mut pending = None;
        let mut at = body.start;
        while at < body.end {
            if outline.text(at) == "@" && outline.text(at + 2) == "(" {
                let close = outline.close(at + 2);
                if outline.text(at + 1) == "align" {
                    let inside = at + 3..close.max(at + 3);
                    let value = outline.plain_value(inside).and_then(|v| u32::try_from(v).ok());
                    let first = outline.tokens[at];
                    let last = outline.tokens.get(close).unwrap_or(&first);
                    pending = Some((value, Span::new(first.start, last.end)));
                }
                at = close + 1;
                continue;
            }
            if outline.text(at + 1) == ":"
                && let Some((value, span)) = pending.take()
            {
                found.entry(name).or_default().push(Attribute {
                    member: outline.text(at).to_owned(),
                    value,
                    span,
                });
            }
            at += 1;
        }
    }
    found
}

/// Which types are, or are part of, the type of a buffer; and which are part of one.
fn shared_types(module: &Module) -> (Vec<bool>, Vec<bool>) {
    let mut shared = vec![false; module.types.len()];
    for (_, global) in module.global_variables.iter() {
        if matches!(
            global.space,
            AddressSpace::Storage { .. } | AddressSpace::Uniform | AddressSpace::Immediate
        ) {
            shared[global.ty.index()] = true;
        }
    }
    let mut nested = vec![false; module.types.len()];
    // Parts stand before the types that they are part of.
    let types: Vec<_> = module.types.iter().collect();
    for (handle, ty) in types.into_iter().rev() {
        if shared[handle.index()] {
            for part in parts(&ty.inner) {
                shared[part.index()] = true;
                nested[part.index()] = true;
            }
        }
    }
    (shared, nested)
}

fn parts(ty: &TypeInner) -> Vec<Handle<Type>> {
    match ty {
        TypeInner::Array { base, .. } => vec![*base],
        TypeInner::Struct { members, .. } => members.iter().map(|member| member.ty).collect(),
        _ => Vec::new(),
    }
}

/// The alignment of a type by WGSL's rules.
fn demand(ty: &TypeInner, own: &[Attribute], demands: &[Demand]) -> Demand {
    let plain = |align: u32| Demand { align, from: None };
    match *ty {
        TypeInner::Scalar(s) | TypeInner::Atomic(s) => plain(u32::from(s.width)),
        TypeInner::Vector { size, scalar } | TypeInner::Matrix { rows: size, scalar, .. } => {
            plain((Alignment::from(size) * Alignment::from_width(scalar.width)).round_up(1))
        }
        TypeInner::Array { base, .. } => demands[base.index()],
        TypeInner::Struct { ref members, .. } => {
            let mut most = plain(1);
            for member in members {
                let attribute = own.iter().find(|a| Some(&a.member) == member.name.as_ref());
                let stated = attribute.and_then(|a| Some((a.value?, a.span)));
                let natural = demands[member.ty.index()];
                let all = stated.map(|(align, span)| Demand { align, from: Some(span) });
                for one in [Some(natural), all].into_iter().flatten() {
                    if one.align > most.align {
                        most = one;
                    }
                }
            }
            most
        }
        _ => plain(1),
    }
}

/// Rejects a type whose layout in the module breaks the demands of its parts.
fn holds(ty: &Type, demands: &[Demand], own: Demand) -> Result<(), Box<Report>> {
    let broken = |part: String, demand: Demand, remedy: String| {
        let align = demand.align;
        let message = format!("{part} must be aligned to {align} bytes, but is not laid out so");
        let report = Report::new(ShaderErrorKind::Validation, message);
        let span = demand.from.unwrap_or_default();
        Err(Box::new(report.at(span, "because of this").note(
            "note: an @align inside of a struct does not yet reach the types around the struct",
        ).note(remedy)))
    };
    let TypeInner::Struct { members, span } = &ty.inner else {
        return Ok(());
    };
    let name = ty.name.as_deref().unwrap_or("");
    for member in members {
        let demand = demands[member.ty.index()];
        if demand.align > 1 && member.offset % demand.align != 0 {
            let member = member.name.as_deref().unwrap_or("");
            let remedy = format!("help: write `@align({}) {member}: …`", demand.align);
            return broken(format!("`{member}` of `{name}`"), demand, remedy);
        }
    }
    if own.align > 1 && span % own.align != 0 {
        let last = members.last().and_then(|member| member.name.as_deref()).unwrap_or("");
        let remedy = format!(
            "help: write `@align({})` before the member of `{name}` that holds that struct; its \
             last member is `{last}`",
            own.align
        );
        return broken(format!("the size of `{name}`"), own, remedy);
    }
    Ok(())
}

fn unreadable(ty: &Type, attribute: &Attribute) -> Box<Report> {
    let name = ty.name.as_deref().unwrap_or("");
    let message = format!(
        "the @align of `{}` must be a plain number, since `{name}` stands inside another type",
        attribute.member
    );
    let report = Report::new(ShaderErrorKind::Validation, message);
    Box::new(report.at(attribute.span, "this one"))
}
