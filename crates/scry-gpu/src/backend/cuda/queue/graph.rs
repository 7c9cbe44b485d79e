//! Recordings of steps as CUDA graphs.
//!
//! Each command of a segment (the steps between two barriers) depends on all of the previous
//! segment. A cuBLAS product also depends on the previous product, because they share a workspace,
//! and a collective or an indirect launch on the previous one of either, because all their blocks
//! have to become resident, and because all ranks execute collectives in the same order. cuBLAS and
//! NCCL choose the kernels of their calls, so they are captured from a stream.

use std::ffi::c_void;
use std::sync::Arc;

use super::capture::CapturedGraph;
use super::encode::{Encoder, Launch, Op};
use super::overlap;
use super::stream::Stream;
use crate::api::error::Result;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::driver_api::Api;
use crate::backend::cuda::ffi::types::{
    self, Code, Context, CopySide, DevicePtr, Edge, GraphNode, KernelNode, MemcpyNode, MemsetNode,
};
use crate::core::command::{Command, Step};

/// Maximum bytes of a copy node: the driver limits a row to 2 GiB.
const MAX_COPY: usize = 1 << 30;

/// An instantiated graph of recorded steps.
pub(crate) struct Graph {
    /// `None` if the graph is empty.
    exec: Option<types::GraphExec>,
    /// Whether a kernel of the graph polls for cancellation.
    pub(crate) polls: bool,
    gpu: Arc<Gpu>,
}

impl Graph {
    /// Launches the graph.
    pub(crate) fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: by the contract of `Driver`, the graph and the memory that it uses live until its
        // work is finished.
        self.exec.map_or(Ok(()), |exec| unsafe { stream.launch(exec) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let Some(_current) = self.gpu.current_to_free() else { return };
        if let Some(exec) = self.exec {
            // SAFETY: no unfinished work uses the graph.
            let code = unsafe { (self.gpu.api.graph_exec_destroy)(exec) };
            self.gpu.log_failed_free("cuGraphExecDestroy", code);
        }
    }
}

/// Records steps and uploads the graph through the stream. The context must be current.
pub(crate) fn record(
    gpu: &Arc<Gpu>,
    stream: &Stream,
    encoder: &mut Encoder<'_>,
    steps: &[Step],
) -> Result<Graph> {
    let mut graph = Graph { exec: None, polls: false, gpu: Arc::clone(gpu) };
    graph.polls = overlap::dispatches(steps).any(|dispatch| encoder.tables.polls(dispatch));
    let mut builder = Builder::new(gpu)?;
    let mut before = None;
    for segment in overlap::segments(steps) {
        builder.begin_segment(segment.len())?;
        for command in overlap::commands(segment) {
            builder.pdl = match command {
                Command::Dispatch(dispatch) => encoder.tables.uses_pdl(dispatch, before),
                _ => false,
            };
            builder.add(encoder.encode(command)?)?;
        }
        before = overlap::lone_dispatch(segment);
    }
    if builder.is_empty() {
        return Ok(graph);
    }
    let exec = *graph.exec.insert(builder.instantiate()?);
    // SAFETY: graph and stream are alive.
    let code = unsafe { (gpu.api.graph_upload)(exec, stream.raw) };
    gpu.check("cuGraphUpload", code)?;
    Ok(graph)
}

/// A graph under construction, segment by segment.
struct Builder<'a> {
    raw: types::Graph,
    layers: Layers<GraphNode>,
    /// The last cuBLAS product.
    product: Option<GraphNode>,
    /// The last collective or indirect launch.
    resident: Option<GraphNode>,
    /// Whether the next launch may start before the previous one has finished (PDL).
    pdl: bool,
    add_dependencies: Option<AddDependencies>,
    gpu: &'a Gpu,
}

impl<'a> Builder<'a> {
    fn new(gpu: &'a Gpu) -> Result<Self> {
        let mut raw = types::Graph::NULL;
        // SAFETY: the driver writes a handle.
        let code = unsafe { (gpu.api.graph_create)(&raw mut raw, 0) };
        gpu.check("cuGraphCreate", code)?;
        Ok(Self {
            raw,
            layers: Layers::default(),
            product: None,
            resident: None,
            pdl: false,
            add_dependencies: find_add_dependencies(gpu.api),
            gpu,
        })
    }

    fn is_empty(&self) -> bool {
        self.layers.current.is_empty()
    }

