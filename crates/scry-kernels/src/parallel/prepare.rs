//! Checks of layers, and what each rank does for them.

use scry_gpu::{Binding, DType, DeviceGroup, Result, UntypedBuffer};
use scry_ptx::kernels::PlanError;
use scry_ptx::kernels::gemm::{Epilogue, Gemm, Layout, Precision};

use super::layer::{ColumnParallelLinear, RowParallelLinear};
use super::op::{ParallelOp, Step};
use super::shard::shard;
use crate::arguments::{check_declared, read, write};
use crate::call::Call;
use crate::elements::FLOATS;
use crate::kernels::{KernelOptions, Kernels};
use crate::op::Op;
use crate::ptx;

/// Linear layers that are split over a group of devices.
///
/// All ranks prepare the same layer, and run it in the same order as their other collectives.
impl Kernels {
    /// Prepares a linear layer whose output features are split over the ranks of a group.
    ///
    /// With f features ([`shard`] of `out_features`) on this rank, its buffers are `x`, rows ×
    /// `in_features`, the same on all ranks; `weight`, f × `in_features`; the bias, f, if there is
    /// one; and `out`, rows × f. All are row-major without padding and may be longer. The number of
    /// features need not be a multiple of the number of ranks, and no rank waits for another.
    ///
    /// With [`ColumnParallelLinear::gather_output`], `out` is rows × `out_features` on each rank,
    /// `out_features` must be a multiple of the number of ranks, and the op has scratch memory: the
    /// output twice, with more than one row.
    ///
    /// `x` and `weight` have the same type: `f32`, `f16` or `bf16`; the bias and `out` have that
    /// type or `f32`. Each output is computed by one rank, as on a single one but for the order of
    /// additions, which fast variants choose by the number of features. With
    /// [`KernelOptions::deterministic`] the variant is `wgsl`, whose order is fixed: on one kind of
    /// device, results have the same bits for any number of ranks.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    /// use scry_kernels::{ColumnParallelLinear, Kernels, shard};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let weight = [1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0]; // 3 × 2
    /// let outputs = DeviceGroup::on_each(&devices, |group| {
    ///     let (gpu, features) = (group.device(), shard(3, group.rank(), group.world_size()));
    ///     let x = gpu.upload(&[5.0f32, 7.0])?; // 1 × 2
    ///     let rows = gpu.upload(&weight[2 * features.start..2 * features.end])?;
    ///     let out = gpu.alloc::<f32>(features.len())?;
    ///     let layer = ColumnParallelLinear::new(1, 2, 3);
    ///     let kernels = Kernels::new(gpu)?;
    ///     kernels.column_parallel_linear(group, &layer, &[&x, &rows, &out])?.run(group)?;
    ///     out.download()
    /// })?;
    /// assert_eq!(outputs, [vec![5.0, 7.0], vec![12.0]]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::gemm`], and [`GpuError::Argument`](scry_gpu::GpuError::Argument) if the group
    /// has another device, or for features that cannot be gathered.
    pub fn column_parallel_linear(
        &self,
        group: &DeviceGroup,
        layer: &ColumnParallelLinear,
        buffers: &[&dyn Binding],
    ) -> Result<ParallelOp> {
        let ColumnParallelLinear { rows, in_features, out_features, bias, gather_output, .. } =
            *layer;
        let function = "Kernels::column_parallel_linear";
        let request = Request::new(self, function, group, [rows, in_features, out_features]);
        let request = request?.typed(buffers, bias)?;
        let (world_size, features) = (group.world_size(), request.shard(out_features));
        let gathers = gather_output && world_size > 1;
        if gathers {
            request.check_multiple("`out_features`", out_features, "to gather the output")?;
        }
        let columns = if gather_output { out_features } else { features };
        let lens = [rows * in_features, features * in_features, features, rows * columns];
        request.check(buffers, bias, lens)?;
        let kernels = self.with_fixed_order();
        let mut gemm = request.gemm([rows, features, in_features], layer.precision);
        gemm.epilogue = Epilogue { bias, activation: layer.activation, ..Epilogue::NONE };
        let (out, inputs) = request.split_out(buffers, rows * columns)?;
        if !gathers {
            let product = request.product(&kernels, &gemm, (&inputs, &out))?;
            return Ok(request.finish(product, Vec::new()));
        }
        // Gathered, the parts of the ranks follow one another, each with all rows.
        let part = request.scratch(rows * features)?;
        let product = request.product(&kernels, &gemm, (&inputs, &part))?;
        if rows <= 1 {
            let gather = Step::AllGather { source: part, destination: out };
            return Ok(request.finish(product, vec![gather]));
        }
        let parts = request.scratch(rows * out_features)?;
        let plain = KernelOptions { variant: None, ..self.options().clone() };
        let dims = [world_size, rows, features];
        let interleave = self.having(plain).permute(&parts, &out, &dims, &[1, 0, 2]);
        let interleave = interleave.map_err(|error| request.call.for_function(error))?;
        let gather = Step::AllGather { source: part, destination: parts };
        Ok(request.finish(product, vec![gather, Step::Compute(interleave)]))
    }

