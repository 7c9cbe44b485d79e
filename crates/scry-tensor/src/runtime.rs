//! What tensors of one device share: the kernel library and the kernels of maps.

use std::collections::HashMap;
use std::hash::Hash;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use scry_gpu::kir::Kir;
use scry_gpu::{
    BackendKind, Binding, Buffer, Device, Kernel, Launch, PreparedLaunch, Result, UntypedBuffer,
};
use scry_kernels::Kernels;

use crate::dtype::DType;
use crate::eager::{EagerClasses, EagerKernel, EagerKernels, EagerKey};
use crate::expr::Map;
use crate::graph::call_sites::CallSites;
use crate::lower::{
    self, Access, Classes, Conversions, Exchange, GatherAxis, Iteration, KernelKey, MapsKey,
    PartLaunch, RowIteration, RowKey, RowProgram, SUBGROUP, WORKGROUP,
};
use crate::result_pool::{self, ResultPool};
use crate::shape::Layout;
use crate::sharding::{self, MapShard, MapShards};

/// The runtimes of devices with tensors.
static OPEN: Mutex<Vec<Weak<Runtime>>> = Mutex::new(Vec::new());

/// The kernels of a device. It exists as long as a tensor of the device does.
pub(crate) struct Runtime {
    device: Device,
    library: Kernels,
    /// Kernels by content. There are as many as the program has operations, element types and
    /// classes of strides: sizes are arguments.
    kernels: Mutex<HashMap<KernelKey, Kernel>>,
    row_kernels: Mutex<HashMap<RowKey, Kernel>>,
    maps_kernels: Mutex<HashMap<MapsKey, Kernel>>,
    compiled: AtomicU64,
    pub(crate) call_sites: CallSites,
    eager: Mutex<EagerKernels>,
    results: Mutex<ResultPool>,
}

/// One launch of a map.
pub(crate) struct MapLaunch<'l> {
    pub(crate) map: &'l Map,
    /// The sizes of the result.
    pub(crate) sizes: &'l [usize],
    /// The number of its elements, at least 1.
    pub(crate) count: u32,
    /// The operands with the result's shape.
    pub(crate) operands: &'l [(&'l UntypedBuffer, Layout)],
    pub(crate) gathered: Option<GatherAxis>,
    pub(crate) arguments: &'l [u32],
}

/// A kernel with the parameters of a launch.
struct Encoded {
    kernel: Kernel,
    invocations: u32,
    /// Words of the result.
    words: u32,
    parameters: Vec<u32>,
    /// The parameters in a buffer, if there are more than immediates hold.
    uploaded: Option<Buffer<u32>>,
}

impl Encoded {
    /// Returns the bindings, of results and then operands, and the size of the launch.
    fn bind<'b>(
        &'b self,
        buffers: impl Iterator<Item = &'b UntypedBuffer>,
    ) -> (Vec<&'b dyn Binding>, Launch) {
        let mut bindings: Vec<&dyn Binding> = buffers.map(|it| it as &dyn Binding).collect();
        let size = Launch::invocations(self.invocations);
        match &self.uploaded {
            Some(parameters) => {
                bindings.push(parameters);
                (bindings, size)
            }
            None => {
                let bytes: Vec<u8> =
                    self.parameters.iter().flat_map(|it| it.to_ne_bytes()).collect();
                (bindings, size.immediate_bytes(bytes))
            }
        }
    }

    /// Prepares the launch with results and operands.
    fn prepare<'b>(
        &'b self,
        buffers: impl Iterator<Item = &'b UntypedBuffer>,
    ) -> Result<PreparedLaunch> {
        let (bindings, size) = self.bind(buffers);
        self.kernel.prepare(&bindings, size)
    }
}

