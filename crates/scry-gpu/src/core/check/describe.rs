//! Error texts for mismatches between a Rust type and a WGSL type.

use scry_ir::{Member, Scalar, TypeLayout};

use super::types::{Difference, DifferenceKind, Host, Mismatch, holds_struct, is_single, period};
use crate::api::element::ElementLayout;

/// Returns the Rust type as spelled in code, without paths.
pub(super) fn rust_name(layout: &ElementLayout, type_name: &str) -> String {
    match layout {
        ElementLayout::Opaque => {
            let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let paths = type_name.split_inclusive(|c| !is_path(c));
            paths.map(|path| &path[path.rfind("::").map_or(0, |at| at + 2)..]).collect()
        }
        _ => layout.to_string(),
    }
}

/// Returns the error for a Rust type whose size does not fit the WGSL type.
pub(super) fn size_mismatch(host: &Host<'_>, wgsl: &TypeLayout) -> Mismatch {
    let (rust, size, period) = (rust_name(host.layout, host.type_name), host.size, period(wgsl));
    let distance = if is_single(wgsl) {
        format!("{wgsl} is {period} bytes long in WGSL")
    } else {
        format!("the elements of {} are {period} bytes apart", array_of(wgsl))
    };
    let vec3 = vec3_in(wgsl).map_or_else(String::new, |it| format!(" ({})", alignment_text(it)));
    Mismatch {
        problem: format!("{rust} is {size} bytes long in Rust, but {distance}{vec3}"),
        help: sizes_help(host, wgsl, period),
    }
}

fn sizes_help(host: &Host<'_>, wgsl: &TypeLayout, period: u64) -> String {
    let missing = period.saturating_sub(host.size);
    if holds_struct(host.layout) && missing > 0 {
        return format!("add a padding field of {missing} bytes at the end of the Rust struct");
    }
    if let (ElementLayout::Array { element, .. }, Some(vec3)) = (host.layout, vec3_in(wgsl))
        && let (ElementLayout::Scalar(scalar), TypeLayout::Vector { .. }) = (element, vec3)
    {
        return format!(
            "use [{scalar}; 4] and leave the last one unused, or declare array<{scalar}> and \
                 index it by 3 * i"
        );
    }
    format!("use elements of {period} bytes, or change the declaration")
}

/// Returns the error for the first difference between two types.
pub(super) fn difference(it: &Difference<'_>, host: &Host<'_>, wgsl: &TypeLayout) -> Mismatch {
    if let Some(mismatch) = misplaced_field(it, host) {
        return mismatch;
    }
    match it.kind {
        DifferenceKind::Scalar { rust, wgsl: wanted, at } => {
            scalar_mismatch(it, host, wgsl, (rust, wanted, at))
        }
        DifferenceKind::Unused { is_element: true, .. } if holds_struct(host.layout) => {
            size_mismatch(host, wgsl)
        }
        DifferenceKind::Unused { start, end, is_element, value } => {
            value_in_padding(it, host, wgsl, (start, end), value, is_element)
        }
        DifferenceKind::Moved { name, rust, wgsl } => swapped_field(name, rust, wgsl),
    }
}

/// Returns the error for a field at the offset of another member of the same type.
fn swapped_field(name: &str, rust: u64, wgsl: u64) -> Mismatch {
    Mismatch {
        problem: format!("field `{name}` is at byte {rust} in Rust, at byte {wgsl} in WGSL"),
        help: "put the fields in the same order on both sides, or give one another name".into(),
    }
}

/// Returns the error for a field with a different offset than the member of the same name, if any.
fn misplaced_field(it: &Difference<'_>, host: &Host<'_>) -> Option<Mismatch> {
    let member = it.member?;
    let mut layout = host.layout;
    while let ElementLayout::Array { element, .. } = layout {
        layout = element;
    }
    let ElementLayout::Struct { fields, .. } = layout else {
        return None;
    };
    let field = fields.iter().find(|field| field.name == member.name)?;
    let (rust, wgsl) = (field.offset as u64, it.member_at);
    // Members of inner structures may share a name with an outer field: ignore those.
    if rust == wgsl || u64::from(member.offset) != wgsl {
        return None;
    }
    Some(offset_mismatch(member, rust, wgsl))
}

fn offset_mismatch(member: &Member, rust: u64, wgsl: u64) -> Mismatch {
    Mismatch {
        problem: format!(
            "field `{}` is at byte {rust} in Rust, at byte {wgsl} in WGSL: {}",
            member.name,
            alignment_text(&member.layout)
        ),
        help: match wgsl.checked_sub(rust) {
            Some(missing) => format!("add a padding field of {missing} bytes before it"),
            None => "remove padding before it, or put the fields in the order of WGSL".into(),
        },
    }
}

