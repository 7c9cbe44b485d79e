//! Generates data for buffers, immediates and overrides for which the user gave none.

use scry_ir::{
    BindingInfo, BufferBindingType, Interface, Outline, OverrideValue, Scalar, ScalarKind,
    TypeLayout,
};

use crate::commands::run::request::{Input, Request};
use crate::commands::run::slot::{Extent, Slot};
use crate::data::generate::rng;
use crate::data::{Bytes, Loaded, Shape};
use crate::report::Failure;

/// The value of generated integer parameters. They are mostly sizes; 64 is also the side of the
/// default two-dimensional data.
const PARAMETER: u64 = 64;

/// Adds an input for each buffer that has none, immediates if none were set, and the default number
/// of invocations.
pub fn fill(
    request: &mut Request,
    loaded: &mut Vec<(String, Loaded)>,
    interface: &Interface,
    seed: u64,
) -> Result<(), Failure> {
    let elements = elements(loaded, interface);
    let [x, y, z] = [0, 1, 2].map(|axis| axis_len(&elements, axis));
    request.default_invocations = Some([x, y, z]);
    if request.immediates.is_empty() {
        request.generated_immediates = immediates(interface, seed);
    }
    for binding in &interface.bindings {
        if request.input(&binding.name).is_some() {
            continue;
        }
        let slot = Slot::new(binding);
        let given = request.shapes.get(&binding.name);
        let shape = given
            .cloned()
            .or_else(|| slot.fixed_shape())
            .unwrap_or_else(|| elements.clone().with_inner_dimensions(&slot.element_shape));
        let bytes = generated_bytes(binding, &slot, &shape, seed)?;
        if given.is_none() && slot.extent == Extent::Runtime {
            request.shapes.insert(binding.name.clone(), shape);
        }
        loaded.push((binding.name.clone(), Loaded::Raw(bytes)));
        request.inputs.push(Input {
            name: binding.name.clone(),
            source: None,
            argument: format!("generated data for {}", binding.name),
            inout: slot.is_written,
        });
    }
    Ok(())
}

/// Returns values for the overrides that have neither a default nor a set value.
pub fn overrides(
    outline: &Outline,
    given: &[(String, OverrideValue)],
) -> Vec<(String, OverrideValue)> {
    let missing = outline.assume(given).assumed;
    let value = |name: &String| {
        let declared = outline.overrides.iter().find(|declared| declared.name == *name);
        match declared.is_some_and(|declared| declared.ty == "bool") {
            true => true.into(),
            false => OverrideValue::Number(PARAMETER as f64),
        }
    };
    missing.iter().map(|name| (name.clone(), value(name))).collect()
}

/// Returns the shape of runtime-sized arrays, in elements: that of the first input with a shape
/// (not bytes) for such an array, or a default.
fn elements(loaded: &[(String, Loaded)], interface: &Interface) -> Shape {
    let shape_of_input = loaded.iter().find_map(|(name, loaded)| {
        let binding = interface.bindings.iter().find(|binding| binding.name == *name)?;
        let slot = Slot::new(binding);
        let shape = match loaded {
            Loaded::Array(array) => array.shape.clone(),
            Loaded::Zeros(_, shape) => shape.clone(),
            Loaded::Image(image) => {
                return Some(Shape(vec![image.height.into(), image.width.into()]));
            }
            Loaded::Raw(_) | Loaded::Stream(_) => return None,
        };
        let is_runtime_sized = slot.extent == Extent::Runtime && !slot.is_uniform;
        is_runtime_sized.then(|| slot.elements(&shape))
    });
    shape_of_input.unwrap_or_else(|| {
        Shape(match interface.workgroup_size {
            [_, 1, 1] => vec![4096],
            [_, _, 1] => vec![64, 64],
            _ => vec![16, 16, 16],
        })
    })
}

/// Returns the number of elements along an axis; axis 0 is the innermost dimension.
fn axis_len(elements: &Shape, axis: usize) -> u64 {
    elements.0.iter().rev().nth(axis).copied().unwrap_or(1)
}

/// Generates the bytes of a buffer.
fn generated_bytes(
    binding: &BindingInfo,
    slot: &Slot,
    shape: &Shape,
    seed: u64,
) -> Result<Bytes, Failure> {
    let len = match &slot.extent {
        Extent::Fixed(_) => usize::try_from(binding.layout.fixed_size()).unwrap_or(usize::MAX),
        Extent::Runtime => shape.bytes(slot.unit())?,
        Extent::Tail(offset) => {
            let stride = binding.layout.runtime_array().map_or(1, |(_, stride)| stride);
            let tail = shape.bytes(stride)?;
            usize::try_from(*offset).unwrap_or(usize::MAX).saturating_add(tail)
        }
    };
    let mut bytes = Bytes::zeroed(len)?;
    let is_parameter = binding.ty == BufferBindingType::Uniform;
    let mut filler = Filler { rng: rng(seed, &binding.name), is_parameter };
    filler.fill(&binding.layout, bytes.as_mut_slice());
    Ok(bytes)
}

