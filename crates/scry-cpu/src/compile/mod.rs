//! Compiles the kernel IR to steps: `analysis` computes the properties that instruction selection
//! depends on, the other files emit the steps.

mod affine;
mod analysis;
mod conditions;
mod control;
mod emitter;
mod exits;
mod insts;
mod limits;
mod memory;
mod mul_adds;
mod promotion;
mod registers;
mod values;

use std::sync::atomic::{AtomicU64, Ordering};

use scry_ir::kir::{Kir, Type};

use self::analysis::conditions::conditions;
use self::analysis::{counters, demand, disjoint, liveness};
use self::emitter::Emitter;
use self::limits::Vectorization;
use self::registers::Registers;
use crate::code::{Code, LimitExceeded};
use crate::exec::FRAGMENTS;
use crate::lanes::{BLOCK, Sizes};

/// The next [`Code::id`].
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Code {
    /// Compiles a kernel. Stack use grows with the nesting of statements: `Program::with_kir`
    /// provides enough for every program.
    ///
    /// # Errors
    /// [`LimitExceeded`] if the kernel needs more memory than the lockstep machine allows: for the
    /// private arrays of an invocation, or for the values and private arrays of a workgroup.
    pub fn compile(kir: &Kir) -> Result<Self, LimitExceeded> {
        compile(kir)
    }
}

fn compile(kir: &Kir) -> Result<Code, LimitExceeded> {
    if kir.has_matrices() {
        return compile(&kir.with_fragments(&FRAGMENTS));
    }
    let vectorization = limits::vectorize(kir)?;
    // Workgroups are batched only if no exit diverges; then nothing is split.
    let split = counters::split(kir, &vectorization.uniformity, &vectorization.divergent_exits);
    let (kir, Vectorization { lane_layout, uniformity, divergent_exits }) = match &split {
        Some((kir, uniformity)) => (kir, vectorization.for_rewritten(kir, uniformity)),
        None => (kir, vectorization),
    };
    let live_ranges = liveness::live_ranges(kir, &uniformity);
    let conditions = conditions(kir, &uniformity, &live_ranges);
    let demand = demand::demand(kir, &uniformity, &live_ranges);
    let blocks = lane_layout.lanes().div_ceil(BLOCK) as u32;
    let mut registers = Registers::new(blocks);
    // The mask of depth 0: only lanes that return leave it.
    let live_mask = registers.allocate_permanent(Type::Bool);
    let mut emitter = Emitter {
        kir,
        uniformity: &uniformity,
        live_ranges: &live_ranges,
        demand,
        conditions,
        divergent_exits,
        locations: vec![None; kir.values.len()],
        splats: vec![None; kir.values.len()],
        vars: vec![None; kir.vars.len()],
        code: Code {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            steps: Vec::new(),
            lane_layout,
            files: Sizes::default(),
            scalars: 0,
            affines: 0,
            constants: Vec::new(),
            splats: Vec::new(),
            locals: Vec::new(),
            shared: Sizes::default(),
            live_mask,
            disjoint: disjoint::disjoint(kir),
            writable: kir.buffers.iter().map(|buffer| buffer.writable).collect(),
            depths: 0,
            conditions: 0,
            cost: limits::cost(kir, blocks, lane_layout.batch),
        },
        registers,
        shared: Vec::new(),
        position: 0,
        masks: vec![live_mask],
        depth: 0,
        constructs: Vec::new(),
    };
    emitter.allocate_arrays();
    emitter.allocate_vars();
    emitter.emit_kernel();
    emitter.code.files = emitter.registers.sizes();
    emitter.code.depths = emitter.masks.len();
    emitter.code.conditions = emitter.conditions.count;
    limits::check(&emitter.code)?;
    Ok(emitter.code)
}
