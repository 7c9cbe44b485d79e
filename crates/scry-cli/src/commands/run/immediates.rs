//! The immediates of a kernel, from `--immediate NAME=VALUE` options.

use half::f16;
use scry_ir::{Immediates, Scalar, ScalarKind, TypeLayout};

use crate::report::Failure;

/// The target of one `--immediate`: a scalar, vector or matrix.
struct Leaf {
    name: String,
    type_text: String,
    scalar: Scalar,
    /// Byte offsets of its scalars.
    offsets: Vec<u32>,
}

/// Returns the bytes of the kernel's immediates.
pub fn immediate_bytes(
    given: &[(String, String)],
    immediates: Option<&Immediates>,
) -> Result<Option<Vec<u8>>, Failure> {
    let Some(Immediates { name, layout }) = immediates else {
        return match given.first() {
            None => Ok(None),
            Some((name, _)) => Err(Failure::usage(format!(
                "--immediate {name}: the kernel has no immediates (`var<immediate>`)"
            ))),
        };
    };
    let mut leaves = Vec::new();
    match layout {
        TypeLayout::Struct { members, .. } => {
            for member in members {
                collect_leaves(&mut leaves, member.name.clone(), &member.layout, member.offset);
            }
        }
        _ => collect_leaves(&mut leaves, name.clone(), layout, 0),
    }
    let size = usize::try_from(layout.fixed_size()).expect("immediates are a few hundred bytes");
    let mut bytes = vec![0; size];
    let mut missing: Vec<bool> = vec![true; leaves.len()];
    for (name, text) in given {
        let Some(at) = leaves.iter().position(|leaf| leaf.name == *name) else {
            let list = list_leaves(leaves.iter());
            return Err(Failure::usage(format!(
                "--immediate {name}: the kernel's immediates have no `{name}`; they have {list}"
            )));
        };
        if !std::mem::replace(&mut missing[at], false) {
            return Err(Failure::usage(format!("--immediate {name} is repeated")));
        }
        encode_leaf(&leaves[at], text, &mut bytes)?;
    }
    let missing = leaves.iter().zip(missing).filter_map(|(leaf, missing)| missing.then_some(leaf));
    let missing = list_leaves(missing);
    if missing.is_empty() {
        Ok(Some(bytes))
    } else {
        Err(Failure::usage(format!("the kernel needs --immediate NAME=VALUE for {missing}")))
    }
}

fn list_leaves<'a>(leaves: impl Iterator<Item = &'a Leaf>) -> String {
    let leaves = leaves.map(|leaf| format!("`{}` ({})", leaf.name, leaf.type_text));
    leaves.collect::<Vec<_>>().join(", ")
}

/// Adds the leaves of a type at byte `base`. Those of nested structures are named `outer.inner`,
/// those of arrays `array[0]`.
fn collect_leaves(leaves: &mut Vec<Leaf>, name: String, layout: &TypeLayout, base: u32) {
    if let TypeLayout::Struct { members, .. } = layout {
        for member in members {
            let name = format!("{name}.{}", member.name);
            collect_leaves(leaves, name, &member.layout, base + member.offset);
        }
        return;
    }
    if let TypeLayout::Array { element, len: Some(len), stride } = layout {
        for i in 0..*len {
            collect_leaves(leaves, format!("{name}[{i}]"), element, base + i * stride);
        }
        return;
    }
    let (scalar, offsets) = match layout {
        TypeLayout::Scalar(scalar) | TypeLayout::Atomic(scalar) => (*scalar, vec![base]),
        TypeLayout::Vector { len, scalar } => {
            let width = u32::from(scalar.width);
            (*scalar, (0..u32::from(*len)).map(|i| base + i * width).collect())
        }
        TypeLayout::Matrix { columns, rows, scalar, stride } => {
            let width = u32::from(scalar.width);
            let column = |c: u32| (0..u32::from(*rows)).map(move |r| base + c * stride + r * width);
            (*scalar, (0..u32::from(*columns)).flat_map(column).collect())
        }
        TypeLayout::Array { .. } | TypeLayout::Struct { .. } => return,
    };
    leaves.push(Leaf { name, type_text: layout.to_string(), scalar, offsets });
}

fn encode_leaf(leaf: &Leaf, text: &str, bytes: &mut [u8]) -> Result<(), Failure> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let wrong =
        |problem: String| Failure::usage(format!("--immediate {}={text}: {problem}", leaf.name));
    if parts.len() != leaf.offsets.len() {
        let (given, wanted) = (parts.len(), leaf.offsets.len());
        let example: Vec<String> = (1..=wanted).map(|value| value.to_string()).collect();
        return Err(wrong(format!(
            "{given} values were given, but {} has {wanted}; help: write --immediate {}={}",
            leaf.type_text,
            leaf.name,
            example.join(",")
        )));
    }
    for (part, offset) in parts.iter().zip(&leaf.offsets) {
        let scalar = encode(part, leaf.scalar).map_err(&wrong)?;
        let at = *offset as usize;
        bytes[at..at + scalar.len()].copy_from_slice(&scalar);
    }
    Ok(())
}

