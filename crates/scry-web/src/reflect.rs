//! Kernels as JSON: their interface, or what is wrong with them.

use scry_ir::{Interface, Options, Outline, Program, Scalar, ShaderError, TypeLayout};
use serde_json::{Value, json};

/// A program, and what else the source declares.
pub(crate) struct Selected {
    pub(crate) program: Program,
    pub(crate) outline: Outline,
    /// Overrides without a default, which are 1.
    pub(crate) assumed: Vec<String>,
}

/// Compiles an entry point of a source; if there is none of this name, the first one.
pub(crate) fn select(source: &str, entry: &str) -> Result<Selected, ShaderError> {
    let outline = Outline::read(source)?;
    let assumed = outline.assume(&[]);
    let named = outline.entry_points.iter().find(|name| *name == entry);
    let options = Options {
        entry: named.or(outline.entry_points.first()).cloned(),
        overrides: assumed.values,
        ..Options::default()
    };
    let program = Program::with_options(source, &options)?;
    Ok(Selected { program, outline, assumed: assumed.assumed })
}

/// Returns the interface of a kernel as JSON, or `error`.
#[must_use]
pub fn reflect(source: &str, entry: &str) -> Value {
    match select(source, entry) {
        Ok(selected) => interface_value(&selected),
        Err(error) => json!({ "error": error_value(&error) }),
    }
}

/// Returns the interface of a kernel as JSON.
pub(crate) fn interface_value(selected: &Selected) -> Value {
    let Selected { program, outline, assumed } = selected;
    let interface = program.interface();
    json!({
        "entry": interface.entry_point,
        "entries": outline.entry_points,
        "assumed": assumed,
        "workgroup": interface.workgroup_size,
        "memory": interface.workgroup_memory,
        "features": interface.features.to_string(),
        "bindings": bindings(interface),
        "immediates": interface.immediates.as_ref().map(|block| json!({
            "name": block.name,
            "type": block.layout.to_string(),
            "bytes": block.layout.fixed_size(),
        })),
    })
}

fn bindings(interface: &Interface) -> Vec<Value> {
    let bindings = interface.bindings.iter().map(|binding| {
        let found = scalars(&binding.layout);
        json!({
            "name": binding.name,
            "type": binding.layout.to_string(),
            "writes": binding.access.writes(),
            "scalar": found.map(|(scalar, _)| scalar.to_string()),
            "components": found.map(|(_, components)| components),
            "min_bytes": binding.layout.min_binding_size(),
        })
    });
    bindings.collect()
}

/// Returns an error as JSON: message, position, and the rendered text.
pub(crate) fn error_value(error: &ShaderError) -> Value {
    let at = error.location;
    json!({
        "message": error.message,
        "line": at.map(|at| at.line),
        "column": at.map(|at| at.column),
        "text": error.to_string(),
    })
}

/// Returns the scalar of a type and how many an element has, if all of its scalars are of one type
/// and adjacent.
#[must_use]
pub fn scalars(layout: &TypeLayout) -> Option<(Scalar, u32)> {
    match layout {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => Some((*scalar, 1)),
        TypeLayout::Vector { len, scalar } => Some((*scalar, (*len).into())),
        TypeLayout::Array { element, stride, .. } => {
            let (scalar, components) = scalars(element)?;
            (u32::from(scalar.width) * components == *stride).then_some((scalar, components))
        }
        TypeLayout::Matrix { .. } | TypeLayout::Struct { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_and_immediates_are_described() {
        let found = reflect(
            "@group(0) @binding(0) var<storage, read_write> pixels: array<vec4f>;
             @group(0) @binding(1) var<uniform> size: vec3u;
             var<immediate> step: f32;
             @compute @workgroup_size(8) fn main() { pixels[0] += f32(size.x) * step; }",
            "",
        );
        let [pixels, size] = [0, 1].map(|index| &found["bindings"][index]);
        assert_eq!((&pixels["scalar"], &pixels["components"]), (&json!("f32"), &json!(4)));
        assert_eq!((&size["scalar"], &size["min_bytes"]), (&json!("u32"), &json!(12)));
        assert_eq!(found["immediates"]["bytes"], 4);
    }

    #[test]
    fn padded_elements_are_no_list_of_scalars() {
        let padded = "@group(0) @binding(0) var<storage, read_write> x: array<vec3f>;
            @compute @workgroup_size(8) fn main() { x[0] += 1.0; }";
        assert_eq!(reflect(padded, "")["bindings"][0]["scalar"], Value::Null);
    }
}
