//! Matrices whose rows are computed one by one: what softmax and norms have in common.

use scry_gpu::{BackendKind, DType, NativeBinding};
use scry_ptx::kernels::rows::Rows;

use crate::arguments;
use crate::elements;
use crate::kernels::Kernels;
use crate::ptx;

/// A row-major matrix without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowMatrix {
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    pub(crate) dtype: DType,
}

/// Invocations of a workgroup.
const WORKGROUP: u32 = 256;

/// Values of a row that an invocation holds at most.
const MAX_VALUES: u32 = 32;

impl RowMatrix {
    /// Returns the number of elements.
    pub(crate) fn len(&self) -> u64 {
        self.rows.saturating_mul(self.columns)
    }

    /// Returns the sizes with their names, for errors.
    pub(crate) fn sizes(&self) -> Vec<(&'static str, u64)> {
        vec![("rows", self.rows), ("columns", self.columns)]
    }

    /// Returns the matrix as an argument that is read.
    pub(crate) fn read(&self, name: &str) -> NativeBinding {
        arguments::read(name, self.dtype, self.len())
    }

    /// Returns the matrix as an argument that is written.
    pub(crate) fn write(&self, name: &str) -> NativeBinding {
        arguments::write(name, self.dtype, self.len())
    }

    /// Returns the matrix for scry-ptx.
    pub(crate) fn ptx(&self) -> Rows {
        Rows { count: self.rows, length: self.columns, element: ptx::element(self.dtype) }
    }

    /// Returns why WGSL kernels cannot compute it; `None` if they can.
    pub(crate) fn wgsl_obstacle(&self, kernels: &Kernels) -> Option<String> {
        elements::obstacle(self.dtype, kernels).or_else(|| elements::too_long(&[self.len()]))
    }

    /// Returns how many invocations compute a row in WGSL, a power of two: few for short rows, so
    /// that each still has several values.
    fn threads(&self) -> u32 {
        let quarter = self.columns.div_ceil(4).min(WORKGROUP.into()) as u32;
        quarter.next_power_of_two()
    }

    /// Returns the constants that precede `rows.wgsl`.
    pub(crate) fn constants(&self, kernels: &Kernels) -> String {
        let threads = self.threads();
        let values = self.columns.div_ceil(threads.into()).next_power_of_two();
        // On the CPU an array of values is memory too, no faster than the row itself.
        let is_cpu = kernels.device().backend_kind() == BackendKind::Cpu;
        let is_cached = values <= MAX_VALUES.into() && !is_cpu;
        let values = if is_cached { values } else { 1 };
        format!(
            "const THREADS = {threads}u;\nconst VALUES = {values}u;\nconst CACHED = {is_cached};\n"
        )
    }

    /// Returns the workgroups of a launch of a kernel that `rows.wgsl` precedes.
    pub(crate) fn workgroups(&self) -> [u32; 3] {
        let rows = u64::from(WORKGROUP / self.threads());
        // The number of elements fits in 32 bits.
        [self.rows.div_ceil(rows) as u32, 1, 1]
    }
}
