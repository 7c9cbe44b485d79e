//! Batches: operations on handles, which run together in one submission.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scry_gpu::Device;

use crate::element::Element;
use crate::error::{Call, Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::waiting::{Waiting, now};

/// A batch of operations (not a minibatch), recorded on handles, then compiled and run in one
/// submission by [`execute`](TensorBatch::execute).
///
/// After that, the results that no other operation of the batch used can be read, and those that
/// [`keep`](TensorBatch::keep) names. The others are not stored, or share memory, as in a
/// [`Graph`]. Kernels are those of all tensors of the device: a batch compiles each distinct one
/// once.
///
/// ```
/// use scry_tensor::{Device, TensorBatch};
///
/// let gpu = Device::open("cpu")?;
/// let mut batch = TensorBatch::new(&gpu)?;
/// let x = batch.upload(&[1.0f32, -2.0, 3.0, -4.0], [2, 2])?;
/// let w = batch.upload(&[1.0f32, 0.0, 0.0, 1.0], [2, 2])?;
/// let h = batch.matmul(x, w)?;
/// let h = batch.relu(h)?;
/// let y = batch.scale(h, 2.0)?;
/// batch.execute()?;
/// assert_eq!(batch.read::<f32>(y)?, [2.0, 0.0, 6.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TensorBatch {
    graph: Graph,
    id: u64,
    slots: Vec<Slot>,
    /// Operations that were not executed yet.
    pending: usize,
}

/// A tensor of a [`TensorBatch`].
///
/// ```
/// use scry_tensor::{BatchHandle, Device, TensorBatch};
///
/// let gpu = Device::open("cpu")?;
/// let mut batch = TensorBatch::new(&gpu)?;
/// let x: BatchHandle = batch.upload(&[0.0f32, 1.0], [2])?;
/// let y = batch.exp(x)?;
/// batch.execute()?;
/// assert_eq!(batch.read::<f32>(y)?, [1.0, std::f32::consts::E]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchHandle {
    batch: u64,
    position: usize,
}

/// What a handle refers to.
enum Slot {
    /// Elements in memory.
    Ready(Tensor),
    /// An operation to be executed, whether another one uses it, and whether it is kept.
    Pending { node: Tensor, is_used: bool, is_kept: bool },
    /// An executed operation whose result was not kept.
    Dropped,
}

/// Returns whether a slot is an operation whose result can be read once it is executed.
fn is_result(slot: &Slot) -> bool {
    match slot {
        Slot::Pending { is_used, is_kept, .. } => !is_used || *is_kept,
        _ => false,
    }
}

/// The last batch's number.
static LAST: AtomicU64 = AtomicU64::new(0);

