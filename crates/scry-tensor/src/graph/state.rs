//! States: tensors that a plan keeps from run to run.

use std::sync::Arc;

use scry_gpu::UntypedBuffer;

use super::Graph;
use super::bound_graph::Reachable;
use super::compiled::Plan;
use super::node::{Content, NodeId, Nodes, Recorder, StateInfo, Write};
use super::state_regions::{MAX_RANGES, ranges, region};
use crate::dtype::{DType, ELEMENTS, INTEGERS};
use crate::error::{Call, ErrorKind, Result};
use crate::op::View;
use crate::runtime::Runtime;
use crate::shape::{Layout, Shape, check_count};
use crate::stored::{Stored, check_device};
use crate::tensor::{Index, IntoIndices, Tensor, index_parts};
use crate::waiting::{Waiting, now};

/// A tensor that each plan of the graph keeps from run to run, zero at first: see [`Graph::state`].
///
/// ```
/// use scry_tensor::{Device, Graph, State};
///
/// let gpu = Device::open("cpu")?;
/// let g = Graph::new(&gpu)?;
/// let count: State = g.state("count", [1])?;
/// count.write(.., &count.read().add(1.0)?)?;
/// let plan = g.compile(&[count.read()])?;
/// plan.run(&[])?;
/// assert_eq!(plan.run(&[])?[0].to_vec::<f32>()?, [2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct State {
    recorder: Arc<Recorder>,
    index: usize,
}

impl Graph {
    /// Adds a state of `f32` with a name. Each plan has a state of its own.
    ///
    /// [`State::read`] is the state at this point of the recording, and [`State::write`] changes
    /// what later reads return. A run executes all writes that are recorded when the graph is
    /// compiled, in their order; tensors read before a write keep their values.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let total = g.state("total", [2])?;
    /// let x = g.input("x", [2])?;
    /// let before = total.read();
    /// total.write(.., &before.add(&x)?)?;
    /// let plan = g.compile(&[total.read()])?;
    /// let x = Tensor::new([1.0f32, 2.0], &gpu)?;
    /// for n in 1..4 {
    ///     let out = plan.run(&[("x", &x)])?;
    ///     assert_eq!(out[0].to_vec::<f32>()?, [n as f32, 2.0 * n as f32]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Graph`] if there is such a state; [`ErrorKind::TooLarge`].
    #[track_caller]
    pub fn state(&self, name: &str, shape: impl Into<Shape>) -> Result<State> {
        let call = Call::new("Graph::state");
        self.recorder.scoped(self.add_state(call, name, shape.into(), DType::F32))
    }

