//! Describes a buffer of a kernel as a host array.

use scry_ir::{BindingInfo, BufferBindingType, Scalar, TypeLayout};

use crate::data::{Dtype, Shape};

/// A buffer of the kernel, and the host arrays that fit it.
///
/// The shape of a host array counts scalars: 1000 elements of `array<vec4<f32>>` have the shape
/// 1000×4, and `element_shape` is `[4]`. If the kernel's type mixes scalar types, the shape counts
/// elements of the kernel's array instead, and there is no `dtype`.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Name of the variable.
    pub name: String,
    /// The type, as WGSL spells it.
    pub type_text: String,
    /// True if the kernel writes it.
    pub is_written: bool,
    /// True for `var<uniform>`.
    pub is_uniform: bool,
    /// The type of all scalars; `None` if the buffer mixes several.
    pub dtype: Option<Dtype>,
    /// Stride of the kernel's array in bytes; the size if it is not an array.
    pub stride: u64,
    /// The dimensions of one element, in scalars.
    pub element_shape: Vec<u64>,
    /// The number of elements.
    pub extent: Extent,
}

/// The rule that determines the number of a buffer's elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// Fixed by the type: the dimensions outside of `element_shape`.
    Fixed(Vec<u64>),
    /// Determined by the data: a runtime-sized array.
    Runtime,
    /// Determined by the data: a structure that ends in a runtime-sized array at this byte offset.
    /// Elements are then words, and their number does not determine the launch.
    Tail(u64),
}

impl Slot {
    /// Returns the slot of a binding.
    pub fn new(binding: &BindingInfo) -> Self {
        let layout = &binding.layout;
        let dtype = only_scalar(layout).and_then(Dtype::of_scalar);
        let (element, stride, extent) = match layout {
            TypeLayout::Array { element, len, stride } => {
                let extent = len.map_or(Extent::Runtime, |len| Extent::Fixed(vec![len.into()]));
                (Some(&**element), u64::from(*stride), extent)
            }
            _ => match layout.runtime_array() {
                Some((offset, _)) => {
                    (None, dtype.map_or(4, |dtype| dtype.size() as u64), Extent::Tail(offset))
                }
                None => (Some(layout), layout.fixed_size(), Extent::Fixed(Vec::new())),
            },
        };
        let element_shape = match (element, dtype) {
            (Some(element), Some(dtype)) => dimensions(element, stride / dtype.size() as u64),
            _ => Vec::new(),
        };
        Self {
            name: binding.name.clone(),
            type_text: layout.to_string(),
            is_written: binding.access.writes(),
            is_uniform: binding.ty == BufferBindingType::Uniform,
            dtype,
            stride,
            element_shape,
            extent,
        }
    }

    /// Returns the size in bytes of what a shape counts: a scalar, or an element.
    pub fn unit(&self) -> u64 {
        self.dtype.map_or(self.stride, |dtype| dtype.size() as u64)
    }

    /// Returns the shape, if the type determines it.
    pub fn fixed_shape(&self) -> Option<Shape> {
        match &self.extent {
            Extent::Fixed(outer) => {
                Some(Shape(outer.clone()).with_inner_dimensions(&self.element_shape))
            }
            Extent::Runtime | Extent::Tail(_) => None,
        }
    }

    /// Converts a shape to elements of the kernel's array: to one dimension, unless the shape ends
    /// in `element_shape`.
    pub fn elements(&self, shape: &Shape) -> Shape {
        match shape.0.strip_suffix(self.element_shape.as_slice()) {
            Some(outer) => Shape(outer.to_vec()),
            None => {
                let per_element: u64 = self.element_shape.iter().product();
                let count = shape.count().unwrap_or(0);
                Shape(vec![count / per_element.max(1)])
            }
        }
    }
}

/// Returns the only scalar type in a type; `None` if it mixes several.
fn only_scalar(layout: &TypeLayout) -> Option<Scalar> {
    match layout {
        TypeLayout::Scalar(scalar)
        | TypeLayout::Atomic(scalar)
        | TypeLayout::Vector { scalar, .. }
        | TypeLayout::Matrix { scalar, .. } => Some(*scalar),
        TypeLayout::Array { element, .. } => only_scalar(element),
        TypeLayout::Struct { members, .. } => {
            let mut scalars = members.iter().map(|member| only_scalar(&member.layout));
            let first = scalars.next()??;
            scalars.all(|scalar| scalar == Some(first)).then_some(first)
        }
    }
}

