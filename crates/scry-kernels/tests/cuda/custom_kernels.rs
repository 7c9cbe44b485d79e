//! Tests of user-defined kernels, written with scry-ptx: parameters, tensor maps, clusters and
//! scratch memory.

use scry_gpu::{Binding, Buffer};
use scry_kernels::{Kernels, Op, Plan, PtxKernel, Target};
use scry_ptx::PtxEntry;
use scry_ptx::PtxType;
use scry_ptx::kernels::{
    BufferAccess, BufferSlot, KernelInterface, LaunchShape, Parameter, Step, TensorMapElement,
    TensorMapSpec,
};
use scry_ptx::typed::hopper::{MBarrier, Swizzle};
use scry_ptx::typed::{self, KernelBuilder};
use scry_test_support::{random_f32, succeed};

use crate::harness::kernels;

/// Declares a buffer of `len` f32.
pub fn floats(
    name: &'static str,
    access: BufferAccess,
    len: u64,
) -> scry_ptx::kernels::BufferParameter {
    scry_ptx::kernels::BufferParameter { name, access, element: PtxType::F32, len }
}

/// `y[i] += a * x[i]` for `i < n`, with pointer, f32, u32 and u64 parameters.
#[derive(Debug, Clone)]
pub struct Saxpy {
    /// The scalar.
    pub a: f32,
    /// Number of elements.
    pub n: u32,
}

impl PtxKernel for Saxpy {
    fn name(&self) -> String {
        "test_saxpy".to_owned()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel("test_saxpy", target, [128, 1, 1], |k| {
            let a = k.scalar_param::<f32>("a");
            let x = k.pointer_param::<f32>("x");
            let n = k.scalar_param::<u64>("n").convert::<u32>("");
            let y = k.pointer_param::<f32>("y");
            let first = k.scalar_param::<u32>("first");
            let i = k.block_id(0) * 128 + k.thread_id() + first;
            k.if_then(i.lt(n), || y.at(i).store(a.mul_add(x.at(i).load(), y.at(i).load())));
        })
    }

    fn launch(&self) -> LaunchShape {
        let blocks = self.n.div_ceil(128);
        LaunchShape { grid: [blocks, 1, 1], block: [128, 1, 1], dynamic_shared: 0 }
    }

    fn interface(&self) -> KernelInterface {
        let n = u64::from(self.n);
        KernelInterface {
            buffers: vec![floats("y", BufferAccess::Write, n), floats("x", BufferAccess::Read, n)],
            parameters: vec![
                Parameter::F32(self.a),
                Parameter::Pointer(1),
                Parameter::U64(n),
                Parameter::Pointer(0),
                Parameter::U32(0),
            ],
        }
    }
}

/// Copies a matrix tile by tile, with two tensor maps. Rows of the destination are padded to 16
/// bytes with the zeros that out-of-bounds reads return.
#[derive(Debug, Clone)]
pub struct TileCopy {
    /// Number of rows.
    pub rows: u64,
    /// Elements per row.
    pub columns: u64,
    /// Leading dimension of both matrices, in elements.
    pub ld: u64,
    /// Blocks per cluster.
    pub cluster: u32,
}

/// Rows and columns of a tile.
const TILE: [u32; 2] = [8, 32];

impl TileCopy {
    fn tensor_map(&self, columns: u64) -> TensorMapSpec {
        TensorMapSpec {
            element: TensorMapElement::F32,
            offset: 0,
            dims: vec![columns, self.rows],
            strides: vec![self.ld * 4],
            tile: vec![TILE[1], TILE[0]],
            swizzle: Swizzle::None,
        }
    }

    /// Returns the number of elements per row that the kernel writes.
    fn padded_columns(&self) -> u64 {
        self.columns.next_multiple_of(4)
    }

    /// Returns the number of elements of each buffer.
    fn len(&self) -> u64 {
        (self.rows - 1) * self.ld + self.padded_columns()
    }
}

impl PtxKernel for TileCopy {
    fn name(&self) -> String {
        format!("test_tile_copy_{}", self.cluster)
    }

    fn default_target(&self) -> Target {
        Target::SM_90A
    }

