//! Conversion of loaded data to the initial contents of a kernel's buffers.

use super::slot::{Extent, Slot};
use crate::data::png::Pixels;
use crate::data::source::Stream;
use crate::data::{Array, Bytes, Dtype, Loaded, Shape, cast};
use crate::report::Failure;

/// The initial content of a buffer.
#[derive(Debug)]
pub struct InitialContent {
    /// The shape; [`Slot`] says what it counts.
    pub shape: Shape,
    /// The bytes; `None` stands for zeros.
    pub bytes: Option<Bytes>,
    /// Number of bytes.
    pub len: usize,
}

impl InitialContent {
    /// Returns zeros of a shape.
    pub fn zeros(slot: &Slot, shape: Shape) -> Result<Self, Failure> {
        let len = shape.bytes(slot.unit())?;
        check_size(slot, len, &shape)?;
        Ok(Self { shape, bytes: None, len })
    }
}

/// Converts loaded data to the buffer's type. `shape` is that of `--shape`; `argument` is the
/// option as the user typed it, for messages; `is_cast` is true if `--cast` permits lossy
/// conversions.
pub fn fit(
    slot: &Slot,
    loaded: Loaded,
    shape: Option<&Shape>,
    argument: &str,
    is_cast: bool,
) -> Result<InitialContent, Failure> {
    if shape.is_some() && !matches!(loaded, Loaded::Raw(_) | Loaded::Stream(_)) {
        return Err(Failure::usage(format!(
            "--shape {}: `{argument}` has its own shape; only outputs and .bin inputs accept \
             --shape",
            slot.name
        )));
    }
    match loaded {
        Loaded::Array(array) => from_array(slot, array, argument, is_cast),
        Loaded::Zeros(dtype, shape) => {
            if !is_cast {
                check_type(slot, dtype, argument)?;
            }
            InitialContent::zeros(slot, shape)
        }
        Loaded::Image(image) => {
            let pixels = Pixels::for_elements(slot.dtype, &slot.element_shape).ok_or_else(|| {
                Failure::usage(format!(
                    "`{argument}`: an image fits array<u32> (RGBA, 8 bits each), array<f32> (grey) \
                     and array<vec4<f32>> (RGBA), but `{}` is {}",
                    slot.name, slot.type_text
                ))
            })?;
            from_array(slot, image.array(pixels)?, argument, false)
        }
        Loaded::Raw(_) | Loaded::Stream(_) if is_cast => Err(Failure::usage(format!(
            "--cast {}: `{argument}` is bytes without a type; save it as .npy to convert it",
            slot.name
        ))),
        Loaded::Raw(bytes) => from_bytes(slot, bytes, shape, argument),
        Loaded::Stream(stream) => {
            from_bytes(slot, read_stream(slot, stream, shape, argument)?, shape, argument)
        }
    }
}

/// Reads a stream, up to the maximum size of the buffer.
fn read_stream(
    slot: &Slot,
    stream: Stream,
    shape: Option<&Shape>,
    argument: &str,
) -> Result<Bytes, Failure> {
    /// No device binds more bytes.
    const MAX_BINDING: u64 = u32::MAX as u64;
    let Slot { name, type_text, .. } = slot;
    let (limit, holder) = match (shape, slot.fixed_shape()) {
        (Some(shape), _) => (shape.bytes(slot.unit())? as u64, format!("--shape {name}={shape}")),
        (None, Some(shape)) => (shape.bytes(slot.unit())? as u64, format!("`{name}: {type_text}`")),
        (None, None) => (MAX_BINDING, "a buffer of a kernel".to_owned()),
    };
    let bytes = stream.read(limit).map_err(|e| Failure::Runtime(format!("`{argument}`: {e}")))?;
    bytes.ok_or_else(|| {
        Failure::usage(format!(
            "`{argument}` has more than the {limit} bytes of {holder}; help: end the stream there, \
             as with `head -c {limit}`"
        ))
    })
}

fn from_array(
    slot: &Slot,
    array: Array,
    argument: &str,
    is_cast: bool,
) -> Result<InitialContent, Failure> {
    if !is_cast {
        check_type(slot, array.dtype, argument)?;
    }
    let array = match slot.dtype {
        Some(wanted) if wanted != array.dtype => {
            let cast = cast::cast(&array, wanted);
            cast.map_err(|failure| out_of_range(slot, failure, argument, wanted))?
        }
        _ => array,
    };
    let len = array.bytes.len();
    check_size(slot, len, &array.shape)?;
    Ok(InitialContent { shape: array.shape, bytes: Some(array.bytes), len })
}

fn out_of_range(slot: &Slot, failure: Failure, argument: &str, wanted: Dtype) -> Failure {
    let (name, text) = (&slot.name, failure.into_text());
    Failure::Runtime(format!("`{argument}` with --cast {name}={wanted}: {text}"))
}

/// Rejects a type with values that the kernel's type cannot represent.
fn check_type(slot: &Slot, dtype: Dtype, argument: &str) -> Result<(), Failure> {
    let help = match slot.dtype {
        Some(wanted) if dtype.widens_to(wanted) => return Ok(()),
        Some(wanted) if argument.contains(&format!(":{dtype}:")) => {
            format!(
                "write {} instead",
                argument.replace(&format!(":{dtype}:"), &format!(":{wanted}:"))
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
        "`{argument}` holds {dtype}, but `{}` is {}; {help}",
        slot.name, slot.type_text
    )))
}

fn from_bytes(
    slot: &Slot,
    bytes: Bytes,
    shape: Option<&Shape>,
    argument: &str,
) -> Result<InitialContent, Failure> {
    let len = bytes.len();
    let inferred = || match slot.fixed_shape() {
        Some(shape) => shape,
        None => {
            Shape(vec![len as u64 / slot.stride.max(1)]).with_inner_dimensions(&slot.element_shape)
        }
    };
    let shape = shape.cloned().unwrap_or_else(inferred);
    check_size(slot, len, &shape)?;
    let wanted = shape.bytes(slot.unit())?;
    if wanted != len {
        return Err(Failure::usage(format!(
            "`{argument}` holds {len} bytes, but {shape} of {} are {wanted} bytes",
            slot.type_text
        )));
    }
    Ok(InitialContent { shape, bytes: Some(bytes), len })
}

/// Rejects sizes that do not fit the type.
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