    /// Begins a segment that depends on all nodes so far. `nodes` is an estimate of its size.
    fn begin_segment(&mut self, nodes: usize) -> Result<()> {
        if self.layers.begin_segment(nodes) {
            let join_node = self.add_node("cuGraphAddEmptyNode", |api, node, graph, before| {
                // SAFETY: see `add_node`.
                unsafe { (api.graph_add_empty_node)(node, graph, before.as_ptr(), before.len()) }
            })?;
            self.layers.join(join_node);
        }
        Ok(())
    }

    /// Adds a command to the segment.
    fn add(&mut self, op: Op<'_>) -> Result<()> {
        match op {
            Op::Fill { dst, pattern, count } => self.add_fill(dst, pattern, count),
            Op::Copy { src, dst, size } => chunks(size).try_for_each(|(offset, size)| {
                self.add_copy(src + offset as DevicePtr, dst + offset as DevicePtr, size)
            }),
            Op::Launch(launch) if launch.indirect => self.add_indirect_launch(&launch_node(launch)),
            Op::Launch(launch) => self.add_launch(&launch_node(launch)),
            Op::Product(blas, product) => self.add_product(&blas.capture(&product)?),
            Op::Collective(membership, collective) => {
                self.add_collective(&membership.capture(&collective)?)
            }
        }
    }

    /// Adds the captured graph of a cuBLAS product, which also depends on the previous product.
    fn add_product(&mut self, captured: &CapturedGraph<'_>) -> Result<()> {
        self.product = Some(self.add_captured(captured, self.product)?);
        Ok(())
    }

    /// Adds the captured graph of a collective, which also depends on the previous one, or indirect
    /// launch.
    fn add_collective(&mut self, captured: &CapturedGraph<'_>) -> Result<()> {
        self.resident = Some(self.add_captured(captured, self.resident)?);
        Ok(())
    }

    /// Adds a captured graph, which also depends on `earlier`, to the segment.
    fn add_captured(
        &mut self,
        captured: &CapturedGraph<'_>,
        earlier: Option<GraphNode>,
    ) -> Result<GraphNode> {
        let waits_for = self.layers.dependencies_with(earlier);
        let node = self.add_node("cuGraphAddChildGraphNode", |api, node, graph, _| {
            let (waits_for, count) = (waits_for.as_ptr(), waits_for.len());
            // SAFETY: see `add_node`; the driver copies the captured graph.
            unsafe { (api.graph_add_child_graph_node)(node, graph, waits_for, count, captured.raw) }
        })?;
        self.layers.current.push(node);
        Ok(node)
    }

    /// Adds a launch. It depends on all nodes of the previous segment or, with PDL, on its only
    /// launch by a programmatic edge.
    fn add_launch(&mut self, params: &KernelNode) -> Result<()> {
        let add_dependencies = self.add_dependencies.filter(|_| self.pdl);
        let node = self.add_node("cuGraphAddKernelNode", |api, node, graph, before| {
            let count = if add_dependencies.is_some() { 0 } else { before.len() };
            let waits_for = before.as_ptr();
            // SAFETY: see `add_node`; the driver copies the parameters, each of which is readable
            // up to its declared size.
            unsafe { (api.graph_add_kernel_node)(node, graph, waits_for, count, params) }
        })?;
        self.layers.current.push(node);
        match add_dependencies {
            Some(add_dependencies) => self.add_pdl_edge(add_dependencies, node),
            None => Ok(()),
        }
    }

    /// Adds an indirect launch, which also depends on the previous one, or collective.
    fn add_indirect_launch(&mut self, params: &KernelNode) -> Result<()> {
        let waits_for = self.layers.dependencies_with(self.resident);
        let node = self.add_node("cuGraphAddKernelNode", |api, node, graph, _| {
            let (waits_for, count) = (waits_for.as_ptr(), waits_for.len());
            // SAFETY: see `add_node`; the driver copies the parameters, each of which is readable
            // up to its declared size.
            unsafe { (api.graph_add_kernel_node)(node, graph, waits_for, count, params) }
        })?;
        self.resident = Some(node);
        self.layers.current.push(node);
        Ok(())
    }

    /// Adds a programmatic dependency (PDL) of a launch on the launch of the previous segment.
    fn add_pdl_edge(&self, add_dependencies: AddDependencies, node: GraphNode) -> Result<()> {
        /// `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`, `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`.
        const EDGE: Edge = Edge { from_port: 1, to_port: 0, kind: 1, reserved: [0; 5] };
        let before = self.layers.previous.as_ptr();
        // SAFETY: the signature is that of the driver's header; the graph is alive, and both nodes
        // are its kernel nodes.
        let code = unsafe { add_dependencies(self.raw, before, &raw const node, &EDGE, 1) };
        self.gpu.check("cuGraphAddDependencies", code)
    }

