//! Rejects indices that are neither `i32` nor `u32`.
//!
//! WGSL has no others. naga's validator lets every integer pass, but its SPIR-V writer clamps 32
//! bits, and what it writes for other widths is not valid SPIR-V.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{Expression, Function, Module, ScalarKind, TypeInner};

use crate::ShaderErrorKind;
use crate::wgsl::report::Report;

/// Checks every index of a module. `info` is the validator's of this very module.
pub(crate) fn check(module: &Module, info: &ModuleInfo) -> Result<(), Box<Report>> {
    for (handle, function) in module.functions.iter() {
        check_function(module, function, &info[handle])?;
    }
    for (at, entry) in module.entry_points.iter().enumerate() {
        check_function(module, &entry.function, info.get_entry_point(at))?;
    }
    Ok(())
}

fn check_function(
    module: &Module,
    function: &Function,
    info: &FunctionInfo,
) -> Result<(), Box<Report>> {
    for (handle, expression) in function.expressions.iter() {
        let Expression::Access { index, .. } = *expression else {
            continue;
        };
        let TypeInner::Scalar(scalar) = *info[index].ty.inner_with(&module.types) else {
            continue;
        };
        if scalar.width != 4 {
            let letter = match scalar.kind {
                ScalarKind::Sint => 'i',
                _ => 'u',
            };
            let bits = u32::from(scalar.width) * 8;
            let message = format!("an index must be i32 or u32, and this one is {letter}{bits}");
            let span = function.expressions.get_span(handle);
            return Err(Box::new(
                Report::new(ShaderErrorKind::Validation, message)
                    .at(span, format!("indexed by {letter}{bits}"))
                    .note("convert the index: u32(…) or i32(…)"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Program, ShaderErrorKind};

    fn indexed_by(declarations: &str, index: &str) -> Result<Program, crate::ShaderError> {
        Program::parse(&format!(
            "{declarations}
            @group(0) @binding(0) var<storage, read_write> data: array<u32>;
            @compute @workgroup_size(1) fn main() {{ data[{index}] = 1u; }}"
        ))
    }

    #[test]
    fn indices_of_other_widths_are_rejected() {
        let wide = "@group(0) @binding(1) var<storage> wide: u64;";
        let error = indexed_by(wide, "wide").err().unwrap();
        assert_eq!(error.kind, ShaderErrorKind::Validation);
        assert_eq!(error.message, "an index must be i32 or u32, and this one is u64");
        assert_eq!(error.location.unwrap().line, 3);
        assert!(error.rendered.contains("u32(…)"), "{error}");
        assert!(indexed_by(wide, "u32(wide)").is_ok());
        let narrow = "enable wgpu_int16; @group(0) @binding(1) var<storage> narrow: i16;";
        let error = indexed_by(narrow, "narrow").err().unwrap();
        assert_eq!(error.message, "an index must be i32 or u32, and this one is i16");
    }
}