/// Generates the bytes of a kernel's immediates.
fn immediates(interface: &Interface, seed: u64) -> Option<Vec<u8>> {
    let immediates = interface.immediates.as_ref()?;
    let mut bytes = vec![0; usize::try_from(immediates.layout.fixed_size()).ok()?];
    let mut filler = Filler { rng: rng(seed, &immediates.name), is_parameter: true };
    filler.fill(&immediates.layout, &mut bytes);
    Some(bytes)
}

/// Fills memory in the layout of a type with random numbers; padding is not changed.
struct Filler {
    rng: fastrand::Rng,
    /// Whether integers are [`PARAMETER`] instead of random.
    is_parameter: bool,
}

impl Filler {
    fn fill(&mut self, layout: &TypeLayout, bytes: &mut [u8]) {
        match layout {
            TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => {
                self.fill_number(*scalar, bytes)
            }
            TypeLayout::Vector { len, scalar } => self.fill_vector(*scalar, *len, bytes),
            TypeLayout::Matrix { columns, rows, scalar, stride } => {
                let columns = bytes.chunks_mut(*stride as usize).take((*columns).into());
                columns.for_each(|column| self.fill_vector(*scalar, *rows, column));
            }
            TypeLayout::Array { element, len, stride } => {
                let len = len.map_or(usize::MAX, |len| len as usize);
                let elements = bytes.chunks_exact_mut(*stride as usize).take(len);
                elements.for_each(|bytes| self.fill(element, bytes));
            }
            TypeLayout::Struct { members, .. } => {
                for member in members {
                    if let Some(bytes) = bytes.get_mut(member.offset as usize..) {
                        self.fill(&member.layout, bytes);
                    }
                }
            }
        }
    }

    fn fill_vector(&mut self, scalar: Scalar, len: u8, bytes: &mut [u8]) {
        let parts = bytes.chunks_exact_mut(scalar.width.into()).take(len.into());
        parts.for_each(|part| self.fill_number(scalar, part));
    }

    fn fill_number(&mut self, scalar: Scalar, bytes: &mut [u8]) {
        let fraction = self.rng.u32(0..1 << 11);
        let number = match (scalar.kind, scalar.width) {
            // Multiples of 2^-11 below 1 are exact. A random f32 could round up to 1.
            (ScalarKind::Float, 2) => {
                half::f16::from_f32(fraction as f32 / 2048.0).to_bits().into()
            }
            (ScalarKind::Float, 4) => self.rng.f32().to_bits().into(),
            (ScalarKind::Float, _) => self.rng.f64().to_bits(),
            _ if self.is_parameter => PARAMETER,
            _ => self.rng.u64(..),
        };
        let width = usize::from(scalar.width);
        if let Some(bytes) = bytes.get_mut(..width) {
            bytes.copy_from_slice(&number.to_le_bytes()[..width]);
        }
    }
}

#[cfg(test)]
mod tests {
    use scry_ir::Program;

    use super::*;

    #[test]
    fn generated_values_are_in_range() {
        let source = "
            struct P { n: u32, scale: f32 }
            @group(0) @binding(0) var<uniform> p: P;
            @group(0) @binding(1) var<storage, read_write> x: array<vec3f>;
            @compute @workgroup_size(8, 8) fn main() { x[p.n].x = p.scale; }";
        let program = Program::parse(source).unwrap();
        let bindings = &program.interface().bindings;
        let bytes = |at: usize, shape: &[u64]| {
            let slot = Slot::new(&bindings[at]);
            generated_bytes(&bindings[at], &slot, &Shape(shape.to_vec()), 1)
                .unwrap()
                .as_slice()
                .to_vec()
        };
        let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
        let p = bytes(0, &[]);
        assert_eq!(p[..4], 64u32.to_le_bytes());
        assert!((0.0..1.0).contains(&float(&p[4..8])));
        let x = bytes(1, &[64, 64, 4]);
        assert_eq!(x.len(), 64 * 64 * 16);
        assert!(x.chunks(16).all(|v| float(&v[..4]) < 1.0 && v[12..] == [0; 4]));
    }
}
