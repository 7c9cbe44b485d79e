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
    /// Regions that the kernel may not write to but that changed.
    pub corrupted: Vec<CorruptedRegion>,
    /// Whether the device's time limit ended the launch.
    pub timed_out: bool,
}

/// A region that changed although the kernel may not write to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptedRegion {
    /// The region, such as ``the bytes after `x` ``.
    pub region: String,
    /// Number of changed bytes.
    pub changed: usize,
    /// Offset of the first changed byte from the start of the region.
    pub first: usize,
    /// Its value before and after the launch.
    pub values: (u8, u8),
}

impl std::fmt::Display for CorruptedRegion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { region, changed, first, values: (before, after) } = self;
        write!(
            f,
            "{changed} of {region} changed, the first at offset {first}: {before:#04x} became \
             {after:#04x}"
        )
    }
}

/// Runs a kernel with each binding in the middle of a larger buffer, and reports bytes that changed
/// outside the bindings, in read-only bindings, and past the last whole element of runtime-sized
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
/// assert!(run.corrupted.is_empty());
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

/// Runs a compiled kernel, such as one of [`Device::compile_ir`](crate::Device::compile_ir), as
/// [`run_guarded`] does.
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
/// assert!(run.corrupted.is_empty());
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
    let mut rng = seed;
    let mut guarded = Vec::new();
    for content in buffers {
        guarded.push(GuardedBuffer::new(device, content, &mut rng)?);
    }
    let slices: Result<Vec<_>> = guarded.iter().map(GuardedBuffer::slice).collect();
    let slices = slices?;
    let bindings: Vec<&dyn Binding> = slices.iter().map(|slice| slice as &dyn Binding).collect();
    device.run(kernel, &bindings, launch.clone())?;
    let timed_out = match device.wait() {
        Err(GpuError::Timeout(_)) => true,
        other => other.map(|()| false)?,
    };
    let mut run = GuardedRun { outputs: Vec::new(), corrupted: Vec::new(), timed_out };
    for (index, buffer) in guarded.iter().enumerate() {
        buffer.inspect(kernel.interface(), index, &mut run)?;
    }
    Ok(run)
}

/// A buffer with guard bytes, and a buffer that is allocated after it and not bound.
struct GuardedBuffer {
    /// The initial bytes of `buffer`: guard bytes, the content, guard bytes.
    initial: Vec<u8>,
    buffer: UntypedBuffer,
    /// Bytes of the content.
    len: usize,
    /// The initial bytes of `unbound`.
    unbound_initial: Vec<u8>,
    unbound: UntypedBuffer,
}

impl GuardedBuffer {
    fn new(device: &Device, content: &[u8], rng: &mut u64) -> Result<Self> {
        let mut initial = noise(rng, GUARD);
        initial.extend_from_slice(content);
        initial.extend(noise(rng, GUARD));
        let unbound_initial = noise(rng, GUARD);
        let buffer = device.upload_bytes(None, &initial)?;
        let unbound = device.upload_bytes(None, &unbound_initial)?;
        Ok(Self { initial, buffer, len: content.len(), unbound_initial, unbound })
    }

    fn slice(&self) -> Result<UntypedBuffer> {
        self.buffer.slice(GUARD..GUARD + self.len)
    }

    /// Adds the buffer's output and its corrupted regions to the result.
    fn inspect(&self, interface: &Interface, index: usize, run: &mut GuardedRun) -> Result<()> {
        let after = self.buffer.download_bytes()?;
        let unbound = self.unbound.download_bytes()?;
        let Some(binding) = interface.bindings.get(index) else { return Ok(()) };
        let (name, end) = (&binding.name, GUARD + self.len);
        let mut compare = |region: String, before: &[u8], after: &[u8]| {
            run.corrupted.extend(corruption(region, before, after));
        };
        let mut compare_range = |region: String, range: std::ops::Range<usize>| {
            compare(region, &self.initial[range.clone()], &after[range]);
        };
        compare_range(format!("the bytes before `{name}`"), 0..GUARD);
        compare_range(format!("the bytes after `{name}`"), end..self.initial.len());
        if binding.access.writes() {
            let used = GUARD + used_bytes(&binding.layout, self.len);
            compare_range(format!("the bytes of `{name}` past its last element"), used..end);
            let (layout, bytes) = (binding.layout.clone(), after[GUARD..end].to_vec());
            run.outputs.push(Output { name: name.clone(), layout, bytes });
        } else {
            compare_range(format!("the bytes of read-only `{name}`"), GUARD..end);
        }
        compare(
            format!("the bytes of the buffer allocated after `{name}`"),
            &self.unbound_initial,
            &unbound,
        );
        Ok(())
    }
}

/// Returns the size of the whole elements of a variable in a binding of `size` bytes.
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

/// Returns the corruption of a region, if any byte differs.
fn corruption(region: String, before: &[u8], after: &[u8]) -> Option<CorruptedRegion> {
    let changed = || before.iter().zip(after).enumerate().filter(|(_, (old, new))| old != new);
    let (first, (old, new)) = changed().next()?;
    Some(CorruptedRegion { region, changed: changed().count(), first, values: (*old, *new) })
}

/// Returns pseudo-random bytes, which a kernel is unlikely to write by chance: the upper bytes of
/// Knuth's MMIX generator.
fn noise(rng: &mut u64, len: usize) -> Vec<u8> {
    let mut next = || {
        *rng = rng.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (*rng >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_bytes_are_reported() {
        assert_eq!(corruption("x".into(), &[1, 2, 3], &[1, 2, 3]), None);
        let found = corruption("the bytes after `x`".into(), &[1, 2, 3, 4], &[1, 7, 3, 9]);
        let text = "2 of the bytes after `x` changed, the first at offset 1: 0x02 became 0x07";
        assert_eq!(found.map(|region| region.to_string()).as_deref(), Some(text));
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
        assert_eq!((run.corrupted, run.timed_out), (Vec::new(), false));
        assert_eq!(run.outputs.len(), 1);
    }
}