    /// Adds a state of elements of a type: see [`Graph::state`].
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let cache = g.state_with_dtype("cache", [128, 64], DType::F16)?;
    /// assert_eq!(cache.read().dtype(), DType::F16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Graph::state`]; [`ErrorKind::DType`] for quantised types.
    #[track_caller]
    pub fn state_with_dtype(
        &self,
        name: &str,
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> Result<State> {
        let call = Call::new("Graph::state_with_dtype");
        self.recorder.scoped(self.add_state(call, name, shape.into(), dtype))
    }

    fn add_state(&self, call: Call, name: &str, shape: Shape, dtype: DType) -> Result<State> {
        call.check_new_dtype(dtype, ELEMENTS)?;
        check_count(call, &shape, dtype)?;
        let mut nodes = self.recorder.lock();
        if nodes.states.iter().any(|state| state.name == name) {
            let problem = format!("the graph has a state `{name}` already");
            return Err(call.error(ErrorKind::Graph, problem, "use another name"));
        }
        let index = nodes.states.len();
        let latest = nodes.add(call, Content::State(index), Vec::new(), vec![shape.clone()], dtype);
        nodes.states.push(StateInfo { name: name.to_owned(), shape, dtype, latest });
        Ok(State { recorder: self.recorder.clone(), index })
    }
}

impl Graph {
    /// Compiles tensors to a plan that shares the states of another plan: states of equal names are
    /// the same memory. States that the other plan does not use are new. The other plan may be of
    /// another graph.
    ///
    /// Runs of both plans are executed in the order in which they are submitted, so that each one
    /// reads what the ones before it have written.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().add(1.0)?)?;
    /// let up = g.compile(&[count.read()])?;
    ///
    /// let g = Graph::new(&gpu)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().mul(10.0)?)?;
    /// let tenfold = g.compile_sharing(&[count.read()], &up)?;
    /// up.run(&[])?;
    /// assert_eq!(tenfold.run(&[])?[0].item::<f32>()?, 10.0);
    /// assert_eq!(up.run(&[])?[0].item::<f32>()?, 11.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Device`] if the other plan is for another device; [`ErrorKind::Shape`] and
    /// [`ErrorKind::DType`] if a state of the same name has another shape or type; otherwise as
    /// [`Graph::compile`].
    #[track_caller]
    pub fn compile_sharing(&self, outputs: &[Tensor], other: &Plan) -> Result<Plan> {
        let plan = self.compiled(Call::new("Graph::compile_sharing"), outputs, Some(other))?;
        now(plan.ready(Waiting::Blocking))
    }
}

/// Returns the buffers of the states of a graph: those of another plan, or new ones.
pub(super) fn states(
    call: Call,
    runtime: &Arc<Runtime>,
    graph: &Reachable,
    other: Option<&Plan>,
) -> Result<Vec<UntypedBuffer>> {
    if let Some(other) = other {
        check_device(call, runtime, &other.shared().runtime)?;
    }
    let buffer = |state: &StateInfo| {
        let known = other.map(|other| other.find_state(&state.name));
        if let Some((known, buffer)) = known.flatten() {
            check_same_state(call, state, known)?;
            return Ok(buffer.clone());
        }
        let bytes = crate::op::packed_bytes(&state.shape, state.dtype);
        runtime.device().alloc_untyped(None, bytes).map_err(|error| call.gpu(error))
    };
    graph.states.iter().map(buffer).collect()
}

/// Checks that a state of another plan has the same shape and type.
fn check_same_state(call: Call, state: &StateInfo, known: &StateInfo) -> Result<()> {
    let (name, own, other) = (&state.name, &state.shape, &known.shape);
    if own != other {
        let problem = format!("state `{name}` has the shape {own}, and {other} in the other plan");
        let help = "states that plans share have one shape: use another name";
        return Err(call.shape_error(&[own, other], problem, help));
    }
    if state.dtype != known.dtype {
        let (own, other) = (state.dtype, known.dtype);
        let problem = format!("state `{name}` has elements of {own}, and of {other} in the other");
        let help = "states that plans share have one type: use another name";
        return Err(call.error(ErrorKind::DType, problem, help));
    }
    Ok(())
}

impl State {
    /// Returns the state after the writes that are recorded so far: see [`Graph::state`].
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let state = g.state("state", [2, 3])?;
    /// assert_eq!(*state.read().shape(), [2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn read(&self) -> Tensor {
        let nodes = self.recorder.lock();
        self.recorder.handle(&nodes, nodes.states[self.index].latest).into()
    }

    /// Writes the elements at an index, of numbers and ranges as in [`Tensor::i`]. The new elements
    /// are broadcast to its shape.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let state = g.state("state", [2, 3])?;
    /// state.write((.., 1..), &Tensor::new([5.0f32, 6.0], &gpu)?)?;
    /// let plan = g.compile(&[state.read()])?;
    /// let out = plan.run(&[])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [0.0, 5.0, 6.0, 0.0, 5.0, 6.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for an index out of range, or with a tensor; [`ErrorKind::Shape`] if
    /// the elements do not expand to its shape; [`ErrorKind::DType`]; [`ErrorKind::TooLarge`] if
    /// the elements are in more than 1024 contiguous ranges; [`ErrorKind::Graph`] for a node of
    /// another graph.
    #[track_caller]
    pub fn write(&self, at: impl IntoIndices, new: &Tensor) -> Result<()> {
        let call = Call::new("State::write");
        self.recorder.scoped(self.write_region(call, at.into_indices(), new))
    }

