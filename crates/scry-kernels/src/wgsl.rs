//! WGSL kernels as launches.

use scry_gpu::{Binding, CompileOptions, DType, Launch, PreparedLaunch, Result, UntypedBuffer};

use crate::kernels::Kernels;
use crate::operation::Preparation;

/// A launch of a WGSL kernel.
pub(crate) struct WgslLaunch<'l> {
    /// The parts of the source, which are concatenated. `enable` directives are in the first one.
    pub(crate) source: &'l [&'l str],
    /// The buffers in the order of the bindings.
    pub(crate) buffers: &'l [&'l UntypedBuffer],
    /// The immediates, of at most 64 bytes: WebGPU's default limit.
    pub(crate) immediates: Immediates,
    /// Workgroups along x, y and z.
    pub(crate) workgroups: [u32; 3],
}

/// The bytes of immediates: 32-bit words, in order.
#[derive(Default)]
pub(crate) struct Immediates(Vec<u8>);

impl Immediates {
    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn f32(mut self, value: f32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }
}

impl Preparation<'_> {
    /// Compiles a WGSL kernel, unless it is cached, and prepares a launch.
    pub(crate) fn wgsl(&self, launch: &WgslLaunch<'_>) -> Result<PreparedLaunch> {
        let source = launch.source.concat();
        let options = CompileOptions::new().label(self.call.function.as_ref());
        let kernel = self.kernels.device().compile_with(&source, &options)?;
        let views = launch.buffers.iter().map(|buffer| bindable(buffer));
        let views = views.collect::<Result<Vec<_>>>()?;
        let bindings: Vec<&dyn Binding> = views.iter().map(|view| view as _).collect();
        let mut grid = Launch::workgroups(launch.workgroups);
        if !launch.immediates.0.is_empty() {
            grid = grid.immediate_bytes(launch.immediates.0.clone());
        }
        kernel.prepare(&bindings, grid)
    }
}

/// Returns a buffer as WGSL declares it: `bf16` as `u16`.
fn bindable(buffer: &UntypedBuffer) -> Result<UntypedBuffer> {
    match buffer.dtype() {
        Some(DType::BF16) => buffer.view_as(DType::U16),
        _ => Ok(buffer.clone()),
    }
}

impl Kernels {
    /// Returns a buffer, or another one of its type if it is empty, which cannot be bound: for
    /// kernels that do not access it.
    pub(crate) fn non_empty(&self, buffer: &UntypedBuffer) -> Result<UntypedBuffer> {
        match buffer.is_empty() {
            true => self.device().alloc_untyped(buffer.dtype(), 16),
            false => Ok(buffer.clone()),
        }
    }
}

impl Preparation<'_> {
    /// Returns the first elements of a buffer of the call as 32-bit words, which they fill.
    pub(crate) fn words(&self, nth: usize, elements: u64) -> Result<UntypedBuffer> {
        let elements = usize::try_from(elements).unwrap_or(usize::MAX);
        self.buffers[nth].slice(..elements)?.view_as(DType::U32)
    }

    /// Returns the first elements of a buffer of the call, a multiple of 4, for a binding of quads.
    pub(crate) fn quads(&self, nth: usize, elements: u64) -> Result<UntypedBuffer> {
        match self.buffers[nth].dtype() {
            Some(DType::BF16) => self.words(nth, elements),
            _ => Ok(self.buffers[nth].clone()),
        }
    }

    /// Returns [`Kernels::non_empty`] of each buffer.
    pub(crate) fn without_empty(&self, buffers: &[&UntypedBuffer]) -> Result<Vec<UntypedBuffer>> {
        buffers.iter().map(|buffer| self.kernels.non_empty(buffer)).collect()
    }
}
