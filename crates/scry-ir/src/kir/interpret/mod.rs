//! The reference interpreter of the kernel IR: a direct implementation of KIR's semantics, without
//! optimisation. Tests of passes and backends compare their results with it.
//!
//! # Execution
//!
//! The workgroups of a grid are executed one after another, x fastest. The invocations of a
//! workgroup are executed in lockstep: each statement for all active invocations, in the order of
//! their index, before the next statement. In an `If`, the invocations for which the condition
//! is true are executed first. Invocations that exit a loop or a scope wait at its end for the
//! others, so that control flow reconverges there. A workgroup barrier therefore only checks that
//! every invocation arrived.
//!
//! Subgroups are consecutive invocations of a workgroup, [`Interpreter::subgroup_size`] of them;
//! the last subgroup may be smaller. The subgroup functions see the active invocations only.
//!
//! # Memory
//!
//! Buffers and immediates are bytes in little-endian order. Workgroup memory is zero at the start
//! of each workgroup; variables and local memory are zero at the start of each invocation, so there
//! is no uninitialised memory. All accesses are sequentially consistent. Data races are not
//! detected: for a kernel that has one, the interpreter computes one of the possible results.
//!
//! # Results
//!
//! Every instruction is total, as [`BinaryOp`](super::BinaryOp) and [`Inst`](super::Inst) state.
//! Functions whose accuracy WGSL leaves open, such as `sin`, are computed in `f64` and rounded. A
//! shuffle from an inactive or absent lane returns the invocation's own value.
//!
//! Arithmetic that results in NaN returns the canonical quiet NaN, because the sign and the payload
//! of a NaN differ between targets. Copies keep the bits of a NaN: constants, variables, loads,
//! stores, exchanges, selects, bitcasts and shuffles.
//!
//! # Errors
//!
//! An access out of bounds, a write to a read-only buffer, a value that is used before it is
//! computed, a workgroup barrier that not all invocations reach, and too many loop iterations stop
//! the execution with an [`InterpretError`]. What the kernel wrote until then stays written. With
//! [`BoundsPolicy::ReadZeroSkipWrite`] an access out of bounds is not an error.
//!
//! ```
//! use scry_ir::kir::interpret::Interpreter;
//! use scry_ir::{Program, kir::KirOptions};
//!
//! let program = Program::parse(
//!     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
//!      @compute @workgroup_size(4)
//!      fn square(@builtin(global_invocation_id) id: vec3u) { data[id.x] *= data[id.x]; }",
//! )?;
//! let kir = program.to_kir(&KirOptions { checked: true })?;
//! let data = [1u32, 2, 3, 4, 5, 6, 7, 8].iter().flat_map(|word| word.to_le_bytes()).collect();
//! let mut interpreter = Interpreter::new(&kir, vec![data]);
//! interpreter.run([2, 1, 1])?;
//! assert_eq!(interpreter.buffers[0][28..], 64u32.to_le_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod memory;
pub(in crate::kir) mod scalar;
mod subgroup;
#[cfg(test)]
mod tests;
mod workgroup;

pub use error::InterpretError;

use self::workgroup::Workgroup;
use super::{AddressSpace, Const, Kir, Value};

/// Maximum number of invocations of a subgroup: the bits of a ballot.
const MAX_SUBGROUP_SIZE: u32 = 128;

/// An invocation of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Invocation {
    /// Position of its workgroup in the grid.
    pub group: [u32; 3],
    /// Position in its workgroup.
    pub local: [u32; 3],
}

/// A step of one invocation, for an observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// An instruction computed a value.
    Computed(Value, Const),
    /// Memory was written.
    Written {
        /// The memory.
        space: AddressSpace,
        /// The first byte written.
        byte: u64,
        /// The value written.
        value: Const,
    },
}

/// The effect of an access out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BoundsPolicy {
    /// Execution stops with [`InterpretError::OutOfBounds`].
    #[default]
    Error,
    /// Reads return zero and writes are dropped, as with robust buffer access. An atomic operation
    /// returns zero.
    ReadZeroSkipWrite,
}

/// A callback that is called after each step of an invocation.
pub type Observer<'a> = dyn FnMut(Invocation, Event) + 'a;

/// A kernel and the memory that it is executed on; see the [module](self).
#[derive(Debug, Clone)]
pub struct Interpreter<'a> {
    kir: &'a Kir,
    /// Bytes of the buffers, in the order of [`Kir::buffers`].
    pub buffers: Vec<Vec<u8>>,
    /// Bytes of the immediate block: zero unless set.
    pub immediates: Vec<u8>,
    /// Number of invocations of a subgroup, from 1 to 128: 1 unless set. Matrices of
    /// [`Inst::MultiplyFragments`](super::Inst::MultiplyFragments) are held by the first 32.
    pub subgroup_size: u32,
    /// Maximum number of loop iterations of a workgroup, over all its loops: 1000000 unless set.
    pub iteration_limit: u64,
    /// The effect of an access out of bounds: an error unless set.
    pub bounds: BoundsPolicy,
}

impl<'a> Interpreter<'a> {
    /// Prepares the execution of a kernel on these buffers.
    #[must_use]
    pub fn new(kir: &'a Kir, buffers: Vec<Vec<u8>>) -> Self {
        let immediates = vec![0; kir.immediates as usize];
        Self {
            kir,
            buffers,
            immediates,
            subgroup_size: 1,
            iteration_limit: 1_000_000,
            bounds: BoundsPolicy::default(),
        }
    }

    /// Executes all workgroups of a grid of `groups` workgroups along x, y and z.
    ///
    /// # Errors
    ///
    /// See [`InterpretError`].
    ///
    /// # Panics
    ///
    /// If the kernel breaks the typing rules of KIR, which `kir::verify` checks, or has cooperative
    /// matrices, which [`Kir::with_fragments`] replaces. Fragments have the layout of
    /// [`Inst::MultiplyFragments`](super::Inst::MultiplyFragments).
    pub fn run(&mut self, groups: [u32; 3]) -> Result<(), InterpretError> {
        for group in positions(groups) {
            let all = self.lanes();
            Workgroup::new(self.kir, self, [groups, group], None)?.run(all)?;
        }
        Ok(())
    }

    /// As [`run`](Self::run), and calls `observer` after each step of an invocation.
    ///
    /// # Errors
    ///
    /// See [`InterpretError`].
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn observe(
        &mut self,
        groups: [u32; 3],
        observer: &mut Observer<'_>,
    ) -> Result<(), InterpretError> {
        for group in positions(groups) {
            let all = self.lanes();
            Workgroup::new(self.kir, self, [groups, group], Some(observer))?.run(all)?;
        }
        Ok(())
    }

    /// Executes one invocation of a grid of `groups` workgroups, without the others, and calls
    /// `observer` after each of its steps.
    ///
    /// # Errors
    ///
    /// See [`InterpretError`].
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn observe_invocation(
        &mut self,
        groups: [u32; 3],
        invocation: Invocation,
        observer: &mut Observer<'_>,
    ) -> Result<(), InterpretError> {
        let [width, height, _] = self.kir.workgroup_size;
        let [x, y, z] = invocation.local;
        let lane = x + width * (y + height * z);
        Workgroup::new(self.kir, self, [groups, invocation.group], Some(observer))?.run(vec![lane])
    }

    /// All lanes of a workgroup.
    fn lanes(&self) -> Vec<u32> {
        (0..self.kir.workgroup_size.iter().product()).collect()
    }
}

/// All positions in a box, x fastest.
fn positions([x, y, z]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
}
