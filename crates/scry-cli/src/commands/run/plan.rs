//! Buffers, parameters and the size of the launch, determined before a device is opened.

use std::collections::HashMap;

use scry_gpu::Device;
use scry_ir::{BindingInfo, Interface};

use super::fit::{InitialContent, fit};
use super::request::{Output, Request};
use super::slot::Slot;
use super::{grid, immediates};
use crate::commands::{reflect, table};
use crate::data::png::Pixels;
use crate::data::{Dtype, Format, Loaded, Shape};
use crate::report::Failure;

/// Everything that a launch needs.
pub struct Plan {
    /// The buffers, in the order of the kernel's bindings.
    pub buffers: Vec<PlannedBuffer>,
    /// Invocations along x, y and z.
    pub invocations: [u64; 3],
    /// The bytes of the kernel's immediates.
    pub immediates: Option<Vec<u8>>,
}

/// A buffer of the kernel, its initial content, and its destination if it is an output.
pub struct PlannedBuffer {
    /// The buffer that the kernel declares.
    pub slot: Slot,
    /// The initial content.
    pub data: InitialContent,
    /// The destination of its content after the launch, if it is an output.
    pub output: Option<Output>,
}

impl Plan {
    /// Rejects buffers above the device's limits.
    ///
    /// # Errors
    /// [`Failure::Runtime`] with the requested shape, before the kernel is compiled.
    pub fn reject_too_large(&self, device: &Device) -> Result<(), Failure> {
        let (info, limit) = (device.info(), device.info().limits.max_buffer_size);
        let too_large = |planned: &&PlannedBuffer| planned.data.len as u64 > limit;
        let Some(PlannedBuffer { slot, data, .. }) = self.buffers.iter().find(too_large) else {
            return Ok(());
        };
        let elements = slot.dtype.map_or(slot.type_text.clone(), |dtype| dtype.to_string());
        Err(Failure::Runtime(format!(
            "`{}` is {} of {elements}, {} bytes, but {} holds at most {limit} bytes in a buffer \
             (max_buffer_size); help: split the data over several runs",
            slot.name, data.shape, data.len, info.name
        )))
    }
}

impl PlannedBuffer {
    /// Returns the shape, counted in elements of the kernel's array.
    pub fn elements(&self) -> Shape {
        self.slot.elements(&self.data.shape)
    }

    /// Returns width and height in pixels if the buffer is two-dimensional.
    pub fn image_size(&self) -> Option<[u32; 2]> {
        match self.elements().0[..] {
            [height, width] => Some([u32::try_from(width).ok()?, u32::try_from(height).ok()?]),
            _ => None,
        }
    }
}

/// Returns the plan of a launch.
pub fn make(
    request: &Request,
    loaded: Vec<(String, Loaded)>,
    interface: &Interface,
) -> Result<Plan, Failure> {
    let slots: Vec<Slot> = interface.bindings.iter().map(Slot::new).collect();
    reject_unknown(request, interface)?;
    reject_casts(request, &slots)?;
    reject_missing(request, interface, &slots)?;
    let mut loaded: HashMap<String, Loaded> = loaded.into_iter().collect();
    let mut given: Vec<Option<InitialContent>> = Vec::new();
    for slot in &slots {
        reject_misuse(request, slot)?;
        let data = match (loaded.remove(&slot.name), request.input(&slot.name)) {
            (Some(loaded), Some(input)) => {
                let is_cast = slot.dtype.is_some_and(|dtype| request.casts_to(&slot.name, dtype));
                let shape = request.shapes.get(&slot.name);
                Some(fit(slot, loaded, shape, &input.argument, is_cast)?)
            }
            _ => None,
        };
        given.push(data);
    }
    let first = first_input(request, &slots, &given);
    let mut buffers = Vec::new();
    for (slot, given) in slots.into_iter().zip(given) {
        let data = match given {
            Some(data) => data,
            None => zeroed_output(&slot, request.shapes.get(&slot.name), first.as_ref())?,
        };
        let printed = || Output { name: slot.name.clone(), file: None, cast: None };
        let inout = request.input(&slot.name).is_some_and(|input| input.inout);
        let mut output = request.output(&slot.name).cloned().or_else(|| inout.then(printed));
        if let Some(output) = &mut output {
            output.cast = request.cast_of_output(&slot);
        }
        let planned = PlannedBuffer { slot, data, output };
        check_format(&planned)?;
        buffers.push(planned);
    }
    let invocations =
        grid::invocations(request.invocations.as_ref(), &buffers, interface.workgroup_size);
    let invocations = match (invocations, request.default_invocations) {
        (Err(_), Some(default)) => default,
        (invocations, _) => invocations?,
    };
    let immediates = match &request.generated_immediates {
        Some(generated) => Some(generated.clone()),
        None => immediates::immediate_bytes(&request.immediates, interface.immediates.as_ref())?,
    };
    Ok(Plan { buffers, invocations, immediates })
}

