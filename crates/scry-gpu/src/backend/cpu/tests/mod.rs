//! Tests of the CPU driver's methods.

mod cancellation;
mod notification;
mod transfers;

use std::sync::Arc;
use std::time::Duration;

use scry_cpu::{Code, Machine};
use scry_ir::kir::{Access, Builder, Kir};

use super::compile::{Body, Kernel};
use super::{CpuDriver, info, write};
use crate::api::error::{GpuError, Result};
use crate::core::command::{BoundBuffer, BufferRange, Command, Dispatch, Groups, Role, Step};
use crate::core::driver::{
    Cancelled, Driver, KernelId, MemoryId, MemoryKind, SubmissionIndex, Work,
};

/// A timeout longer than anything that a test waits for.
const LONG: Duration = Duration::from_secs(60);

fn driver() -> CpuDriver {
    CpuDriver::new(info::info(), Machine::new(3))
}

impl CpuDriver {
    /// Compiles a kernel from KIR.
    fn kernel(&self, kir: &Kir) -> KernelId {
        let code = Code::compile(kir).unwrap();
        write(&self.kernels).insert(Arc::new(Kernel {
            body: Body::Code(Box::new(code)),
            workgroup_size: kir.workgroup_size,
            bindings: kir.buffers.len(),
        }))
    }

    /// Allocates memory that contains `data`.
    fn allocate_with(&self, data: &[u8]) -> MemoryId {
        let memory = self.allocate(MemoryKind::Upload, data.len() as u64, "").unwrap();
        self.write(memory, 0, data).unwrap();
        memory
    }

    fn bytes(&self, memory: MemoryId, size: usize) -> Vec<u8> {
        let mut out = vec![0xEE; size];
        self.read(memory, 0, &mut out).unwrap();
        out
    }

    fn submit_once(&self, steps: &[Step]) -> SubmissionIndex {
        self.submit(Work::Once(steps), false).unwrap()
    }

    fn wait_for(&self, submission: SubmissionIndex) {
        assert_eq!(self.wait(submission, LONG), Ok(true));
    }
}

/// Returns a range of an allocation.
fn range(memory: MemoryId, offset: u64, size: u64) -> BufferRange {
    BufferRange { memory, offset, size }
}

fn copy(src: BufferRange, dst: BufferRange) -> Step {
    Step::Run(Command::Copy { src, dst })
}

fn fill(dst: BufferRange, pattern: u32) -> Step {
    Step::Run(Command::Fill { dst, pattern })
}

fn dispatch(kernel: KernelId, ranges: &[BufferRange], groups: [u32; 3]) -> Step {
    let bindings = ranges.iter().map(|range| BoundBuffer { range: *range, writes: true }).collect();
    Step::Run(Command::Dispatch(Dispatch {
        kernel,
        bindings,
        groups: Groups::Direct(groups),
        immediates: Vec::new(),
        role: Role::Launch,
    }))
}

/// Returns a kernel with `buffers` bindings that does nothing.
fn empty_kernel(buffers: u32) -> Kir {
    let mut builder = Builder::new("empty", [1, 1, 1]);
    (0..buffers).for_each(|_| {
        builder.buffer(Access::ReadWrite);
    });
    builder.finish()
}

/// Returns a kernel that does not terminate.
fn endless_kernel() -> Kir {
    let mut builder = Builder::new("endless", [1, 1, 1]);
    builder.loop_(|_, _| ());
    builder.finish()
}

/// Returns whether a call failed with a driver error.
fn is_driver_error<T>(result: Result<T>) -> bool {
    matches!(result, Err(GpuError::Driver(_)))
}
