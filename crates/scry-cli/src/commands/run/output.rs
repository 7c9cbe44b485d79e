//! The outputs of a run, written to their files.

use std::borrow::Cow;
use std::io::{self, Write};

use super::plan::Planned;
use super::results::Finished;
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
pub fn save(finished: &[Finished]) -> Result<(), Failure> {
    let files: Vec<(&Location, Ready<'_>)> = finished
        .iter()
        .filter_map(|finished| Some((finished.location()?, finished)))
        .map(|(location, finished)| Ok((location, Ready::new(location, finished)?)))
        .collect::<Result<_, Failure>>()?;
    for (i, (location, ready)) in files.iter().enumerate() {
        let same = |(other, _): &&(&Location, Ready<'_>)| is_same_file(location, other);
        if files[..i].iter().any(|other| same(&other)) {
            continue;
        }
        let archive: Vec<&Ready<'_>> = files.iter().filter(same).map(|(_, ready)| ready).collect();
        let encode = &mut |out: &mut dyn Write| match location.format {
            Format::Npz => write_archive(out, &archive),
            _ => ready.encode(out, location.format),
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
fn is_same_file(a: &Location, b: &Location) -> bool {
    let archives = a.format == Format::Npz && b.format == Format::Npz;
    match (&a.path, &b.path) {
        (Some(one), Some(other)) if archives => file::same(one, other),
        _ => a == b,
    }
}

fn write_archive(out: &mut dyn Write, outputs: &[&Ready<'_>]) -> io::Result<()> {
    let members: Vec<Member<'_>> = outputs
        .iter()
        .map(|ready| {
            let name = ready.location.member.as_deref().unwrap_or(&ready.planned.slot.name);
            let (shape, bytes) = (&ready.planned.data.shape, ready.bytes.as_slice());
            Ok(Member { name, dtype: ready.dtype.ok_or_else(format_mismatch)?, shape, bytes })
        })
        .collect::<io::Result<_>>()?;
    npz::write(out, &members)
}

/// Returns an error that [`plan::make`](super::plan::make) has already excluded.
fn format_mismatch() -> io::Error {
    io::Error::other("the format does not fit the data")
}

/// An output, converted to the element type of its file.
struct Ready<'a> {
    location: &'a Location,
    planned: &'a Planned,
    dtype: Option<Dtype>,
    bytes: Cow<'a, Bytes>,
}

impl<'a> Ready<'a> {
    fn new(location: &'a Location, finished: &'a Finished) -> Result<Self, Failure> {
        let planned = &finished.planned;
        let ready = |dtype, bytes| Self { location, planned, dtype, bytes };
        // Samples of an image are scaled, not converted.
        let cast = finished.cast().filter(|_| location.format != Format::Png);
        let (Some(from), Some(to)) = (planned.slot.dtype, cast) else {
            return Ok(ready(planned.slot.dtype, Cow::Borrowed(&finished.bytes)));
        };
        let (shape, bytes) = (planned.data.shape.clone(), finished.bytes.clone());
        let array = cast::cast(&Array { dtype: from, shape, bytes }, to).map_err(|failure| {
            let (name, problem) = (&planned.slot.name, failure.into_text());
            Failure::Runtime(format!("--out {name}={location} with --cast {name}={to}: {problem}"))
        })?;
        Ok(ready(Some(to), Cow::Owned(array.bytes)))
    }

    fn encode(&self, out: &mut dyn Write, format: Format) -> io::Result<()> {
        let Planned { slot, data, output } = self.planned;
        match format {
            Format::Bin => out.write_all(self.bytes.as_slice()),
            Format::Npy | Format::Npz => {
                let dtype = self.dtype.ok_or_else(format_mismatch)?;
                npy::write(out, dtype, &data.shape, self.bytes.as_slice())
            }
            Format::Png => {
                let pixels =
                    Pixels::for_elements(slot.dtype, &slot.inner).ok_or_else(format_mismatch)?;
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

/// Values of an image that a sample cannot represent: NaN and infinities.
pub struct NotFinite {
    /// Number of such values.
    pub count: u64,
    /// Index of the first, outermost dimension first.
    pub index: Vec<u64>,
    /// The first such value, as text.
    value: String,
}

/// Returns the values of an output that its .png cannot represent, if any.
pub fn not_finite(finished: &Finished) -> Option<NotFinite> {
    let location = finished.location()?;
    let dtype = finished.planned.slot.dtype.filter(|dtype| dtype.is_float())?;
    if location.format != Format::Png {
        return None;
    }
    let shape = &finished.planned.data.shape;
    dtype.visit(Search { bytes: &finished.bytes, shape })
}

/// Reports the values that a .png cannot represent.
pub fn note_not_finite(finished: &[Finished]) {
    for finished in finished {
        let (Some(location), Some(lost)) = (finished.location(), not_finite(finished)) else {
            continue;
        };
        let NotFinite { count, index, value } = lost;
        let [row, column, ..] = index[..] else { continue };
        let name = &finished.planned.slot.name;
        let all = finished.planned.data.shape.count().unwrap_or(0);
        report::note(&format!(
            "note: --out {name}={location}: {count} of {all} values are not finite; the first is \
             {value} at column {column}, row {row}; NaN and -inf are written as 0, inf as 1"
        ));
    }
}

struct Search<'a> {
    bytes: &'a Bytes,
    shape: &'a Shape,
}

impl Visitor for Search<'_> {
    type Output = Option<NotFinite>;

    fn visit<T: Value>(self) -> Self::Output {
        let is_lost = |value: &T| matches!(value.number(), Number::Float(f) if !f.is_finite());
        let values = self.bytes.values::<T>();
        let first = values.iter().position(is_lost)?;
        let count = values[first..].iter().filter(|value| is_lost(value)).count() as u64;
        let index = cast::index(first as u64, self.shape);
        Some(NotFinite { count, index, value: values[first].text() })
    }
}