/// Rejects names that the kernel does not have.
pub fn reject_unknown(request: &Request, interface: &Interface) -> Result<(), Failure> {
    let inputs = request.inputs.iter().map(|input| {
        let flag = if input.inout { "--inout" } else { "--in" };
        (flag, &input.name)
    });
    let outputs = request.outputs.iter().map(|output| ("--out", &output.name));
    let shapes = request.shapes.keys().map(|name| ("--shape", name));
    let casts = request.casts.iter().map(|(name, _)| ("--cast", name));
    for (flag, name) in inputs.chain(outputs).chain(shapes).chain(casts) {
        if !interface.bindings.iter().any(|binding| binding.name == *name) {
            return Err(Failure::usage(format!(
                "{flag} {name}: kernel `{}` uses no buffer of this name; it uses\n{}",
                interface.entry_point,
                buffer_listing(request, interface)
            )));
        }
    }
    Ok(())
}

/// Rejects `--cast` to a type that neither the buffer nor its output file supports.
fn reject_casts(request: &Request, slots: &[Slot]) -> Result<(), Failure> {
    for (name, dtype) in &request.casts {
        let Some(slot) = slots.iter().find(|slot| slot.name == *name) else { continue };
        let given = format!("--cast {name}={dtype}");
        let wrong = |problem: String| Err(Failure::usage(format!("{given}: {problem}")));
        let Some(wanted) = slot.dtype else {
            return wrong(format!(
                "`{name}` is {}, whose scalars are of several types",
                slot.type_text
            ));
        };
        let file = request.output(name).and_then(|output| output.file.as_ref());
        match (wanted == *dtype, file) {
            (true, _) => {}
            (false, None) => {
                return wrong(format!(
                    "`{name}` is {}, so its data can only be converted to {wanted}; \
                     write --cast {name}={wanted}",
                    slot.type_text
                ));
            }
            (false, Some(_)) if request.cast_of_output(slot) != Some(*dtype) => {
                return wrong(format!("`{name}` has two output casts; give one"));
            }
            (false, Some(_)) => {}
        }
    }
    Ok(())
}

/// Rejects to run if a buffer has no input and is not an output.
fn reject_missing(request: &Request, interface: &Interface, slots: &[Slot]) -> Result<(), Failure> {
    let missing: Vec<String> = slots
        .iter()
        .filter(|slot| request.input(&slot.name).is_none() && request.output(&slot.name).is_none())
        .map(|slot| format!("`{}`", slot.name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "kernel `{}` has nothing to bind to {}; its buffers are\n{}",
        interface.entry_point,
        missing.join(", "),
        buffer_listing(request, interface)
    )))
}

/// Lists the buffers of the kernel with their inputs.
fn buffer_listing(request: &Request, interface: &Interface) -> String {
    let row = |binding: &BindingInfo| {
        let name = &binding.name;
        let given = match (request.input(name), request.output(name)) {
            (Some(input), Some(_)) => format!("{} --out {name}", input.argument),
            (Some(input), None) => input.argument.clone(),
            (None, Some(_)) => format!("--out {name}"),
            (None, None) if binding.access.writes() => {
                format!("missing: --out {name}=FILE or --inout {name}=SOURCE")
            }
            (None, None) => format!("missing: --in {name}=SOURCE"),
        };
        vec![
            reflect::binding_attributes(binding),
            name.clone(),
            binding.layout.to_string(),
            reflect::space_and_access(binding).to_owned(),
            given,
        ]
    };
    let rows: Vec<Vec<String>> = interface.bindings.iter().map(row).collect();
    table(&rows, "  ").trim_end().to_owned()
}

