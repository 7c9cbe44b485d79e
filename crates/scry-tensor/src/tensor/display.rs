//! Printing, with NumPy's rules: up to eight digits after the point, as few as identify the
//! values; columns aligned; long axes abbreviated.

use std::fmt;

use half::{bf16, f16};

use super::Tensor;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Call, Result};
use crate::shape::Layout;
use crate::stored::Stored;
use crate::waiting::{Waiting, now};

/// Tensors with more elements are abbreviated.
const THRESHOLD: usize = 1000;
/// Elements at each end of an abbreviated axis.
const EDGE: usize = 3;
/// The width of a line.
const WIDTH: usize = 75;
/// Digits after the point.
const PRECISION: usize = 8;

/// Prints the elements as NumPy does. Waits for the work that computes them. Quantised weights are
/// not printed, but their shape; neither are nodes of graphs.
///
/// ```
/// use scry_tensor::{Device, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::new([[1.0f32, 2.5], [-3.0, 0.125]], &gpu)?;
/// assert_eq!(x.to_string(), "[[ 1.     2.5  ]\n [-3.     0.125]]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match now(self.printed(Call::new("Tensor::fmt"), Waiting::Blocking)) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

impl Tensor {
    /// Returns the elements as text, as `Display` and `to_string` do, without blocking a thread.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1.0f32, 2.5], &gpu)?;
    /// assert_eq!(x.to_string_async().await?, "[1.  2.5]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[track_caller]
    pub fn to_string_async(&self) -> impl Future<Output = Result<String>> + use<> {
        let (call, tensor) = (Call::new("Tensor::to_string_async"), self.clone());
        async move { tensor.printed(call, Waiting::Awaiting).await }
    }

    async fn printed(&self, call: Call, waiting: Waiting) -> Result<String> {
        if self.node().is_some() {
            return Ok(format!("[node of a graph: {} of shape {}]", self.dtype(), self.shape()));
        }
        if self.dtype().is_quantized() {
            return Ok(format!("[{} weights of shape {}]", self.dtype(), self.shape()));
        }
        let (texts, shown) = self.texts(call, waiting).await?;
        Ok(Printer { tensor: self, texts, shown }.print())
    }
}

/// The axes of which only the ends are shown.
type Abbreviated = Vec<bool>;

impl Tensor {
    /// Returns the texts of the shown elements, of equal width.
    async fn texts(&self, call: Call, waiting: Waiting) -> Result<(Vec<String>, Abbreviated)> {
        let stored = self.stored(call)?;
        let is_long = self.numel() > THRESHOLD;
        let shown: Abbreviated =
            self.shape().iter().map(|size| is_long && *size > 2 * EDGE).collect();
        let texts = match self.dtype() {
            DType::F32 => {
                let elements = stored.ends::<f32>(call, &shown, waiting).await?;
                floats(&elements, f64::from, |x| x as f32 as f64)
            }
            DType::F16 => {
                let elements = stored.ends::<f16>(call, &shown, waiting).await?;
                floats(&elements, f64::from, |x| f16::from_f64(x).to_f64())
            }
            DType::BF16 => {
                let elements = stored.ends::<bf16>(call, &shown, waiting).await?;
                floats(&elements, f64::from, |x| bf16::from_f64(x).to_f64())
            }
            DType::I32 => {
                let elements = stored.ends::<i32>(call, &shown, waiting).await?;
                elements.iter().map(ToString::to_string).collect()
            }
            DType::U32 => {
                let elements = stored.ends::<u32>(call, &shown, waiting).await?;
                elements.iter().map(ToString::to_string).collect()
            }
            _ => {
                let elements = stored.ends::<bool>(call, &shown, waiting).await?;
                elements.iter().map(|it| if *it { "True" } else { "False" }.to_owned()).collect()
            }
        };
        Ok((align(texts, self.rank()), shown))
    }
}

impl Stored {
    /// Reads the elements at the ends of abbreviated axes in row-major order. Only these are
    /// copied, however large the tensor is.
    async fn ends<T: Element>(
        &self,
        call: Call,
        shown: &[bool],
        waiting: Waiting,
    ) -> Result<Vec<T>> {
        let mut corners = vec![self.layout.clone()];
        let abbreviated: Vec<usize> = (0..shown.len()).filter(|axis| shown[*axis]).collect();
        for axis in &abbreviated {
            let last = (self.shape()[*axis] - EDGE) as i64;
            let both = |it: Layout| [0, last].map(|first| it.slice(*axis, first, 1, EDGE));
            corners = corners.into_iter().flat_map(both).collect();
        }
        let mut parts = Vec::with_capacity(corners.len());
        for corner in corners {
            parts.push(self.with_layout(corner).read_by::<T>(call, waiting).await?);
        }
        // Joins pairs along the last abbreviated axis, then along those before it.
        for axis in abbreviated.iter().rev() {
            let outer: usize = self.shape()[..*axis]
                .iter()
                .zip(shown)
                .map(|(size, shown)| if *shown { EDGE } else { *size })
                .product();
            parts = parts.chunks_exact(2).map(|pair| joined(pair, outer)).collect();
        }
        Ok(parts.pop().unwrap_or_default())
    }
}

