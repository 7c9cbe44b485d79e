//! Tests of linear layers that are split over a group of devices: any number of ranks computes what
//! one rank computes.

use std::process::Command;

use scry_gpu::{
    BackendKind, Device, DeviceGroup, DeviceKind, GpuError, GroupFault, GroupTransport, Membership,
    Result, bf16, f16,
};
use scry_kernels::{
    Activation, ColumnParallelLinear, KernelOptions, Kernels, RowParallelLinear, shard,
};
use scry_test_support::{devices, succeed};

use crate::for_each_float;
use crate::support::{Bits, Float, bits_of, poisoned, random, type_name};

/// Rows, input and output features: fewer than ranks, multiples of them or not, and none.
const SHAPES: [[usize; 3]; 7] =
    [[1, 5, 3], [7, 33, 65], [4, 64, 128], [3, 0, 5], [0, 4, 4], [2, 3, 0], [8, 16, 24]];

/// Opens CPU devices, one for each rank.
fn cpus(count: usize) -> Vec<Device> {
    (0..count).map(|_| succeed(Device::open("cpu"))).collect()
}

/// The operands of a layer: the input, the weights, and the bias.
struct Operands<T> {
    x: Vec<T>,
    weight: Vec<T>,
    bias: Vec<T>,
}

impl<T: Float> Operands<T> {
    fn new([rows, in_features, out_features]: [usize; 3]) -> Self {
        let [x, weight, bias] =
            [(1, rows * in_features), (2, out_features * in_features), (3, out_features)]
                .map(|(seed, len)| random::<T>(seed, len));
        Self { x, weight, bias }
    }
}

/// Returns some columns of a row-major matrix.
fn columns<T: Copy>(matrix: &[T], width: usize, range: &std::ops::Range<usize>) -> Vec<T> {
    matrix.chunks(width.max(1)).flat_map(|row| row[range.clone()].iter().copied()).collect()
}

/// Results of the same bits for any number of ranks.
const EXACT: KernelOptions = KernelOptions { variant: None, deterministic: true, any_rows: false };

/// Results within the bound of a product.
const FAST: KernelOptions = KernelOptions { variant: None, deterministic: false, any_rows: false };

/// Computes a column-parallel layer, and returns the output of each rank.
fn column<T: Float>(
    members: &[Device],
    layer: &ColumnParallelLinear,
    options: &KernelOptions,
) -> Result<Vec<Vec<T>>> {
    let ColumnParallelLinear { rows, in_features, out_features, .. } = *layer;
    let operands = Operands::<T>::new([rows, in_features, out_features]);
    DeviceGroup::on_each(members, |group| {
        let gpu = group.device();
        let features = shard(out_features, group.rank(), group.world_size());
        let x = gpu.upload(&operands.x)?;
        let weight = &operands.weight[features.start * in_features..features.end * in_features];
        let weight = gpu.upload(weight)?;
        let bias = gpu.upload(&operands.bias[features.clone()])?;
        let width = if layer.gather_output { out_features } else { features.len() };
        let out = poisoned::<T>(gpu, rows * width + 1);
        let op = Kernels::with_options(gpu, options.clone())?.column_parallel_linear(
            group,
            layer,
            &[&x, &weight, &bias, &out],
        )?;
        op.run(group)?;
        op.run(group)?;
        let mut results = out.download()?;
        assert!(results.pop().is_some_and(|it| it.wide().is_nan()), "wrote beyond the output");
        Ok(results)
    })
}

/// Returns the matrix whose columns the ranks have.
fn joined<T: Copy>(parts: &[Vec<T>], rows: usize, width: usize) -> Vec<T> {
    let columns = |rank: usize| shard(width, rank, parts.len()).len();
    let row = |row: usize| {
        let part = move |(rank, part): (usize, &Vec<T>)| {
            part[row * columns(rank)..(row + 1) * columns(rank)].to_vec()
        };
        parts.iter().enumerate().flat_map(part)
    };
    (0..rows).flat_map(row).collect()
}