/// Rejects options that would discard a result, or save data that the kernel does not write.
fn reject_misuse(request: &Request, slot: &Slot) -> Result<(), Failure> {
    let name = &slot.name;
    let input = request.input(name);
    let output = request.output(name).is_some();
    if !slot.is_written && output && input.is_none_or(|input| !input.inout) {
        return Err(Failure::usage(format!(
            "--out {name}: the kernel does not write `{name}`; \
             give its data with --in {name}=SOURCE"
        )));
    }
    if slot.is_written && !output && input.is_some_and(|input| !input.inout) {
        return Err(Failure::usage(format!(
            "--in {name}: the kernel writes `{name}`; give it with --inout, \
             and --out {name}=FILE to keep the result (the source itself is never written)"
        )));
    }
    Ok(())
}

/// Returns the dimensions of the first input, `--in` before `--inout`, in elements of its buffer.
/// Uniform buffers are parameters and do not determine sizes.
fn first_input(
    request: &Request,
    slots: &[Slot],
    given: &[Option<InitialContent>],
) -> Option<Shape> {
    request.inputs.iter().find_map(|input| {
        let at = slots.iter().position(|slot| slot.name == input.name && !slot.is_uniform)?;
        Some(slots[at].elements(&given[at].as_ref()?.shape))
    })
}

/// Returns zeros for an output without an input, shaped by `--shape`, the type, or the first input.
fn zeroed_output(
    slot: &Slot,
    shape: Option<&Shape>,
    first: Option<&Shape>,
) -> Result<InitialContent, Failure> {
    let same_elements =
        || first.map(|first| first.clone().with_inner_dimensions(&slot.element_shape));
    let shape = shape.cloned().or_else(|| slot.fixed_shape()).or_else(same_elements);
    let Some(shape) = shape else {
        return Err(Failure::usage(format!(
            "--out {}: its shape cannot be inferred, because there is no input other than uniform \
             buffers; set it with --shape {}=1000 or --shape {}=HEIGHTxWIDTH",
            slot.name, slot.name, slot.name
        )));
    };
    InitialContent::zeros(slot, shape)
}

/// Rejects a file format that cannot represent the output.
fn check_format(planned: &PlannedBuffer) -> Result<(), Failure> {
    let PlannedBuffer { slot, data, output } = planned;
    let Some(Output { file: Some(file), cast, .. }) = output else {
        return Ok(());
    };
    let wrong =
        |problem: String| Err(Failure::usage(format!("--out {}={file}: {problem}", slot.name)));
    match file.format {
        Format::Bin => Ok(()),
        Format::Npy | Format::Npz if slot.dtype.is_some() => Ok(()),
        Format::Npy | Format::Npz => wrong(format!(
            ".{} holds one type of number, but `{}` is {}; write a .bin file",
            file.format.name(),
            slot.name,
            slot.type_text
        )),
        Format::Png => match (Pixels::for_elements(slot.dtype, &slot.element_shape), cast) {
            (None, _) => wrong(format!(
                "a .png holds array<u32>, array<f32> or array<vec4<f32>>, but `{}` is {}; \
                 write a .npy or .bin file",
                slot.name, slot.type_text
            )),
            (Some(Pixels::Packed), Some(Dtype::U16)) => wrong(format!(
                "`{}` is {}, pixels of 8 bits for each sample; a .png of 16 bits is written from \
                 array<f32> or array<vec4<f32>>",
                slot.name, slot.type_text
            )),
            (Some(_), Some(dtype)) if !matches!(dtype, Dtype::U8 | Dtype::U16) => {
                wrong(format!("a .png has samples of u8 or u16, not {dtype}"))
            }
            _ if planned.image_size().is_none() => wrong(format!(
                "a .png has two dimensions, but the shape is {}; set --shape {}=HEIGHTxWIDTH, \
                 or write a .npy file",
                data.shape, slot.name
            )),
            _ if data.len == 0 => wrong(format!("a .png of {} has no pixels", data.shape)),
            _ => Ok(()),
        },
    }
}