    fn write(&self, target: Target) -> PtxEntry {
        let mut kernel = typed::kernel(&self.name(), target, [32, 1, 1], copy_tile);
        kernel.cluster = (self.cluster > 1).then_some([self.cluster, 1, 1]);
        kernel
    }

    fn launch(&self) -> LaunchShape {
        let grid_x = (self.columns as u32).div_ceil(TILE[1]).next_multiple_of(self.cluster);
        let grid_y = (self.rows as u32).div_ceil(TILE[0]);
        // 64 KiB of dynamic shared memory: above the default limit of 48 KiB per block.
        LaunchShape { grid: [grid_x, grid_y, 1], block: [32, 1, 1], dynamic_shared: 64 << 10 }
    }

    fn interface(&self) -> KernelInterface {
        let (read, write) = (BufferAccess::Read, BufferAccess::Write);
        KernelInterface {
            buffers: vec![floats("from", read, self.len()), floats("to", write, self.len())],
            parameters: vec![
                Parameter::U32(TILE[0] * TILE[1] * 4),
                Parameter::TensorMap(0, self.tensor_map(self.columns)),
                Parameter::TensorMap(1, self.tensor_map(self.padded_columns())),
            ],
        }
    }
}

/// Loads a tile into the upper half of the dynamic shared memory, and stores it, with TMA.
fn copy_tile(k: &KernelBuilder) {
    let bytes = k.scalar_param::<u32>("bytes");
    let (from, to) = (k.tensor_map_param("from"), k.tensor_map_param("to"));
    let tile = k.dynamic_shared::<f32>(1024).offset(32 << 10);
    let full = MBarrier::at(k.shared::<u64>(1, 8));
    let at = [k.block_id(0) * TILE[1], k.block_id(1) * TILE[0]];
    k.if_then(k.thread_id().eq(0), || {
        full.init(1);
        k.fence_mbarrier_init();
        full.arrive_expect_tx(bytes);
        k.tma_load(tile, from, at, full);
        full.wait(0u32);
        k.tma_store(tile, to, at);
        k.bulk_commit_group();
        k.bulk_wait_group_read(0);
    });
}

/// Prepares a plan of the kernels above.
pub fn prepare(kernels: &Kernels, plan: &Plan, buffers: &[&dyn Binding]) -> scry_gpu::Result<Op> {
    // SAFETY: each kernel accesses no element beyond the sizes in its interface.
    unsafe { kernels.prepare("own", plan, buffers) }
}

/// Returns a plan that copies argument 0 to uninitialised scratch memory, and that to argument 1.
fn copy_through_scratch(copy: &TileCopy) -> Plan {
    let (source, scratch) = (BufferSlot::Argument(0), BufferSlot::Scratch(0));
    let step = |buffers: Vec<BufferSlot>| Step { kernel: Box::new(copy.clone()), buffers };
    Plan {
        arguments: copy.interface().buffers,
        scratch: vec![copy.len() * 4],
        steps: vec![step(vec![source, scratch]), step(vec![scratch, BufferSlot::Argument(1)])],
    }
}

/// Returns a plan of one [`Saxpy`].
fn saxpy(a: f32, n: usize) -> Plan {
    Plan::single(Box::new(Saxpy { a, n: n as u32 }))
}

#[test]
fn parameters_are_passed_in_declared_order() {
    for kernels in kernels() {
        let gpu = kernels.device();
        for n in [1, 7, 127, 128, 4097] {
            let (x, y) = (random_f32(1, n), random_f32(2, n));
            // `y` has one more element than `n`, which must stay unchanged.
            let (to, from) =
                (succeed(gpu.upload(&[&y[..], &[5.0]].concat())), succeed(gpu.upload(&x)));
            let op = succeed(prepare(&kernels, &saxpy(0.5, n), &[&to, &from]));
            assert_eq!(op.kernel_names(), ["test_saxpy"]);
            succeed(op.run());
            let mut expected: Vec<f32> =
                x.iter().zip(&y).map(|(x, y)| 0.5f32.mul_add(*x, *y)).collect();
            expected.push(5.0);
            assert_eq!(succeed(to.download()), expected, "{n}");
        }
    }
}