fn scalar_mismatch(
    it: &Difference<'_>,
    host: &Host<'_>,
    wgsl: &TypeLayout,
    (rust, wanted, at): (Option<Scalar>, Scalar, u64),
) -> Mismatch {
    let name = rust_name(host.layout, host.type_name);
    let found = rust.map_or_else(|| "nothing".to_owned(), |scalar| scalar.to_string());
    if it.field.is_none() && it.member.is_none() {
        let problem = match rust {
            Some(_) => format!("the data is {name}, but {wgsl} is made of {wanted}"),
            None => format!(
                "the data is {name}, {} bytes, but {wgsl} has {}",
                host.size,
                wgsl.fixed_size()
            ),
        };
        let host_type = host_type(wgsl).unwrap_or_else(|| wanted.to_string());
        let help = format!("give data of type {host_type}, or change the declaration");
        return Mismatch { problem, help };
    }
    let rust_side = match it.field {
        Some((field, at)) => format!("field `{field}` at byte {at} is made of {found}"),
        None if rust.is_none() => format!("{name} ends at byte {}", host.size),
        None => format!("{name} has {found} at byte {at}"),
    };
    let wgsl_side = match it.member {
        Some(member) => {
            format!("`{}` at byte {} is {}", member.name, it.member_at, member.layout)
        }
        None => format!("{wgsl} has {wanted} at byte {at}"),
    };
    Mismatch {
        problem: format!("in Rust {rust_side}, in WGSL {wgsl_side}"),
        help: "declare the same fields on both sides, in the same order".into(),
    }
}

/// Returns the Rust type of one value of a WGSL type, if it consists of scalars without padding.
pub(super) fn host_type(wgsl: &TypeLayout) -> Option<String> {
    match wgsl {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => Some(scalar.to_string()),
        TypeLayout::Vector { len, scalar } => Some(format!("[{scalar}; {len}]")),
        TypeLayout::Matrix { columns, rows, scalar, stride } => (*stride
            == u32::from(rows * scalar.width))
        .then(|| format!("[[{scalar}; {rows}]; {columns}]")),
        TypeLayout::Array { element, len: Some(len), stride } => (u64::from(*stride)
            == element.fixed_size())
        .then(|| host_type(element))?
        .map(|element| format!("[{element}; {len}]")),
        TypeLayout::Array { len: None, .. } | TypeLayout::Struct { .. } => None,
    }
}

fn value_in_padding(
    it: &Difference<'_>,
    host: &Host<'_>,
    wgsl: &TypeLayout,
    (start, end): (u64, u64),
    (value_at, size): (u64, u64),
    is_element: bool,
) -> Mismatch {
    let name = rust_name(host.layout, host.type_name);
    let why = it
        .member
        .map(|member| &member.layout)
        .or_else(|| vec3_in(wgsl))
        .map_or_else(String::new, |it| format!(": {}", alignment_text(it)));
    let gap = format!("bytes {start} to {}", end - 1);
    match it.field {
        Some((field, at)) if at == value_at => Mismatch {
            problem: format!(
                "field `{field}` begins at byte {at}, but WGSL leaves {gap} unused{why}"
            ),
            help: format!("add a padding field of {} bytes before it", end - at),
        },
        Some((field, _)) => Mismatch {
            problem: format!("field `{field}` has data where WGSL leaves {gap} unused{why}"),
            help: format!("pad the values inside of it to {} bytes", end - value_at + size),
        },
        None => Mismatch {
            problem: format!("{wgsl} leaves {gap} unused, where the data has {name}{why}"),
            help: match is_element {
                true => "use larger elements, such as [f32; 4] for vec3<f32>, or change the \
                         declaration"
                    .into(),
                false => "pad the values inside of it, such as [f32; 4] for vec3<f32>".into(),
            },
        },
    }
}

fn alignment_text(layout: &TypeLayout) -> String {
    format!("{layout} is aligned to {} bytes", alignment(layout))
}

/// Returns the alignment of a type in bytes.
fn alignment(layout: &TypeLayout) -> u64 {
    let vector = |len: u8, width: u8| u64::from(width) * if len == 2 { 2 } else { 4 };
    match layout {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => scalar.width.into(),
        TypeLayout::Vector { len, scalar } => vector(*len, scalar.width),
        TypeLayout::Matrix { rows, scalar, .. } => vector(*rows, scalar.width),
        TypeLayout::Array { element, .. } => alignment(element),
        TypeLayout::Struct { members, .. } => {
            members.iter().map(|member| alignment(&member.layout)).max().unwrap_or(1)
        }
    }
}

/// Returns the last member of a structure, of nested ones the innermost; other types unchanged.
fn array_of(wgsl: &TypeLayout) -> &TypeLayout {
    match wgsl {
        TypeLayout::Struct { members, .. } => match members.last() {
            Some(last) => array_of(&last.layout),
            None => wgsl,
        },
        _ => wgsl,
    }
}

/// Returns the type, or its element type, if that is a `vec3` or a matrix with `vec3` columns.
fn vec3_in(wgsl: &TypeLayout) -> Option<&TypeLayout> {
    match wgsl {
        TypeLayout::Vector { len: 3, .. } | TypeLayout::Matrix { rows: 3, .. } => Some(wgsl),
        TypeLayout::Array { element, .. } => vec3_in(element),
        _ => None,
    }
}
