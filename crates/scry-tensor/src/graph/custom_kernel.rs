//! Custom kernels as nodes.

use std::sync::Arc;

use scry_gpu::{Binding, Launch, PreparedLaunch, UntypedBuffer};

use super::Graph;
use super::dim::{Dim, DimShape};
use super::node::{Content, CustomKernel, Nodes, Operand};
use crate::dtype::{DType, ELEMENTS};
use crate::error::{Call, ErrorKind, Result};
use crate::shape::check_count;
use crate::tensor::Tensor;

impl Graph {
    /// Adds a custom WGSL kernel, and returns its outputs. Its bindings are the inputs and then the
    /// outputs, in this order, all of `var<storage>`; it must not write its inputs.
    ///
    /// It runs with one invocation along x for each element of the first output, rounded up to
    /// whole workgroups. Inputs are in row-major order without gaps; outputs are 0 before it runs.
    /// Bindings have whole words: `arrayLength` of an odd number of 16-bit floats counts one more,
    /// whose value is unspecified.
    /// It is not run if an input or an output has no elements. It must be a function of its inputs:
    /// equal kernels of equal inputs run once. It is not fused with other operations.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let x = g.input("x", (g.dim("n", 1..=100),))?;
    /// let differences = g.kernel(
    ///     "@group(0) @binding(0) var<storage, read> x: array<f32>;
    ///      @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    ///      @compute @workgroup_size(64) fn differences(@builtin(global_invocation_id) id: vec3u) {
    ///          if id.x + 1 < arrayLength(&y) { y[id.x] = x[id.x + 1] - x[id.x]; }
    ///      }",
    ///     &[&x],
    ///     &[((g.dim("n", 1..=100),).into(), DType::F32)],
    /// )?;
    /// let plan = g.compile(&[differences[0].abs()?])?;
    /// let data = Tensor::new([1.0f32, 4.0, 2.0], &gpu)?;
    /// assert_eq!(plan.run(&[("x", &data)])?[0].to_vec::<f32>()?, [3.0, 2.0, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`] if the kernel does not compile; [`ErrorKind::Graph`] if its bindings are
    /// not the inputs and outputs, it writes an input, or there is no output; [`ErrorKind::DType`]
    /// for quantised types; otherwise as [`Graph::input`].
    #[doc(alias = "custom_op")]
    #[track_caller]
    pub fn kernel(
        &self,
        wgsl: &str,
        inputs: &[&Tensor],
        outputs: &[(DimShape, DType)],
    ) -> Result<Vec<Tensor>> {
        let call = Call::new("Graph::kernel");
        let kernel = self.device().compile(wgsl).map_err(|error| call.gpu(error));
        let add = |kernel| self.add_kernel(call, (wgsl, kernel), inputs, outputs);
        self.recorder.scoped(kernel.and_then(add))
    }

    /// Async form of [`kernel`](Self::kernel): compiles the kernel on another thread, and then adds
    /// it. Nothing is added if the future is dropped before.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{DType, Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let x = g.input("x", [8])?;
    /// let wgsl = "
    ///     @group(0) @binding(0) var<storage, read> x: array<f32>;
    ///     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    ///     @compute @workgroup_size(8) fn twice(@builtin(global_invocation_id) id: vec3u) {
    ///         if id.x < arrayLength(&y) { y[id.x] = 2 * x[id.x]; }
    ///     }";
    /// let twice = g.kernel_async(wgsl, &[&x], &[([8].into(), DType::F32)]).await?;
    /// assert_eq!(*twice[0].shape(), [8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Graph::kernel`].
    #[track_caller]
    pub fn kernel_async(
        &self,
        wgsl: &str,
        inputs: &[&Tensor],
        outputs: &[(DimShape, DType)],
    ) -> impl Future<Output = Result<Vec<Tensor>>> + use<> {
        let call = Call::new("Graph::kernel_async");
        let (graph, wgsl, outputs) = (self.clone(), wgsl.to_owned(), outputs.to_vec());
        let inputs: Vec<Tensor> = inputs.iter().map(|it| (*it).clone()).collect();
        async move {
            let kernel = graph.device().compile_async(&wgsl).await;
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            let add = |kernel| graph.add_kernel(call, (&wgsl, kernel), &inputs, &outputs);
            graph.recorder.scoped(kernel.map_err(|error| call.gpu(error)).and_then(add))
        }
    }

