//! Comparison of two contents of a buffer, scalar by scalar.

use std::fmt::Write as _;

use scry_ir::{Scalar, TypeLayout};

use super::tolerance::Tolerance;
use super::ulps::{UNDEFINED_ULPS, difference, distance, format_scalar};

/// Result of a comparison of two contents of a buffer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Number of compared scalars. Zero means that nothing was verified.
    pub compared: u64,
    /// Number of scalars that differ, or that only one content has. Floats with distance 0, such as
    /// the two zeros or two NaNs, are equal.
    pub mismatched: u64,
    /// The largest distance in ULPs; [`UNDEFINED_ULPS`] for unequal integers, for a NaN against a
    /// number, and for a scalar that only one content has.
    pub largest_ulps: u64,
    /// The largest absolute difference of two finite floats.
    pub largest_difference: f64,
    /// The first scalar that differs by more than the tolerance.
    pub first_difference: Option<Difference>,
}

/// Two scalars that should be equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Index of the scalar in the buffer, without padding.
    pub index: u64,
    /// Path in the variable, such as `[12].position.y`; empty if the variable is a scalar.
    pub path: String,
    /// The value in the reference; `missing` if only the other content has the scalar.
    pub expected: String,
    /// The value of the other content; `missing` if only the reference has the scalar.
    pub found: String,
    /// Their distance in ULPs.
    pub ulps: u64,
}

impl Comparison {
    /// Returns whether no scalar differs by more than the tolerance.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.first_difference.is_none()
    }
}

/// Compares two contents of a buffer of a WGSL type. Padding is ignored. Floats may differ by
/// `tolerance`: ULPs, or a [`Tolerance`]; integers must be equal. A scalar that only one of the
/// contents has is a difference; one that both lack is not compared.
///
/// ```
/// use scry_gpu::verify::Tolerance;
/// use scry_gpu::{Scalar, TypeLayout, verify};
///
/// let element = Box::new(TypeLayout::Scalar(Scalar::F32));
/// let words = TypeLayout::Array { element, len: None, stride: 4 };
/// let bytes = |values: [f32; 2]| values.map(f32::to_le_bytes).concat();
/// let comparison = verify::compare(&words, &bytes([0.0, 1.0]), &bytes([-0.0, 1.0000001]), 0);
/// assert_eq!(comparison.largest_ulps, 1);
/// assert_eq!(comparison.first_difference.unwrap().path, "[1]");
/// let close = Tolerance::close(1e-6, 0.0);
/// assert!(verify::compare(&words, &bytes([0.0, 1.0]), &bytes([5e-7, 1.0]), close).agrees());
/// ```
#[must_use]
pub fn compare(
    layout: &TypeLayout,
    expected: &[u8],
    found: &[u8],
    tolerance: impl Into<Tolerance>,
) -> Comparison {
    let mut walk = Walk {
        expected,
        found,
        tolerance: tolerance.into(),
        index: 0,
        path: Vec::new(),
        result: Comparison::default(),
    };
    walk.visit(layout, 0);
    walk.result.compared = walk.index;
    walk.result
}

/// A segment of the path to a scalar.
#[derive(Clone, Copy)]
enum PathSegment<'a> {
    Member(&'a str),
    Element(usize),
    Component(usize),
}

