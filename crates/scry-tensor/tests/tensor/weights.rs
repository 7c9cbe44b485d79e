//! Quantised weights in products, as GGUF stores them.

use scry_kernels::{BlockFormat, Kernels};
use scry_tensor::{DType, ErrorKind, Graph, Tensor};
use scry_test_support::{on_each_device, succeed};

use crate::support::ok;

const FORMATS: [(DType, BlockFormat); 6] = [
    (DType::Q4_0, BlockFormat::Q4_0),
    (DType::Q4_1, BlockFormat::Q4_1),
    (DType::Q8_0, BlockFormat::Q8_0),
    (DType::Q4K, BlockFormat::Q4K),
    (DType::Q5K, BlockFormat::Q5K),
    (DType::Q6K, BlockFormat::Q6K),
];

/// Returns random blocks of a type.
fn weights(gpu: &scry_gpu::Device, (dtype, format): (DType, BlockFormat)) -> Tensor {
    let values: Vec<f32> =
        (0..5 * 256u32).map(|n| (n * 7919 % 1009) as f32 / 500.0 - 1.0).collect();
    let kernels = succeed(Kernels::new(gpu));
    let size = values.len() / format.block_len() * format.block_bytes();
    let (x, blocks) = (succeed(gpu.upload(&values)), succeed(gpu.alloc::<u8>(size)));
    succeed(succeed(kernels.quantize(format, &x, &blocks, values.len())).run());
    ok(Tensor::from_blocks(&succeed(blocks.download()), dtype, [5, 256], gpu))
}

#[test]
fn products_agree_with_dequantised_weights() {
    on_each_device(|gpu| {
        for format in FORMATS {
            let weights = weights(gpu, format);
            let values = ok(ok(weights.cast(DType::F32)).to_vec::<f32>());
            let x = ok(Tensor::randn([2, 3, 256], 5, DType::F32, gpu));
            let bias = ok(Tensor::randn([5], 6, DType::F32, gpu));
            let data = ok(x.to_vec::<f32>());
            let found = ok(x.linear(&weights, Some(&bias)));
            assert_eq!(*found.shape(), [2, 3, 5]);
            let g = ok(Graph::new(gpu));
            let input = ok(g.input("x", [2, 3, 256]));
            let plan = ok(g.compile(&[ok(input.linear(&weights, Some(&bias)))]));
            let planned = ok(ok(plan.run(&[("x", &x)]))[0].to_vec::<f32>());
            let (found, bias) = (ok(found.to_vec::<f32>()), ok(bias.to_vec::<f32>()));
            for (n, (found, planned)) in found.iter().zip(&planned).enumerate() {
                let (row, column) = (n / 5, n % 5);
                let products = (0..256)
                    .map(|k| f64::from(data[row * 256 + k]) * f64::from(values[column * 256 + k]));
                let wanted = products.sum::<f64>() + f64::from(bias[column]);
                // On NVIDIA GPUs, activations are rounded to 16 bits.
                assert!((f64::from(*found) - wanted).abs() < 2e-3, "{found} {wanted}");
                assert!((f64::from(*planned) - wanted).abs() < 2e-3, "{planned} {wanted}");
            }
        }
    });
}

#[test]
fn rows_of_blocks_are_joined() {
    on_each_device(|gpu| {
        for format in FORMATS {
            let weights = weights(gpu, format);
            let joined = ok(Tensor::concat(&[&weights, &weights, &weights], 0));
            assert_eq!((joined.dtype(), joined.shape().to_vec()), (format.0, vec![15, 256]));
            let values = ok(ok(weights.cast(DType::F32)).to_vec::<f32>());
            let found = ok(ok(joined.cast(DType::F32)).to_vec::<f32>());
            assert_eq!(found, values.repeat(3));
            let other = ok(weights.cast(DType::F32));
            assert_eq!(
                Tensor::concat(&[&weights, &other], 0).unwrap_err().kind(),
                ErrorKind::DType
            );
        }
    });
}