    fn add_kernel(
        &self,
        call: Call,
        (wgsl, kernel): (&str, scry_gpu::Kernel),
        inputs: &[&Tensor],
        outputs: &[(DimShape, DType)],
    ) -> Result<Vec<Tensor>> {
        check_bindings(call, &kernel, inputs.len(), outputs.len())?;
        for dtype in inputs.iter().map(|it| it.dtype()).chain(outputs.iter().map(|it| it.1)) {
            call.check_dtype(dtype, ELEMENTS)?;
        }
        let mut nodes = self.recorder.lock();
        let operands: Vec<Operand<'_>> = inputs.iter().map(|it| it.operand()).collect();
        let sources = self.recorder.sources(call, &mut nodes, &operands)?;
        let mut shapes = Vec::with_capacity(outputs.len());
        for (DimShape(sizes), dtype) in outputs {
            sizes.iter().try_for_each(|dim| super::check_dim(call, &nodes, dim))?;
            let shape = Nodes::shapes(call, sizes)?;
            check_count(call, &shape[0], *dtype)?;
            shapes.push(shape);
        }
        let outputs: Vec<(Vec<Dim>, DType)> =
            outputs.iter().map(|(shape, dtype)| (shape.0.clone(), *dtype)).collect();
        let dtypes: Vec<DType> = outputs.iter().map(|(_, dtype)| *dtype).collect();
        let custom = CustomKernel { source: wgsl.into(), kernel, outputs };
        let known = nodes.kernels.iter().position(|it| it.is_same(&custom));
        let position = known.unwrap_or(nodes.kernels.len());
        if known.is_none() {
            nodes.kernels.push(Arc::new(custom));
        }
        let mut parts = shapes.into_iter().zip(dtypes).enumerate();
        let mut added = Vec::new();
        let mut first = None;
        for (n, (shape, dtype)) in &mut parts {
            let (content, sources) = match first {
                None => (Content::Kernel(position), sources.clone()),
                Some(first) => (Content::Part(n), vec![first]),
            };
            let id = nodes.add(call, content, sources, shape, dtype);
            first = first.or(Some(id));
            added.push(Tensor::from(self.recorder.handle(&nodes, id)));
        }
        Ok(added)
    }
}

/// Checks that a kernel has a binding for each input and output, and does not write its inputs.
fn check_bindings(
    call: Call,
    kernel: &scry_gpu::Kernel,
    inputs: usize,
    outputs: usize,
) -> Result<()> {
    let bindings = &kernel.interface().bindings;
    let help = "declare the inputs as `var<storage, read>`, then the outputs as \
                `var<storage, read_write>`, and use all of them";
    let error = |problem: String| Err(call.error(ErrorKind::Graph, problem, help));
    if outputs == 0 {
        return error("the kernel has no output".to_owned());
    }
    if bindings.len() != inputs + outputs {
        let count = bindings.len();
        return error(format!(
            "the kernel uses {count} bindings, but has {inputs} inputs and {outputs} outputs"
        ));
    }
    match bindings[..inputs].iter().find(|binding| binding.access.writes()) {
        Some(binding) => error(format!("the kernel writes its input `{}`", binding.name)),
        None => Ok(()),
    }
}

impl std::fmt::Debug for CustomKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.kernel.entry_point())
    }
}

impl CustomKernel {
    /// Returns whether two kernels compute the same.
    fn is_same(&self, other: &Self) -> bool {
        self.source == other.source && self.outputs == other.outputs
    }

    /// Prepares the kernel for buffers of the inputs and the outputs, with their types; `None` if
    /// one of them is empty.
    pub(super) fn prepare(
        &self,
        buffers: &[(&UntypedBuffer, DType)],
        invocations: usize,
    ) -> scry_gpu::Result<Option<PreparedLaunch>> {
        if buffers.iter().any(|(buffer, _)| buffer.byte_size() == 0) {
            return Ok(None);
        }
        let views: scry_gpu::Result<Vec<UntypedBuffer>> =
            buffers.iter().map(|(buffer, dtype)| buffer.view_as(dtype.of_buffer())).collect();
        let views = views?;
        let bindings: Vec<&dyn Binding> = views.iter().map(|it| it as &dyn Binding).collect();
        let launch = Launch::invocations(invocations as u32);
        self.kernel.prepare(&bindings, launch).map(Some)
    }
}
