//! Writes the outputs of a run to files.

use std::borrow::Cow;
use std::io::{self, Write};

use super::plan::PlannedBuffer;
use super::results::FinishedOutput;
use crate::data::dtype::{Number, Value, Visitor};
use crate::data::npz::{self, Member};
use crate::data::png::{Depth, Pixels};
use crate::data::{Array, Bytes, Dtype, Format, Location, Shape, cast, file, npy, png};
use crate::report::{self, Failure};

/// Writes every output that has a file. The arrays of one archive are written together.
///
/// # Errors
/// [`Failure::Runtime`] if values are out of the range of the output type, or a file cannot be
/// written.
pub fn save(outputs: &[FinishedOutput]) -> Result<(), Failure> {
    let files: Vec<(&Location, ConvertedOutput<'_>)> = outputs
        .iter()
        .filter_map(|output| Some((output.location()?, output)))
        .map(|(location, output)| Ok((location, ConvertedOutput::new(location, output)?)))
        .collect::<Result<_, Failure>>()?;
    for (i, (location, output)) in files.iter().enumerate() {
        let shares_output =
            |(other, _): &&(&Location, ConvertedOutput<'_>)| share_output(location, other);
        if files[..i].iter().any(|other| shares_output(&other)) {
            continue;
        }
        let archive: Vec<&ConvertedOutput<'_>> =
            files.iter().filter(shares_output).map(|(_, output)| output).collect();
        let encode = &mut |out: &mut dyn Write| match location.format {
            Format::Npz => write_archive(out, &archive),
            _ => output.encode(out, location.format),
        };
        match &location.path {
            Some(path) => file::write(path, encode)?,
            None => {
                let mut bytes = Vec::new();
                encode(&mut bytes).map_err(|error| Failure::Runtime(error.to_string()))?;
                report::print_bytes(&bytes)?;
            }
        }
    }
    Ok(())
}

/// Returns whether both are the same output, or arrays of one archive.
fn share_output(a: &Location, b: &Location) -> bool {
    let archives = a.format == Format::Npz && b.format == Format::Npz;
    match (&a.path, &b.path) {
        (Some(one), Some(other)) if archives => file::is_same(one, other),
        _ => a == b,
    }
}

fn write_archive(out: &mut dyn Write, outputs: &[&ConvertedOutput<'_>]) -> io::Result<()> {
    let members: Vec<Member<'_>> = outputs
        .iter()
        .map(|output| {
            let name = output.location.member.as_deref().unwrap_or(&output.planned.slot.name);
            let (shape, bytes) = (&output.planned.data.shape, output.bytes.as_slice());
            Ok(Member { name, dtype: output.dtype.ok_or_else(format_mismatch)?, shape, bytes })
        })
        .collect::<io::Result<_>>()?;
    npz::write(out, &members)
}

/// Returns the error for a combination that [`plan::make`](super::plan::make) rejects earlier.
fn format_mismatch() -> io::Error {
    io::Error::other("the format does not fit the data")
}

/// An output, converted to the element type of its file.
struct ConvertedOutput<'a> {
    location: &'a Location,
    planned: &'a PlannedBuffer,
    dtype: Option<Dtype>,
    bytes: Cow<'a, Bytes>,
}

impl<'a> ConvertedOutput<'a> {
    fn new(location: &'a Location, output: &'a FinishedOutput) -> Result<Self, Failure> {
        let planned = &output.planned;
        let converted = |dtype, bytes| Self { location, planned, dtype, bytes };
        // Samples of an image are scaled, not converted.
        let cast = output.cast().filter(|_| location.format != Format::Png);
        let (Some(from), Some(to)) = (planned.slot.dtype, cast) else {
            return Ok(converted(planned.slot.dtype, Cow::Borrowed(&output.bytes)));
        };
        let (shape, bytes) = (planned.data.shape.clone(), output.bytes.clone());
        let array = cast::cast(&Array { dtype: from, shape, bytes }, to).map_err(|failure| {
            let (name, problem) = (&planned.slot.name, failure.into_text());
            Failure::Runtime(format!("--out {name}={location} with --cast {name}={to}: {problem}"))
        })?;
        Ok(converted(Some(to), Cow::Owned(array.bytes)))
    }

    fn encode(&self, out: &mut dyn Write, format: Format) -> io::Result<()> {
        let PlannedBuffer { slot, data, output } = self.planned;
        match format {
            Format::Bin => out.write_all(self.bytes.as_slice()),
            Format::Npy | Format::Npz => {
                let dtype = self.dtype.ok_or_else(format_mismatch)?;
                npy::write(out, dtype, &data.shape, self.bytes.as_slice())
            }
            Format::Png => {
                let pixels = Pixels::for_elements(slot.dtype, &slot.element_shape)
                    .ok_or_else(format_mismatch)?;
                let depth = match output.as_ref().and_then(|output| output.cast) {
                    Some(Dtype::U16) => Depth::Sixteen,
                    _ => Depth::Eight,
                };
                let size = self.planned.image_size().ok_or_else(format_mismatch)?;
                png::write(out, (pixels, depth), size, &self.bytes).map_err(io::Error::other)
            }
        }
    }
}

/// The NaN and infinities among the values of an image, which samples cannot represent.
pub struct NonFiniteValues {
    /// Number of such values.
    pub count: u64,
    /// Index of the first such value, outermost dimension first.
    pub index: Vec<u64>,
    /// The first such value, as text.
    value: String,
}

/// Counts the values of an output that its .png cannot represent; `None` if there are none.
pub fn count_non_finite(output: &FinishedOutput) -> Option<NonFiniteValues> {
    let location = output.location()?;
    let dtype = output.planned.slot.dtype.filter(|dtype| dtype.is_float())?;
    if location.format != Format::Png {
        return None;
    }
    let shape = &output.planned.data.shape;
    dtype.visit(Search { bytes: &output.bytes, shape })
}

/// Prints a note for each .png with values that it cannot represent. Samples are values from 0 to
/// 1, scaled.
pub fn note_non_finite(outputs: &[FinishedOutput]) {
    for output in outputs {
        let (Some(location), Some(non_finite)) = (output.location(), count_non_finite(output))
        else {
            continue;
        };
        let NonFiniteValues { count, index, value } = non_finite;
        let [row, column, ..] = index[..] else { continue };
        let name = &output.planned.slot.name;
        let total = output.planned.data.shape.count().unwrap_or(0);
        report::note(&format!(
            "note: --out {name}={location}: {count} of {total} values are not finite; the first is \
             {value} at column {column}, row {row}; NaN and -inf are written as 0, inf as 1"
        ));
    }
}

struct Search<'a> {
    bytes: &'a Bytes,
    shape: &'a Shape,
}

impl Visitor for Search<'_> {
    type Output = Option<NonFiniteValues>;

    fn visit<T: Value>(self) -> Self::Output {
        let is_non_finite =
            |value: &T| matches!(value.number(), Number::Float(f) if !f.is_finite());
        let values = self.bytes.values::<T>();
        let first = values.iter().position(is_non_finite)?;
        let count = values[first..].iter().filter(|value| is_non_finite(value)).count() as u64;
        let index = cast::index_at(first as u64, self.shape);
        Some(NonFiniteValues { count, index, value: values[first].text() })
    }
}