    fn add_fill(&mut self, dst: DevicePtr, pattern: u32, count: usize) -> Result<()> {
        let (element_size, width) = (size_of::<u32>() as u32, count);
        let params = MemsetNode { dst, pitch: 0, value: pattern, element_size, width, height: 1 };
        let context = self.gpu.context;
        let node = self.add_node("cuGraphAddMemsetNode", |api, node, graph, before| {
            let (waits_for, count) = (before.as_ptr(), before.len());
            // SAFETY: see `add_node`; the encoder checked that the range is within a live
            // allocation.
            unsafe {
                (api.graph_add_memset_node)(
                    node,
                    graph,
                    waits_for,
                    count,
                    &raw const params,
                    context,
                )
            }
        })?;
        self.layers.current.push(node);
        Ok(())
    }

    fn add_copy(&mut self, src: DevicePtr, dst: DevicePtr, size: usize) -> Result<()> {
        let (src, dst) = (copy_side(src, size), copy_side(dst, size));
        let params = MemcpyNode { src, dst, width: size, height: 1, depth: 1 };
        let context = self.gpu.context;
        let node = self.add_node("cuGraphAddMemcpyNode", |api, node, graph, before| {
            let (waits_for, count) = (before.as_ptr(), before.len());
            // SAFETY: see `add_node`; the encoder checked that both ranges are within live
            // allocations.
            unsafe {
                (api.graph_add_memcpy_node)(
                    node,
                    graph,
                    waits_for,
                    count,
                    &raw const params,
                    context,
                )
            }
        })?;
        self.layers.current.push(node);
        Ok(())
    }

    /// Adds a node to the graph. Calls `add` with the driver's functions and the arguments that all
    /// functions `cuGraphAdd*Node` have: the address for the new handle, the graph, which is alive,
    /// and the nodes of the previous segment, as dependencies.
    fn add_node(
        &self,
        call: &'static str,
        add: impl FnOnce(&Api, *mut GraphNode, types::Graph, &[GraphNode]) -> Code,
    ) -> Result<GraphNode> {
        let mut node = GraphNode::NULL;
        let code = add(self.gpu.api, &raw mut node, self.raw, &self.layers.previous);
        self.gpu.check(call, code)?;
        Ok(node)
    }

    fn instantiate(&self) -> Result<types::GraphExec> {
        let mut exec = types::GraphExec::NULL;
        // SAFETY: the graph is alive; the driver writes a handle.
        let code = unsafe { (self.gpu.api.graph_instantiate)(&raw mut exec, self.raw, 0) };
        self.gpu.check("cuGraphInstantiateWithFlags", code)?;
        Ok(exec)
    }
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        if self.gpu.is_abandoned() {
            return;
        }
        // SAFETY: the instantiated graph is a copy.
        let code = unsafe { (self.gpu.api.graph_destroy)(self.raw) };
        self.gpu.log_failed_free("cuGraphDestroy", code);
    }
}

/// `cuGraphAddDependencies_v2`: graph, from, to, edge data, count.
type AddDependencies = unsafe extern "C" fn(
    types::Graph,
    *const GraphNode,
    *const GraphNode,
    *const Edge,
    usize,
) -> Code;

/// Looks up the function that adds typed edges, which is new in CUDA 12.3.
fn find_add_dependencies(api: &Api) -> Option<AddDependencies> {
    let symbol = api.optional_function(c"cuGraphAddDependencies_v2")?;
    // SAFETY: the signature is that of the driver's header.
    Some(unsafe { std::mem::transmute::<*const c_void, AddDependencies>(symbol) })
}

/// The nodes of the current segment, and those of the previous one, on which all of them depend.
struct Layers<N> {
    /// The nodes of the previous segment, or one node that joins them.
    previous: Vec<N>,
    current: Vec<N>,
}

impl<N> Default for Layers<N> {
    fn default() -> Self {
        Self { previous: Vec::new(), current: Vec::new() }
    }
}

impl<N> Layers<N> {
    /// Begins a segment of about `nodes` nodes. Returns whether the previous segment should be
    /// joined by a node: otherwise each pair of nodes of both segments would need an edge.
    fn begin_segment(&mut self, nodes: usize) -> bool {
        if !self.current.is_empty() {
            std::mem::swap(&mut self.previous, &mut self.current);
            self.current.clear();
        }
        self.previous.len() > 1 && nodes > 1
    }