/// Joins two parts of as many rows.
fn joined<T: Element>(pair: &[Vec<T>], rows: usize) -> Vec<T> {
    let columns = (pair[0].len() / rows.max(1)).max(1);
    let rows = pair[0].chunks(columns).zip(pair[1].chunks(columns));
    rows.flat_map(|(first, last)| [first, last].concat()).collect()
}

/// Pads texts on the left to equal width, except for a single number.
fn align(texts: Vec<String>, rank: usize) -> Vec<String> {
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    if rank == 0 {
        return texts.into_iter().map(|text| with_fraction(text.trim())).collect();
    }
    texts.into_iter().map(|text| format!("{text:>width$}")).collect()
}

/// Returns a single number as NumPy prints it: `1.0` instead of `1.`.
fn with_fraction(text: &str) -> String {
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

/// Returns floats as texts, with aligned points. `round` rounds to the element type.
fn floats<T: Copy>(values: &[T], wide: fn(T) -> f64, round: fn(f64) -> f64) -> Vec<String> {
    let values: Vec<f64> = values.iter().map(|value| wide(*value)).collect();
    let magnitudes = values.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x != 0.0);
    let (smallest, largest) =
        magnitudes.fold((f64::INFINITY, 0f64), |(low, high), x| (low.min(x), high.max(x)));
    let is_scientific =
        largest >= 1e8 || (largest > 0.0 && (smallest < 1e-4 || largest / smallest > 1000.0));
    let digits = |x: &f64| match is_scientific {
        true => (0..PRECISION).find(|n| round(parse(&format!("{x:.n$e}"))) == *x),
        false => (0..PRECISION).find(|n| round(parse(&format!("{x:.n$}"))) == *x),
    };
    let finite = values.iter().filter(|x| x.is_finite());
    let most = finite.map(|x| digits(x).unwrap_or(PRECISION)).max().unwrap_or(0);
    let text = |x: &f64| match x {
        x if x.is_nan() => "nan".to_owned(),
        x if x.is_infinite() => if *x > 0.0 { "inf" } else { "-inf" }.to_owned(),
        x if is_scientific => scientific(*x, most),
        x => fixed(*x, most),
    };
    values.iter().map(text).collect()
}

fn parse(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// Returns a number with its trailing zeros replaced by blanks.
fn fixed(x: f64, digits: usize) -> String {
    let text = format!("{x:.digits$}");
    let text = if digits == 0 { format!("{text}.") } else { text };
    let trimmed = text.trim_end_matches('0');
    format!("{trimmed}{}", " ".repeat(text.len() - trimmed.len()))
}

/// Returns a number with an exponent of at least two digits: `1.5e-10`.
fn scientific(x: f64, digits: usize) -> String {
    let text = format!("{x:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits == 0 { "." } else { "" };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}{point}e{sign}{exponent:0>2}")
}

struct Printer<'p> {
    tensor: &'p Tensor,
    texts: Vec<String>,
    shown: Abbreviated,
}

impl Printer<'_> {
    fn print(&self) -> String {
        if self.tensor.numel() == 0 {
            return "[]".to_owned();
        }
        let mut texts = self.texts.iter();
        self.axis(0, &mut texts)
    }

    /// Prints the next elements from an axis on.
    fn axis(&self, axis: usize, texts: &mut std::slice::Iter<'_, String>) -> String {
        let shape = self.tensor.shape();
        let Some(size) = shape.get(axis) else {
            return texts.next().cloned().unwrap_or_default();
        };
        let count = if self.shown[axis] { 2 * EDGE } else { *size };
        let mut parts: Vec<String> = (0..count).map(|_| self.axis(axis + 1, texts)).collect();
        if self.shown[axis] {
            parts.insert(EDGE, "...".to_owned());
        }
        let inner_axes = shape.rank() - axis - 1;
        if inner_axes == 0 {
            return format!("[{}]", self.row(&parts));
        }
        let separator = format!("{}{}", "\n".repeat(inner_axes), " ".repeat(axis + 1));
        format!("[{}]", parts.join(&separator))
    }

    /// Returns the elements of a row, in lines of limited width.
    fn row(&self, parts: &[String]) -> String {
        let indent = self.tensor.rank();
        let mut row = String::new();
        let mut column = indent;
        for (position, part) in parts.iter().enumerate() {
            if position > 0 && column + 1 + part.len() + 1 > WIDTH {
                row.push('\n');
                row.push_str(&" ".repeat(indent));
                column = indent;
            } else if position > 0 {
                row.push(' ');
                column += 1;
            }
            row.push_str(part);
            column += part.len();
        }
        row
    }
}