/// Parses a number of the type, and returns its bytes.
fn encode(text: &str, scalar: Scalar) -> Result<Vec<u8>, String> {
    let invalid = || format!("`{text}` is not a number of type {scalar}");
    if scalar.kind == ScalarKind::Float {
        return parse_float(text, scalar.width).ok_or_else(invalid)?.map_err(|largest| {
            format!(
                "`{text}` is not a finite {scalar} (the largest is {largest}); WGSL lets \
                 devices assume that floats are finite"
            )
        });
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse::<u64>(),
    };
    let value = sign * i128::from(value.map_err(|_| invalid())?);
    let bits = 8 * u32::from(scalar.width);
    let range = match scalar.kind {
        ScalarKind::Sint => -(1i128 << (bits - 1))..1i128 << (bits - 1),
        _ => 0..1i128 << bits,
    };
    if !range.contains(&value) {
        let (min, max) = (range.start, range.end - 1);
        return Err(format!("`{text}` is out of the range of {scalar}, {min} to {max}"));
    }
    Ok(value.to_le_bytes()[..scalar.width.into()].to_vec())
}

/// Parses a float of `width` bytes, and returns its bytes; `None` if the text is not a number. The
/// inner error, if the value is not finite, is the largest float of that width.
fn parse_float(text: &str, width: u8) -> Option<Result<Vec<u8>, String>> {
    let wide: f64 = text.parse().ok()?;
    let (finite, largest, bytes) = match width {
        2 => {
            let value = f16::from_f64(wide);
            (value.is_finite(), f16::MAX.to_string(), value.to_le_bytes().to_vec())
        }
        4 => {
            let value: f32 = text.parse().ok()?;
            (value.is_finite(), format!("{:e}", f32::MAX), value.to_le_bytes().to_vec())
        }
        8 => (wide.is_finite(), format!("{:e}", f64::MAX), wide.to_le_bytes().to_vec()),
        _ => return None,
    };
    Some(if finite { Ok(bytes) } else { Err(largest) })
}

#[cfg(test)]
mod tests {
    use scry_ir::Program;

    use super::*;

    fn encode_all(ty: &str, given: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        let source = format!(
            "struct Inner {{ k: i32, v: vec2f }}
             struct P {{ a: f32, n: u32, inner: Inner, m: mat2x2f }}
             var<immediate> p: {ty};
             @group(0) @binding(0) var<storage, read_write> out: array<u32>;
             @compute @workgroup_size(1) fn main() {{ let q = p; out[0] = 1; }}"
        );
        let program = Program::parse(&source).unwrap();
        let given: Vec<(String, String)> =
            given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        match immediate_bytes(&given, program.interface().immediates.as_ref()) {
            Ok(bytes) => Ok(bytes.expect("the kernel has immediates")),
            Err(Failure::Usage(text)) => Err(text),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn scalar_uses_the_variable_name() {
        assert_eq!(encode_all("f32", &[("p", "2.5")]).unwrap(), 2.5f32.to_le_bytes());
        assert_eq!(encode_all("i32", &[("p", "-2")]).unwrap(), (-2i32).to_le_bytes());
        assert_eq!(encode_all("u32", &[("p", "0xff")]).unwrap(), 255u32.to_le_bytes());
        assert_eq!(encode_all("vec2u", &[("p", "1, 2")]).unwrap(), [1, 0, 0, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn members_are_stored_at_their_offsets() {
        let given =
            [("m", "5,6,7,8"), ("n", "2"), ("inner.v", "3,4"), ("inner.k", "-1"), ("a", "1")];
        let bytes = encode_all("P", &given).unwrap();
        let float = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(float(0), 1.0);
        assert_eq!(bytes[4], 2);
        assert_eq!(bytes[8..12], [255; 4]);
        assert_eq!([16, 20, 24, 28, 32, 36].map(float), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    }

    #[test]
    fn missing_and_wrong_values_are_named() {
        let missing = encode_all("P", &[("a", "1")]).unwrap_err();
        assert!(missing.contains("`n` (u32), `inner.k` (i32)"), "{missing}");
        let unknown = encode_all("f32", &[("q", "1")]).unwrap_err();
        assert!(unknown.contains("`p` (f32)"), "{unknown}");
        let large = encode_all("f32", &[("p", "1e999")]).unwrap_err();
        assert!(large.contains("`1e999` is not a finite f32 (the largest is 3.4"), "{large}");
        let range = encode_all("u32", &[("p", "4294967296")]).unwrap_err();
        assert!(range.contains("out of the range of u32, 0 to 4294967295"), "{range}");
        for (ty, value) in [
            ("f32", "inf"),
            ("f32", "-1e39"),
            ("f32", "nan"),
            ("u32", "-1"),
            ("u32", "1.5"),
            ("u32", "4294967296"),
            ("i32", "2147483648"),
            ("f32", "one"),
            ("vec2f", "1"),
            ("f32", "1,2"),
        ] {
            assert!(encode_all(ty, &[("p", value)]).is_err(), "{ty} {value}");
        }
        assert!(encode_all("f32", &[("p", "1"), ("p", "2")]).unwrap_err().contains("is repeated"));
    }
}