/// Returns a matrix with padded rows, and the bits of its expected copy in a buffer of NaN.
fn matrix_and_copy(copy: &TileCopy) -> (Vec<f32>, Vec<u32>) {
    let data = random_f32(3, copy.len() as usize);
    let copied = |(at, x): (usize, &f32)| match at as u64 % copy.ld {
        column if column < copy.columns => *x,
        column if column < copy.padded_columns() => 0.0,
        _ => f32::NAN,
    };
    let expected = data.iter().enumerate().map(|it| copied(it).to_bits()).collect();
    (data, expected)
}

fn bits(buffer: &Buffer<f32>) -> Vec<u32> {
    succeed(buffer.download()).iter().map(|x| x.to_bits()).collect()
}

#[test]
fn tensor_maps_cover_exactly_the_matrix() {
    for kernels in kernels() {
        let gpu = kernels.device();
        for (rows, columns, ld) in [(1, 1, 4), (7, 33, 40), (127, 129, 132), (1023, 7, 16)] {
            for cluster in [1, 2, 8] {
                let copy = TileCopy { rows, columns, ld, cluster };
                let (data, expected) = matrix_and_copy(&copy);
                let from = succeed(gpu.upload(&data));
                let to = succeed(gpu.upload(&vec![f32::NAN; data.len()]));
                let plan = Plan::single(Box::new(copy));
                succeed(succeed(prepare(&kernels, &plan, &[&from, &to])).run());
                assert!(bits(&to) == expected, "{rows} x {columns}, cluster of {cluster}");
            }
        }
    }
}

#[test]
fn second_step_reads_scratch_of_first() {
    for kernels in kernels() {
        let gpu = kernels.device();
        let copy = TileCopy { rows: 257, columns: 1001, ld: 1004, cluster: 1 };
        let (data, expected) = matrix_and_copy(&copy);
        let (from, to) = (succeed(gpu.upload(&data)), succeed(gpu.alloc::<f32>(data.len())));
        let op = succeed(prepare(&kernels, &copy_through_scratch(&copy), &[&from, &to]));
        for _ in 0..10 {
            succeed(to.fill(f32::NAN));
            succeed(op.run());
            assert!(bits(&to) == expected);
        }
    }
}

#[test]
fn recordings_replay_tensor_map_plans() {
    for kernels in kernels() {
        let gpu = kernels.device();
        let copy = TileCopy { rows: 33, columns: 100, ld: 100, cluster: 1 };
        let (data, _) = matrix_and_copy(&copy);
        let from = succeed(gpu.upload(&data));
        let [to, accumulator] = [(); 2].map(|()| succeed(gpu.alloc::<f32>(data.len())));
        let mut batch = gpu.batch();
        let copy = succeed(prepare(&kernels, &copy_through_scratch(&copy), &[&from, &to]));
        succeed(copy.add_to(&mut batch));
        let add = succeed(prepare(&kernels, &saxpy(1.0, data.len()), &[&accumulator, &to]));
        succeed(add.add_to(&mut batch));
        let recording = succeed(batch.record());
        for _ in 0..3 {
            succeed(succeed(recording.replay()).wait());
        }
        let tripled: Vec<f32> = data.iter().map(|x| x + x + x).collect();
        assert_eq!(succeed(accumulator.download()), tripled);
    }
}

#[test]
fn reports_free_memory_and_launch_count() {
    for kernels in kernels() {
        let gpu = kernels.device();
        let free = succeed(gpu.free_memory());
        assert!(free.is_some_and(|free| (1..gpu.info().memory).contains(&free)), "{free:?}");
        assert!(gpu.info().multiprocessors.is_some_and(|count| count > 0));
        let before = gpu.launch_count();
        let (y, x) = (succeed(gpu.alloc::<f32>(5)), succeed(gpu.alloc::<f32>(5)));
        succeed(succeed(prepare(&kernels, &saxpy(1.0, 5), &[&y, &x])).run());
        // Other tests of the process use the same device.
        assert!(gpu.launch_count() > before);
    }
}
