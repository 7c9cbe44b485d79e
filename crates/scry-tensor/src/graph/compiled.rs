//! Compiled graphs: plans, for the sizes of each run.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scry_gpu::{BackendKind, Batch, Features, UntypedBuffer};
use scry_kernels::{KernelOptions, Kernels};

use super::arenas::Arenas;
use super::bound_graph::{BoundGraph, Reachable, Sizes, check_outputs};
use super::debug::{self, Stage};
use super::epilogues;
use super::group::{self, Limits};
use super::grouped::Grouped;
use super::launches::Target;
use super::maps;
use super::plan;
use super::prologues;
use super::row_fusion;
use super::simplify;
use super::specialised::{Kept, Observer, Specialised};
use super::state::states;
use super::{Fusion, Graph};
use crate::error::{Call, ErrorKind, Result};
use crate::expr::Map;
use crate::runtime::{MapLaunch, Runtime};
use crate::shape::{Layout, Shape, check_count};
use crate::stored::{Stored, check_device, map_shards};
use crate::tensor::Tensor;
use crate::waiting::{Waiting, now};

/// The sizes of named dimensions for which a plan keeps its launches.
const KEPT_SIZES: usize = 4;

/// A compiled graph.
///
/// Operations are fused into few kernels, their results share a few arenas, and a run is one
/// submission. Sizes of named dimensions are arguments of kernels: a run with other sizes plans
/// memory again, but rarely compiles a kernel. All sizes share the memory of the largest ones; the
/// plan keeps the launches of the last 4 combinations of sizes.
///
/// Outputs are new tensors, independent of the plan; only an output that is an input, or a view of
/// one, shares its memory. Runs may overlap on the host, from any
/// threads; the device executes them one after the other, since they share the arenas.
///
/// ```
/// use scry_tensor::{DType, Device, Graph, Plan, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let g = Graph::new(&gpu)?;
/// let x = g.input("x", (g.dim("n", 1..=1000),))?;
/// let plan: Plan = g.compile(&[(x.square()? + 1.0)?])?;
/// for n in [1, 10, 1000] {
///     let out = plan.run(&[("x", &Tensor::ones([n], DType::F32, &gpu)?)])?;
///     assert_eq!(out[0].to_vec::<f32>()?, vec![2.0; n]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is computed until it is run"]
pub struct Plan {
    shared: Arc<Shared>,
}

/// What is compiled for sizes, once it is.
type Slot = Arc<Mutex<Option<Arc<Specialised>>>>;

pub(crate) struct Shared {
    pub(crate) runtime: Arc<Runtime>,
    /// The kernel library. With sizes that vary, products are computed by few kernels.
    pub(super) library: Kernels,
    pub(crate) graph: Reachable,
    /// The states, by position in the graph's.
    pub(crate) states: Vec<UntypedBuffer>,
    pub(super) call: Call,
    fusion: Fusion,
    /// The most recently used last.
    specialised: Mutex<Vec<(Sizes, Slot)>>,
    arenas: Arenas,
    pub(super) compiles: AtomicU64,
}

impl Graph {
    /// Compiles the computation of tensors of the graph: simplifies it, fuses operations, plans the
    /// memory, and compiles the kernels. The graph can be extended and compiled again. The ninth
    /// compilation from one line logs a warning, which names the sizes that differ.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let x = g.input("x", (g.dim("batch", 1..=64), 4))?;
    /// let w = g.param("w", &Tensor::ones([4, 2], DType::F32, &gpu)?)?;
    /// let y = (x.matmul(&w)? + 0.5)?.relu()?;
    /// let plan = g.compile(&[y])?;
    ///
    /// let data = Tensor::ones([3, 4], DType::F32, &gpu)?;
    /// let out = plan.run(&[("x", &data)])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [4.5; 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Graph`] if there is no output, one of another graph, or a named dimension that
    /// no input of the outputs has; [`ErrorKind::Value`] for an unknown value of the environment
    /// variable `SCRY_FUSE`; [`ErrorKind::TooLarge`]; [`ErrorKind::Gpu`] if the device does not
    /// support an operation, which the error names.
    #[track_caller]
    pub fn compile(&self, outputs: &[Tensor]) -> Result<Plan> {
        now(self.compiled(Call::new("Graph::compile"), outputs, None)?.ready(Waiting::Blocking))
    }