impl Runtime {
    /// Returns the runtime of a device.
    pub(crate) fn of(device: &Device) -> Result<Arc<Self>> {
        let mut open = lock(&OPEN);
        open.retain(|runtime| runtime.strong_count() > 0);
        let found = open.iter().filter_map(Weak::upgrade).find(|it| it.device == *device);
        if let Some(runtime) = found {
            return Ok(runtime);
        }
        let (device, library) = (device.clone(), Kernels::new(device)?);
        let (kernels, row_kernels, maps_kernels) = Default::default();
        let (compiled, call_sites) = (AtomicU64::new(0), CallSites::default());
        let (eager, results) = (Mutex::default(), Mutex::default());
        let runtime = Arc::new(Self {
            device,
            library,
            kernels,
            row_kernels,
            maps_kernels,
            compiled,
            call_sites,
            eager,
            results,
        });
        open.push(Arc::downgrade(&runtime));
        Ok(runtime)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn library(&self) -> &Kernels {
        &self.library
    }

    /// Returns how many kernels were compiled.
    pub(crate) fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Allocates a buffer of zeros. If there is too little memory, the memory of earlier results,
    /// which is kept to be used again, is released first.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<UntypedBuffer> {
        result_pool::allocate(&self.device, bytes, || lock(&self.results).release())
    }

    /// Returns a buffer for a result, whose elements are overwritten entirely.
    pub(crate) fn result(&self, bytes: usize) -> Result<UntypedBuffer> {
        lock(&self.results).take(&self.device, bytes)
    }

    /// Returns the kernel of a map of operands of classes; `None` if its parameters are more than
    /// immediates hold.
    pub(crate) fn eager_kernel(
        &self,
        key: (EagerKey, EagerClasses),
        map: impl FnOnce() -> Map,
        operands: usize,
    ) -> Result<Option<Arc<EagerKernel>>> {
        if let Some(found) = lock(&self.eager).get(&key) {
            return Ok(Some(found.clone()));
        }
        let map = map();
        let EagerClasses { rank, operands: accesses } = key.1;
        let accesses = &accesses[..operands];
        let strided = accesses.iter().filter(|access| **access == Access::Strided).count();
        let walked = (1 + strided) * rank as usize + operands;
        let count = 1 + walked + map.arguments as usize + usize::from(map.has_opaque());
        if map.operands.len() != operands || map.needs_axes() || count * 4 > self.max_immediates() {
            return Ok(None);
        }
        let has_opaque = map.has_opaque();
        let classes = Classes { rank, operands: accesses.to_vec() };
        let kernel_key = KernelKey { map, classes, in_buffer: false, unroll: 1, in_place: None };
        let build = |key: &KernelKey| lower::build(key, count, self.conversions());
        let (kernel, _) = self.kernel(&self.kernels, kernel_key, build)?;
        let new = Arc::new(EagerKernel { kernel, has_opaque });
        lock(&self.eager).insert(key, new.clone());
        Ok(Some(new))
    }

    /// Returns the most bytes of a binding.
    pub(crate) fn max_binding(&self) -> u64 {
        self.device.info().limits.max_storage_binding_size
    }

    fn max_immediates(&self) -> usize {
        self.device.info().limits.max_immediates as usize
    }

    /// Computes shards of a map into a new buffer of a number of bytes. Returns once the launches
    /// are submitted.
    pub(crate) fn run_shards(
        &self,
        launch: &MapLaunch<'_>,
        shards: &MapShards,
        bytes: usize,
    ) -> Result<UntypedBuffer> {
        let result = self.result(bytes)?;
        let mut batch = self.device.batch();
        for launch in self.prepare_shards(launch, shards, &result, None)?.0 {
            batch.run_prepared(&launch)?;
        }
        drop(batch.submit_async()?);
        Ok(result)
    }

