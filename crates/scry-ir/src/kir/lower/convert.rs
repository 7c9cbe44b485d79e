//! Conversions and reinterpretations.

use super::componentwise::map_components;
use super::shape::Shaped;
use crate::ShaderError;
use crate::kir::{Builder, Type, Value};

/// Lowers a conversion to another type.
pub(crate) fn convert(b: &mut Builder, a: Shaped<'_>, to: Type) -> Result<Vec<Value>, ShaderError> {
    if a.shape.component().is_none() {
        return Err(ShaderError::compiler(format!("a composite is converted to `{to}`")));
    }
    Ok(map_components(b, [a], &|b, [a]| b.convert(to, a)))
}

/// Lowers a bitcast, component by component, to another type of the same size.
pub(crate) fn bitcast(b: &mut Builder, a: Shaped<'_>, to: Type) -> Result<Vec<Value>, ShaderError> {
    let fits = |from: Type| from.size() == to.size() && (from == Type::Bool) == (to == Type::Bool);
    match a.shape.component() {
        Some(from) if fits(from) => Ok(map_components(b, [a], &|b, [a]| b.bitcast(to, a))),
        Some(from) => {
            Err(ShaderError::compiler(format!("the bits of a `{from}` are taken as a `{to}`")))
        }
        None => Err(ShaderError::compiler(format!("a composite's bits are taken as a `{to}`"))),
    }
}