/// Returns the dimensions of a value that has the size of `words` scalars, padding included. A type
/// with padding has one dimension of that length, since host arrays have no padding.
fn dimensions(layout: &TypeLayout, words: u64) -> Vec<u64> {
    let dims = match layout {
        TypeLayout::Scalar(_) | TypeLayout::Atomic(_) => Vec::new(),
        TypeLayout::Vector { len, .. } => vec![(*len).into()],
        TypeLayout::Matrix { columns, rows, .. } => vec![(*columns).into(), (*rows).into()],
        TypeLayout::Array { element, len: Some(len), .. } => {
            let len = u64::from(*len);
            let mut dims = vec![len];
            dims.extend(dimensions(element, words / len.max(1)));
            dims
        }
        TypeLayout::Array { len: None, .. } | TypeLayout::Struct { .. } => vec![words],
    };
    if dims.iter().product::<u64>() == words { dims } else { vec![words] }
}

#[cfg(test)]
mod tests {
    use scry_ir::Program;

    use super::*;

    fn slot(declaration: &str, access: &str) -> Slot {
        let source = format!(
            "struct Mixed {{ a: u32, b: f32 }}
             struct Same {{ a: f32, b: vec2f }}
             struct Tail {{ count: u32, data: array<u32> }}
             @group(0) @binding(0) {declaration};
             @compute @workgroup_size(1) fn main() {{ {access} }}"
        );
        Slot::new(&Program::parse(&source).unwrap().interface().bindings[0])
    }

    #[test]
    fn wgsl_types_map_to_host_arrays() {
        use Dtype::{F32, U32};
        use Extent::{Fixed, Runtime, Tail};
        type Case<'a> = (&'a str, &'a str, Option<Dtype>, u64, &'a [u64], Extent);
        let storage = |ty| format!("var<storage, read_write> x: {ty}");
        let cases: [Case<'_>; 10] = [
            ("array<f32>", "x[0] = 1;", Some(F32), 4, &[], Runtime),
            ("array<vec4f>", "x[0] = vec4f();", Some(F32), 16, &[4], Runtime),
            ("array<vec3f>", "x[0] = vec3f();", Some(F32), 16, &[4], Runtime),
            ("array<mat2x2f>", "x[0] = mat2x2f();", Some(F32), 16, &[2, 2], Runtime),
            (
                "array<atomic<u32>, 256>",
                "atomicStore(&x[0], 1);",
                Some(U32),
                4,
                &[],
                Fixed(vec![256]),
            ),
            ("array<array<u32, 3>>", "x[0][0] = 1;", Some(U32), 12, &[3], Runtime),
            ("array<Mixed>", "x[0].a = 1;", None, 8, &[], Runtime),
            ("Same", "x.a = 1;", Some(F32), 16, &[4], Fixed(vec![])),
            ("u32", "x = 1;", Some(U32), 4, &[], Fixed(vec![])),
            ("Tail", "x.data[0] = 1;", Some(U32), 4, &[], Tail(4)),
        ];
        for (ty, access, dtype, stride, inner, extent) in cases {
            let slot = slot(&storage(ty), access);
            let got = (slot.dtype, slot.stride, slot.element_shape.as_slice(), slot.extent.clone());
            assert_eq!(got, (dtype, stride, inner, extent), "{ty}");
            assert!(slot.is_written && !slot.is_uniform);
        }
    }

    #[test]
    fn elements_exclude_inner_dimensions() {
        let slot = slot("var<storage, read_write> x: array<vec4f>", "x[0] = vec4f();");
        assert_eq!(slot.elements(&Shape(vec![30, 20, 4])), Shape(vec![30, 20]));
        assert_eq!(slot.elements(&Shape(vec![1000])), Shape(vec![250]));
        assert_eq!(slot.fixed_shape(), None);
    }
}
