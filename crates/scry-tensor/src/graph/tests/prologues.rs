//! Maps that are fused into the products with quantised weights after them.

use scry_gpu::BackendKind;
use scry_test_support::on_each_device;

use super::super::group::Limits;
use super::super::prologues;
use crate::error::Call;
use crate::{DType, Device, Fusion, Graph, Tensor};

const K: usize = 64;

/// Returns weights of `Q8_0`, `[5, K]`.
fn weights(gpu: &Device) -> Tensor {
    let block = |n: u8| {
        // The scale 2^-6, and integers.
        let integers = (0..32u8).map(move |at| at.wrapping_mul(n + 3));
        [0x00, 0x24].into_iter().chain(integers)
    };
    let blocks: Vec<u8> = (0..(5 * K / 32) as u8).flat_map(block).collect();
    Tensor::from_blocks(&blocks, DType::Q8_0, [5, K], gpu).unwrap()
}

/// Compiles the product of `rows` of activations, of which each is converted. Returns the number of
/// kernels, and the results.
fn product(gpu: &Device, dtype: DType, rows: usize, fusion: Fusion) -> (usize, Vec<f32>) {
    let g = Graph::new(gpu).unwrap();
    g.set_fusion(fusion);
    let x = g.input_with_dtype("x", [rows, K], dtype).unwrap();
    let y = x.cast(DType::F32).unwrap().linear(&weights(gpu), None).unwrap();
    let plan = g.compile(&[y]).unwrap();
    let data = Tensor::randn([rows, K], 3, DType::F32, gpu).unwrap().cast(dtype).unwrap();
    let given = [("x", &data)];
    plan.check(&given).unwrap();
    let found = plan.run(&given).unwrap()[0].to_vec::<f32>().unwrap();
    (plan.explain().unwrap().kernels.len(), found)
}

#[test]
fn few_rows_are_read_as_they_are() {
    let gpu = Device::open("cpu").unwrap();
    for dtype in [DType::F16, DType::BF16] {
        for (rows, kernels) in [(1, 1), (8, 1), (9, 2)] {
            let (count, found) = product(&gpu, dtype, rows, Fusion::Full);
            let (single, wanted) = product(&gpu, dtype, rows, Fusion::None);
            assert_eq!((count, single), (kernels, 2), "{rows} rows of {dtype}");
            assert_eq!(found, wanted, "{rows} rows of {dtype}");
        }
    }
}

#[test]
fn other_conversions_remain() {
    let gpu = Device::open("cpu").unwrap();
    let count = |function: &dyn Fn(&Tensor) -> Vec<Tensor>| {
        let g = Graph::new(&gpu).unwrap();
        let x = g.input_with_dtype("x", [1, K], DType::F16).unwrap();
        let plan = g.compile(&function(&x)).unwrap();
        let data = Tensor::randn([1, K], 3, DType::F32, &gpu).unwrap().cast(DType::F16).unwrap();
        plan.check(&[("x", &data)]).unwrap();
        plan.explain().unwrap().kernels.len()
    };
    let linear = |x: &Tensor| x.linear(&weights(&gpu), None).unwrap();
    let wide = |x: &Tensor| x.cast(DType::F32).unwrap();
    // An output, one that is computed with, and one that two kernels read.
    assert_eq!(count(&|x| vec![wide(x), linear(&wide(x))]), 2);
    assert_eq!(count(&|x| vec![linear(&wide(x).mul(2.0).unwrap())]), 2);
    assert_eq!(count(&|x| vec![linear(&wide(x)), linear(&wide(x))]), 3);
    // One that is read in another order.
    assert_eq!(count(&|x| vec![linear(&wide(&x.flip(-1).unwrap()))]), 2);
}

/// Compiles a product of the results of SwiGLU, of rows of another product, and runs it with and
/// without prologues, which devices other than those with CUDA compute, too. Returns the numbers of
/// kernels.
fn swiglu(gpu: &Device, rows: usize) -> [usize; 2] {
    let g = Graph::new(gpu).unwrap();
    let x = g.input("x", [rows, K]).unwrap();
    let (input, k) = (Tensor::randn([2 * K, K], 4, DType::F32, gpu).unwrap(), K as i64);
    let both = x.linear(&input, None).unwrap();
    let gate = both.i((.., ..k)).unwrap().silu().unwrap();
    let gated = gate.mul(both.i((.., k..)).unwrap()).unwrap();
    let plan = g.compile(&[gated.linear(&weights(gpu), None).unwrap()]).unwrap();
    let data = Tensor::randn([rows, K], 3, DType::F32, gpu).unwrap();
    let call = Call::new("Plan::run");
    let inputs = plan.inputs(call, &[("x", &data)]).unwrap();
    let sizes = plan.sizes(call, &inputs).unwrap();
    let results = [false, true].map(|is_cuda| {
        let (graph, mut grouped) = plan.shared().group(&sizes).unwrap();
        prologues::fuse(&mut grouped, Limits { is_cuda, ..plan.shared().limits() });
        let count = grouped.kernels.len();
        let specialised = plan.shared().plan((graph, grouped)).unwrap();
        let out = plan.submit(call, &specialised, &inputs, None).unwrap().remove(0);
        (count, Tensor::from(out).to_vec::<f32>().unwrap())
    });
    let [(single, wanted), (fused, found)] = results;
    for (found, wanted) in found.iter().zip(&wanted) {
        // On NVIDIA GPUs, activations are rounded to 16 bits.
        let is_close = (found - wanted).abs() < 2e-3 * wanted.abs().max(10.0);
        assert!(is_close, "{rows} rows on {}: {found}, not {wanted}", gpu.name());
    }
    [single, fused]
}

#[test]
fn swiglu_is_a_part_of_products() {
    on_each_device(|gpu| {
        let is_cuda = gpu.backend_kind() == BackendKind::Cuda;
        for rows in [1, 8] {
            assert_eq!(swiglu(gpu, rows), [if is_cuda { 2 } else { 3 }, 2], "{rows} rows");
        }
        assert_eq!(swiglu(gpu, 9), [3, 3]);
    });
}
