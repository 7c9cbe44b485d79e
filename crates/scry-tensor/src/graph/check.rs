//! Checks of plans: each kernel against the operations that were recorded, one by one.

use std::sync::Arc;

use scry_gpu::{Batch, Device, UntypedBuffer};

use super::bound_graph::{BoundGraph, Sizes};
use super::compiled::{Plan, Shared};
use super::grouped::{Kernel, Work};
use super::reference::{Replaced, viewed};
use super::row_reference;
use super::specialised::Specialised;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Call, Error, ErrorKind, Result};
use crate::shape::{Layout, Shape, coordinates};
use crate::stored::Stored;
use crate::tensor::Tensor;
use crate::waiting::{Waiting, now};

impl Plan {
    /// Runs the plan and, one by one, the operations that were recorded, and compares the result
    /// of each kernel. Returns how many results were compared.
    ///
    /// Integers and bools must be equal; floats may differ by 1e-5 (`f16`: 2e-3, `bf16`: 2e-2) of
    /// the larger of 1 and their magnitude, because drivers may contract operations of one kernel.
    /// Sums of rows that are computed in another order ([`Fusion::Full`](crate::Fusion::Full)) are
    /// compared with those of the kernel library, by the bound of their errors, and the operations
    /// after them continue with the sums of this order.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let x = g.input("x", [2, 2])?;
    /// let plan = g.compile(&[(x.exp()?.matmul(&x)? + 1.0)?])?;
    /// let data = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu)?;
    /// assert_eq!(plan.check(&[("x", &data)])?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] for the first kernel whose result differs: names its operations, the
    /// line that recorded the last of them, the first index, and both values; otherwise as
    /// [`Plan::run`].
    #[track_caller]
    pub fn check(&self, inputs: &[(&str, &Tensor)]) -> Result<usize> {
        let call = Call::new("Plan::check");
        now(self.check_by(call, &self.inputs(call, inputs)?, Waiting::Blocking))
    }

    /// Checks a run of inputs in the order of the graph.
    pub(super) async fn check_by(
        &self,
        call: Call,
        inputs: &[Arc<Stored>],
        waiting: Waiting,
    ) -> Result<usize> {
        let sizes = self.sizes(call, inputs)?;
        let specialised = self.specialised_by(call, sizes.clone(), waiting).await?;
        self.compare(call, specialised, &sizes, inputs, waiting).await
    }

    /// Returns copies of the states, after the runs so far.
    pub(super) fn copied_states(&self, call: Call) -> Result<Vec<UntypedBuffer>> {
        let mut batch = self.device().batch();
        let states = self.save_states(&mut batch);
        let submitted = states.and_then(|states| batch.submit_async().map(|_| states));
        submitted.map_err(|error| call.gpu(error))
    }

    /// Adds copies of the states to a batch, and returns them.
    fn save_states(&self, batch: &mut Batch) -> scry_gpu::Result<Vec<UntypedBuffer>> {
        self.shared().states.iter().map(|state| copied(self.device(), batch, state)).collect()
    }

    /// Runs, and restores the states, in one submission. Returns the states before it, and the
    /// results of each kernel.
    fn run_observed(
        &self,
        call: Call,
        specialised: &Specialised,
        inputs: &[Arc<Stored>],
    ) -> Result<(Vec<UntypedBuffer>, Vec<Vec<UntypedBuffer>>)> {
        let device = self.device();
        let mut batch = device.batch();
        let states = self.save_states(&mut batch).map_err(|error| call.gpu(error))?;
        let mut results: Vec<Vec<UntypedBuffer>> = Vec::new();
        let mut keep = |batch: &mut Batch, position: usize, result: &UntypedBuffer| {
            results.resize_with(position + 1, Vec::new);
            results[position].push(copied(device, batch, result)?);
            Ok(())
        };
        self.add_run(call, &mut batch, specialised, inputs, Some(&mut keep))?;
        let mut pairs = self.shared().states.iter().zip(&states).filter(|(it, _)| !it.is_empty());
        let restored = pairs.try_for_each(|(state, copy)| batch.copy(copy, state).map(drop));
        let submitted = restored.and_then(|()| batch.submit_async().map(drop));
        submitted.map_err(|error| call.gpu(error))?;
        Ok((states, results))
    }