fn check_columns<T: Float + Bits>(members: &[Device], what: &str) {
    for shape @ [rows, in_features, out_features] in SHAPES {
        let layer = ColumnParallelLinear::new(rows, in_features, out_features).with_bias();
        let world_size = members.len();
        let what = format!("{what}, {} {shape:?} on {world_size} ranks", type_name::<T>());
        let parts = succeed(column::<T>(members, &layer, &FAST));
        assert_bounded::<T, T>(shape, 1, &joined(&parts, rows, out_features));
        let layer = layer.with_activation(Activation::Gelu);
        let whole = match column::<T>(&members[..1], &layer, &EXACT) {
            Err(error @ GpuError::Capability(_)) => return eprintln!("skipped: {what}: {error}"),
            whole => bits_of(&succeed(whole).remove(0)),
        };
        let parts = succeed(column::<T>(members, &layer, &EXACT));
        assert!(bits_of(&joined(&parts, rows, out_features)) == whole, "{what}");
        if out_features % world_size == 0 {
            for gathered in succeed(column::<T>(members, &layer.with_gathered_output(), &EXACT)) {
                assert!(bits_of(&gathered) == whole, "{what}, gathered");
            }
        }
    }
}

#[test]
fn split_columns_have_the_bits_of_one_rank() {
    for world_size in 1..=8 {
        check_columns::<f32>(&cpus(world_size), "cpu");
    }
    for_each_float!(check_columns(&cpus(3), "cpu"));
}

/// On every device that can be opened several times.
#[test]
fn split_columns_agree_on_every_device() {
    for device in devices() {
        let selector = format!("{}:{}", device.backend_kind(), device.info().index);
        if device.info().kind != DeviceKind::Software {
            eprintln!("skipped: {selector} is a GPU, and each rank needs another one");
            continue;
        }
        let members: Vec<_> = (0..3).map(|_| succeed(Device::open(&selector))).collect();
        for_each_float!(check_columns(&members, &selector));
    }
}

/// Computes a row-parallel layer, and returns the output of each rank, of `f32` or `T`.
fn row<T: Float, O: Float + Bits>(
    members: &[Device],
    layer: &RowParallelLinear,
) -> Result<Vec<Vec<O>>> {
    let RowParallelLinear { rows, in_features, out_features, .. } = *layer;
    let operands = Operands::<T>::new([rows, in_features, out_features]);
    let bias: Vec<O> = operands.bias.iter().map(|it| O::round(it.wide() as f32)).collect();
    DeviceGroup::on_each(members, |group| {
        let gpu = group.device();
        let features = shard(in_features, group.rank(), group.world_size());
        let x = gpu.upload(&columns(&operands.x, in_features, &features))?;
        let weight = gpu.upload(&columns(&operands.weight, in_features, &features))?;
        let bias = gpu.upload(&bias)?;
        let rows = if layer.scatter_output { rows / group.world_size() } else { rows };
        let out = poisoned::<O>(gpu, rows * out_features + 1);
        let op =
            Kernels::new(gpu)?.row_parallel_linear(group, layer, &[&x, &weight, &bias, &out])?;
        op.run(group)?;
        let first = out.download()?;
        op.run(group)?;
        let mut results = out.download()?;
        assert_eq!(bits_of(&first), bits_of(&results), "a repeated run has other bits");
        assert!(results.pop().is_some_and(|it| it.wide().is_nan()), "wrote beyond the output");
        Ok(results)
    })
}

/// Half a unit in the last place, relative.
fn rounding<T: Float>() -> f64 {
    match type_name::<T>() {
        "f16" => 2f64.powi(-11),
        "bf16" => 2f64.powi(-8),
        _ => 2f64.powi(-24),
    }
}

/// Checks results against the documented bound.
fn assert_bounded<T: Float, O: Float>(
    [rows, in_features, out_features]: [usize; 3],
    world_size: usize,
    results: &[O],
) {
    let operands = Operands::<T>::new([rows, in_features, out_features]);
    assert_eq!(results.len(), rows * out_features);
    for (at, result) in results.iter().enumerate() {
        let (row, column) = (at / out_features, at % out_features);
        let bias = operands.bias[column].wide();
        let term = |k: usize| {
            operands.x[row * in_features + k].wide()
                * operands.weight[column * in_features + k].wide()
        };
        let exact = (0..in_features).map(term).sum::<f64>() + bias;
        let scale = (0..in_features).map(|k| term(k).abs()).sum::<f64>() + bias.abs();
        let product = (in_features + 1) as f64 * rounding::<f32>();
        let limit = (product + (world_size + 1) as f64 * rounding::<O>()) * scale + 1e-7;
        let error = (result.wide() - exact).abs();
        assert!(
            error <= limit,
            "{} to {}, {rows} x {in_features} x {out_features} on {world_size} ranks: result {at} \
             is {}, expected {exact} within {limit}",
            type_name::<T>(),
            type_name::<O>(),
            result.wide()
        );
    }
}

