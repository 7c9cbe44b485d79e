//! Graphs: operations that are recorded, compiled together, and run in one submission.
//!
//! | file | what it does |
//! | --- | --- |
//! | `node` | records nodes, hash-consed, with their shapes |
//! | `dim` | named dimensions |
//! | `bound_graph` | the nodes that outputs depend on, with the shapes for the sizes of a run |
//! | `simplify` | rewrites nodes, by one table of rules |
//! | `group`, `effects`, `pieces` | groups nodes into kernels, as `grouped` has them as data |
//! | `fused` | values that are not stored |
//! | `row_fusion` | fuses kernels that reduce rows with those around them |
//! | `epilogues` | fuses maps into the products before them |
//! | `prologues` | fuses maps into the products with quantised weights after them |
//! | `maps` | merges small maps, and writes of states, into one kernel |
//! | `fusion` | `Fusion`: how far operations are fused |
//! | `materialise`, `reason` | which values are stored, and why |
//! | `plan`, `packing`, `arenas` | places results in arenas, which all sizes share |
//! | `specialised`, `launches`, `sharded` | prepares launches, adds them to the batch of a run |
//! | `out_of_memory` | the error of a plan whose memory does not fit |
//! | `size_classes` | compiles the kernels for other sizes of named dimensions |
//! | `recorded`, `bound_plan` | replays runs; `BoundPlan`: fixed inputs and outputs |
//! | `call_sites` | warns of graphs that are compiled again and again |
//! | `compiled` | `Plan`: inputs, sizes, and the order of the passes |
//! | `futures` | async forms of functions that wait for kernels to be compiled, or for the device |
//! | `custom_kernel`, `state`, `state_regions` | custom kernels; states, and what writes change |
//! | `check` | compares each kernel with the recorded operations |
//! | `numerics` | finds the first NaN, and magnitudes near the largest `f16` |
//! | `reference`, `row_reference` | computes the recorded operations, one by one |
//! | `explain`, `debug` | reports of a plan, and of each pass (`SCRY_DEBUG`) |

mod arenas;
mod bound_graph;
mod bound_plan;
pub(crate) mod call_sites;
mod check;
mod compiled;
mod custom_kernel;
mod debug;
pub(crate) mod dim;
mod effects;
mod epilogues;
mod explain;
mod fused;
mod fusion;
mod futures;
mod group;
mod grouped;
mod launches;
mod maps;
mod materialise;
pub(crate) mod node;
mod numerics;
mod out_of_memory;
mod packing;
mod pieces;
mod plan;
mod prologues;
mod reason;
mod recorded;
mod reference;
mod row_fusion;
mod row_reference;
mod sharded;
mod simplify;
mod size_classes;
mod specialised;
mod state;
mod state_regions;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use scry_gpu::Device;

pub use self::bound_plan::BoundPlan;
pub use self::compiled::Plan;
pub use self::dim::{Dim, DimShape};
use self::dim::{NamedDim, Size};
pub use self::explain::{KernelReport, PlanReport};
pub use self::fusion::Fusion;
use self::node::{Content, Input, Nodes, Recorder};
pub use self::numerics::LargeResult;
pub use self::state::State;
use crate::dtype::{DType, ELEMENTS};
use crate::error::{Call, ErrorKind, Result};
use crate::runtime::Runtime;
use crate::scalar::Scalar;
use crate::shape::check_count;
use crate::tensor::Tensor;

/// A computation graph: its tensors are nodes, and operations on them are recorded, not computed.
///
/// Tensors in memory that are used with its nodes become parameters. A clone is the same graph.
/// Sizes of inputs are numbers or [named dimensions](Graph::dim). Shapes and element types are
/// checked when an operation is recorded.
///
/// ```
/// use scry_tensor::{DType, Device, Graph, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let g = Graph::new(&gpu)?;
/// let x = g.input("x", (g.dim("batch", 1..=64), 128))?;
/// let weights = Tensor::ones([128, 32], DType::F32, &gpu)?;
/// let y = (x.matmul(&weights)? + 0.5)?.gelu()?;
/// assert_eq!(*y.shape(), [64, 32]); // the largest sizes
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("compile", "jit"))]
#[derive(Clone)]
pub struct Graph {
    pub(crate) recorder: Arc<Recorder>,
}