    /// Compares a plan for sizes with the recorded operations.
    async fn compare(
        &self,
        call: Call,
        specialised: Arc<Specialised>,
        sizes: &Sizes,
        inputs: &[Arc<Stored>],
        waiting: Waiting,
    ) -> Result<usize> {
        let packed = self.packed_by(call, inputs, waiting).await?;
        let inputs = &packed[..];
        let specialised = &*specialised;
        let run = || self.run_observed(call, specialised, inputs);
        let (states, results) = waiting.submit(call, self.device(), run).await?;
        let recorded = self.shared().graph.bind(sizes)?;
        let orders = row_reference::orders(specialised);
        let mut replaced = epilogue_results(self.shared(), specialised, &results, &recorded);
        let given = (inputs, &states[..]);
        let (values, parts) =
            self.one_by_one(&recorded, given, &orders, &mut replaced, waiting).await?;
        for (id, order) in &orders {
            if let Some(found) = order.difference(call, &recorded, *id, &values, waiting).await? {
                let (position, found, wanted) = found;
                let (found, wanted) = (found.to_string(), wanted.to_string());
                let shape = recorded.nodes[id.index()].shape.clone();
                let difference = Difference { shape, position, found, wanted };
                return Err(mismatch(specialised, order.kernel, &difference));
            }
        }
        let mut compared = 0;
        for (position, buffers) in results.into_iter().enumerate() {
            let kernel = &specialised.grouped.kernels[position];
            let buffers = buffers.into_iter();
            for (value, buffers) in
                kernel.values().into_iter().zip(grouped_results(kernel, buffers))
            {
                let Some((id, views)) = value else { continue };
                let node = &specialised.graph.nodes[id.index()];
                let own = replaced.get(&node.origin).unwrap_or(&values[node.origin.index()]);
                let first = viewed(call, own, views, waiting).await?;
                let scales = match replaced.contains_key(&node.origin) {
                    true => magnitudes(call, specialised, position, &values, waiting).await?,
                    false => Vec::new(),
                };
                let parts = parts.get(&node.origin).map_or(&[][..], |parts| &parts[1..]);
                for (wanted, buffer) in std::iter::once(&first).chain(parts).zip(buffers) {
                    let layout = Layout::contiguous(wanted.shape().clone());
                    let found = Stored { buffer, layout, ..wanted.clone() };
                    let difference = difference(call, [&found, wanted], &scales, waiting).await?;
                    compared += 1;
                    if let Some(difference) = difference {
                        return Err(mismatch(specialised, position, &difference));
                    }
                }
            }
        }
        Ok(compared)
    }
}

/// Adds a copy of a buffer to a batch, and returns it.
fn copied(
    device: &Device,
    batch: &mut Batch,
    buffer: &UntypedBuffer,
) -> scry_gpu::Result<UntypedBuffer> {
    let copy = device.alloc_untyped(None, buffer.byte_size() as usize)?;
    if !buffer.is_empty() {
        batch.copy(buffer, &copy)?;
    }
    Ok(copy)
}

/// Returns the results of a kernel that belong to each of its values: all those of a kernel of the
/// program, or one.
fn grouped_results(
    kernel: &Kernel,
    buffers: impl Iterator<Item = UntypedBuffer>,
) -> Vec<Vec<UntypedBuffer>> {
    match &kernel.work {
        Work::Custom { .. } => vec![buffers.collect()],
        _ => buffers.map(|buffer| vec![buffer]).collect(),
    }
}

/// Returns the results of products with epilogues: the operations after them continue with these,
/// since they may differ by more than the roundings of the operations after them.
fn epilogue_results(
    shared: &Shared,
    specialised: &Specialised,
    results: &[Vec<UntypedBuffer>],
    recorded: &BoundGraph,
) -> Replaced {
    let mut replaced = Replaced::new();
    for (kernel, results) in specialised.grouped.kernels.iter().zip(results) {
        let (Some((id, _)), Some(buffer)) = (&kernel.value, results.first()) else { continue };
        let origin = specialised.graph.nodes[id.index()].origin;
        if !kernel.has_epilogue() {
            continue;
        }
        let node = &recorded.nodes[origin.index()];
        let (runtime, layout) = (shared.runtime.clone(), Layout::contiguous(node.shape.clone()));
        let buffer = buffer.clone();
        replaced.insert(origin, Stored { runtime, buffer, layout, dtype: node.dtype });
    }
    replaced
}

