//! The tensor: a handle of elements on a device, or of a node of a graph.

mod apply;
mod create;
mod display;
mod futures;
mod import;
mod index;
#[cfg(feature = "ndarray")]
mod ndarray;
mod read;
mod views;

use std::fmt;
use std::sync::Arc;

use scry_gpu::Device;

use crate::dtype::DType;
use crate::error::{Call, ErrorKind, Result};
use crate::graph::node::NodeHandle;
use crate::runtime::Runtime;
use crate::shape::Shape;
use crate::stored::Stored;

pub(crate) use apply::apply;
pub use create::Nested;
pub(crate) use import::join_blocks;
pub(crate) use index::index_parts;
pub use index::{Ellipsis, Index, IntoIndices, NewAxis, Step, StepRange, step};

/// An n-dimensional array of one element type on a device. Rank, shape and element type are known
/// at run time.
///
/// A tensor is immutable, cheap to clone, and usable from any thread. Operations are queued and
/// return at once; [`to_vec`](Self::to_vec), [`item`](Self::item), printing, and
/// [`to`](Self::to) another device wait for the results that they read, and have
/// [async forms](crate::guide::async_tensors). Views, such as
/// [`permute`](Self::permute), share the elements of the tensor that they are made of.
///
/// A tensor of a [`Graph`](crate::Graph) is one of its nodes: operations on it record nodes, and
/// compute nothing.
///
/// ```
/// use scry_tensor::{DType, Device, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu)?;
/// let y = (x.matmul(x.t()?)? + 0.5)?;
/// assert_eq!((y.rank(), y.dtype()), (2, DType::F32));
/// assert_eq!(y.to_vec::<f32>()?, [5.5, 11.5, 11.5, 25.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tensor(Repr);

#[derive(Clone)]
enum Repr {
    Stored(Arc<Stored>),
    Node(Arc<NodeHandle>),
}

impl From<Stored> for Tensor {
    fn from(stored: Stored) -> Self {
        Self(Repr::Stored(Arc::new(stored)))
    }
}

impl From<NodeHandle> for Tensor {
    fn from(node: NodeHandle) -> Self {
        Self(Repr::Node(Arc::new(node)))
    }
}

impl Tensor {
    /// Returns the elements in memory, which a node does not have.
    pub(crate) fn stored(&self, call: Call) -> Result<&Arc<Stored>> {
        match &self.0 {
            Repr::Stored(stored) => Ok(stored),
            Repr::Node(node) => {
                let problem = "the tensor is a node of a graph, and has no elements in memory";
                let help = "compile the graph with the tensor as an output, and run the plan";
                let error = call.error(ErrorKind::Graph, problem, help);
                Err(error.in_scope(&node.recorder.scope_of(node.id)))
            }
        }
    }

    /// Returns the node, if the tensor is one.
    pub(crate) fn node(&self) -> Option<&NodeHandle> {
        match &self.0 {
            Repr::Stored(_) => None,
            Repr::Node(node) => Some(node),
        }
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        match &self.0 {
            Repr::Stored(stored) => &stored.runtime,
            Repr::Node(node) => node.recorder.runtime(),
        }
    }

    /// Returns the sizes along the axes. Those of a graph's named dimensions are the largest ones.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &gpu)?;
    /// assert_eq!((x.shape()[0], x.shape().len()), (2, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "size")]
    #[must_use]
    pub fn shape(&self) -> &Shape {
        match &self.0 {
            Repr::Stored(stored) => stored.shape(),
            Repr::Node(node) => &node.shape,
        }
    }

    /// Returns the number of axes.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Tensor::zeros([4, 5, 6], DType::F32, &gpu)?.rank(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("dim", "ndim"))]
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// Returns the number of elements, of which those of views may share memory.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Tensor::zeros([4, 5], DType::Bool, &gpu)?.numel(), 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("len", "size"))]
    #[must_use]
    pub fn numel(&self) -> usize {
        self.shape().count().unwrap_or(usize::MAX)
    }

    /// Returns the element type.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1.5f32, -2.0], &gpu)?;
    /// assert_eq!((x.dtype(), x.gt(0.0)?.dtype()), (DType::F32, DType::Bool));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn dtype(&self) -> DType {
        match &self.0 {
            Repr::Stored(stored) => stored.dtype,
            Repr::Node(node) => node.dtype,
        }
    }

    /// Returns the device.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1.0f32], &gpu)?;
    /// assert_eq!(x.device().name(), gpu.name());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn device(&self) -> &Device {
        self.runtime().device()
    }

    /// Returns whether the elements are stored in row-major order, without gaps, as PyTorch's
    /// `is_contiguous`. Those of a graph's node are not stored, and count as contiguous.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(6, DType::I32, &gpu)?.reshape([2, 3])?;
    /// assert!(x.is_contiguous() && !x.t()?.is_contiguous());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        match &self.0 {
            Repr::Stored(stored) => stored.layout.is_contiguous(),
            Repr::Node(_) => true,
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("shape", &format_args!("{}", self.shape()))
            .field("dtype", &self.dtype().name())
            .field("device", &self.device().name())
            .finish_non_exhaustive()
    }
}