    /// Prepares a linear layer whose input features are split over the ranks of a group.
    ///
    /// With f features ([`shard`] of `in_features`) on this rank, its buffers are `x`, rows × f, as
    /// [`Kernels::column_parallel_linear`] leaves it; `weight`, `out_features` × f; the bias,
    /// `out_features`, if there is one; and `out`, rows × `out_features`. All are row-major without
    /// padding and may be longer. The number of features need not be a multiple of the number of
    /// ranks.
    ///
    /// With [`RowParallelLinear::scatter_output`], `out` is the rank's part of the rows, whose
    /// number must be a multiple of the number of ranks, and the op has scratch memory: the whole
    /// output.
    ///
    /// `x` and `weight` have the same type: `f32`, `f16` or `bf16`; the bias and `out` have that
    /// type or `f32`. Each rank rounds its product to the type of `out`, and the collective adds
    /// these, so that with N ranks an output differs from the exact value by at most that of a
    /// product on one rank plus N + 1 roundings, each relative to the sum of the absolute values of
    /// all terms; with 16-bit operands, an `out` of `f32` avoids them. All ranks receive the same
    /// bits, and so do repeated runs on the same group.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    /// use scry_kernels::{Kernels, RowParallelLinear, shard};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let (x, weight) = ([1.0f32, 2.0, 3.0], [10.0f32, 20.0, 30.0]); // 1 × 3 both
    /// let outputs = DeviceGroup::on_each(&devices, |group| {
    ///     let (gpu, features) = (group.device(), shard(3, group.rank(), group.world_size()));
    ///     let (x, weight) = (gpu.upload(&x[features.clone()])?, gpu.upload(&weight[features])?);
    ///     let out = gpu.alloc::<f32>(1)?;
    ///     let layer = RowParallelLinear::new(1, 3, 1);
    ///     let kernels = Kernels::new(gpu)?;
    ///     kernels.row_parallel_linear(group, &layer, &[&x, &weight, &out])?.run(group)?;
    ///     out.get(0)
    /// })?;
    /// assert_eq!(outputs, [140.0, 140.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kernels::gemm`], and [`GpuError::Argument`](scry_gpu::GpuError::Argument) if the group
    /// has another device, or for rows that cannot be scattered.
    pub fn row_parallel_linear(
        &self,
        group: &DeviceGroup,
        layer: &RowParallelLinear,
        buffers: &[&dyn Binding],
    ) -> Result<ParallelOp> {
        let RowParallelLinear { rows, in_features, out_features, bias, scatter_output, .. } =
            *layer;
        let function = "Kernels::row_parallel_linear";
        let request = Request::new(self, function, group, [rows, in_features, out_features]);
        let request = request?.typed(buffers, bias)?;
        let (world_size, features) = (group.world_size(), request.shard(in_features));
        let scatters = scatter_output && world_size > 1;
        if scatters {
            request.check_multiple("`rows`", rows, "to scatter the output")?;
        }
        let len = rows / if scatters { world_size } else { 1 } * out_features;
        request.check(
            buffers,
            bias,
            [rows * features, out_features * features, out_features, len],
        )?;
        let (out, mut inputs) = request.split_out(buffers, len)?;
        let adds_bias = bias && group.rank() == 0;
        if !adds_bias {
            inputs.truncate(2);
        }
        let mut gemm = request.gemm([rows, out_features, features], layer.precision);
        gemm.epilogue = Epilogue { bias: adds_bias, ..Epilogue::NONE };
        if scatters {
            let partial = request.scratch(rows * out_features)?;
            let product = request.product(self, &gemm, (&inputs, &partial))?;
            let scatter = Step::ReduceScatter { source: partial, destination: out };
            return Ok(request.finish(product, vec![scatter]));
        }
        let product = request.product(self, &gemm, (&inputs, &out))?;
        let sum = (world_size > 1).then_some(Step::AllReduce(out));
        Ok(request.finish(product, sum.into_iter().collect()))
    }

    /// Returns the kernels for products whose order of additions must not depend on their sizes, if
    /// the options say so. The other variants choose tiles, or parts of K, by the sizes.
    fn with_fixed_order(&self) -> Self {
        match self.options() {
            options @ KernelOptions { variant: None, deterministic: true, .. } => {
                let variant = Some("wgsl".to_owned());
                self.having(KernelOptions { variant, ..options.clone() })
            }
            _ => self.clone(),
        }
    }
}

/// A call of a rank.
struct Request<'r> {
    kernels: &'r Kernels,
    group: &'r DeviceGroup,
    function: &'static str,
    call: Call,
    /// The sizes of the whole layer: rows, input and output features.
    sizes: [usize; 3],
    element: DType,
    output: DType,
}

