//! Errors of linear layers that are split over a group of devices.

use scry_gpu::{Binding, Device, DeviceGroup, Result};
use scry_kernels::{ColumnParallelLinear, Kernels, ParallelOp, RowParallelLinear};
use scry_test_support::succeed;

/// Forms a group of CPU devices.
fn group(world_size: usize) -> Vec<DeviceGroup> {
    let devices: Vec<_> = (0..world_size).map(|_| succeed(Device::open("cpu"))).collect();
    succeed(DeviceGroup::local(&devices))
}

/// Prepares a layer for a rank, with buffers of `f32` of these lengths.
fn prepared(
    group: &DeviceGroup,
    lens: &[usize],
    prepare: impl Fn(&Kernels, &[&dyn Binding]) -> Result<ParallelOp>,
) -> Result<ParallelOp> {
    let gpu = group.device();
    let buffers: Vec<_> = lens.iter().map(|len| succeed(gpu.alloc::<f32>(*len))).collect();
    let buffers: Vec<&dyn Binding> = buffers.iter().map(|buffer| buffer as _).collect();
    prepare(&succeed(Kernels::new(gpu)), &buffers)
}

/// Returns the error of a layer that is split by columns.
fn column_error(group: &DeviceGroup, layer: ColumnParallelLinear, lens: &[usize]) -> String {
    let prepare = |kernels: &Kernels, buffers: &[&dyn Binding]| {
        kernels.column_parallel_linear(group, &layer, buffers)
    };
    prepared(group, lens, prepare).expect_err("it is rejected").to_string()
}

/// Returns the error of a layer that is split by rows.
fn row_error(group: &DeviceGroup, layer: RowParallelLinear, lens: &[usize]) -> String {
    let prepare = |kernels: &Kernels, buffers: &[&dyn Binding]| {
        kernels.row_parallel_linear(group, &layer, buffers)
    };
    prepared(group, lens, prepare).expect_err("it is rejected").to_string()
}

#[test]
fn uneven_outputs_are_rejected() {
    let group = &group(3)[1];
    let layer = ColumnParallelLinear::new(2, 4, 7).with_gathered_output();
    assert_eq!(
        column_error(group, layer, &[8, 8, 14]),
        "Kernels::column_parallel_linear: `out_features` is 7, not a multiple of the 3 ranks, to \
         gather the output; help: pad to 9, or leave the output as it is"
    );
    let layer = RowParallelLinear::new(2, 4, 7).with_scattered_output();
    assert_eq!(
        row_error(group, layer, &[2, 7, 7]),
        "Kernels::row_parallel_linear: `rows` is 2, not a multiple of the 3 ranks, to scatter the \
         output; help: pad to 3, or leave the output as it is"
    );
}

/// Lengths are those of the rank, which has 2 of 7 features.
#[test]
fn short_buffers_are_named() {
    let group = &group(3)[1];
    let column = ColumnParallelLinear::new(3, 4, 7).with_bias();
    let lens = [12, 8, 2, 6];
    let row = RowParallelLinear::new(3, 7, 4).with_bias();
    let row_lens = [6, 8, 4, 12];
    for (at, name) in ["x", "weight", "bias", "out"].into_iter().enumerate() {
        let shorter = |mut lens: [usize; 4]| {
            lens[at] -= 1;
            lens
        };
        for (error, len) in [
            (column_error(group, column, &shorter(lens)), lens[at]),
            (row_error(group, row, &shorter(row_lens)), row_lens[at]),
        ] {
            let named = error.contains(&format!("`{name}`")) && error.contains("rows=3");
            assert!(named && error.contains(&len.to_string()), "{error}");
        }
    }
    let error = column_error(group, column, &[12, 8, 6]);
    assert!(error.starts_with("Kernels::column_parallel_linear: "), "{error}");
}

