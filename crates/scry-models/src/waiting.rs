//! Calls of scry-tensor that have two forms. Functions that wait are written once, as an `async fn`
//! with a [`Waiting`]; the blocking form is [`now`] of it.

use scry_tensor::{BoundPlan, Device, Element, Graph, Plan, Result, Shape, Tensor};

pub(crate) use scry_tensor::waiting::{Waiting, now};

/// Copies elements to the device.
pub(crate) async fn upload<T: Element>(
    waiting: Waiting,
    data: &[T],
    shape: impl Into<Shape>,
    device: &Device,
) -> Result<Tensor> {
    let shape = shape.into();
    let blocking = || Tensor::from_slice(data, shape.clone(), device);
    waiting.either(blocking, || Tensor::from_slice_async(data, shape.clone(), device)).await
}

/// Returns the elements of a tensor.
pub(crate) async fn download<T: Element>(waiting: Waiting, tensor: &Tensor) -> Result<Vec<T>> {
    waiting.either(|| tensor.to_vec::<T>(), || tensor.to_vec_async::<T>()).await
}

/// Compiles an output to a plan that shares the states of another one.
pub(crate) async fn compile_sharing(
    waiting: Waiting,
    (graph, output): (Graph, Tensor),
    other: &Plan,
) -> Result<Plan> {
    let outputs = [output];
    let blocking = || graph.compile_sharing(&outputs, other);
    waiting.either(blocking, || graph.compile_sharing_async(&outputs, other)).await
}

/// Submits a run.
pub(crate) async fn run(
    waiting: Waiting,
    plan: &Plan,
    inputs: &[(&str, &Tensor)],
) -> Result<Vec<Tensor>> {
    waiting.either(|| plan.run(inputs), || plan.run_async(inputs)).await
}

/// Records a run without inputs.
pub(crate) async fn bind(waiting: Waiting, plan: &Plan) -> Result<BoundPlan> {
    waiting.either(|| plan.bind(&[]), || plan.bind_async(&[])).await
}