fn check_rows<T: Float, O: Float + Bits>(members: &[Device]) {
    for shape in SHAPES {
        let [rows, in_features, out_features] = shape;
        let layer = RowParallelLinear::new(rows, in_features, out_features).with_bias();
        let results = succeed(row::<T, O>(members, &layer));
        for result in &results {
            assert_eq!(bits_of(result), bits_of(&results[0]), "all ranks have the same bits");
        }
        assert_bounded::<T, O>(shape, members.len(), &results[0]);
        if rows % members.len() == 0 {
            let parts = succeed(row::<T, O>(members, &layer.with_scattered_output()));
            assert_eq!(bits_of(&parts.concat()), bits_of(&results[0]), "scattered");
        }
    }
}

#[test]
fn split_rows_are_within_bound() {
    for world_size in 1..=8 {
        let members = cpus(world_size);
        check_rows::<f32, f32>(&members);
        if [1, 3, 8].contains(&world_size) {
            check_rows::<f16, f16>(&members);
            check_rows::<bf16, bf16>(&members);
            check_rows::<bf16, f32>(&members);
        }
    }
}

/// Opens the devices of the tests, each GPU once: CUDA and Vulkan find the same ones.
fn distinct_gpus() -> Vec<Device> {
    let mut seen = Vec::new();
    let is_new = |gpu: &Device| {
        let Some(address) = gpu.info().pci else { return true };
        let is_new = !seen.contains(&address);
        seen.push(address);
        is_new
    };
    devices().into_iter().filter(is_new).collect()
}

/// A layer that is split by columns, and one that is split by rows, which needs no other order of
/// the features: on devices of different backends.
#[test]
fn perceptrons_of_mixed_devices_agree() {
    let [tokens, width, hidden] = [5, 24, 50];
    let perceptron = |group: &DeviceGroup| {
        let gpu = group.device();
        let kernels = Kernels::new(gpu)?;
        let features = shard(hidden, group.rank(), group.world_size());
        let (up, down) = (random::<f32>(5, hidden * width), random::<f32>(6, width * hidden));
        let x = gpu.upload(&random::<f32>(4, tokens * width))?;
        let up = gpu.upload(&up[features.start * width..features.end * width])?;
        let down = gpu.upload(&columns(&down, hidden, &features))?;
        let (inner, out) =
            (gpu.alloc::<f32>(tokens * features.len())?, gpu.alloc::<f32>(tokens * width)?);
        let first =
            ColumnParallelLinear::new(tokens, width, hidden).with_activation(Activation::Silu);
        kernels.column_parallel_linear(group, &first, &[&x, &up, &inner])?.run(group)?;
        let second = RowParallelLinear::new(tokens, hidden, width);
        kernels.row_parallel_linear(group, &second, &[&inner, &down, &out])?.run(group)?;
        out.download()
    };
    let expected = succeed(DeviceGroup::on_each(&cpus(1), perceptron)).remove(0);
    let members: Vec<_> = cpus(1).into_iter().chain(distinct_gpus()).chain(cpus(1)).collect();
    for result in succeed(DeviceGroup::on_each(&members, perceptron)) {
        for (result, expected) in result.iter().zip(&expected) {
            assert!((result - expected).abs() <= 1e-4, "{result} instead of {expected}");
        }
    }
}

/// Ranks that prepare different layers find out when they run them.
#[test]
fn different_layers_are_named() {
    let layer = |group: &DeviceGroup| {
        let gpu = group.device();
        // The last rank has one output feature more.
        let outputs = 4 + usize::from(group.rank() == 2);
        let [x, weight, out] = [2, 2 * outputs, outputs].map(|len| succeed(gpu.alloc::<f32>(len)));
        let layer = RowParallelLinear::new(1, 6, outputs);
        let op = Kernels::new(gpu)?.row_parallel_linear(group, &layer, &[&x, &weight, &out])?;
        match op.run(group) {
            Err(GpuError::Group(error)) => Ok(error),
            other => panic!("{other:?}"),
        }
    };
    for error in succeed(DeviceGroup::on_each(&cpus(3), layer)) {
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Mismatch, &[2][..]), "{error}");
        let function = "ParallelOp::run of Kernels::row_parallel_linear (rows=1, in_features=6, \
                        out_features=";
        assert!(error.to_string().starts_with(function), "{error}");
    }
}

