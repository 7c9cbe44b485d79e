//! Checks the declarations of a kernel, and definitions that no statement computes.

use super::error::violation;
use super::{Check, MAX_LABELS, MAX_WORKGROUP_AXIS, VerifyErrorKind, exists, memory, var_type};
use crate::kir::{AddressSpace, Buffer, Definition, FragmentPlace, Inst, Kir, Type};

/// Checks the declarations.
pub(super) fn check(kir: &Kir) -> Check {
    let invalid = |message: String| Err(violation(VerifyErrorKind::Declaration, message));
    if kir.name.is_empty() || kir.name.contains(char::is_control) {
        return invalid(format!("{:?} is not a name", kir.name));
    }
    let size = kir.workgroup_size;
    if size.contains(&0) || size.iter().any(|axis| *axis > MAX_WORKGROUP_AXIS) {
        let message = format!(
            "the workgroup size is {size:?}, but each axis must be 1 to {MAX_WORKGROUP_AXIS}"
        );
        return invalid(message);
    }
    if kir.labels == 0 {
        return invalid("the kernel's own label is not counted".to_owned());
    }
    if kir.labels > MAX_LABELS {
        let message = format!("{} labels are more than {MAX_LABELS}", kir.labels);
        return Err(violation(VerifyErrorKind::TooLarge, message));
    }
    kir.buffers.iter().try_for_each(buffer)?;
    if let Some(array) = kir.workgroup.iter().find(|array| array.ty.matrix().is_some()) {
        return invalid(format!("there is an array of {} in workgroup memory", array.ty));
    }
    match kir.workgroup.iter().chain(&kir.locals).any(|array| array.len == 0) {
        true => invalid("there is an array of length zero".to_owned()),
        false => Ok(()),
    }
}

fn buffer(buffer: &Buffer) -> Check {
    let invalid = |message: String| Err(violation(VerifyErrorKind::Declaration, message));
    let Buffer { name, element, .. } = buffer;
    let is_separator = |c: char| c.is_control() || c.is_whitespace() || c == ',';
    if name.is_empty() || name.contains(is_separator) {
        return invalid(format!("{name:?} is not a name of a buffer"));
    }
    match element {
        Type::Bool | Type::Matrix(_) => {
            invalid(format!("the elements of `{name}` are {element}, which no buffer has"))
        }
        _ => Ok(()),
    }
}

/// Checks the definition of a value that no statement computes: what it refers to must exist,
/// because passes and backends build tables of all definitions. Types are not checked, since passes
/// leave definitions with wrong types behind.
pub(super) fn check_unused(kir: &Kir, definition: &Definition) -> Check {
    let mut result = Ok(());
    definition.inst.for_each_operand(|operand| {
        if result.is_ok() {
            result = exists(kir, operand);
        }
    });
    result?;
    match definition.inst {
        Inst::Get(var) => var_type(kir, var).map(drop),
        Inst::ArrayLength { binding, .. } => memory::exists(kir, AddressSpace::Binding(binding)),
        Inst::Load { place, .. }
        | Inst::WorkgroupUniformLoad { place, .. }
        | Inst::Atomic { place, .. }
        | Inst::LoadFragment(FragmentPlace { place, .. }) => memory::exists(kir, place.space),
        Inst::MatrixLoad(place) => memory::exists(kir, place.array.space),
        _ => Ok(()),
    }
}