#[test]
fn rows_are_those_of_dequantised_table() {
    on_each_device(|gpu| {
        for format in FORMATS {
            let weights = weights(gpu, format);
            let all = ok(weights.cast(DType::F32));
            let data: [[i32; 2]; 3] = [[4, 0], [2, 4], [-1, -5]];
            let signed = ok(Tensor::new(data, gpu));
            let unsigned =
                ok(Tensor::new(data.map(|row| row.map(|it| it.rem_euclid(5) as u32)), gpu));
            let wanted = ok(ok(all.embedding(&unsigned)).to_vec::<f32>());
            for at in [&signed, &unsigned] {
                let found = ok(weights.embedding(at));
                assert_eq!((found.dtype(), &**found.shape()), (DType::F32, &[3, 2, 256][..]));
                assert_eq!(ok(found.to_vec::<f32>()), wanted, "{format:?}");
                // In a graph, before other operations.
                let g = ok(Graph::new(gpu));
                let input = ok(g.input_with_dtype("at", [3, 2], at.dtype()));
                let plan = ok(g.compile(&[ok(ok(weights.embedding(&input)).mul(2.0))]));
                let found = ok(ok(plan.run(&[("at", at)]))[0].to_vec::<f32>());
                assert_eq!(found, wanted.iter().map(|it| 2.0 * it).collect::<Vec<_>>());
            }
            let beyond = ok(Tensor::new([5u32, u32::MAX], gpu));
            assert_eq!(ok(ok(weights.embedding(&beyond)).to_vec::<f32>()), [0.0; 512]);
            let none = ok(weights.embedding(&ok(Tensor::zeros([0], DType::U32, gpu))));
            assert_eq!(*none.shape(), [0, 256]);
        }
    });
}

#[test]
fn readme_names_operations_on_weights() {
    let readme = include_str!("../../README.md");
    let row = readme.lines().find(|line| line.starts_with("| `q4_0`")).expect("the row exists");
    let cells: Vec<_> = row.split('|').map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let types: Vec<_> = cells[1].clone().collect();
    assert_eq!(types, FORMATS.map(|(dtype, _)| dtype.name()));
    let (_, names) = row.split_once("only by").expect("the row names operations");
    let names: Vec<_> = names.split('`').skip(1).step_by(2).collect();
    assert_eq!(names, ["linear", "embedding", "concat", "cast"]);
    let gpu = succeed(scry_gpu::Device::open("cpu"));
    let (x, rows) = (ok(Tensor::ones([1, 256], DType::F32, &gpu)), ok(Tensor::new([1u32], &gpu)));
    for format in FORMATS {
        let weights = weights(&gpu, format);
        let values = ok(weights.cast(DType::F32));
        assert_eq!((values.dtype(), values.numel()), (DType::F32, 5 * 256));
        let row = ok(ok(values.i(1)).to_vec::<f32>());
        assert_eq!(ok(ok(weights.embedding(&rows)).to_vec::<f32>()), row);
        let sums = ok(ok(x.linear(&weights, None)).to_vec::<f32>());
        let sum: f32 = row.iter().sum();
        assert!((sums[1] - sum).abs() < 2e-3, "{} {sum}", sums[1]);
        let joined = ok(Tensor::concat(&[&weights, &weights], 0));
        assert_eq!((joined.dtype(), joined.shape()[0]), (format.0, 10));
        for rejected in [weights.exp(), weights.sum(0), weights.add(&values), weights.t()] {
            assert_eq!(rejected.unwrap_err().kind(), ErrorKind::DType);
        }
    }
}

#[test]
fn other_selections_need_dequantised_weights() {
    let gpu = succeed(scry_gpu::Device::open("cpu"));
    let weights = weights(&gpu, FORMATS[2]);
    let rows = ok(Tensor::new([1u32], &gpu));
    let floats = ok(Tensor::new([1.0f32], &gpu));
    for (result, problem) in [
        (weights.index_select(0, &rows), "Tensor::index_select"),
        (weights.gather(0, &rows), "Tensor::gather"),
        (weights.i(0), "Tensor::i"),
    ] {
        let error = result.map(drop).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(problem) && text.contains("q8_0 is not supported"), "{text}");
        assert!(text.ends_with("help: convert the tensor: `.cast(DType::F32)`"), "{text}");
    }
    let error = weights.embedding(&floats).map(drop).unwrap_err().to_string();
    assert!(error.contains("element type f32 is not supported; use i32 or u32"), "{error}");
}
