//! Matrices whose rows are computed one by one: what softmax and norms have in common.

use scry_gpu::{
    BackendKind, Binding, DType, Features, NativeBinding, PreparedLaunch, Result, UntypedBuffer,
};
use scry_ptx::kernels::rows::Rows;
use scry_ptx::kernels::{GpuSpec, Plan, PlanError};

use crate::arguments;
use crate::call::Call;
use crate::elements::{self, FLOATS};
use crate::kernels::Kernels;
use crate::operation::Preparation;
use crate::ptx;
use crate::wgsl::{Immediates, WgslLaunch};

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
const MAX_VALUES: u64 = 32;

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
        call.product("buffer `x`", &[rows, columns])?;
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

    /// Returns why WGSL kernels with subgroups cannot compute it; `None` if they can.
    pub(crate) fn subgroups_obstacle(&self, kernels: &Kernels) -> Option<String> {
        let info = kernels.device().info();
        let size = info.subgroup_size;
        if !info.features.contains(Features::SUBGROUPS) || !size.is_power_of_two() {
            return Some("needs subgroups".to_owned());
        }
        if !(16..=64).contains(&size) {
            return Some(format!("needs subgroups of 16 to 64 invocations, not {size}"));
        }
        self.wgsl_obstacle(kernels)
    }

    /// Returns the number of elements that are loaded together.
    fn width(&self) -> u64 {
        let has_vectors = self.dtype != DType::BF16 && self.columns.is_multiple_of(4);
        if has_vectors { 4 } else { 1 }
    }

    /// Returns how many invocations compute a row in WGSL, a power of two: few for short rows, so
    /// that each still has several chunks.
    fn threads(&self) -> u32 {
        let chunks = self.columns / self.width();
        let quarter = chunks.div_ceil(4).clamp(1, WORKGROUP.into()) as u32;
        quarter.next_power_of_two()
    }

    /// Returns the constants and definitions that precede `rows.wgsl`.
    fn constants(&self, kernels: &Kernels) -> String {
        let threads = self.threads();
        let chunks = self.columns / self.width();
        let values = chunks.div_ceil(threads.into()).next_power_of_two();
        // On the CPU an array of values is memory too, no faster than the row itself.
        let is_cpu = kernels.device().backend_kind() == BackendKind::Cpu;
        let is_cached = values * self.width() <= MAX_VALUES && !is_cpu;
        let values = if is_cached { values } else { 1 };
        let subgroup = kernels.device().subgroup_size();
        format!(
            "const THREADS = {threads}u;\nconst VALUES = {values}u;\nconst CACHED = {is_cached};\n\
             const SUBGROUP = {subgroup}u;\n"
        )
    }

    /// Prepares the launch of a kernel over rows: `declarations` precede `body`, which defines the
    /// function `row` of a workgroup and a position in it.
    pub(crate) fn launch(
        &self,
        preparation: &Preparation<'_>,
        kernel: &RowKernel<'_>,
    ) -> Result<Vec<PreparedLaunch>> {
        let chunks = match self.width() {
            4 => [elements::quads(self.dtype), include_str!("../shaders/rows/vec4.wgsl")],
            _ => ["", include_str!("../shaders/rows/scalar.wgsl")],
        };
        let (reductions, main) = match kernel.by_subgroups {
            true => (
                include_str!("../shaders/rows/subgroups.wgsl"),
                subgroups_main(kernel.name, kernel.row),
            ),
            false => (include_str!("../shaders/rows/tree.wgsl"), main(kernel.name, kernel.row)),
        };
        let launch = WgslLaunch {
            source: &[
                elements::prelude(self.dtype),
                &self.constants(preparation.kernels),
                chunks[0],
                chunks[1],
                kernel.declarations,
                include_str!("../shaders/rows/rows.wgsl"),
                reductions,
                kernel.body,
                &main,
            ],
            buffers: kernel.buffers,
            immediates: Immediates::default()
                .u32(self.rows as u32)
                .u32(self.columns as u32)
                .f32(kernel.epsilon),
            workgroups: self.workgroups(),
        };
        Ok(vec![preparation.wgsl(&launch)?])
    }

    /// Returns the workgroups of a launch of a kernel that `rows.wgsl` precedes.
    fn workgroups(&self) -> [u32; 3] {
        let rows = u64::from(WORKGROUP / self.threads());
        // The number of elements fits in 32 bits.
        [self.rows.div_ceil(rows) as u32, 1, 1]
    }
}

/// A WGSL kernel over rows.
pub(crate) struct RowKernel<'k> {
    /// The name of the entry point.
    pub(crate) name: &'static str,
    /// The function of the body that computes a row.
    pub(crate) row: &'static str,
    /// Constants, bindings and functions that precede `rows.wgsl`.
    pub(crate) declarations: &'k str,
    /// The source that follows the reductions.
    pub(crate) body: &'static str,
    pub(crate) buffers: &'k [&'k UntypedBuffer],
    pub(crate) epsilon: f32,
    pub(crate) by_subgroups: bool,
}

/// Returns the entry point of a kernel whose positions are local indices.
fn main(name: &str, row: &str) -> String {
    format!(
        "@compute @workgroup_size(256)\n\
         fn {name}(\n    @builtin(workgroup_id) group: vec3<u32>,\n    \
         @builtin(local_invocation_index) local_index: u32,\n) {{\n    \
         {row}(group.x, local_index);\n}}\n"
    )
}

/// Returns the entry point of a kernel whose positions are those in the subgroups: WGSL does not
/// specify how local indices map to them.
fn subgroups_main(name: &str, row: &str) -> String {
    format!(
        "@compute @workgroup_size(256)\n\
         fn {name}(\n    @builtin(workgroup_id) group: vec3<u32>,\n    \
         @builtin(subgroup_id) subgroup: u32,\n    \
         @builtin(subgroup_invocation_id) lane: u32,\n) {{\n    \
         {row}(group.x, subgroup * SUBGROUP + lane);\n}}\n"
    )
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