    /// Returns a plan that is not compiled for any sizes yet, with the states of another one if
    /// there is one.
    pub(crate) fn compiled(
        &self,
        call: Call,
        outputs: &[Tensor],
        other: Option<&Plan>,
    ) -> Result<Plan> {
        check_outputs(call, outputs.len())?;
        let mut nodes = self.recorder.lock();
        let mut ids = Vec::with_capacity(outputs.len());
        for output in outputs {
            ids.push(match output.node() {
                Some(node) if Arc::ptr_eq(&node.recorder, &self.recorder) => node.id,
                Some(_) => {
                    let problem = "an output is a node of another graph";
                    let help = "compile it with the graph that it was recorded in";
                    return Err(call.error(ErrorKind::Graph, problem, help));
                }
                None => self.recorder.param(call, &mut nodes, None, output.stored(call)?)?,
            });
        }
        let graph = Reachable::new(&nodes, &ids);
        let fusion = nodes.fusion.map_or_else(|| Fusion::from_environment(call), Ok)?;
        drop(nodes);
        graph.check_dimensions(call)?;
        let inputs = graph.inputs.iter().map(|it| (it.name.as_str(), &*it.sizes));
        self.recorder.runtime().call_sites.count(call, &inputs.collect::<Vec<_>>());
        let states = states(call, self.recorder.runtime(), &graph, other)?;
        Ok(Plan::new(call, self.recorder.runtime(), graph, fusion, states))
    }
}

impl Plan {
    fn new(
        call: Call,
        runtime: &Arc<Runtime>,
        graph: Reachable,
        fusion: Fusion,
        states: Vec<UntypedBuffer>,
    ) -> Self {
        let (specialised, arenas) = (Mutex::default(), Arenas::default());
        let (runtime, compiles) = (runtime.clone(), AtomicU64::new(0));
        let any_rows = graph.has_open_sizes();
        let options = KernelOptions { any_rows, ..runtime.library().options().clone() };
        let library = runtime.library().having(options);
        let shared =
            Shared { runtime, library, graph, states, call, fusion, specialised, arenas, compiles };
        Self { shared: Arc::new(shared) }
    }