/// Both layers with their collectives in one recording, on several GPUs.
#[test]
fn layers_are_recorded_with_their_collectives() {
    let is_gpu = |info: &scry_gpu::DeviceInfo| info.backend == BackendKind::Cuda;
    let count = Device::list().iter().filter(|info| is_gpu(info)).count();
    if count < 2 {
        eprintln!("skipped: {count} CUDA devices, and layers through NCCL need 2");
        return;
    }
    let gpus: Vec<_> = (0..count).map(|at| succeed(Device::open(&format!("cuda:{at}")))).collect();
    let shape @ [rows, in_features, out_features] = [64, 32 * count, 16 * count];
    let operands = Operands::<bf16>::new(shape);
    let first = ColumnParallelLinear::new(rows, in_features, out_features).with_bias();
    let second = RowParallelLinear::new(rows, in_features, out_features).with_bias();
    let results = succeed(DeviceGroup::on_each(&gpus, |group| {
        assert_eq!(group.transport(), GroupTransport::Nccl, "{}", group.transport_reason());
        let (gpu, kernels) = (group.device(), Kernels::new(group.device())?);
        let outputs = shard(out_features, group.rank(), count);
        let inputs = shard(in_features, group.rank(), count);
        let x = gpu.alloc::<bf16>(rows * in_features)?;
        let part = gpu.upload(&columns(&operands.x, in_features, &inputs))?;
        let up = &operands.weight[outputs.start * in_features..outputs.end * in_features];
        let (up, up_bias) = (gpu.upload(up)?, gpu.upload(&operands.bias[outputs])?);
        let down = gpu.upload(&columns(&operands.weight, in_features, &inputs))?;
        let down_bias = gpu.upload(&operands.bias)?;
        let [gathered, reduced] = [(); 2].map(|()| poisoned::<bf16>(gpu, rows * out_features));
        let first = first.with_gathered_output();
        let first =
            kernels.column_parallel_linear(group, &first, &[&x, &up, &up_bias, &gathered])?;
        let second =
            kernels.row_parallel_linear(group, &second, &[&part, &down, &down_bias, &reduced])?;
        let mut batch = gpu.batch();
        first.add_to(&mut batch, group)?;
        second.add_to(&mut batch, group)?;
        let recording = batch.record()?;
        recording.replay()?.wait()?;
        // The input of the second replay.
        x.write(&operands.x)?;
        recording.replay()?.wait()?;
        Ok((gathered.download()?, reduced.download()?))
    }));
    for (gathered, reduced) in &results {
        assert_bounded::<bf16, bf16>(shape, 1, gathered);
        assert_bounded::<bf16, bf16>(shape, count, reduced);
        let bits = (bits_of(gathered), bits_of(reduced));
        assert!(bits == (bits_of(&results[0].0), bits_of(&results[0].1)), "ranks differ");
    }
}

/// The environment variable that is set in the processes of a test.
const CHILD: &str = "SCRY_PARALLEL_CHILD";

/// Ranks in processes, over TCP, with all calls compared.
#[test]
fn processes_compute_layers_together() {
    const NAME: &str = "parallel::processes_compute_layers_together";
    let world_size = 3;
    if std::env::var_os(CHILD).is_some() {
        let group = succeed(succeed(Membership::from_env()).join(&succeed(Device::open("cpu"))));
        let gpu = group.device().clone();
        let shape @ [rows, in_features, out_features] = [6, 32, 9];
        let operands = Operands::<f32>::new(shape);
        let features = shard(in_features, group.rank(), group.world_size());
        let x = succeed(gpu.upload(&columns(&operands.x, in_features, &features)));
        let weight = succeed(gpu.upload(&columns(&operands.weight, in_features, &features)));
        let bias = succeed(gpu.upload(&operands.bias));
        let out = poisoned::<f32>(&gpu, rows * out_features);
        let layer = RowParallelLinear::new(rows, in_features, out_features).with_bias();
        let op = succeed(Kernels::new(&gpu));
        let op = succeed(op.row_parallel_linear(&group, &layer, &[&x, &weight, &bias, &out]));
        succeed(op.run(&group));
        assert_bounded::<f32, f32>(shape, world_size, &succeed(out.download()));
        succeed(group.barrier());
        // Rank 0 has to pass the end of the barrier on to the others.
        drop((op, group));
        println!("the rank is done");
        std::process::exit(0);
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    let start = |rank: usize| {
        Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .env("SCRY_RANK", rank.to_string())
            .env("SCRY_WORLD_SIZE", world_size.to_string())
            .env("SCRY_RENDEZVOUS", &address)
            .env("SCRY_TOKEN", format!("a secret of {address}"))
            .env("SCRY_GROUP_CHECK", "1")
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    let children: Vec<_> = (0..world_size).map(start).collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("the rank is done"), "{output:?}");
    }
}