    /// Returns the dependencies of a node of the current segment that also depends on `earlier`,
    /// without duplicates.
    fn dependencies_with(&self, earlier: Option<N>) -> Vec<N>
    where
        N: Copy + PartialEq,
    {
        let earlier = earlier.filter(|earlier| !self.previous.contains(earlier));
        self.previous.iter().copied().chain(earlier).collect()
    }

    /// Makes the current segment depend on `join_node` alone.
    fn join(&mut self, join_node: N) {
        self.previous.clear();
        self.previous.push(join_node);
    }
}

/// Splits a copy into chunks that fit a node: offsets and sizes.
fn chunks(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..size).step_by(MAX_COPY).map(move |offset| (offset, MAX_COPY.min(size - offset)))
}

/// Describes `size` bytes at an address, as one row of a 3D copy.
fn copy_side(device: DevicePtr, size: usize) -> CopySide {
    CopySide {
        x: 0,
        y: 0,
        z: 0,
        lod: 0,
        memory_type: types::MEMORY_UNIFIED,
        host: 0,
        device,
        array: 0,
        reserved: 0,
        pitch: size,
        height: 1,
    }
}

/// Returns the parameters of a launch's node.
fn launch_node(launch: Launch<'_>) -> KernelNode {
    let [params, extra] = launch.params.pointers();
    KernelNode {
        function: launch.function,
        grid: launch.grid,
        block: launch.block,
        shared_bytes: launch.dynamic_shared,
        params,
        extra,
        kernel: 0,
        context: Context::NULL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the edges of a graph with segments of these sizes, and its number of nodes.
    fn edges(segments: &[usize]) -> (Vec<(usize, usize)>, usize) {
        let (mut layers, mut edges, mut nodes) = (Layers::default(), Vec::new(), 0);
        let mut add = |before: &[usize]| {
            edges.extend(before.iter().map(|from| (*from, nodes)));
            nodes += 1;
            nodes - 1
        };
        for count in segments {
            if layers.begin_segment(*count) {
                let join_node = add(&layers.previous);
                layers.join(join_node);
            }
            for _ in 0..*count {
                let node = add(&layers.previous);
                layers.current.push(node);
            }
        }
        (edges, nodes)
    }

    #[test]
    fn chain_has_one_edge_per_node() {
        assert_eq!(edges(&[1, 1, 1]), (vec![(0, 1), (1, 2)], 3));
        assert_eq!(edges(&[3]), (vec![], 3));
    }

    #[test]
    fn single_nodes_need_no_join() {
        assert_eq!(edges(&[1, 2, 1]), (vec![(0, 1), (0, 2), (1, 3), (2, 3)], 4));
    }

    #[test]
    fn wide_segments_meet_in_join() {
        let (edges, nodes) = edges(&[2, 3]);
        assert_eq!(edges, [(0, 2), (1, 2), (2, 3), (2, 4), (2, 5)]);
        assert_eq!(nodes, 6);
    }

    #[test]
    fn segments_depend_on_their_predecessors() {
        let (edges, nodes) = edges(&[100, 100, 1, 7, 7]);
        assert_eq!(nodes, 217);
        assert_eq!(edges.len(), 200 + 100 + 7 + 7 + 7);
    }

    #[test]
    fn extra_dependency_is_not_duplicated() {
        let mut layers = Layers::default();
        assert_eq!(layers.dependencies_with(None), [0; 0]);
        layers.current.push(1);
        assert_eq!(layers.dependencies_with(Some(1)), [1], "in one segment");
        layers.begin_segment(1);
        assert_eq!(layers.dependencies_with(Some(1)), [1], "from one segment to the next");
        assert_eq!(layers.dependencies_with(Some(0)), [1, 0], "from an earlier one");
    }

    #[test]
    fn long_copies_split_without_gaps() {
        let chunks = |size| chunks(size).collect::<Vec<_>>();
        assert_eq!(chunks(4), [(0, 4)]);
        assert_eq!(chunks(MAX_COPY), [(0, MAX_COPY)]);
        let large = 2 * MAX_COPY + 5;
        assert_eq!(chunks(large), [(0, MAX_COPY), (MAX_COPY, MAX_COPY), (2 * MAX_COPY, 5)]);
    }
}
