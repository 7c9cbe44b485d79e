//! Tests of the driver's methods.

mod cancellation;
mod notification;
mod transfers;

use std::sync::Arc;
use std::time::Duration;

use scry_cpu::{Code, Machine};
use scry_ir::kir::{Builder, Kir};

use super::compile::Kernel;
use super::{CpuDriver, info, write};
use crate::api::error::{GpuError, Result};
use crate::core::command::{BoundBuffer, BufferRange, Command, Dispatch, Groups, Role, Step};
use crate::core::driver::{
    Cancelled, Driver, KernelId, MemoryId, MemoryKind, SubmissionIndex, Work,
};

const LONG: Duration = Duration::from_secs(60);

fn driver() -> CpuDriver {
    CpuDriver::new(info::info(), Machine::new(3))
}

impl CpuDriver {
    /// Compiles a kernel from KIR.
    fn kernel(&self, kir: &Kir) -> KernelId {
        let code = Code::compile(kir).unwrap();
        write(&self.kernels).insert(Arc::new(Kernel {
            code,
            workgroup_size: kir.workgroup_size,
            bindings: kir.buffers.len(),
        }))
    }

    /// Allocates memory with these bytes.
    fn holding(&self, data: &[u8]) -> MemoryId {
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

    fn finish(&self, submission: SubmissionIndex) {
        assert_eq!(self.wait(submission, LONG), Ok(true));
    }
}

/// A range of an allocation.
fn span(memory: MemoryId, offset: u64, size: u64) -> BufferRange {
    BufferRange { memory, offset, size }
}

fn copy(src: BufferRange, dst: BufferRange) -> Step {
    Step::Run(Command::Copy { src, dst })
}

fn fill(dst: BufferRange, pattern: u32) -> Step {
    Step::Run(Command::Fill { dst, pattern })
}

fn dispatch(kernel: KernelId, spans: &[BufferRange], groups: [u32; 3]) -> Step {
    let bindings = spans.iter().map(|span| BoundBuffer { span: *span, writes: true }).collect();
    Step::Run(Command::Dispatch(Dispatch {
        kernel,
        bindings,
        groups: Groups::Direct(groups),
        immediates: Vec::new(),
        role: Role::Launch,
    }))
}

/// A kernel without effect that has `buffers` bindings.
fn empty(buffers: u32) -> Kir {
    let mut builder = Builder::new("empty", [1, 1, 1]);
    (0..buffers).for_each(|_| {
        builder.buffer(true);
    });
    builder.finish()
}

/// A kernel that does not end.
fn endless() -> Kir {
    let mut builder = Builder::new("endless", [1, 1, 1]);
    builder.repeat(false, |_, _| ());
    builder.finish()
}

fn is_refused<T>(result: Result<T>) -> bool {
    matches!(result, Err(GpuError::Driver(_)))
}
