//! Conversion of data to the buffers of a kernel.

use super::slot::{Extent, Slot};
use crate::data::png::Pixels;
use crate::data::source::Stream;
use crate::data::{Array, Bytes, Dtype, Loaded, Shape, cast};
use crate::report::Failure;

/// The initial content of a buffer.
#[derive(Debug)]
pub struct Data {
    /// The shape, in the slot's units.
    pub shape: Shape,
    /// The bytes; `None` stands for zeros.
    pub bytes: Option<Bytes>,
    /// Number of bytes.
    pub len: usize,
}

impl Data {
    /// Returns zeros of that shape.
    pub fn zeros(slot: &Slot, shape: Shape) -> Result<Self, Failure> {
        let len = shape.bytes(slot.unit())?;
        check_size(slot, len, &shape)?;
        Ok(Self { shape, bytes: None, len })
    }
}

/// Converts loaded data to the buffer's type. `shape` is that of `--shape`; `typed` is the option
/// as typed; `converted` is true if `--cast` permits lossy conversions.
pub fn fit(
    slot: &Slot,
    loaded: Loaded,
    shape: Option<&Shape>,
    typed: &str,
    converted: bool,
) -> Result<Data, Failure> {
    if shape.is_some() && !matches!(loaded, Loaded::Raw(_) | Loaded::Stream(_)) {
        return Err(Failure::usage(format!(
            "--shape {}: `{typed}` has its own shape; only outputs and .bin inputs accept --shape",
            slot.name
        )));
    }
    match loaded {
        Loaded::Array(array) => with_type(slot, array, typed, converted),
        Loaded::Zeros(dtype, shape) => {
            if !converted {
                check_type(slot, dtype, typed)?;
            }
            Data::zeros(slot, shape)
        }
        Loaded::Image(image) => {
            let pixels = Pixels::for_elements(slot.dtype, &slot.inner).ok_or_else(|| {
                Failure::usage(format!(
                    "`{typed}`: an image fits array<u32> (RGBA, 8 bits each), array<f32> (grey) \
                     and array<vec4<f32>> (RGBA), but `{}` is {}",
                    slot.name, slot.type_text
                ))
            })?;
            with_type(slot, image.array(pixels)?, typed, false)
        }
        Loaded::Raw(_) | Loaded::Stream(_) if converted => Err(Failure::usage(format!(
            "--cast {}: `{typed}` is bytes without a type; save it as .npy to convert it",
            slot.name
        ))),
        Loaded::Raw(bytes) => raw(slot, bytes, shape, typed),
        Loaded::Stream(stream) => raw(slot, read(slot, stream, shape, typed)?, shape, typed),
    }
}

/// Reads a stream, up to the maximum size of the buffer.
fn read(slot: &Slot, stream: Stream, shape: Option<&Shape>, typed: &str) -> Result<Bytes, Failure> {
    /// The maximum binding of every device.
    const MAX_BINDING: u64 = u32::MAX as u64;
    let Slot { name, type_text, .. } = slot;
    let (limit, holder) = match (shape, slot.fixed_shape()) {
        (Some(shape), _) => (shape.bytes(slot.unit())? as u64, format!("--shape {name}={shape}")),
        (None, Some(shape)) => (shape.bytes(slot.unit())? as u64, format!("`{name}: {type_text}`")),
        (None, None) => (MAX_BINDING, "a buffer of a kernel".to_owned()),
    };
    let bytes = stream.read(limit).map_err(|e| Failure::Runtime(format!("`{typed}`: {e}")))?;
    bytes.ok_or_else(|| {
        Failure::usage(format!(
            "`{typed}` has more than the {limit} bytes of {holder}; help: end the stream there, \
             as with `head -c {limit}`"
        ))
    })
}

fn with_type(slot: &Slot, array: Array, typed: &str, converted: bool) -> Result<Data, Failure> {
    if !converted {
        check_type(slot, array.dtype, typed)?;
    }
    let array = match slot.dtype {
        Some(wanted) if wanted != array.dtype => {
            let cast = cast::cast(&array, wanted);
            cast.map_err(|failure| out_of_range(slot, failure, typed, wanted))?
        }
        _ => array,
    };
    let len = array.bytes.len();
    check_size(slot, len, &array.shape)?;
    Ok(Data { shape: array.shape, bytes: Some(array.bytes), len })
}

fn out_of_range(slot: &Slot, failure: Failure, typed: &str, wanted: Dtype) -> Failure {
    let (name, text) = (&slot.name, failure.into_text());
    Failure::Runtime(format!("`{typed}` with --cast {name}={wanted}: {text}"))
}

/// Refuses a type with values that the kernel's type cannot represent.
fn check_type(slot: &Slot, dtype: Dtype, typed: &str) -> Result<(), Failure> {
    let help = match slot.dtype {
        Some(wanted) if dtype.widens_to(wanted) => return Ok(()),
        Some(wanted) if typed.contains(&format!(":{dtype}:")) => {
            format!(
                "write {} instead",
                typed.replace(&format!(":{dtype}:"), &format!(":{wanted}:"))
            )
        }
        Some(wanted) => format!(
            "convert it with --cast {}={wanted}, or save it with `array.astype(\"{}\")`",
            slot.name,
            wanted.numpy_name()
        ),
        None => "its scalars are of several types, so give its bytes as a .bin file".to_owned(),
    };
    Err(Failure::usage(format!(
        "`{typed}` holds {dtype}, but `{}` is {}; {help}",
        slot.name, slot.type_text
    )))
}

fn raw(slot: &Slot, bytes: Bytes, shape: Option<&Shape>, typed: &str) -> Result<Data, Failure> {
    let len = bytes.len();
    let natural = || match slot.fixed_shape() {
        Some(shape) => shape,
        None => Shape(vec![len as u64 / slot.stride.max(1)]).with_inner(&slot.inner),
    };
    let shape = shape.cloned().unwrap_or_else(natural);
    check_size(slot, len, &shape)?;
    let wanted = shape.bytes(slot.unit())?;
    if wanted != len {
        return Err(Failure::usage(format!(
            "`{typed}` holds {len} bytes, but {shape} of {} are {wanted} bytes",
            slot.type_text
        )));
    }
    Ok(Data { shape, bytes: Some(bytes), len })
}

/// Refuses sizes that do not fit the type.
fn check_size(slot: &Slot, len: usize, shape: &Shape) -> Result<(), Failure> {
    let Slot { name, type_text, stride, .. } = slot;
    let wrong = |problem: String| {
        let problem = format!("`{name}` is {type_text}, but {shape} are {len} bytes: {problem}");
        Err(Failure::usage(problem))
    };
    let bytes = len as u64;
    match &slot.extent {
        Extent::Fixed(outer) => {
            let wanted = Shape(outer.clone()).bytes(*stride)? as u64;
            if bytes != wanted {
                return wrong(format!("the type has {wanted} bytes"));
            }
        }
        Extent::Runtime if !bytes.is_multiple_of(*stride) => {
            return wrong(format!("this is not a multiple of the element size of {stride} bytes"));
        }
        Extent::Tail(offset) if bytes <= *offset => {
            return wrong(format!("the members before the array alone are {offset} bytes"));
        }
        Extent::Runtime | Extent::Tail(_) => {}
    }
    Ok(())
}