    /// Prepares shards of a map, as [`prepare`](Self::prepare) does all of it. Returns how many
    /// kernels were compiled, too.
    pub(crate) fn prepare_shards(
        &self,
        launch: &MapLaunch<'_>,
        shards: &MapShards,
        result: &UntypedBuffer,
        in_place: Option<u32>,
    ) -> Result<(Vec<PreparedLaunch>, u64)> {
        let MapShards { sizes, shards } = shards;
        let map = launch.map.of_shard(sizes.len() as u32);
        let (mut launches, mut compiled) = (Vec::with_capacity(shards.len()), 0);
        for MapShard { shard, result: bytes, operands } in shards {
            let buffers = launch.operands.iter().zip(operands);
            let buffers = buffers.map(|((buffer, _), (range, _))| sharding::slice(buffer, range));
            let buffers = buffers.collect::<Result<Vec<_>>>()?;
            let layouts = operands.iter().map(|(_, layout)| layout.clone());
            let operands: Vec<_> = buffers.iter().zip(layouts).collect();
            let mut arguments = launch.arguments.to_vec();
            if map.has_coordinates() {
                arguments.extend(shard.starts.iter().map(|start| *start as u32));
                arguments.push(shard.start(sizes) as u32);
            }
            let part = MapLaunch {
                map: &map,
                sizes: &shard.sizes,
                count: shard.count() as u32,
                operands: &operands,
                gathered: launch.gathered,
                arguments: &arguments,
            };
            let result = sharding::slice(result, bytes)?;
            let (launch, is_compiled) = self.prepare(&part, &result, in_place)?;
            launches.push(launch);
            compiled += u64::from(is_compiled);
        }
        Ok((launches, compiled))
    }

    /// Computes a map into a new buffer. Returns once the launch is submitted.
    pub(crate) fn run(&self, launch: &MapLaunch<'_>) -> Result<UntypedBuffer> {
        let (encoded, _) = self.encode(launch, None)?;
        let result = self.result(encoded.words as usize * 4)?;
        let operands = launch.operands.iter().map(|(buffer, _)| *buffer);
        let (bindings, size) = encoded.bind(iter::once(&result).chain(operands));
        self.device.run(&encoded.kernel, &bindings, size)?;
        Ok(result)
    }

    /// Prepares a map with its result in a buffer, which may be that of an operand. Returns whether
    /// its kernel was compiled, too.
    pub(crate) fn prepare(
        &self,
        launch: &MapLaunch<'_>,
        result: &UntypedBuffer,
        in_place: Option<u32>,
    ) -> Result<(PreparedLaunch, bool)> {
        let (encoded, is_compiled) = self.encode(launch, in_place)?;
        let others = launch.operands.iter().enumerate();
        let others = others.filter(|(n, _)| in_place != Some(*n as u32));
        let others = others.map(|(_, (buffer, _))| *buffer);
        Ok((encoded.prepare(iter::once(result).chain(others))?, is_compiled))
    }

    /// Prepares a row kernel. Returns whether it was compiled, too.
    pub(crate) fn prepare_rows(
        &self,
        program: &RowProgram,
        iteration: &RowIteration<'_>,
        operands: &[&UntypedBuffer],
        results: &[&UntypedBuffer],
    ) -> Result<(PreparedLaunch, bool)> {
        let parameters = iteration.parameters(program.width);
        let key = self.row_key(program, parameters.len());
        let in_buffer = key.in_buffer;
        let (kernel, is_compiled) = self.row_kernel(key, parameters.len())?;
        let uploaded = self.uploaded(&parameters, in_buffer)?;
        let workgroups = iteration.rows.div_ceil(program.rows_per_workgroup());
        let invocations = workgroups * WORKGROUP;
        let encoded = Encoded { kernel, invocations, words: 0, parameters, uploaded };
        Ok((encoded.prepare(results.iter().chain(operands).copied())?, is_compiled))
    }

