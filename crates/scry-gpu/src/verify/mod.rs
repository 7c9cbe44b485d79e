//! Comparison of the results of a kernel on several devices.
//!
//! [`assert_backends_agree`] is for tests of programs with their own kernels. The reference is the
//! CPU, or without it the first device.
//!
//! ```
//! let shader = "
//!     @group(0) @binding(0) var<storage, read> x: array<f32>;
//!     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
//!     @compute @workgroup_size(64)
//!     fn root(@builtin(global_invocation_id) id: vec3u) {
//!         if id.x < arrayLength(&x) { y[id.x] = sqrt(x[id.x]); }
//!     }";
//! # if !scry_gpu::Device::is_available() { return }
//! let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
//! // The square root of WGSL may be off by a few units in the last place.
//! scry_gpu::verify::assert_backends_agree(shader, &[&x, &[0f32; 100]], 100, 4);
//! ```

mod compare;
mod failure;
mod guard;
mod tolerance;
mod ulps;

use crate::api::binding::Binding;
use crate::api::device::Device;
use crate::api::element::Element;
use crate::api::error::{GpuError, Result};
use crate::api::info::{BackendKind, DeviceInfo};
use crate::api::kernel::CompileOptions;
use crate::api::launch::{Invocations, Launch};
use crate::api::untyped_buffer::UntypedBuffer;
use scry_ir::TypeLayout;

pub use compare::{Comparison, Difference, compare};
pub use failure::is_same_failure;
pub use guard::{CorruptedRegion, GuardedRun, run_guarded, run_guarded_kernel};
pub use tolerance::Tolerance;
pub use ulps::UNDEFINED_ULPS;

/// Initial content of a buffer: a slice, array or vector of elements, or [`Bytes`].
pub trait Contents: sealed::Sealed {}

mod sealed {
    use super::{Device, Result, UntypedBuffer};

    /// Keeps [`Contents`](super::Contents) closed.
    pub trait Sealed {
        /// Copies the elements to a new buffer.
        #[doc(hidden)]
        fn upload_to(&self, device: &Device) -> Result<UntypedBuffer>;
    }
}

impl<T: Element> sealed::Sealed for Vec<T> {
    fn upload_to(&self, device: &Device) -> Result<UntypedBuffer> {
        Ok(device.upload(self)?.into())
    }
}

impl<T: Element> Contents for Vec<T> {}

impl<T: Element, const N: usize> sealed::Sealed for [T; N] {
    fn upload_to(&self, device: &Device) -> Result<UntypedBuffer> {
        Ok(device.upload(self)?.into())
    }
}

impl<T: Element, const N: usize> Contents for [T; N] {}

impl<T: Element> sealed::Sealed for &[T] {
    fn upload_to(&self, device: &Device) -> Result<UntypedBuffer> {
        Ok(device.upload(self)?.into())
    }
}

impl<T: Element> Contents for &[T] {}

/// Content as bytes, interpreted by the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl sealed::Sealed for Bytes<'_> {
    fn upload_to(&self, device: &Device) -> Result<UntypedBuffer> {
        device.upload_bytes(None, self.0)
    }
}

impl Contents for Bytes<'_> {}

/// A kernel, its buffers and its launch, to run on any device.
#[derive(Clone, Copy)]
pub struct Workload<'a> {
    /// The WGSL source.
    pub wgsl: &'a str,
    /// Entry point and overrides.
    pub options: &'a CompileOptions,
    /// The initial content of each buffer, in the order of the bindings.
    pub contents: &'a [&'a dyn Contents],
    /// The grid of the launch, and the immediates.
    pub launch: &'a Launch,
}

/// A buffer that a kernel may write, after the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Name of the variable.
    pub name: String,
    /// Its type.
    pub layout: TypeLayout,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Result of a device, compared with the reference.
#[derive(Debug)]
pub enum Verdict {
    /// It ran: the name of each output, and its comparison.
    Compared(Vec<(String, Comparison)>),
    /// The device cannot run the kernel: it lacks a feature, or a limit is too low.
    Unsupported(GpuError),
}

impl Workload<'_> {
    /// Runs the kernel on a device, in new buffers.
    ///
    /// # Errors
    /// As [`Device::compile`] and [`Device::run`].
    pub fn run(&self, device: &Device) -> Result<Vec<Output>> {
        let kernel = device.compile_with(self.wgsl, self.options)?;
        let buffers = self.contents.iter().map(|contents| contents.upload_to(device));
        let buffers = buffers.collect::<Result<Vec<UntypedBuffer>>>()?;
        let bindings: Vec<&dyn Binding> =
            buffers.iter().map(|buffer| buffer as &dyn Binding).collect();
        device.run(&kernel, &bindings, self.launch.clone())?;
        let declared = kernel.interface().bindings.iter().zip(&buffers);
        let written = declared.filter(|(binding, _)| binding.access.writes());
        let outputs = written.map(|(binding, buffer)| {
            let (name, layout) = (binding.name.clone(), binding.layout.clone());
            Ok(Output { name, layout, bytes: buffer.download_bytes()? })
        });
        outputs.collect()
    }

    /// Runs the kernel on a device, and compares the outputs with the reference's. Floats may
    /// differ by `tolerance`: ULPs, or a [`Tolerance`].
    ///
    /// # Errors
    /// As [`Workload::run`], except for missing features and limits, which are
    /// [`Verdict::Unsupported`].
    pub fn verify(
        &self,
        device: &Device,
        reference: &[Output],
        tolerance: impl Into<Tolerance>,
    ) -> Result<Verdict> {
        let tolerance = tolerance.into();
        let found = match self.run(device) {
            Ok(found) => found,
            Err(error) if is_lacking(&error) => return Ok(Verdict::Unsupported(error)),
            Err(error) => return Err(error),
        };
        let pairs = reference.iter().zip(&found);
        let compared = pairs.map(|(expected, found)| {
            let comparison = compare(&expected.layout, &expected.bytes, &found.bytes, tolerance);
            (expected.name.clone(), comparison)
        });
        Ok(Verdict::Compared(compared.collect()))
    }
}

