//! The size of a launch: that of `-n`, or else inferred from the outputs.

use super::plan::PlannedBuffer;
use super::slot::Extent;
use crate::args::Counts;
use crate::data::Shape;
use crate::report::Failure;

/// Returns the number of invocations along x, y and z.
pub fn invocations(
    given: Option<&Counts>,
    buffers: &[PlannedBuffer],
    workgroup_size: [u32; 3],
) -> Result<[u64; 3], Failure> {
    if let Some(Counts(axes)) = given {
        return Ok(std::array::from_fn(|axis| axes.get(axis).copied().unwrap_or(1)));
    }
    let is_runtime_sized = |planned: &&PlannedBuffer| planned.slot.extent == Extent::Runtime;
    // Outputs (--out, --inout) determine the count; without any, all buffers that the kernel
    // writes.
    let outputs: Vec<&PlannedBuffer> =
        buffers.iter().filter(|b| b.output.is_some()).filter(is_runtime_sized).collect();
    let written: Vec<&PlannedBuffer> =
        buffers.iter().filter(|b| b.slot.is_written).filter(is_runtime_sized).collect();
    let candidates = if outputs.is_empty() { written } else { outputs };
    let mut inferred: Option<(&str, [u64; 3])> = None;
    for planned in candidates {
        let name = planned.slot.name.as_str();
        let count = from_shape(name, &planned.elements(), workgroup_size)?;
        match inferred {
            Some((first, other)) if other != count => {
                return Err(Failure::usage(format!(
                    "cannot infer the number of invocations: `{first}` suggests {}, `{name}` {}; \
                     set it with -n",
                    text(other),
                    text(count)
                )));
            }
            _ => inferred = Some((name, count)),
        }
    }
    inferred.map(|(_, count)| count).ok_or_else(|| {
        Failure::usage(
            "cannot infer the number of invocations: no output is a runtime-sized array; set it \
             with -n, such as -n 1000 or -n 512x512",
        )
    })
}

/// Returns the number of invocations along x, y and z, one per element: the shape reversed, since
/// its last dimension is x. With a one-dimensional workgroup, all elements are along x.
fn from_shape(name: &str, elements: &Shape, workgroup_size: [u32; 3]) -> Result<[u64; 3], Failure> {
    let axes = match workgroup_size {
        [_, 1, 1] => 1,
        [_, _, 1] => 2,
        _ => 3,
    };
    let mut count = [1; 3];
    if axes == 1 {
        count[0] = elements.count().unwrap_or(u64::MAX);
        return Ok(count);
    }
    if elements.0.len() != axes {
        let example = if axes == 2 { "WIDTHxHEIGHT" } else { "XxYxZ" };
        return Err(Failure::usage(format!(
            "cannot infer the number of invocations: the workgroup is {axes}-D, but `{name}` has \
             the shape {elements}; set it with -n {example}, or give `{name}` {axes} dimensions"
        )));
    }
    for (axis, dim) in count.iter_mut().zip(elements.0.iter().rev()) {
        *axis = *dim;
    }
    Ok(count)
}

/// Formats a number of invocations by axis: `1000`, `64 wide × 48 high`.
pub fn text([x, y, z]: [u64; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x} wide × {y} high"),
        _ => format!("{x} wide × {y} high × {z} deep"),
    }
}

/// Formats a number of invocations with its total: `1000 invocations`,
/// `64 wide × 48 high = 3072 invocations`.
pub fn launch_text(count: [u64; 3]) -> String {
    let total = count.iter().try_fold(1u64, |total, axis| total.checked_mul(*axis));
    match (&count[1..], total) {
        ([1, 1], _) | (_, None) => format!("{} invocations", text(count)),
        (_, Some(total)) => format!("{} = {total} invocations", text(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_wide_high_and_deep() {
        assert_eq!(launch_text([1000, 1, 1]), "1000 invocations");
        assert_eq!(launch_text([64, 48, 1]), "64 wide × 48 high = 3072 invocations");
        assert_eq!(text([4, 5, 6]), "4 wide × 5 high × 6 deep");
        assert_eq!(launch_text([1, 1, 3]), "1 wide × 1 high × 3 deep = 3 invocations");
        let beyond = launch_text([u64::MAX, 2, 1]);
        assert_eq!(beyond, "18446744073709551615 wide × 2 high invocations");
    }

    #[test]
    fn shapes_become_axes_in_reverse() {
        let count = |dims: &[u64], workgroup| from_shape("x", &Shape(dims.to_vec()), workgroup);
        assert_eq!(count(&[1000], [64, 1, 1]).unwrap(), [1000, 1, 1]);
        assert_eq!(count(&[10, 20], [64, 1, 1]).unwrap(), [200, 1, 1]);
        assert_eq!(count(&[480, 640], [16, 16, 1]).unwrap(), [640, 480, 1]);
        assert_eq!(count(&[480, 640], [1, 16, 1]).unwrap(), [640, 480, 1]);
        assert_eq!(count(&[2, 3, 4], [4, 4, 4]).unwrap(), [4, 3, 2]);
        assert!(count(&[1000], [16, 16, 1]).is_err());
        assert!(count(&[2, 3, 4], [16, 16, 1]).is_err());
    }
}
