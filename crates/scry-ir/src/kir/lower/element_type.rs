//! The element type of a binding.

use crate::kir::Type;
use crate::{Scalar, ScalarKind, TypeLayout};

/// Returns the only scalar type of a layout. If the layout contains several, returns the unsigned
/// integer of the size of the narrowest.
pub(super) fn of_layout(layout: &TypeLayout) -> Type {
    let mut found = None;
    for_each_scalar(layout, &mut |scalar| {
        let ty = scalar_type(scalar);
        found = Some(found.map_or(ty, |before| common_type(before, ty)));
    });
    found.unwrap_or(Type::U32)
}

fn common_type(a: Type, b: Type) -> Type {
    match a == b {
        true => a,
        false if a.size() <= b.size() => a.to_unsigned(),
        false => b.to_unsigned(),
    }
}

fn for_each_scalar(layout: &TypeLayout, visit: &mut dyn FnMut(Scalar)) {
    match layout {
        TypeLayout::Scalar(scalar)
        | TypeLayout::Atomic(scalar)
        | TypeLayout::Vector { scalar, .. }
        | TypeLayout::Matrix { scalar, .. } => visit(*scalar),
        TypeLayout::Array { element, .. } => for_each_scalar(element, visit),
        TypeLayout::Struct { members, .. } => {
            members.iter().for_each(|member| for_each_scalar(&member.layout, visit));
        }
    }
}

/// Returns the type of a scalar; there is one for every scalar of a WGSL binding.
fn scalar_type(Scalar { kind, width }: Scalar) -> Type {
    match (kind, width) {
        (ScalarKind::Float, 2) => Type::F16,
        (ScalarKind::Float, 8) => Type::F64,
        (ScalarKind::Float, _) => Type::F32,
        (ScalarKind::Sint, 2) => Type::I16,
        (ScalarKind::Sint, 8) => Type::I64,
        (ScalarKind::Sint, _) => Type::I32,
        (ScalarKind::Uint | ScalarKind::Bfloat, 2) => Type::U16,
        (ScalarKind::Uint, 8) => Type::U64,
        _ => Type::U32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use crate::kir::KirOptions;

    /// Returns the name and the element type of the only binding, which `statement` must use.
    fn binding(declarations: &str, statement: &str) -> (String, Type) {
        let source =
            format!("{declarations} @compute @workgroup_size(1) fn main() {{ {statement} }}");
        let program = Program::parse(&source).unwrap_or_else(|error| panic!("{error}"));
        let mut kir = program.to_kir(&KirOptions { checked: true }).expect("it is lowered");
        let buffer = kir.buffers.remove(0);
        (buffer.name, buffer.element)
    }

    #[test]
    fn single_scalar_type_is_element_type() {
        let element_type = |ty: &str, part: &str| {
            let variable = format!("@group(0) @binding(0) var<storage, read_write> a: {ty};");
            let (name, element) =
                binding(&format!("enable f16; {variable}"), &format!("_ = {part};"));
            assert_eq!(name, "a");
            element
        };
        assert_eq!(element_type("array<f32>", "a[0]"), Type::F32);
        assert_eq!(element_type("array<vec3<u32>, 4>", "a[0].x"), Type::U32);
        assert_eq!(element_type("mat3x4<f16>", "a[0]"), Type::F16);
        assert_eq!(element_type("array<atomic<i32>>", "atomicLoad(&a[0])"), Type::I32);
    }

    #[test]
    fn mixed_layouts_use_narrowest_unsigned() {
        let element_type = |members: &str| {
            let variable = "@group(0) @binding(0) var<storage> mixed: S;";
            let (name, element) = binding(
                &format!("enable f16; struct S {{ {members} }} {variable}"),
                "_ = mixed.x;",
            );
            assert_eq!(name, "mixed");
            element
        };
        assert_eq!(element_type("x: f32, y: f32"), Type::F32);
        assert_eq!(element_type("x: f32, y: i32"), Type::U32);
        assert_eq!(element_type("x: i32, y: vec4<f16>, z: u32"), Type::U16);
        assert_eq!(element_type("x: f64, y: u64"), Type::U64);
        assert_eq!(element_type("x: f64, y: i32"), Type::U32);
    }
}