/// A part of a graph with a name, until it is dropped: see [`Graph::scope`].
///
/// ```
/// use scry_tensor::{Device, Graph, Scope};
///
/// let g = Graph::new(&Device::open("cpu")?)?;
/// let x = g.input("x", [4])?;
/// let scope: Scope = g.scope("embedding");
/// assert_eq!(x.reshape([3]).unwrap_err().scope(), "embedding");
/// drop(scope);
/// assert_eq!(x.reshape([3]).unwrap_err().scope(), "");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the scope ends when it is dropped: `let _scope = g.scope(…)`"]
pub struct Scope {
    recorder: Arc<Recorder>,
    token: u64,
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.recorder.close_scope(self.token);
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl Graph {
    /// Creates an empty graph for a device.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn new(device: &Device) -> Result<Self> {
        let call = Call::new("Graph::new");
        Ok(Self::of(Runtime::of(device).map_err(|error| call.gpu(error))?))
    }

    pub(crate) fn of(runtime: Arc<Runtime>) -> Self {
        Self { recorder: Recorder::new(runtime) }
    }

    /// Returns a dimension whose size each run chooses, within a range. The same name is the same
    /// size; an input checks the range.
    ///
    /// [`Tensor::shape`] has the largest size. An operation is recorded only if its shapes fit for
    /// the largest sizes, the smallest, and sizes between them; use -1 in `reshape` for a size that
    /// depends on a named dimension.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let x = g.input("x", (g.dim("batch", 1..=64), 4, 8))?;
    /// assert_eq!(*x.reshape([-1, 32])?.shape(), [64, 32]);
    /// let error = x.reshape([64, 32]).unwrap_err(); // does not fit other sizes
    /// assert!(error.to_string().contains("with batch = 1"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "dynamic_shape")]
    #[must_use]
    pub fn dim(&self, name: &str, range: RangeInclusive<usize>) -> Dim {
        let mut nodes = self.recorder.lock();
        let dim = Arc::new(NamedDim::new(name, &range));
        match nodes.dims.iter().find(|known| known.name == name) {
            Some(known) if **known == *dim => Dim(Size::Named(known.clone())),
            Some(_) => Dim(Size::Named(dim)),
            None => {
                if dim.min <= dim.max {
                    nodes.dims.push(dim.clone());
                }
                Dim(Size::Named(dim))
            }
        }
    }

    /// Adds an input of `f32`, which each run needs by this name. The shape is a tuple of numbers
    /// and named dimensions, or an array.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let x = g.input("x", (g.dim("batch", 1..=64), 128))?;
    /// let bias = g.input("bias", [128])?;
    /// assert_eq!(x.add(&bias)?.rank(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Graph`] if there is such an input, or a dimension has two ranges;
    /// [`ErrorKind::Shape`] for negative sizes and empty ranges; [`ErrorKind::TooLarge`].
    #[track_caller]
    pub fn input(&self, name: &str, shape: impl Into<DimShape>) -> Result<Tensor> {
        let call = Call::new("Graph::input");
        self.recorder.scoped(self.add_input(call, name, shape.into(), DType::F32))
    }

    /// Adds an input of elements of a type: see [`Graph::input`].
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let ids = g.input_with_dtype("ids", (g.dim("length", 1..=512),), DType::U32)?;
    /// let table = Tensor::zeros([1000, 64], DType::F16, &gpu)?;
    /// assert_eq!(*table.index_select(0, &ids)?.shape(), [512, 64]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Graph::input`]; [`ErrorKind::DType`] for quantised types.
    #[track_caller]
    pub fn input_with_dtype(
        &self,
        name: &str,
        shape: impl Into<DimShape>,
        dtype: DType,
    ) -> Result<Tensor> {
        let call = Call::new("Graph::input_with_dtype");
        self.recorder.scoped(self.add_input(call, name, shape.into(), dtype))
    }

    fn add_input(
        &self,
        call: Call,
        name: &str,
        DimShape(sizes): DimShape,
        dtype: DType,
    ) -> Result<Tensor> {
        call.check_new_dtype(dtype, ELEMENTS)?;
        let mut nodes = self.recorder.lock();
        if nodes.inputs.iter().any(|input| input.name == name) {
            let problem = format!("the graph has an input `{name}` already");
            return Err(call.error(ErrorKind::Graph, problem, "use another name"));
        }
        sizes.iter().try_for_each(|dim| check_dim(call, &nodes, dim))?;
        let shapes = Nodes::shapes(call, &sizes)?;
        check_count(call, &shapes[0], dtype)?;
        let position = nodes.inputs.len();
        nodes.inputs.push(Input { name: name.to_owned(), sizes, dtype });
        let id = nodes.add(call, Content::Input(position), Vec::new(), shapes, dtype);
        Ok(self.recorder.handle(&nodes, id).into())
    }