    /// Submits a run and returns its outputs, without waiting for them. Inputs are tensors in
    /// memory, by name; strided views are copied, within the submission.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let x = g.input("x", [2])?;
    /// let plan = g.compile(&[(x.exp()? - 1.0)?, x])?;
    /// let data = Tensor::new([0.0f32, 0.0], &gpu)?;
    /// let out = plan.run(&[("x", &data)])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [0.0, 0.0]);
    ///
    /// let error = plan.run(&[]).unwrap_err();
    /// assert!(error.to_string().contains("input `x` is missing"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Graph`] for a missing, unknown or repeated input, and for one that is a node;
    /// [`ErrorKind::Shape`] and [`ErrorKind::DType`] for one of another shape or type;
    /// [`ErrorKind::Device`]; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn run(&self, inputs: &[(&str, &Tensor)]) -> Result<Vec<Tensor>> {
        let call = Call::new("Plan::run");
        now(self.run_by(call, &self.inputs(call, inputs)?, Waiting::Blocking))
    }

    /// Submits a run of inputs in the order of the graph.
    pub(crate) async fn run_by(
        &self,
        call: Call,
        inputs: &[Arc<Stored>],
        waiting: Waiting,
    ) -> Result<Vec<Tensor>> {
        let sizes = self.sizes(call, inputs)?;
        let specialised = self.specialised_by(call, sizes, waiting).await?;
        // A future that is dropped while it compiles submits no run.
        let inputs = match waiting == Waiting::Awaiting {
            false => inputs.to_vec(),
            true => self.packed_by(call, inputs, waiting).await?,
        };
        let run = || self.submit(call, &specialised, &inputs, None);
        let outputs = waiting.submit(call, self.device(), run).await?;
        Ok(outputs.into_iter().map(Tensor::from).collect())
    }

    /// Returns the inputs, and copies of those that are strided views, by kernels that may be
    /// compiled.
    pub(super) async fn packed_by(
        &self,
        call: Call,
        inputs: &[Arc<Stored>],
        waiting: Waiting,
    ) -> Result<Vec<Arc<Stored>>> {
        let mut packed = Vec::with_capacity(inputs.len());
        for input in inputs {
            packed.push(match input.is_packed() {
                true => input.clone(),
                false => {
                    let input = input.clone();
                    let copy = move || input.copied(call).map(Arc::new);
                    waiting.compile(call, self.device(), copy).await?
                }
            });
        }
        Ok(packed)
    }

    /// Returns the memory and the launches for sizes: see [`Plan::specialised`].
    pub(super) async fn specialised_by(
        &self,
        call: Call,
        sizes: Sizes,
        waiting: Waiting,
    ) -> Result<Arc<Specialised>> {
        if waiting == Waiting::Awaiting
            && let Some(known) = self.known(&sizes)
        {
            return Ok(known);
        }
        let plan = self.share();
        waiting.compile(call, self.device(), move || plan.specialised(&sizes)).await
    }

    /// Returns the plan again.
    pub(super) fn share(&self) -> Self {
        Self { shared: self.shared.clone() }
    }

    /// Returns the sizes of the named dimensions.
    pub(super) fn sizes(&self, call: Call, inputs: &[Arc<Stored>]) -> Result<Sizes> {
        let shapes: Vec<Shape> = inputs.iter().map(|it| it.shape().clone()).collect();
        self.shared.graph.solve(call, &shapes)
    }

    /// Submits a run, and returns its outputs.
    pub(super) fn submit(
        &self,
        call: Call,
        specialised: &Specialised,
        inputs: &[Arc<Stored>],
        after: Option<&mut Observer<'_>>,
    ) -> Result<Vec<Stored>> {
        let mut batch = self.device().batch();
        let outputs = self.add_run(call, &mut batch, specialised, inputs, after)?;
        drop(batch.submit_async().map_err(|error| call.gpu(error))?);
        Ok(outputs)
    }

    /// Adds a run to a batch, and returns its outputs.
    pub(super) fn add_run(
        &self,
        call: Call,
        batch: &mut Batch,
        specialised: &Specialised,
        inputs: &[Arc<Stored>],
        after: Option<&mut Observer<'_>>,
    ) -> Result<Vec<Stored>> {
        let mut packed = Vec::with_capacity(inputs.len());
        for input in inputs {
            packed.push(self.packed(call, batch, input)?);
        }
        specialised.run(self.shared.target(), call, batch, &packed, after)
    }

    /// Returns the inputs in the order of the graph.
    pub(super) fn inputs(&self, call: Call, given: &[(&str, &Tensor)]) -> Result<Vec<Arc<Stored>>> {
        let inputs = &self.shared.graph.inputs;
        let names = || {
            let names: Vec<String> = inputs.iter().map(|it| format!("`{}`", it.name)).collect();
            match names.is_empty() {
                true => "the plan has no inputs".to_owned(),
                false => format!("pass each input of the plan once: {}", names.join(", ")),
            }
        };
        let error = |problem: String| call.error(ErrorKind::Graph, problem, names());
        for (position, (name, _)) in given.iter().enumerate() {
            if !inputs.iter().any(|input| input.name == *name) {
                return Err(error(format!("no output of the plan depends on an input `{name}`")));
            }
            if given[..position].iter().any(|(other, _)| other == name) {
                return Err(error(format!("input `{name}` is given twice")));
            }
        }
        let mut found = Vec::with_capacity(inputs.len());
        for input in inputs {
            let name = &input.name;
            let given = given.iter().find(|(given, _)| given == name);
            let Some((_, tensor)) = given else {
                return Err(error(format!("input `{name}` is missing")));
            };
            let stored = tensor.stored(call)?;
            check_device(call, &self.shared.runtime, &stored.runtime)?;
            if stored.dtype != input.dtype {
                let (own, wanted) = (stored.dtype, input.dtype);
                let problem = format!("input `{name}` has elements of {own}, not {wanted}");
                let help = format!("convert it: `.cast(DType::{wanted:?})`");
                return Err(call.error(ErrorKind::DType, problem, help));
            }
            found.push(stored.clone());
        }
        Ok(found)
    }

    /// Returns an input packed in a buffer of its own size: its part of a longer one, or a copy
    /// that a launch of the batch makes.
    pub(super) fn packed(&self, call: Call, batch: &mut Batch, input: &Stored) -> Result<Stored> {
        let shape = input.shape().clone();
        let bytes = crate::op::packed_bytes(&shape, input.dtype);
        if input.is_packed() {
            if input.buffer.byte_size() <= bytes as u64 {
                return Ok(input.clone());
            }
            let part =
                || input.buffer.view_as(scry_gpu::DType::U32)?.slice(..bytes / 4)?.view_as(None);
            let buffer = part().map_err(|error| call.gpu(error))?;
            return Ok(Stored { buffer, ..input.clone() });
        }
        let count = check_count(call, &shape, input.dtype)?;
        let map = Map::copy(input.dtype);
        let launch = MapLaunch {
            map: &map,
            sizes: &shape,
            count,
            operands: &[(&input.buffer, input.layout.clone())],
            gathered: None,
            arguments: &[],
        };
        let buffer = match count {
            0 => self.shared.runtime.allocate(bytes).map_err(|error| call.gpu(error))?,
            _ => self.copied(call, batch, &launch, bytes)?,
        };
        Ok(Stored { buffer, layout: Layout::contiguous(shape), ..input.clone() })
    }

    /// Adds the launch of a copy to a batch, and returns its result of a number of bytes.
    fn copied(
        &self,
        call: Call,
        batch: &mut Batch,
        launch: &MapLaunch<'_>,
        bytes: usize,
    ) -> Result<UntypedBuffer> {
        let runtime = &self.shared.runtime;
        let shards = map_shards(call, runtime, launch, bytes as u64)?;
        let mut copy = || -> scry_gpu::Result<_> {
            let result = runtime.allocate(bytes)?;
            let (launches, compiled) = match &shards {
                Some(shards) => runtime.prepare_shards(launch, shards, &result, None)?,
                None => {
                    let (launch, is_compiled) = runtime.prepare(launch, &result, None)?;
                    (vec![launch], is_compiled.into())
                }
            };
            self.shared.compiles.fetch_add(compiled, Ordering::Relaxed);
            for launch in &launches {
                batch.run_prepared(launch)?;
            }
            Ok(result)
        };
        copy().map_err(|error| call.gpu(error))
    }

    /// Returns the memory and the launches for sizes, the kept ones if there are. Those of other
    /// sizes can be used while these are compiled; threads that need the same ones wait.
    pub(super) fn specialised(&self, sizes: &Sizes) -> Result<Arc<Specialised>> {
        let slot = self.slot(sizes);
        let mut specialised = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*specialised {
            return Ok(known.clone());
        }
        match self.shared.specialise(sizes) {
            Ok(new) => {
                self.forget_oldest();
                Ok(specialised.insert(Arc::new(new)).clone())
            }
            Err(error) => {
                self.kept().retain(|(_, kept)| !Arc::ptr_eq(kept, &slot));
                Err(error)
            }
        }
    }

    /// Returns what is compiled for sizes, if it is and no thread compiles it.
    fn known(&self, sizes: &Sizes) -> Option<Arc<Specialised>> {
        if !self.kept().iter().any(|(known, _)| known == sizes) {
            return None;
        }
        self.slot(sizes).try_lock().ok()?.clone()
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(Sizes, Slot)>> {
        self.shared.specialised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place for what is compiled for sizes, as the most recently used one.
    fn slot(&self, sizes: &Sizes) -> Slot {
        let mut kept = self.kept();
        let known = kept.iter().position(|(known, _)| known == sizes);
        let entry = known.map(|known| kept.remove(known));
        let entry = entry.unwrap_or_else(|| (sizes.clone(), Slot::default()));
        let slot = entry.1.clone();
        kept.push(entry);
        slot
    }

    /// Forgets the least recently used sizes, beyond those that are kept. Those that are being
    /// compiled have waiting threads.
    fn forget_oldest(&self) {
        let mut kept = self.kept();
        let is_compiled = |(_, slot): &(Sizes, Slot)| slot.try_lock().is_ok();
        if kept.len() > KEPT_SIZES
            && let Some(oldest) = kept.iter().position(is_compiled)
        {
            kept.remove(oldest);
        }
    }

    /// Returns how many kernels of element-wise operations were compiled for this plan, by
    /// [`Graph::compile`] and since. Kernels that operations or other plans compiled before do not
    /// count, nor do those of the kernel library.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let x = g.input("x", (g.dim("length", 2..=100),))?;
    /// let plan = g.compile(&[(x.exp()? + 1.0)?])?;
    /// let compiled = plan.compiled_kernels();
    /// for length in 2..9 {
    ///     plan.run(&[("x", &Tensor::zeros([length], DType::F32, &gpu)?.add(0.0)?)])?;
    /// }
    /// assert_eq!(plan.compiled_kernels(), compiled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn compiled_kernels(&self) -> u64 {
        self.shared.compiles.load(Ordering::Relaxed)
    }

    /// Returns what the parts of the plan share.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl Shared {
    pub(super) fn target(&self) -> Target<'_> {
        Target { runtime: &self.runtime, library: &self.library, compiles: &self.compiles }
    }

    /// Compiles the graph for sizes.
    pub(super) fn specialise(&self, sizes: &Sizes) -> Result<Specialised> {
        self.plan_in(&self.arenas, self.group(sizes)?)
    }

    /// Runs the passes up to the groups of nodes, and prints what they do.
    pub(super) fn group(&self, sizes: &Sizes) -> Result<(BoundGraph, Grouped)> {
        let bound = self.graph.bind(sizes)?;
        debug::print(Stage::Graph, || debug::graph(&bound));
        let (simple, applied) = simplify::simplify(&bound);
        debug::print(Stage::Simplify, || debug::simplified(&simple, &applied));
        let grouped = self.fuse(&simple)?;
        debug::print(Stage::Group, || debug::grouped(&grouped));
        Ok((simple, grouped))
    }

    /// Returns the kernels for sizes.
    pub(super) fn kernels(&self, sizes: &Sizes) -> Result<Grouped> {
        self.fuse(&simplify::simplify(&self.graph.bind(sizes)?).0)
    }

    /// Returns the kernels of a simplified graph.
    fn fuse(&self, graph: &BoundGraph) -> Result<Grouped> {
        let limits = self.limits();
        let mut grouped = group::group(graph, &self.params(), limits)?;
        // Without inputs all results are constants, and the plan likely runs once.
        if !self.graph.inputs.is_empty() || !self.states.is_empty() {
            grouped.fold_constants();
        }
        if self.fusion != Fusion::None {
            row_fusion::fuse(&mut grouped, limits);
            epilogues::fuse(&mut grouped, limits, &self.library);
            prologues::fuse(&mut grouped, limits);
            maps::fuse(&mut grouped, limits);
        }
        Ok(grouped)
    }

    /// Returns what the device allows.
    pub(super) fn limits(&self) -> Limits {
        let info = self.runtime.device().info();
        let backend = self.runtime.device().backend_kind();
        Limits {
            fusion: self.fusion,
            is_cpu: backend == BackendKind::Cpu,
            is_cuda: backend == BackendKind::Cuda,
            has_f16: info.features.contains(Features::F16),
            has_bf16: info.features.contains(Features::I16),
            alignment: info.binding_alignment,
            bindings: info.limits.max_storage_bindings as usize,
            binding_bytes: info.limits.max_storage_binding_size,
        }
    }

    /// Plans memory and prepares launches, in arenas that are kept.
    fn plan_in(
        &self,
        arenas: &Arenas,
        (graph, grouped): (BoundGraph, Grouped),
    ) -> Result<Specialised> {
        let max_arena = self.runtime.device().info().limits.max_buffer_size;
        let memory = plan::plan(&grouped, max_arena, &arenas.sizes());
        debug::print(Stage::Plan, || debug::memory(&grouped, &memory));
        let kept = Kept { params: &self.params(), states: &self.states, arenas };
        Specialised::new(self.target(), self.call, graph, grouped, memory, kept)
    }

    /// Plans memory and prepares launches, as for sizes.
    #[cfg(test)]
    pub(super) fn plan(&self, grouped: (BoundGraph, Grouped)) -> Result<Specialised> {
        self.plan_in(&Arenas::default(), grouped)
    }

    fn params(&self) -> Vec<&Stored> {
        self.graph.params.iter().map(|(_, stored)| &**stored).collect()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("nodes", &self.shared.graph.nodes.len())
            .field("device", &self.device().name())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn compiling_does_not_block_other_sizes() {
        let gpu = scry_gpu::Device::open("cpu").unwrap();
        let g = Graph::new(&gpu).unwrap();
        let x = g.input("x", (g.dim("n", 1..=9),)).unwrap();
        let plan = g.compile(&[x.exp().unwrap()]).unwrap();
        // As while a thread compiles the plan for n = 4.
        let compiling = plan.slot(&vec![("n".to_owned(), 4)]);
        let _held = compiling.lock().unwrap();
        let data = Tensor::zeros([9], DType::F32, &gpu).unwrap();
        let out = plan.run(&[("x", &data)]).unwrap();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), [1.0; 9]);
    }
}