/// A comparison in progress, which visits the scalars of a type in order.
struct Walk<'a> {
    expected: &'a [u8],
    found: &'a [u8],
    tolerance: Tolerance,
    index: u64,
    path: Vec<PathSegment<'a>>,
    result: Comparison,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, layout: &'a TypeLayout, at: usize) {
        match layout {
            TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => self.number(*scalar, at),
            TypeLayout::Vector { len, scalar } => self.vector(*scalar, *len, at),
            TypeLayout::Matrix { columns, rows, scalar, stride } => {
                for column in 0..usize::from(*columns) {
                    self.path.push(PathSegment::Element(column));
                    self.vector(*scalar, *rows, at + column * *stride as usize);
                    self.path.pop();
                }
            }
            TypeLayout::Array { element, len, stride } => {
                self.array(element, *len, *stride as usize, at);
            }
            TypeLayout::Struct { members, .. } => {
                for member in members {
                    self.path.push(PathSegment::Member(&member.name));
                    self.visit(&member.layout, at + member.offset as usize);
                    self.path.pop();
                }
            }
        }
    }

    fn vector(&mut self, scalar: Scalar, len: u8, at: usize) {
        for component in 0..usize::from(len) {
            self.path.push(PathSegment::Component(component));
            self.number(scalar, at + component * usize::from(scalar.width));
            self.path.pop();
        }
    }

    fn array(&mut self, element: &'a TypeLayout, len: Option<u32>, stride: usize, at: usize) {
        let longest = self.expected.len().max(self.found.len());
        let (available, stride) = (longest.saturating_sub(at), stride.max(1));
        let len = match len {
            Some(len) => available.div_ceil(stride).min(len as usize),
            None => available / stride,
        };
        let numbers = count(element);
        for i in 0..len {
            let start = at + i * stride;
            let bytes = start..start + stride;
            // Most elements are bitwise equal.
            let equal = self.expected.get(bytes.clone()).zip(self.found.get(bytes));
            if equal.is_some_and(|(expected, found)| expected == found) {
                self.index += numbers;
                continue;
            }
            self.path.push(PathSegment::Element(i));
            self.visit(element, start);
            self.path.pop();
        }
    }

    fn number(&mut self, scalar: Scalar, at: usize) {
        let bytes = at..at + usize::from(scalar.width);
        let (expected, found) = (self.expected.get(bytes.clone()), self.found.get(bytes));
        match (expected, found) {
            (None, None) => return,
            (Some(expected), Some(found)) => {
                let ulps = distance(scalar, expected, found);
                if ulps > 0 {
                    let difference = difference(scalar, expected, found);
                    if let Some((absolute, _)) = difference {
                        let largest = &mut self.result.largest_difference;
                        *largest = largest.max(absolute);
                    }
                    let is_allowed = self.tolerance.allows(ulps, difference);
                    self.record_difference(scalar, [Some(expected), Some(found)], ulps, is_allowed);
                }
            }
            (expected, found) => {
                self.record_difference(scalar, [expected, found], UNDEFINED_ULPS, false);
            }
        }
        self.index += 1;
    }

    fn record_difference(
        &mut self,
        scalar: Scalar,
        values: [Option<&[u8]>; 2],
        ulps: u64,
        is_allowed: bool,
    ) {
        self.result.mismatched += 1;
        self.result.largest_ulps = self.result.largest_ulps.max(ulps);
        if !is_allowed && self.result.first_difference.is_none() {
            let [expected, found] = values.map(|value| {
                value.map_or_else(|| "missing".to_owned(), |bytes| format_scalar(scalar, bytes))
            });
            let (index, path) = (self.index, self.format_path());
            self.result.first_difference = Some(Difference { index, path, expected, found, ulps });
        }
    }

    fn format_path(&self) -> String {
        let mut path = String::new();
        for segment in &self.path {
            // Formatting to a string is infallible.
            let _ = match segment {
                PathSegment::Member(name) => write!(path, ".{name}"),
                PathSegment::Element(i) => write!(path, "[{i}]"),
                PathSegment::Component(i) => write!(path, ".{}", ["x", "y", "z", "w"][*i]),
            };
        }
        path
    }
}