impl<'r> Request<'r> {
    /// Checks the group.
    fn new(
        kernels: &'r Kernels,
        function: &'static str,
        group: &'r DeviceGroup,
        sizes: [usize; 3],
    ) -> Result<Self> {
        let names = ["rows", "in_features", "out_features"];
        let named = names.into_iter().zip(sizes.map(|size| size as u64)).collect();
        let call = Call { function: function.into(), sizes: named };
        if group.device() != kernels.device() {
            let (own, other) = (kernels.device().name(), group.device().name());
            return Err(call.argument_error(
                "`group`",
                format!("has another device ({other}) than the kernels ({own})"),
                "open the kernels on DeviceGroup::device",
            ));
        }
        Ok(Self { kernels, group, function, call, sizes, element: DType::F32, output: DType::F32 })
    }

    /// Determines the element types, and checks the sizes of the whole layer.
    fn typed(mut self, buffers: &[&dyn Binding], bias: bool) -> Result<Self> {
        let out = 2 + usize::from(bias);
        if let (Some(x), Some(y)) = (buffers.first(), buffers.get(out)) {
            self.element = self.call.dtype("x", *x, &FLOATS)?;
            self.output = self.call.dtype("out", *y, &[self.element, DType::F32])?;
        }
        let [rows, in_features, out_features] = self.sizes;
        let whole = self.gemm([rows, out_features, in_features], Precision::Full);
        whole.buffers().map_err(|error| {
            let info = self.kernels.device().info();
            ptx::plan_error(info, &self.call, with_layer_names(error))
        })?;
        Ok(self)
    }

    /// Returns the number of features of this rank.
    fn shard(&self, features: usize) -> usize {
        shard(features, self.group.rank(), self.group.world_size()).len()
    }

    fn check_multiple(&self, argument: &str, size: usize, purpose: &str) -> Result<()> {
        let world_size = self.group.world_size();
        if size.is_multiple_of(world_size) {
            return Ok(());
        }
        Err(self.call.argument_error(
            argument,
            format!("is {size}, not a multiple of the {world_size} ranks, {purpose}"),
            format!("pad to {}, or leave the output as it is", size.next_multiple_of(world_size)),
        ))
    }

    /// Checks number, types, lengths and overlaps of the buffers: `x`, `weight`, the bias, `out`.
    fn check(&self, buffers: &[&dyn Binding], bias: bool, lens: [usize; 4]) -> Result<()> {
        let [x, weight, biases, out] = lens.map(|len| len as u64);
        let mut declared = vec![read("x", self.element, x), read("weight", self.element, weight)];
        declared.extend(bias.then(|| read("bias", self.output, biases)));
        declared.push(write("out", self.output, out));
        check_declared(self.kernels.device(), &self.call, declared, buffers)
    }

    /// Returns the product of row-major `x` and transposed weights.
    fn gemm(&self, [m, n, k]: [usize; 3], precision: Precision) -> Gemm {
        let element = ptx::element(self.element);
        let gemm = Gemm::new(m as u64, n as u64, k as u64, element);
        let gemm = gemm.with_layouts(Layout::RowMajor, Layout::ColMajor);
        Gemm { output: ptx::element(self.output), precision, ..gemm }
    }

    /// Returns the `len` elements that are written, and the other buffers.
    fn split_out<'b>(
        &self,
        buffers: &[&'b dyn Binding],
        len: usize,
    ) -> Result<(UntypedBuffer, Vec<&'b dyn Binding>)> {
        let (out, inputs) = buffers.split_last().expect("their number was checked");
        Ok((out.to_untyped().slice(..len)?, inputs.to_vec()))
    }

    fn scratch(&self, len: usize) -> Result<UntypedBuffer> {
        let buffer = self.kernels.device().alloc_untyped(self.output, len);
        let buffer = buffer.map_err(|error| self.call.for_function(error))?;
        Ok(buffer.with_label("scratch memory of a parallel layer"))
    }

    fn product(
        &self,
        kernels: &Kernels,
        gemm: &Gemm,
        (inputs, out): (&[&dyn Binding], &UntypedBuffer),
    ) -> Result<Op> {
        let buffers: Vec<&dyn Binding> = inputs.iter().copied().chain([out as _]).collect();
        kernels.prepare_gemm(self.function, *gemm, &buffers)
    }

    fn finish(self, product: Op, rest: Vec<Step>) -> ParallelOp {
        let explanation = product.explain().clone();
        let steps = [Step::Compute(product)].into_iter().chain(rest).collect();
        ParallelOp {
            call: self.call,
            device: self.kernels.device().clone(),
            rank: self.group.rank(),
            world_size: self.group.world_size(),
            steps,
            explanation,
        }
    }
}

/// Replaces a GEMM's names of sizes by those of a layer.
fn with_layer_names(error: PlanError) -> PlanError {
    match error {
        PlanError::Argument { kernel, argument, problem, help } => {
            let argument = match argument {
                "m" => "rows",
                "n" => "out_features",
                "k" => "in_features",
                "a" => "x",
                "b" => "weight",
                other => other,
            };
            PlanError::Argument { kernel, argument, problem, help }
        }
        other => other,
    }
}
