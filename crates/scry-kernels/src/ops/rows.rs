//! Matrices whose rows are computed one by one: what softmax and norms have in common.

use scry_gpu::{Binding, DType, NativeBinding, PreparedLaunch, Result};
use scry_ptx::kernels::rows::Rows;
use scry_ptx::kernels::{GpuSpec, Plan, PlanError};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::operation::Preparation;
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
    /// Describes the matrix in `x`, of `f32`, `f16` or `bf16`.
    pub(crate) fn new(
        function: &'static str,
        x: &dyn Binding,
        [rows, columns]: [usize; 2],
    ) -> Result<Self> {
        let (rows, columns) = (rows as u64, columns as u64);
        let call = Call { function: function.into(), sizes: sizes(rows, columns) };
        let dtype = call.dtype("x", x, &FLOATS)?;
        call.product("x", &[rows, columns])?;
        Ok(Self { rows, columns, dtype })
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> u64 {
        self.rows * self.columns
    }

    /// Returns the sizes with their names, for errors.
    pub(crate) fn sizes(&self) -> Vec<(&'static str, u64)> {
        sizes(self.rows, self.columns)
    }

    /// Returns the matrix as an argument that is read.
    pub(crate) fn read(&self, name: &str) -> NativeBinding {
        arguments::read(name, self.dtype, self.len())
    }

    /// Returns the matrix as an argument that is written.
    pub(crate) fn write(&self, name: &str) -> NativeBinding {
        arguments::write(name, self.dtype, self.len())
    }

    /// Returns why the plan of scry-ptx for the matrix cannot be run; `None` if it can.
    pub(crate) fn ptx_obstacle(
        &self,
        kernels: &Kernels,
        plan: impl FnOnce(Rows, GpuSpec) -> Result<Plan, PlanError>,
    ) -> Option<String> {
        ptx::obstacle(kernels, |gpu| plan(self.ptx(), gpu).map_err(to_parameters))
    }

    /// Prepares the plan of scry-ptx for the matrix.
    pub(crate) fn prepare_ptx(
        &self,
        preparation: &Preparation<'_>,
        plan: impl FnOnce(Rows, GpuSpec) -> Result<Plan, PlanError>,
    ) -> Result<Vec<PreparedLaunch>> {
        preparation.plan(ptx::plan(preparation.kernels, |gpu| plan(self.ptx(), gpu)))
    }

    fn ptx(&self) -> Rows {
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
    pub(crate) fn constants(&self) -> String {
        let threads = self.threads();
        let values = self.columns.div_ceil(threads.into()).next_power_of_two();
        let is_cached = values <= MAX_VALUES.into();
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

fn sizes(rows: u64, columns: u64) -> Vec<(&'static str, u64)> {
    vec![("rows", rows), ("columns", columns)]
}

/// Names the sizes as the functions do that the program calls.
fn to_parameters(error: PlanError) -> PlanError {
    match error {
        PlanError::Argument { kernel, argument, problem, help } => {
            let argument = match argument {
                "count" => "rows",
                "length" => "columns",
                other => other,
            };
            PlanError::Argument { kernel, argument, problem, help }
        }
        other => other,
    }
}