/// Returns for each element the largest magnitude of the operations of a kernel.
async fn magnitudes(
    call: Call,
    specialised: &Specialised,
    position: usize,
    values: &[Stored],
    waiting: Waiting,
) -> Result<Vec<f64>> {
    let kernel = &specialised.grouped.kernels[position];
    let mut largest = vec![0.0; kernel.shape.count().unwrap_or(0)];
    for id in &kernel.nodes {
        let origin = specialised.graph.nodes[id.index()].origin;
        let elements = values[origin.index()].floats(call, waiting).await?.unwrap_or_default();
        largest.iter_mut().zip(elements).for_each(|(scale, x)| *scale = x.abs().max(*scale));
    }
    Ok(largest)
}

/// A difference: the position of the element in a shape, and both values.
struct Difference {
    shape: Shape,
    position: usize,
    found: String,
    wanted: String,
}

/// Returns the first difference of elements in row-major order. Those of floats are relative to
/// `scales`, where there are any.
async fn difference(
    call: Call,
    pair: [&Stored; 2],
    scales: &[f64],
    waiting: Waiting,
) -> Result<Option<Difference>> {
    let tolerance = match pair[0].dtype {
        DType::F32 => 1e-5,
        DType::F16 => 2e-3,
        DType::BF16 => 2e-2,
        DType::I32 => return exact::<i32>(call, pair, waiting).await,
        DType::U32 => return exact::<u32>(call, pair, waiting).await,
        _ => return exact::<bool>(call, pair, waiting).await,
    };
    let [found, wanted] = pair;
    let shape = found.shape();
    let found = found.floats(call, waiting).await?.unwrap_or_default();
    let wanted = wanted.floats(call, waiting).await?.unwrap_or_default();
    let pairs = found.into_iter().zip(wanted);
    let differs = |(n, (a, b)): &(usize, (f64, f64))| {
        let scale = scales.get(*n).copied().unwrap_or(0.0);
        let is_same = a == b || a.is_nan() && b.is_nan();
        let is_close = (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(scale).max(1.0);
        // An operation may overflow that a fused kernel does not round.
        let may_overflow = scale.is_infinite();
        !is_same && !may_overflow && (!is_close || a.is_infinite() || b.is_infinite())
    };
    let first = pairs.enumerate().find(differs);
    Ok(first.map(|(position, (found, wanted))| Difference {
        shape: shape.clone(),
        position,
        found: found.to_string(),
        wanted: wanted.to_string(),
    }))
}

async fn exact<T: Element + PartialEq + std::fmt::Display>(
    call: Call,
    [found, wanted]: [&Stored; 2],
    waiting: Waiting,
) -> Result<Option<Difference>> {
    let shape = found.shape().clone();
    let found = found.read_by::<T>(call, waiting).await?;
    let wanted = wanted.read_by::<T>(call, waiting).await?;
    let Some(position) = found.iter().zip(&wanted).position(|(a, b)| a != b) else {
        return Ok(None);
    };
    let (found, wanted) = (found[position].to_string(), wanted[position].to_string());
    Ok(Some(Difference { shape, position, found, wanted }))
}

fn mismatch(specialised: &Specialised, position: usize, difference: &Difference) -> Error {
    let kernel = &specialised.grouped.kernels[position];
    let node = specialised.node_of(kernel);
    let ops = kernel.nodes.iter().map(|it| specialised.graph.nodes[it.index()].call.op);
    let ops = ops.collect::<Vec<_>>().join(", ");
    let Difference { shape, position: element, found, wanted } = difference;
    let index = coordinates(*element, shape);
    let problem = format!(
        "kernel {position} ({ops}) computes {found} at index {index:?} of {shape}, but its \
         operations one by one compute {wanted}"
    );
    let help = "compile with SCRY_FUSE=0 to run a kernel for each operation, and report the defect";
    node.call.error(ErrorKind::Mismatch, problem, help).in_scope(&node.scope)
}

#[cfg(test)]
mod tests {
    use scry_gpu::Device;

    use super::super::{Fusion, Graph};
    use super::*;

    /// The line of the first operation of [`check_corrupted`].
    const FIRST: u32 = line!() + 9;

    /// Compares a plan after a kernel's first argument was changed.
    fn check_corrupted(fusion: Fusion, kernel: usize, value: f32) -> Result<usize> {
        let gpu = Device::open("cpu").unwrap();
        let g = Graph::new(&gpu)?;
        let x = g.input("x", [2, 3])?;
        g.set_fusion(fusion);
        let _scope = g.scope("head");
        let doubled = x.t()?.mul(2.0)?;
        let y = (doubled.sum(-1)? + 0.5)?;
        let negative = y.mul(-1.0)?;
        let plan = g.compile(&[negative])?;
        let call = Call::new("test");
        let data = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &gpu)?;
        let given = [("x", &data)];
        let inputs = plan.inputs(call, &given)?;
        let sizes = plan.sizes(call, &inputs)?;
        let (graph, mut grouped) = plan.shared().group(&sizes)?;
        match &mut grouped.kernels[kernel].work {
            Work::Map { arguments, .. } => arguments[0] = value.to_bits(),
            Work::Rows(work) => work.arguments[0] = value.to_bits(),
            _ => {}
        }
        let specialised = plan.shared().plan((graph, grouped))?;
        now(plan.compare(call, specialised.into(), &sizes, &inputs, Waiting::Blocking))
    }

    #[test]
    fn wrong_kernel_is_named() {
        assert_eq!(check_corrupted(Fusion::Exact, 0, 2.0).unwrap(), 3);
        let first = check_corrupted(Fusion::Exact, 0, 2.5).unwrap_err();
        assert_eq!((first.kind(), first.function()), (ErrorKind::Mismatch, "Tensor::mul"));
        let text = "kernel 0 (Tensor::mul) computes 2.5 at index [0, 0] of [3, 2], but its \
                    operations one by one compute 2";
        assert!(first.to_string().contains(text), "{first}");
        assert_eq!(first.location().line(), FIRST, "{first}");
        let last = check_corrupted(Fusion::Exact, 2, 1.5).unwrap_err();
        let text = "kernel 2 (Tensor + Tensor, Tensor::mul) computes -11.5 at index [0] of [3], \
                    but its operations one by one compute -10.5";
        assert!(last.to_string().contains(text), "{last}");
        assert_eq!((last.function(), last.scope()), ("Tensor::mul", "head"));
        assert_eq!(last.location().line(), FIRST + 2, "{last}");
        assert_eq!(check_corrupted(Fusion::Full, 0, 2.0).unwrap(), 1);
        let rows = check_corrupted(Fusion::Full, 0, 2.5).unwrap_err();
        let text = "kernel 0 (Tensor::mul, Tensor::sum, Tensor + Tensor, Tensor::mul) computes \
                    -13 at index [0] of [3], but its operations one by one compute -10.5";
        assert!(rows.to_string().contains(text), "{rows}");
        assert_eq!(rows.location().line(), FIRST + 2, "{rows}");
    }

    #[test]
    fn all_outputs_of_kernels_are_compared() {
        let gpu = Device::open("cpu").unwrap();
        let g = Graph::new(&gpu).unwrap();
        let (a, b) = (g.input("a", [4]).unwrap(), g.input("b", [4]).unwrap());
        let wgsl = "
            @group(0) @binding(0) var<storage, read> a: array<f32>;
            @group(0) @binding(1) var<storage, read> b: array<f32>;
            @group(0) @binding(2) var<storage, read_write> sum: array<f32>;
            @group(0) @binding(3) var<storage, read_write> difference: array<f32>;
            @compute @workgroup_size(4) fn both(@builtin(local_invocation_index) i: u32) {
                sum[i] = a[i] + b[i];
                difference[i] = a[i] - b[i];
            }";
        let output = || ([4].into(), DType::F32);
        let parts = g.kernel(wgsl, &[&a, &b], &[output(), output()]).unwrap();
        let plan = g.compile(&parts).unwrap();
        let call = Call::new("test");
        let data = [1.0f32, 2.0].map(|x| Tensor::full([4], x, DType::F32, &gpu).unwrap());
        let given = [("a", &data[0]), ("b", &data[1])];
        let inputs = plan.inputs(call, &given).unwrap();
        let sizes = plan.sizes(call, &inputs).unwrap();
        let (graph, mut grouped) = plan.shared().group(&sizes).unwrap();
        if let Work::Custom { operands, .. } = &mut grouped.kernels[0].work {
            operands.swap(0, 1);
        }
        let specialised = plan.shared().plan((graph, grouped)).unwrap();
        let compared = plan.compare(call, specialised.into(), &sizes, &inputs, Waiting::Blocking);
        let error = now(compared).unwrap_err();
        let text = "kernel 0 (Graph::kernel) computes 1 at index [0] of [4], but its operations \
                    one by one compute -1";
        assert!(error.to_string().contains(text), "{error}");
    }
}
