//! Windows on the CPU device: which positions of a window an element of the input belongs to.

use std::ops::Range;

/// An axis of an image, along which windows move.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowAxis {
    pub(super) input: usize,
    pub(super) output: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
    pub(super) dilation: usize,
}

impl WindowAxis {
    /// Returns the outputs for which an element of the window is inside of the input, and the input
    /// of the first of them.
    pub(super) fn inside(&self, tap: usize) -> (Range<usize>, usize) {
        // The input of an output is `output * stride + offset - padding`.
        let offset = tap * self.dilation;
        let first = self.padding.saturating_sub(offset).div_ceil(self.stride);
        let end = (self.input + self.padding).saturating_sub(offset).div_ceil(self.stride);
        let end = end.min(self.output);
        if first >= end {
            return (0..0, 0);
        }
        (first..end, first * self.stride + offset - self.padding)
    }
}

/// Calls a function with each element of a row of results and the element of the input that an
/// element of its window is.
pub(super) fn for_each_inside(
    axis: &WindowAxis,
    tap: usize,
    (x, y): (&[f32], &mut [f32]),
    function: impl Fn(&mut f32, f32),
) {
    let (inside, start) = axis.inside(tap);
    if inside.is_empty() {
        return;
    }
    let (x, y) = (&x[start..], &mut y[inside]);
    match axis.stride {
        // Vectors of neighbours.
        1 => y.iter_mut().zip(x).for_each(|(y, x)| function(y, *x)),
        stride => y.iter_mut().zip(x.iter().step_by(stride)).for_each(|(y, x)| function(y, *x)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inside_of_a_window_matches_its_definition() {
        for code in 0..7 * 3 * 4 * 3 * 3u32 {
            let digit = |by: u32, base: u32| (code / by % base) as usize;
            let (input, stride, padding) = (digit(1, 7), 1 + digit(7, 3), digit(21, 4));
            let (dilation, kernel) = (1 + digit(84, 3), 1 + digit(252, 3));
            let Some(rest) = (input + 2 * padding).checked_sub(dilation * (kernel - 1) + 1) else {
                continue;
            };
            let axis = WindowAxis { input, output: rest / stride + 1, stride, padding, dilation };
            for tap in 0..kernel {
                let at = |out: usize| (out * stride + tap * dilation).checked_sub(padding);
                let expected: Vec<_> =
                    (0..axis.output).filter(|out| at(*out).is_some_and(|at| at < input)).collect();
                let (inside, start) = axis.inside(tap);
                assert_eq!(inside.clone().collect::<Vec<_>>(), expected, "{axis:?}, {tap}");
                let first = expected.first().and_then(|out| at(*out));
                assert_eq!(start, first.unwrap_or(0), "{axis:?}, {tap}");
            }
        }
    }
}