    fn write_region(&self, call: Call, at: Vec<Index>, new: &Tensor) -> Result<()> {
        let (shape, dtype) = self.description();
        let parts = index_parts(call, at, shape.rank())?;
        let region = region(call, &parts, &shape)?;
        if ranges(&region).0.len() > MAX_RANGES {
            let problem = format!("the elements are in more than {MAX_RANGES} separate ranges");
            let help = "order the axes so that the index selects whole rows";
            return Err(call.error(ErrorKind::TooLarge, problem, help));
        }
        let new = new.view(call, View::Expand(region.shape.clone()))?;
        self.record(call, Write::Region(parts), &[&new], dtype)
    }

    /// Writes rows: row `indices[i]`, along the first axis, becomes row i of `new`. Indices are in
    /// a vector of `i32` or `u32`, on the device; those out of range are dropped, and of equal ones
    /// the last one wins.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let cache = g.state("cache", [4, 2])?;
    /// let position = g.input_with_dtype("position", [1], DType::U32)?;
    /// cache.write_rows(&position, &g.input("row", [1, 2])?)?;
    /// let plan = g.compile(&[cache.read()])?;
    /// let row = Tensor::new([[1.0f32, 2.0]], &gpu)?;
    /// let out = plan.run(&[("position", &Tensor::new([2u32], &gpu)?), ("row", &row)])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if `new` is not one row for each index; [`ErrorKind::DType`] if the
    /// types differ, or are `bool`; [`ErrorKind::Graph`] for a node of another graph.
    #[track_caller]
    pub fn write_rows(&self, indices: &Tensor, new: &Tensor) -> Result<()> {
        let call = Call::new("State::write_rows");
        self.recorder.scoped(self.write_at(call, indices, new))
    }

    fn write_at(&self, call: Call, indices: &Tensor, new: &Tensor) -> Result<()> {
        let (shape, dtype) = self.description();
        call.check_dtype(indices.dtype(), INTEGERS)?;
        call.check_dtype(dtype, crate::dtype::NUMBERS)?;
        let fits = indices.rank() == 1
            && shape.rank() > 0
            && new.rank() == shape.rank()
            && new.shape()[1..] == shape[1..]
            && new.shape()[0] == indices.shape()[0];
        if !fits {
            let (own, at) = (new.shape(), indices.shape());
            return Err(call.shape_error(
                &[&shape, own, at],
                format!("rows of shape {own} at indices of shape {at} do not fit a state {shape}"),
                "pass a vector of indices, and a row of the state's shape for each",
            ));
        }
        self.record(call, Write::Rows, &[new, indices], dtype)
    }

    fn description(&self) -> (Shape, DType) {
        let nodes = self.recorder.lock();
        let state = &nodes.states[self.index];
        (state.shape.clone(), state.dtype)
    }

    fn record(&self, call: Call, write: Write, operands: &[&Tensor], dtype: DType) -> Result<()> {
        if operands[0].dtype() != dtype {
            let problem = format!("the state has elements of {dtype}, not {}", operands[0].dtype());
            let help = format!("convert the new elements: `.cast(DType::{dtype:?})`");
            return Err(call.error(ErrorKind::DType, problem, help));
        }
        let mut nodes = self.recorder.lock();
        let operands: Vec<_> = operands.iter().map(|it| it.operand()).collect();
        let mut sources = self.recorder.sources(call, &mut nodes, &operands)?;
        sources.insert(0, nodes.states[self.index].latest);
        let shapes = vec![nodes.states[self.index].shape.clone()];
        let latest = nodes.add(call, Content::Write(write), sources, shapes, dtype);
        nodes.states[self.index].latest = latest;
        Ok(())
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (shape, dtype) = self.description();
        write!(f, "State({dtype} {shape})")
    }
}

impl Nodes {
    /// Returns the last version of each state that is written.
    pub(super) fn written(&self) -> Vec<NodeId> {
        let latest = self.states.iter().map(|state| state.latest);
        let is_write = |id: &NodeId| matches!(self.nodes[id.index()].content, Content::Write(_));
        latest.filter(is_write).collect()
    }
}