    /// Prepares a kernel of several maps, whose operands have these types. Returns whether it was
    /// compiled, too.
    pub(crate) fn prepare_maps(
        &self,
        parts: &[PartLaunch<'_>],
        results: &[&UntypedBuffer],
        operands: &[(&UntypedBuffer, DType)],
    ) -> Result<(PreparedLaunch, bool)> {
        let dtypes = operands.iter().map(|(_, dtype)| *dtype).collect();
        let (key, parameters, invocations) = self.maps_key(parts, results.len(), dtypes);
        let in_buffer = key.in_buffer;
        let (kernel, is_compiled) = self.maps_kernel(key, parameters.len())?;
        let uploaded = self.uploaded(&parameters, in_buffer)?;
        let encoded = Encoded { kernel, invocations, words: 0, parameters, uploaded };
        let operands = operands.iter().map(|(buffer, _)| *buffer);
        Ok((encoded.prepare(results.iter().copied().chain(operands))?, is_compiled))
    }

    /// Returns the parameters in a buffer, if that is where the kernel reads them.
    fn uploaded(&self, parameters: &[u32], in_buffer: bool) -> Result<Option<Buffer<u32>>> {
        in_buffer.then(|| self.device.upload(parameters)).transpose()
    }

    /// Returns how kernels convert `f16`. PTX specifies its instructions exactly; SPIR-V and WGSL
    /// leave rounding and subnormal numbers open.
    fn conversions(&self) -> Conversions {
        match self.device.backend_kind() {
            BackendKind::Cuda => Conversions::Native,
            _ => Conversions::Integers,
        }
    }

    /// Returns how row kernels exchange states. CUDA specifies the lanes of invocations; Vulkan and
    /// WebGPU leave them open.
    fn exchange(&self) -> Exchange {
        let is_specified = matches!(self.device.backend_kind(), BackendKind::Cuda);
        match is_specified && self.device.subgroup_size() == SUBGROUP {
            true => Exchange::Subgroups,
            false => Exchange::WorkgroupMemory,
        }
    }

    fn exceeds_immediates(&self, parameters: usize) -> bool {
        parameters * 4 > self.max_immediates()
    }

    /// Returns how a map of operands with layouts iterates over its result.
    pub(crate) fn iteration(
        &self,
        map: &Map,
        (count, sizes): (u32, &[usize]),
        layouts: &[Layout],
    ) -> Iteration {
        let iteration = Iteration::new(map, count, sizes, layouts);
        match self.device.backend_kind() {
            BackendKind::Cpu => iteration,
            _ => iteration.unrolled(map),
        }
    }

    /// Returns what the kernel of a map depends on.
    pub(crate) fn map_key(
        &self,
        map: &Map,
        iteration: &Iteration,
        parameters: usize,
        in_place: Option<u32>,
    ) -> KernelKey {
        let in_buffer = self.exceeds_immediates(parameters);
        let (map, classes) = (map.clone(), iteration.classes.clone());
        KernelKey { map, classes, in_buffer, unroll: iteration.unroll, in_place }
    }

    /// Returns what a row kernel depends on.
    pub(crate) fn row_key(&self, program: &RowProgram, parameters: usize) -> RowKey {
        RowKey { program: program.clone(), in_buffer: self.exceeds_immediates(parameters) }
    }

    /// Returns what a kernel of several maps, with operands of these types, depends on; its
    /// parameters, and the number of invocations.
    pub(crate) fn maps_key(
        &self,
        parts: &[PartLaunch<'_>],
        results: usize,
        operands: Vec<DType>,
    ) -> (MapsKey, Vec<u32>, u32) {
        let (mut keys, mut parameters, mut invocations) = (Vec::new(), Vec::new(), 0);
        for part in parts {
            let (key, own, count) = part.key();
            keys.push(key);
            parameters.extend(own);
            invocations += count;
        }
        let in_buffer = self.exceeds_immediates(parameters.len());
        let key = MapsKey { parts: keys, results: results as u32, operands, in_buffer };
        (key, parameters, invocations)
    }

    /// Returns the kernel of a key with a number of parameters, and whether it was compiled now.
    pub(crate) fn map_kernel(&self, key: KernelKey, parameters: usize) -> Result<(Kernel, bool)> {
        let build = |key: &KernelKey| lower::build(key, parameters, self.conversions());
        self.kernel(&self.kernels, key, build)
    }

    /// Returns the row kernel of a key, as [`map_kernel`](Self::map_kernel) does that of a map.
    pub(crate) fn row_kernel(&self, key: RowKey, parameters: usize) -> Result<(Kernel, bool)> {
        let build =
            |key: &RowKey| lower::build_rows(key, parameters, self.conversions(), self.exchange());
        self.kernel(&self.row_kernels, key, build)
    }

    /// Returns the kernel of several maps, as [`map_kernel`](Self::map_kernel) does that of one.
    pub(crate) fn maps_kernel(&self, key: MapsKey, parameters: usize) -> Result<(Kernel, bool)> {
        let build = |key: &MapsKey| lower::build_maps(key, parameters, self.conversions());
        self.kernel(&self.maps_kernels, key, build)
    }

    /// Returns the kernel of a map, with its parameters, and whether it was compiled.
    fn encode(&self, launch: &MapLaunch<'_>, in_place: Option<u32>) -> Result<(Encoded, bool)> {
        let layouts: Vec<Layout> = launch.operands.iter().map(|(_, it)| it.clone()).collect();
        let iteration = self.iteration(launch.map, (launch.count, launch.sizes), &layouts);
        let parameters = iteration.parameters(launch.gathered, launch.arguments);
        let key = self.map_key(launch.map, &iteration, parameters.len(), in_place);
        let (invocations, in_buffer) = (iteration.invocations(), key.in_buffer);
        let (kernel, is_compiled) = self.map_kernel(key, parameters.len())?;
        let uploaded = self.uploaded(&parameters, in_buffer)?;
        let words = iteration.words;
        Ok((Encoded { kernel, invocations, words, parameters, uploaded }, is_compiled))
    }

    /// Returns the kernel of a key, compiled at its first use, and whether it was compiled now.
    fn kernel<K: Hash + Eq>(
        &self,
        kernels: &Mutex<HashMap<K, Kernel>>,
        key: K,
        build: impl FnOnce(&K) -> Kir,
    ) -> Result<(Kernel, bool)> {
        if let Some(kernel) = lock(kernels).get(&key) {
            return Ok((kernel.clone(), false));
        }
        // Compiled without the lock: another thread may do the same, and one kernel is kept.
        let kernel = self.device.compile_ir(&build(&key))?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        Ok((lock(kernels).entry(key).or_insert(kernel).clone(), true))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how many kernels the tensors of a device have compiled, for tests and measurements:
/// operations that ran before, with other sizes, compile none. The count starts again when a
/// device has no tensors.
///
/// ```
/// use scry_tensor::{DType, Device, Tensor, compiled_kernels};
///
/// let gpu = Device::open("cpu")?;
/// let (x, y) = (Tensor::new([1.0f32], &gpu)?, Tensor::new([1.0f32, 2.0], &gpu)?);
/// x.exp()?;
/// let before = compiled_kernels(&gpu);
/// y.exp()?;
/// assert_eq!(compiled_kernels(&gpu), before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn compiled_kernels(device: &Device) -> u64 {
    open_runtime(device).map_or(0, |it| it.compiled())
}

/// Returns how many kernels of the kernel library the tensors of a device have compiled, for tests
/// and measurements: see
/// [`Kernels::compiled_kernels`](scry_kernels::Kernels::compiled_kernels). The count starts again
/// when a device has no tensors.
///
/// ```
/// use scry_tensor::{Device, Tensor, compiled_library_kernels};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &gpu)?;
/// x.matmul(&x)?;
/// assert_eq!(compiled_library_kernels(&gpu), 0); // it has compiled functions for the CPU
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn compiled_library_kernels(device: &Device) -> usize {
    open_runtime(device).map_or(0, |it| it.library.compiled_kernels())
}

/// Returns what the tensors of a device share, if there are any.
fn open_runtime(device: &Device) -> Option<Arc<Runtime>> {
    let open = lock(&OPEN);
    let mut runtimes = open.iter().filter_map(Weak::upgrade);
    runtimes.find(|it| it.device == *device)
}