macro_rules! functions {
    ($($(#[$doc:meta])* $method:ident($($operand:ident),*);)*) => {
        /// Operations: those of [`Tensor`] with the same names.
        impl TensorBatch {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                #[doc = concat!("As [`Tensor::", stringify!($method), "`];")]
                /// [`ErrorKind::Graph`] for an unknown handle.
                #[track_caller]
                pub fn $method(&mut self, $($operand: BatchHandle),*) -> Result<BatchHandle> {
                    let call = Call::new(concat!("TensorBatch::", stringify!($method)));
                    let result = {
                        $(let $operand = self.node(call, $operand)?;)*
                        functions!(@call $method, $($operand),*)
                    };
                    Ok(self.pending(result?, &[$($operand),*]))
                }
            )*
        }
    };
    (@call $method:ident, $x:ident) => { $x.$method() };
    (@call $method:ident, $x:ident, $y:ident) => { $x.$method(&$y) };
}

functions! {
    /// Adds [`Tensor::relu`].
    relu(x);
    /// Adds [`Tensor::gelu`].
    gelu(x);
    /// Adds [`Tensor::silu`].
    silu(x);
    /// Adds [`Tensor::sigmoid`].
    sigmoid(x);
    /// Adds [`Tensor::tanh`].
    tanh(x);
    /// Adds [`Tensor::exp`].
    exp(x);
    /// Adds [`Tensor::add`].
    add(x, y);
    /// Adds [`Tensor::sub`].
    sub(x, y);
    /// Adds [`Tensor::mul`].
    mul(x, y);
    /// Adds [`Tensor::matmul`].
    matmul(x, y);
}

impl TensorBatch {
    /// Creates an empty batch for a device.
    ///
    /// ```
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn new(device: &Device) -> Result<Self> {
        let graph = Graph::new(device)?;
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        Ok(Self { graph, id, slots: Vec::new(), pending: 0 })
    }

    /// Copies elements to the device, immediately.
    ///
    /// ```
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload(&[1, 2, 3], [3])?;
    /// assert_eq!(batch.read::<i32>(x)?, [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    #[track_caller]
    pub fn upload<T: Element>(
        &mut self,
        data: &[T],
        shape: impl Into<Shape>,
    ) -> Result<BatchHandle> {
        let tensor = Tensor::from_slice(data, shape, self.graph.device())?;
        Ok(self.push(Slot::Ready(tensor)))
    }

    /// Async form of [`upload`](Self::upload): the handle exists once the elements are captured.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload_async(&[1, 2, 3], [3]).await?;
    /// assert_eq!(batch.read_async::<i32>(x).await?, [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`TensorBatch::upload`].
    #[track_caller]
    pub fn upload_async<T: Element, S: Into<Shape>>(
        &mut self,
        data: &[T],
        shape: S,
    ) -> impl Future<Output = Result<BatchHandle>> + use<'_, T, S> {
        let tensor = Tensor::from_slice_async(data, shape, self.graph.device());
        async move { Ok(self.push(Slot::Ready(tensor.await?))) }
    }

    /// Adds a tensor in memory, without a copy.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor, TensorBatch};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let mut batch = TensorBatch::new(&gpu)?;
    /// let ones = batch.import(&Tensor::ones([2], DType::F32, &gpu)?)?;
    /// let y = batch.exp(ones)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Device`] for a tensor of another device; [`ErrorKind::Graph`] for a node.
    #[track_caller]
    pub fn import(&mut self, tensor: &Tensor) -> Result<BatchHandle> {
        let call = Call::new("TensorBatch::import");
        let own = tensor.stored(call)?;
        crate::stored::check_device(call, self.graph.recorder.runtime(), &own.runtime)?;
        Ok(self.push(Slot::Ready(tensor.clone())))
    }

    /// Adds a product with a number.
    ///
    /// ```
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload(&[1.0f32, 2.0], [2])?;
    /// let y = batch.scale(x, 2.0)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read::<f32>(y)?, [2.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::mul`]; [`ErrorKind::Graph`] for an unknown handle.
    #[track_caller]
    pub fn scale(&mut self, x: BatchHandle, factor: impl Into<Scalar>) -> Result<BatchHandle> {
        let call = Call::new("TensorBatch::scale");
        let result = self.node(call, x)?.mul(factor.into())?;
        Ok(self.pending(result, &[x]))
    }

    /// Adds any operation: a function of the tensors of handles, which are nodes.
    ///
    /// ```
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let centred = batch.apply(&[x], |it| it[0].sub(&it[0].mean_keepdim(-1)?))?;
    /// batch.execute()?;
    /// assert_eq!(batch.read::<f32>(centred)?, [-0.5, 0.5, -0.5, 0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of the function; [`ErrorKind::Graph`] for an unknown handle, or if the function
    /// returns a node of another graph.
    #[track_caller]
    pub fn apply(
        &mut self,
        operands: &[BatchHandle],
        function: impl FnOnce(&[Tensor]) -> Result<Tensor>,
    ) -> Result<BatchHandle> {
        let call = Call::new("TensorBatch::apply");
        let tensors = operands.iter().map(|it| self.node(call, *it)).collect::<Result<Vec<_>>>()?;
        let result = function(&tensors)?;
        if let Some(node) = result.node()
            && !Arc::ptr_eq(&node.recorder, &self.graph.recorder)
        {
            let problem = "the function returned a node of another graph";
            let help = "return what operations on the function's arguments return";
            return Err(call.error(ErrorKind::Graph, problem, help));
        }
        Ok(self.pending(result, operands))
    }

    /// Keeps the result of an operation, although others use it, so that it can be read after
    /// [`execute`](Self::execute).
    ///
    /// ```
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload(&[0.0f32], [1])?;
    /// let (h, unkept) = (batch.exp(x)?, batch.tanh(x)?);
    /// let y = batch.add(h, unkept)?;
    /// batch.keep(h)?;
    /// batch.execute()?;
    /// assert_eq!((batch.read::<f32>(h)?, batch.read::<f32>(y)?), (vec![1.0], vec![1.0]));
    /// assert!(batch.read::<f32>(unkept).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Graph`] for an unknown handle, and one that was executed without being kept.
    #[track_caller]
    pub fn keep(&mut self, handle: BatchHandle) -> Result<()> {
        let call = Call::new("TensorBatch::keep");
        self.node(call, handle)?;
        if let Some(Slot::Pending { is_kept, .. }) = self.slots.get_mut(handle.position) {
            *is_kept = true;
        }
        Ok(())
    }

    /// Runs the operations that were added since the last call, in one submission, and does not
    /// wait for them. Does nothing if there are none.
    ///
    /// ```
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload(&[1.0f32, 2.0], [2])?;
    /// let y = batch.scale(x, 2.0)?;
    /// assert!(batch.read::<f32>(y).is_err());
    /// batch.execute()?;
    /// assert_eq!(batch.read::<f32>(y)?, [2.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Graph::compile`](crate::Graph::compile). The operations remain in the batch then.
    #[track_caller]
    pub fn execute(&mut self) -> Result<()> {
        now(self.execute_by(Call::new("TensorBatch::execute"), Waiting::Blocking))
    }

    /// Async form of [`execute`](Self::execute). If the future is dropped, the operations remain in
    /// the batch.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload_async(&[1.0f32, 2.0], [2]).await?;
    /// let y = batch.scale(x, 2.0)?;
    /// batch.execute_async().await?;
    /// assert_eq!(batch.read_async::<f32>(y).await?, [2.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`TensorBatch::execute`].
    #[track_caller]
    pub fn execute_async(&mut self) -> impl Future<Output = Result<()>> + use<'_> {
        self.execute_by(Call::new("TensorBatch::execute_async"), Waiting::Awaiting)
    }

    async fn execute_by(&mut self, call: Call, waiting: Waiting) -> Result<()> {
        let Some(results) = self.results() else { return Ok(()) };
        let plan = self.graph.compiled(call, &results, None)?.ready(waiting).await?;
        let outputs = plan.run_by(call, &[], waiting).await?;
        self.executed(outputs);
        Ok(())
    }

    /// Returns the nodes of the results to be executed; `None` if there are no operations.
    fn results(&self) -> Option<Vec<Tensor>> {
        let results = self.slots.iter().filter(|slot| is_result(slot));
        let nodes = results.filter_map(|slot| match slot {
            Slot::Pending { node, .. } => Some(node.clone()),
            _ => None,
        });
        (self.pending > 0).then(|| nodes.collect())
    }

    /// Replaces executed operations by their results.
    fn executed(&mut self, outputs: Vec<Tensor>) {
        let mut outputs = outputs.into_iter();
        for slot in &mut self.slots {
            if is_result(slot) {
                *slot = outputs.next().map_or(Slot::Dropped, Slot::Ready);
            } else if matches!(slot, Slot::Pending { .. }) {
                *slot = Slot::Dropped;
            }
        }
        self.graph = Graph::of(self.graph.recorder.runtime().clone());
        self.pending = 0;
    }

    /// Returns the elements of a handle in row-major order. Waits for the work that computes them.
    ///
    /// ```
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload(&[1.0f32, 2.0], [2])?;
    /// let y = batch.scale(x, 2.0)?;
    /// batch.execute()?;
    /// assert_eq!(batch.read::<f32>(y)?, [2.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Graph`] for a handle that is unknown, not executed, or was not kept; otherwise
    /// as [`Tensor::to_vec`].
    #[track_caller]
    pub fn read<T: Element>(&self, handle: BatchHandle) -> Result<Vec<T>> {
        self.ready(Call::new("TensorBatch::read"), handle)?.to_vec()
    }

    /// Async form of [`read`](Self::read).
    ///
    /// ```
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload(&[1.0f32, 2.0], [2])?;
    /// let y = batch.scale(x, 2.0)?;
    /// batch.execute()?;
    /// let read = pollster::block_on(batch.read_async::<f32>(y))?;
    /// assert_eq!(read, [2.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`TensorBatch::read`].
    #[track_caller]
    pub fn read_async<T: Element>(
        &self,
        handle: BatchHandle,
    ) -> impl Future<Output = Result<Vec<T>>> + use<T> {
        let ready = self.ready(Call::new("TensorBatch::read_async"), handle);
        let read = ready.map(Tensor::to_vec_async);
        async move { read?.await }
    }

    /// Returns the tensor of a handle, without a copy.
    ///
    /// ```
    /// use scry_tensor::{Device, TensorBatch};
    ///
    /// let mut batch = TensorBatch::new(&Device::open("cpu")?)?;
    /// let x = batch.upload(&[1.0f32, 2.0], [2])?;
    /// let y = batch.scale(x, 2.0)?;
    /// batch.execute()?;
    /// assert_eq!(batch.tensor(y)?.sum(..)?.item::<f32>()?, 6.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`TensorBatch::read`].
    #[track_caller]
    pub fn tensor(&self, handle: BatchHandle) -> Result<Tensor> {
        self.ready(Call::new("TensorBatch::tensor"), handle).cloned()
    }

    fn push(&mut self, slot: Slot) -> BatchHandle {
        self.slots.push(slot);
        BatchHandle { batch: self.id, position: self.slots.len() - 1 }
    }

    /// Adds an operation of handles.
    fn pending(&mut self, node: Tensor, operands: &[BatchHandle]) -> BatchHandle {
        for operand in operands {
            if let Some(Slot::Pending { is_used, .. }) = self.slots.get_mut(operand.position) {
                *is_used = true;
            }
        }
        self.pending += 1;
        self.push(Slot::Pending { node, is_used: false, is_kept: false })
    }

    fn slot(&self, call: Call, handle: BatchHandle) -> Result<&Slot> {
        let slot = (handle.batch == self.id).then(|| self.slots.get(handle.position)).flatten();
        slot.ok_or_else(|| {
            let help = "use handles that this batch returned";
            call.error(ErrorKind::Graph, "the handle is of another batch", help)
        })
    }

    /// Returns a handle's node of the graph.
    fn node(&self, call: Call, handle: BatchHandle) -> Result<Tensor> {
        match self.slot(call, handle)? {
            Slot::Pending { node, .. } => Ok(node.clone()),
            Slot::Ready(tensor) => {
                let recorder = &self.graph.recorder;
                let mut nodes = recorder.lock();
                let id = recorder.param(call, &mut nodes, None, tensor.stored(call)?)?;
                Ok(recorder.handle(&nodes, id).into())
            }
            Slot::Dropped => Err(dropped(call)),
        }
    }

    /// Returns a handle's tensor in memory.
    fn ready(&self, call: Call, handle: BatchHandle) -> Result<&Tensor> {
        match self.slot(call, handle)? {
            Slot::Ready(tensor) => Ok(tensor),
            Slot::Pending { .. } => {
                let problem = "the operation of the handle was not executed yet";
                Err(call.error(ErrorKind::Graph, problem, "call `execute` first"))
            }
            Slot::Dropped => Err(dropped(call)),
        }
    }
}

fn dropped(call: Call) -> Error {
    let problem = "the handle's result was used by other operations and not kept";
    call.error(ErrorKind::Graph, problem, "call `keep` with the handle before `execute`")
}

impl fmt::Debug for TensorBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorBatch")
            .field("handles", &self.slots.len())
            .field("pending", &self.pending)
            .field("device", &self.graph.device().name())
            .finish()
    }
}