fn is_lacking(error: &GpuError) -> bool {
    matches!(error, GpuError::Unsupported(_) | GpuError::TooLarge(_))
}

/// Opens all devices, the reference first.
///
/// # Errors
/// As [`Device::open`], if a listed device cannot be opened.
pub fn devices() -> Result<Vec<Device>> {
    let infos = Device::list();
    let open = |info: &DeviceInfo| Device::open(&format!("{}:{}", info.backend, info.index));
    let mut devices: Vec<Device> = infos.iter().map(open).collect::<Result<_>>()?;
    devices.sort_by_key(|device| device.backend_kind() != BackendKind::Cpu);
    Ok(devices)
}

/// Runs a kernel on all devices, and panics unless the outputs equal those of the reference: the
/// CPU, or without it the first device. Each buffer that the kernel writes is compared; integers
/// must be equal, floats may differ by `tolerance`: ULPs, or a [`Tolerance`]. `contents` are the
/// initial contents of the buffers, in the order of the bindings, outputs included.
///
/// Prints the other devices that cannot run the kernel to standard error, or that there is only one
/// device and nothing was compared.
///
/// # Panics
/// If devices disagree: the message has the device, the buffer, the path in it and both values.
/// Also if the kernel is rejected, if the reference cannot run it, or if there is no device.
#[track_caller]
pub fn assert_backends_agree(
    wgsl: &str,
    contents: &[&dyn Contents],
    invocations: impl Into<Invocations>,
    tolerance: impl Into<Tolerance>,
) {
    let tolerance = tolerance.into();
    let launch = Launch::invocations(invocations);
    let options = CompileOptions::default();
    let workload = Workload { wgsl, options: &options, contents, launch: &launch };
    match devices().and_then(|devices| disagreement(&workload, &devices, tolerance)) {
        Ok(None) => {}
        Ok(Some(text)) => panic!("{text}"),
        Err(error) => panic!("{error}"),
    }
}

/// Formats the first disagreement of a device with the reference.
fn disagreement(
    workload: &Workload<'_>,
    devices: &[Device],
    tolerance: Tolerance,
) -> Result<Option<String>> {
    let Some((reference, others)) = devices.split_first() else {
        // Returns the error that says why there is no device.
        return Device::auto().map(|_| None);
    };
    let expected = workload.run(reference)?;
    if others.is_empty() {
        eprintln!("not compared: {} is the only device", reference.info().title());
    }
    for device in others {
        match workload.verify(device, &expected, tolerance)? {
            Verdict::Compared(outputs) => {
                if let Some(text) = format_first_difference(&outputs, reference, device) {
                    return Ok(Some(text));
                }
            }
            Verdict::Unsupported(error) => eprintln!("skipped {}: {error}", device.info().title()),
        }
    }
    Ok(None)
}

/// Formats the first output in which a device disagrees with the reference; `None` if they agree.
#[must_use]
pub fn format_first_difference(
    outputs: &[(String, Comparison)],
    reference: &Device,
    device: &Device,
) -> Option<String> {
    let (name, comparison) = outputs.iter().find(|(_, comparison)| !comparison.agrees())?;
    let first = comparison.first_difference.as_ref()?;
    let Difference { index, path, expected, found, ulps } = first;
    let distance = match *ulps {
        UNDEFINED_ULPS => String::new(),
        ulps => format!(", {ulps} units in the last place apart"),
    };
    Some(format!(
        "{} and {} disagree: {name}{path} (number {index}) is {expected} on the former, {found} \
         on the latter{distance}; {} numbers of `{name}` differ",
        reference.info().title(),
        device.info().title(),
        comparison.mismatched
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WGSL: &str = "
        struct Pair { a: f32, b: u32 }
        @group(0) @binding(0) var<storage, read_write> pairs: array<Pair>;
        @compute @workgroup_size(1)
        fn main(@builtin(global_invocation_id) id: vec3u) { pairs[id.x].b += id.x; }";

    /// Compares a device with the null device, which does not execute kernels.
    fn compare_with_null(tolerance: u64, device: &str) -> Option<String> {
        let devices = [Device::open("null").unwrap(), Device::open(device).unwrap()];
        let pairs = [0u8; 24];
        let (options, launch) = (CompileOptions::new(), Launch::invocations(3));
        let contents: [&dyn Contents; 1] = [&Bytes(&pairs)];
        let workload =
            Workload { wgsl: WGSL, options: &options, contents: &contents, launch: &launch };
        disagreement(&workload, &devices, tolerance.into()).unwrap()
    }

    #[test]
    fn disagreements_name_the_values() {
        assert_eq!(compare_with_null(0, "null"), None);
        let Some(other) = Device::list().into_iter().next() else {
            eprintln!("skipped: no device is present");
            return;
        };
        let text = compare_with_null(u64::MAX - 1, &format!("{}:{}", other.backend, other.index));
        let text = text.expect("the null device computes nothing");
        let expected =
            "pairs[1].b (number 3) is 0 on the former, 1 on the latter; 2 numbers of `pairs`";
        assert!(text.contains(expected), "{text}");
        assert!(text.starts_with("null:0"), "{text}");
    }
}
