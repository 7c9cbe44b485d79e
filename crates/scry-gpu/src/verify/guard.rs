//! Runs kernels with guard bytes around each binding to detect out-of-bounds writes.

use crate::api::binding::Binding;
use crate::api::device::Device;
use crate::api::error::{GpuError, Result};
use crate::api::kernel::{CompileOptions, Kernel};
use crate::api::launch::Launch;
use crate::api::untyped_buffer::UntypedBuffer;
use scry_ir::{Interface, TypeLayout};

use super::Output;

/// Guard bytes on each side of a binding: a multiple of every device's offset alignment.
const GUARD: usize = 1024;

/// Result of a run with guard bytes.
#[derive(Debug)]
pub struct GuardedRun {
    /// The buffers that the kernel may write, after the run.
    pub outputs: Vec<Output>,
    /// Bytes that changed illegally, one entry per region.
    pub damage: Vec<Damage>,
    /// Whether the device's time limit ended the launch.
    pub timed_out: bool,
}

/// Bytes that changed although the kernel may not write to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The region, such as ``the bytes after `x` ``.
    pub region: String,
    /// Number of changed bytes.
    pub changed: usize,
    /// Offset of the first changed byte in the region.
    pub first: usize,
    /// Its value before and after the launch.
    pub values: (u8, u8),
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { region, changed, first, values: (was, is) } = self;
        write!(f, "{changed} of {region} changed, the first at {first}: {was:#04x} is {is:#04x}")
    }
}

/// Runs a kernel with each binding in the middle of a larger buffer, and reports bytes that changed
/// outside the bindings, in read-only bindings, and behind the last whole element of runtime-sized
/// arrays.
///
/// `buffers` are the initial contents, in the order of the bindings; `seed` determines the guard
/// bytes. A launch that exceeds the device's time limit is not an error: its buffers are checked
/// too.
///
/// ```
/// use scry_gpu::{Device, Launch, verify};
/// # if !Device::is_available() { return Ok::<(), scry_gpu::GpuError>(()); }
/// let gpu = Device::auto()?;
/// let past_the_end = "
///     @group(0) @binding(0) var<storage, read_write> x: array<u32>;
///     @compute @workgroup_size(1) fn main() { x[arrayLength(&x)] = 7u; }";
/// let run = verify::run_guarded(&gpu, past_the_end, &[vec![0; 12]], &Launch::invocations(1), 1)?;
/// assert!(run.damage.is_empty());
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
///
/// # Errors
/// As [`Device::compile`] and [`Device::run`], except for a timeout after which the device stays
/// usable.
pub fn run_guarded(
    device: &Device,
    wgsl: &str,
    buffers: &[Vec<u8>],
    launch: &Launch,
    seed: u64,
) -> Result<GuardedRun> {
    let kernel = device.compile_with(wgsl, &CompileOptions::default())?;
    run_guarded_kernel(device, &kernel, buffers, launch, seed)
}

/// [`run_guarded`] of a compiled kernel, such as one of
/// [`Device::compile_ir`](crate::Device::compile_ir).
///
/// ```
/// use scry_gpu::{Device, Launch, verify};
///
/// let gpu = Device::open("cpu")?;
/// let kernel = gpu.compile(
///     "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
///      @compute @workgroup_size(1) fn main() { x[arrayLength(&x)] = 7u; }",
/// )?;
/// let launch = Launch::invocations(1);
/// let run = verify::run_guarded_kernel(&gpu, &kernel, &[vec![0; 12]], &launch, 1)?;
/// assert!(run.damage.is_empty());
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
///
/// # Errors
/// As [`Device::run`], except for a timeout after which the device stays usable.
pub fn run_guarded_kernel(
    device: &Device,
    kernel: &Kernel,
    buffers: &[Vec<u8>],
    launch: &Launch,
    seed: u64,
) -> Result<GuardedRun> {
    let mut stream = seed;
    let mut held = Vec::new();
    for content in buffers {
        held.push(Guarded::new(device, content, &mut stream)?);
    }
    let slices: Result<Vec<_>> = held.iter().map(Guarded::slice).collect();
    let slices = slices?;
    let bindings: Vec<&dyn Binding> = slices.iter().map(|slice| slice as &dyn Binding).collect();
    device.run(kernel, &bindings, launch.clone())?;
    let timed_out = match device.wait() {
        Err(GpuError::Timeout(_)) => true,
        other => other.map(|()| false)?,
    };
    let mut run = GuardedRun { outputs: Vec::new(), damage: Vec::new(), timed_out };
    for (nth, guarded) in held.iter().enumerate() {
        guarded.inspect(kernel.interface(), nth, &mut run)?;
    }
    Ok(run)
}

/// A buffer with guard bytes, and an adjacent buffer that is not bound.
struct Guarded {
    before: Vec<u8>,
    bound: UntypedBuffer,
    len: usize,
    canary: Vec<u8>,
    beside: UntypedBuffer,
}