#[test]
fn sizes_beyond_any_buffer_are_named() {
    let group = &group(2)[0];
    let huge = usize::MAX;
    for (layer, name) in [
        (RowParallelLinear::new(huge, 4, 4), "rows"),
        (RowParallelLinear::new(4, huge, 4), "in_features"),
        (RowParallelLinear::new(4, 4, huge), "out_features"),
    ] {
        let error = row_error(group, layer, &[1, 1, 1]);
        let expected = format!("Kernels::row_parallel_linear: {name} is {huge}, beyond ");
        assert!(error.starts_with(&expected), "{error}");
        let layer = ColumnParallelLinear::new(layer.rows, layer.in_features, layer.out_features);
        let error = column_error(group, layer.with_gathered_output(), &[1, 1, 1]);
        let expected = format!("Kernels::column_parallel_linear: {name} is {huge}, beyond ");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn wrong_types_and_overlaps_are_rejected() {
    let group = &group(2)[0];
    let (gpu, layer) = (group.device(), RowParallelLinear::new(2, 4, 3));
    let kernels = succeed(Kernels::new(gpu));
    let (x, weight) = (succeed(gpu.alloc::<f32>(4)), succeed(gpu.alloc::<f32>(6)));
    let (out, words) = (succeed(gpu.alloc::<f32>(6)), succeed(gpu.alloc::<u32>(6)));
    let half = succeed(gpu.alloc::<scry_gpu::f16>(6));
    let error = |buffers: &[&dyn Binding]| {
        let result = kernels.row_parallel_linear(group, &layer, buffers);
        result.expect_err("it is rejected").to_string()
    };
    assert_eq!(
        error(&[&words, &weight, &out]),
        "Kernels::row_parallel_linear: buffer `x` has elements of u32, but f32, f16 or bf16 is \
         needed; help: pass a buffer of f32, f16 or bf16"
    );
    let out_error = error(&[&x, &weight, &half]);
    assert!(
        out_error.contains("buffer `out` has elements of f16, but f32 is needed"),
        "{out_error}"
    );
    let weight_error = error(&[&x, &half, &out]);
    assert!(weight_error.contains("`weight`"), "{weight_error}");
    let overlap = error(&[&x, &weight, &weight]);
    assert!(overlap.contains("`out`") && overlap.contains("overlap"), "{overlap}");
}

/// A layer is run by the rank that it was prepared for.
#[test]
fn other_groups_are_rejected() {
    let (pair, three) = (group(2), group(3));
    let layer = RowParallelLinear::new(1, 2, 1);
    let other = succeed(Kernels::new(pair[1].device()));
    let error = other.row_parallel_linear(&pair[0], &layer, &[]).expect_err("another device");
    let error = error.to_string();
    assert!(error.contains("`group` has another device ("), "{error}");
    let prepare = |kernels: &Kernels, buffers: &[&dyn Binding]| {
        kernels.row_parallel_linear(&pair[0], &layer, buffers)
    };
    let op = succeed(prepared(&pair[0], &[1, 1, 1], prepare));
    let help = "help: pass the DeviceGroup that it was prepared with";
    let function = "ParallelOp::run of Kernels::row_parallel_linear (rows=1, in_features=2, \
                    out_features=1)";
    assert_eq!(
        op.run(&three[0]).expect_err("another size").to_string(),
        format!(
            "{function}: `group` is rank 0 of 3, but the layer was prepared for rank 0 of 2; {help}"
        )
    );
    assert_eq!(
        op.run(&pair[1]).expect_err("another rank").to_string(),
        format!(
            "{function}: `group` is rank 1 of 2, but the layer was prepared for rank 0 of 2; {help}"
        )
    );
    let error = op.run(&group(2)[0]).expect_err("another device").to_string();
    let problem = "`group` has another device than the layer was prepared for";
    assert_eq!(error, format!("{function}: {problem}; {help}"));
}

/// Only collectives by NCCL can be in batches; a rank alone needs none.
#[test]
fn batches_need_nccl_for_several_ranks() {
    let pair = group(2);
    let layer = RowParallelLinear::new(1, 2, 1);
    let prepare = |kernels: &Kernels, buffers: &[&dyn Binding]| {
        kernels.row_parallel_linear(&pair[0], &layer, buffers)
    };
    let op = succeed(prepared(&pair[0], &[1, 1, 1], prepare));
    let mut batch = pair[0].device().batch();
    assert_eq!(
        op.add_to(&mut batch, &pair[0]).expect_err("host memory").to_string(),
        "ParallelOp::add_to of Kernels::row_parallel_linear (rows=1, in_features=2, \
         out_features=1): `group` uses host memory (ranks 0 and 1 have no CUDA device), and only \
         collectives by NCCL can be in a batch; help: call ParallelOp::run between two batches, or \
         install NCCL on all ranks"
    );
    let alone = &group(1)[0];
    let gpu = alone.device();
    let (x, weight) = (succeed(gpu.upload(&[1.0f32, 2.0])), succeed(gpu.upload(&[3.0f32, 4.0])));
    let out = succeed(gpu.alloc::<f32>(1));
    let kernels = succeed(Kernels::new(gpu));
    let op = succeed(kernels.row_parallel_linear(alone, &layer, &[&x, &weight, &out]));
    let mut batch = gpu.batch();
    succeed(op.add_to(&mut batch, alone));
    let recording = succeed(batch.record());
    succeed(succeed(recording.replay()).wait());
    assert_eq!(succeed(out.download()), [11.0]);
}