impl Plan {
    /// Returns a copy of a state, after the runs so far.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().add(1.0)?)?;
    /// let plan = g.compile(&[count.read()])?;
    /// plan.run(&[])?;
    /// assert_eq!(plan.state("count")?.item::<f32>()?, 1.0);
    /// plan.reset_states()?;
    /// assert_eq!(plan.state("count")?.item::<f32>()?, 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Graph`] if the plan uses no such state; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn state(&self, name: &str) -> Result<Tensor> {
        let call = Call::new("Plan::state");
        let (state, buffer) = self.named_state(call, name)?;
        let copy = buffer.duplicate().map_err(|error| call.gpu(error))?;
        Ok(self.whole(state, copy).into())
    }

    /// Copies the elements of a tensor in memory to a state, after the runs so far.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().add(1.0)?)?;
    /// let plan = g.compile(&[count.read()])?;
    /// plan.set_state("count", &Tensor::new([41.0f32], &gpu)?)?;
    /// assert_eq!(plan.run(&[])?[0].item::<f32>()?, 42.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Graph`] if the plan uses no such state, or for a node; [`ErrorKind::Shape`] and
    /// [`ErrorKind::DType`] for a tensor of another shape or type; [`ErrorKind::Device`];
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn set_state(&self, name: &str, tensor: &Tensor) -> Result<()> {
        let call = Call::new("Plan::set_state");
        let (state, buffer) = self.named_state(call, name)?;
        let new = tensor.stored(call)?;
        check_device(call, &self.shared().runtime, &new.runtime)?;
        if *new.shape() != state.shape {
            let (own, wanted) = (new.shape(), &state.shape);
            let problem = format!("state `{name}` has the shape {wanted}, not {own}");
            let help = "pass a tensor of the state's shape";
            return Err(call.shape_error(&[wanted, own], problem, help));
        }
        if new.dtype != state.dtype {
            let (own, wanted) = (new.dtype, state.dtype);
            let problem = format!("state `{name}` has elements of {wanted}, not {own}");
            let help = format!("convert the tensor: `.cast(DType::{wanted:?})`");
            return Err(call.error(ErrorKind::DType, problem, help));
        }
        let packed = if new.is_packed() { (**new).clone() } else { new.copied(call)? };
        let bytes = buffer.byte_size() as usize;
        let copy = || -> scry_gpu::Result<()> {
            let mut batch = self.device().batch();
            batch.copy(&packed.buffer.view_as(None)?.slice(..bytes)?, buffer)?;
            batch.submit_async().map(drop)
        };
        if bytes == 0 { Ok(()) } else { copy().map_err(|error| call.gpu(error)) }
    }

    /// Returns a state of a name, if the plan uses it.
    fn find_state(&self, name: &str) -> Option<(&StateInfo, &UntypedBuffer)> {
        let shared = self.shared();
        let mut states = shared.graph.states.iter().zip(&shared.states);
        states.find(|(state, _)| state.name == name)
    }

    fn named_state(&self, call: Call, name: &str) -> Result<(&StateInfo, &UntypedBuffer)> {
        self.find_state(name).ok_or_else(|| {
            let states = self.shared().graph.states.iter();
            let names: Vec<&str> = states.map(|state| state.name.as_str()).collect();
            let problem = format!("the plan uses no state `{name}`");
            let help = format!("its states are: {}", names.join(", "));
            call.error(ErrorKind::Graph, problem, help)
        })
    }

    /// Sets all states to zero, in one submission.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let state = g.state("state", [2])?;
    /// state.write(0, &g.full((), 1.0, scry_tensor::DType::F32)?)?;
    /// let plan = g.compile(&[state.read()])?;
    /// plan.run(&[])?;
    /// plan.reset_states()?;
    /// assert_eq!(plan.state("state")?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn reset_states(&self) -> Result<()> {
        let call = Call::new("Plan::reset_states");
        let reset = || -> scry_gpu::Result<()> {
            let mut batch = self.device().batch();
            for state in self.shared().states.iter().filter(|state| state.byte_size() > 0) {
                batch.fill(state, 0)?;
            }
            batch.submit_async().map(drop)
        };
        reset().map_err(|error| call.gpu(error))
    }

    /// Returns a state in a buffer.
    pub(super) fn whole(&self, state: &StateInfo, buffer: UntypedBuffer) -> Stored {
        let layout = Layout::contiguous(state.shape.clone());
        Stored { runtime: self.shared().runtime.clone(), buffer, layout, dtype: state.dtype }
    }
}