impl Guarded {
    fn new(device: &Device, content: &[u8], stream: &mut u64) -> Result<Self> {
        let mut before = noise(stream, GUARD);
        before.extend_from_slice(content);
        before.extend(noise(stream, GUARD));
        let canary = noise(stream, GUARD);
        let bound = device.upload_bytes(None, &before)?;
        let beside = device.upload_bytes(None, &canary)?;
        Ok(Self { before, bound, len: content.len(), canary, beside })
    }

    fn slice(&self) -> Result<UntypedBuffer> {
        self.bound.slice(GUARD..GUARD + self.len)
    }

    /// Adds the buffer's output and damage to the result.
    fn inspect(&self, interface: &Interface, nth: usize, run: &mut GuardedRun) -> Result<()> {
        let after = self.bound.download_bytes()?;
        let beside = self.beside.download_bytes()?;
        let Some(binding) = interface.bindings.get(nth) else { return Ok(()) };
        let (name, end) = (&binding.name, GUARD + self.len);
        let mut look = |region: String, was: &[u8], is: &[u8]| {
            run.damage.extend(damage(region, was, is));
        };
        let mut part = |region: String, range: std::ops::Range<usize>| {
            look(region, &self.before[range.clone()], &after[range]);
        };
        part(format!("the bytes before `{name}`"), 0..GUARD);
        part(format!("the bytes after `{name}`"), end..self.before.len());
        if binding.access.writes() {
            let used = GUARD + used_bytes(&binding.layout, self.len);
            part(format!("the bytes of `{name}` behind its last element"), used..end);
            let (layout, bytes) = (binding.layout.clone(), after[GUARD..end].to_vec());
            run.outputs.push(Output { name: name.clone(), layout, bytes });
        } else {
            part(format!("the bytes of `{name}`, which is only read,"), GUARD..end);
        }
        look(format!("the bytes of a buffer beside `{name}`"), &self.canary, &beside);
        Ok(())
    }
}

/// Returns the bytes of whole elements of a variable in a binding of `size` bytes.
fn used_bytes(layout: &TypeLayout, size: usize) -> usize {
    let array = |offset: usize, layout: &TypeLayout| match layout {
        TypeLayout::Array { len: None, stride, .. } => {
            let stride = (*stride as usize).max(1);
            Some(offset + size.saturating_sub(offset) / stride * stride)
        }
        _ => None,
    };
    let used = match layout {
        TypeLayout::Struct { members, .. } => {
            members.last().and_then(|last| array(last.offset as usize, &last.layout))
        }
        _ => array(0, layout),
    };
    used.unwrap_or(layout.fixed_size() as usize).min(size)
}

fn damage(region: String, was: &[u8], is: &[u8]) -> Option<Damage> {
    let changed = || was.iter().zip(is).enumerate().filter(|(_, (was, is))| was != is);
    let (first, (was, is)) = changed().next()?;
    Some(Damage { region, changed: changed().count(), first, values: (*was, *is) })
}

/// Returns pseudo-random bytes that a kernel is unlikely to write by chance.
fn noise(stream: &mut u64, len: usize) -> Vec<u8> {
    let mut next = || {
        *stream = stream.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (*stream >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_bytes_are_reported() {
        assert_eq!(damage("x".into(), &[1, 2, 3], &[1, 2, 3]), None);
        let found = damage("the bytes after `x`".into(), &[1, 2, 3, 4], &[1, 7, 3, 9]);
        let text = "2 of the bytes after `x` changed, the first at 1: 0x02 is 0x07";
        assert_eq!(found.map(|damage| damage.to_string()).as_deref(), Some(text));
    }

    #[test]
    fn used_bytes_are_whole_elements() {
        let element = || Box::new(TypeLayout::Scalar(scry_ir::Scalar::U32));
        let array = TypeLayout::Array { element: element(), len: None, stride: 16 };
        assert_eq!(used_bytes(&array, 47), 32);
        let fixed = TypeLayout::Array { element: element(), len: Some(3), stride: 4 };
        assert_eq!(used_bytes(&fixed, 20), 12);
    }

    #[test]
    fn checked_writes_stay_in_bindings() {
        let Some(info) = Device::list().into_iter().next() else {
            eprintln!("skipped: no device is present");
            return;
        };
        let gpu = Device::open(&format!("{}:{}", info.backend, info.index)).unwrap();
        let wgsl = "
            @group(0) @binding(0) var<storage, read> x: array<u32>;
            @group(0) @binding(1) var<storage, read_write> y: array<u32>;
            @compute @workgroup_size(1) fn main() { y[x[0]] = 7u; y[x[0] + 1u] = 8u; }";
        let buffers = [3u32.to_le_bytes().to_vec(), vec![0; 12]];
        let run = run_guarded(&gpu, wgsl, &buffers, &Launch::invocations(1), 1).unwrap();
        assert_eq!((run.damage, run.timed_out), (Vec::new(), false));
        assert_eq!(run.outputs.len(), 1);
    }
}