    /// Adds a tensor in memory as a parameter with a name, for reports. Tensors that are used with
    /// nodes are added without.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let w = g.param("w", &Tensor::ones([4, 4], DType::F32, &gpu)?)?;
    /// assert_eq!(*g.input("x", [2, 4])?.matmul(&w)?.shape(), [2, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Device`] for a tensor of another device; [`ErrorKind::Graph`] for a node.
    #[track_caller]
    pub fn param(&self, name: &str, tensor: &Tensor) -> Result<Tensor> {
        let call = Call::new("Graph::param");
        let stored = tensor.stored(call)?;
        let mut nodes = self.recorder.lock();
        let id = self.recorder.param(call, &mut nodes, Some(name), stored)?;
        Ok(self.recorder.handle(&nodes, id).into())
    }

    /// Returns a node whose elements are all equal. Its sizes may be named dimensions.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let zeros = g.full((g.dim("batch", 1..=8), 4), 0.0, DType::F16)?;
    /// assert_eq!(zeros.dtype(), DType::F16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`] or [`ErrorKind::Value`] if the value does not fit the type; otherwise
    /// as [`Graph::input`].
    #[track_caller]
    pub fn full(
        &self,
        shape: impl Into<DimShape>,
        value: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Tensor> {
        let call = Call::new("Graph::full");
        call.check_new_dtype(dtype, ELEMENTS)?;
        let bits = value.into().bits(call, dtype)?;
        let DimShape(sizes) = shape.into();
        let mut nodes = self.recorder.lock();
        sizes.iter().try_for_each(|dim| check_dim(call, &nodes, dim))?;
        let shapes = Nodes::shapes(call, &sizes)?;
        check_count(call, &shapes[0], dtype)?;
        let id = nodes.add(call, Content::Const(sizes, dtype, bits), Vec::new(), shapes, dtype);
        Ok(self.recorder.handle(&nodes, id).into())
    }

    /// Names the part of the graph that is recorded until the returned value is dropped, for errors
    /// and reports. Names of nested scopes are joined by dots. Threads that record in one graph
    /// share its scopes.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let (x, y) = (g.input("x", [2, 3])?, g.input("y", [4])?);
    /// let _encoder = g.scope("encoder");
    /// let _layer = g.scope("layer.3");
    /// assert_eq!(x.add(&y).unwrap_err().scope(), "encoder.layer.3");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope(&self, name: &str) -> Scope {
        let token = self.recorder.open_scope(name);
        Scope { recorder: self.recorder.clone(), token }
    }

    /// Sets how far plans fuse operations that are compiled from now on. By default it is
    /// [`Fusion::Full`], unless the environment variable `SCRY_FUSE` is `0` ([`Fusion::None`]) or
    /// `exact` ([`Fusion::Exact`]); values other than these and `1` are errors of
    /// [`compile`](Self::compile).
    ///
    /// ```
    /// use scry_tensor::{Device, Fusion, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// g.set_fusion(Fusion::None);
    /// let y = g.input("x", [4])?.exp()?.neg()?;
    /// assert_eq!(g.compile(&[y])?.explain()?.kernels.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_fusion(&self, fusion: Fusion) {
        self.recorder.lock().fusion = Some(fusion);
    }

    /// Returns the device.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(Graph::new(&gpu)?.device().name(), gpu.name());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn device(&self) -> &Device {
        self.recorder.runtime().device()
    }

    /// Returns the number of nodes. Equal operations of equal operands are one.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let x = g.input("x", [2])?;
    /// let _both = [x.exp()?, x.exp()?];
    /// assert_eq!(g.node_count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.recorder.lock().nodes.len()
    }
}

/// Checks a size of an input or a constant.
fn check_dim(call: Call, nodes: &Nodes, Dim(size): &Dim) -> Result<()> {
    let Size::Named(dim) = size else { return Ok(()) };
    let NamedDim { name, min, max } = &**dim;
    if min > max {
        let problem = format!("the range {min}..={max} of dimension `{name}` is empty");
        return Err(call.error(ErrorKind::Shape, problem, "use a range such as 1..=64"));
    }
    match nodes.dims.iter().find(|known| known.name == *name) {
        Some(known) if **known == **dim => Ok(()),
        known => {
            let other = known.map_or("none in this graph".to_owned(), |known| {
                format!("{}..={}", known.min, known.max)
            });
            Err(call.error(
                ErrorKind::Graph,
                format!("dimension `{name}` has the range {min}..={max} here, elsewhere {other}"),
                "create each dimension with one range, by `dim` of the same graph",
            ))
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("nodes", &self.node_count())
            .field("device", &self.device().name())
            .finish_non_exhaustive()
    }
}