/// Returns the number of scalars in a value.
fn count(layout: &TypeLayout) -> u64 {
    match layout {
        TypeLayout::Scalar(_) | TypeLayout::Atomic(_) => 1,
        TypeLayout::Vector { len, .. } => (*len).into(),
        TypeLayout::Matrix { columns, rows, .. } => u64::from(*columns) * u64::from(*rows),
        TypeLayout::Array { element, len, .. } => u64::from(len.unwrap_or(0)) * count(element),
        TypeLayout::Struct { members, .. } => {
            members.iter().map(|member| count(&member.layout)).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use scry_ir::Program;

    use super::*;

    fn layout(ty: &str) -> TypeLayout {
        let source = format!(
            "struct Inner {{ v: vec3f, n: u32 }}
             struct Outer {{ head: u32, rest: array<Inner> }}
             @group(0) @binding(0) var<storage, read_write> x: {ty};
             @compute @workgroup_size(1) fn main() {{ let y = &x; _ = y; }}"
        );
        // Replaces the body: an access makes the variable a binding of the kernel.
        let touched = source.replace("let y = &x; _ = y;", touch(ty));
        Program::parse(&touched).unwrap().interface().bindings[0].layout.clone()
    }

    fn touch(ty: &str) -> &'static str {
        match ty {
            "Outer" => "x.head = 1u;",
            "mat3x3f" => "x[0].x = 1.0;",
            _ => "x[0].v.x = 1.0;",
        }
    }

    #[test]
    fn first_difference_has_its_path() {
        let mut bytes = vec![0; 16 + 3 * 16];
        let expected = bytes.clone();
        bytes[16 + 16 + 4] = 1;
        bytes[16 + 32 + 12] = 7;
        let found = compare(&layout("Outer"), &expected, &bytes, 0);
        assert_eq!((found.mismatched, found.largest_ulps), (2, UNDEFINED_ULPS));
        let first = found.first_difference.unwrap();
        assert_eq!((first.path.as_str(), first.index, first.ulps), (".rest[1].v.y", 6, 1));
        // Within the tolerance for floats, the integer is the first difference.
        let first = compare(&layout("Outer"), &expected, &bytes, 1).first_difference.unwrap();
        assert_eq!((first.path.as_str(), first.index), (".rest[2].n", 12));
        assert_eq!((first.expected.as_str(), first.found.as_str()), ("0", "7"));
    }

    #[test]
    fn padding_is_ignored() {
        let mut bytes = vec![0; 48];
        let expected = bytes.clone();
        bytes[12..16].fill(1);
        let equal = Comparison { compared: 9, ..Comparison::default() };
        assert_eq!(compare(&layout("mat3x3f"), &expected, &bytes, 0), equal);
        bytes[16] = 1;
        let found = compare(&layout("mat3x3f"), &expected, &bytes, 0);
        assert_eq!(found.first_difference.unwrap().path, "[1].x");
    }

    #[test]
    fn missing_scalars_differ() {
        let element = Box::new(TypeLayout::Scalar(Scalar::U32));
        let runtime = TypeLayout::Array { element, len: None, stride: 4 };
        let element = Box::new(TypeLayout::Scalar(Scalar::U32));
        let fixed = TypeLayout::Array { element, len: Some(4), stride: 4 };
        let (long, short) = ([[7u8; 4]; 3].concat(), [7u8; 4]);
        for words in [runtime, fixed] {
            for (expected, found, values) in [
                (&long[..], &short[..], ("117901063", "missing")),
                (&short[..], &long[..], ("missing", "117901063")),
            ] {
                let result = compare(&words, expected, found, u64::MAX - 1);
                assert!(!result.agrees());
                assert_eq!((result.compared, result.mismatched), (3, 2));
                let first = result.first_difference.unwrap();
                assert_eq!((first.path.as_str(), first.index), ("[1]", 1));
                assert_eq!((first.expected.as_str(), first.found.as_str()), values);
                assert_eq!(first.ulps, UNDEFINED_ULPS);
            }
            assert_eq!(compare(&words, &short, &short, 0).compared, 1);
        }
    }

    #[test]
    fn scalars_are_counted_and_compared() {
        let element = Box::new(TypeLayout::Scalar(Scalar::F32));
        let words = TypeLayout::Array { element, len: None, stride: 4 };
        let bytes =
            |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
        let found = compare(&words, &bytes(&[1.0, 0.0, 8.0]), &bytes(&[1.5, 0.0, 7.0]), 0);
        assert_eq!((found.compared, found.mismatched, found.largest_difference), (3, 2, 1.0));
        assert_eq!(compare(&words, &[], &[], 0).compared, 0);
        let wide = Tolerance::close(0.5, 0.0625);
        let found = compare(&words, &bytes(&[1.0, 0.0, 8.0]), &bytes(&[1.5, 0.6, 7.0]), wide);
        assert_eq!(found.first_difference.unwrap().path, "[1]");
    }
}
