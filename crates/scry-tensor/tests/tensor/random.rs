//! Random numbers: those of the kernel library, the same eagerly and in a graph.

use half::{bf16, f16};
use scry_kernels::Kernels;
use scry_tensor::{DType, Graph, Tensor};
use scry_test_support::{on_each_device, succeed};

use crate::support::ok;

#[test]
fn numbers_are_those_of_the_library() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let seed = 0x0123_4567_89ab_cdef;
        let bits = succeed(gpu.alloc::<u32>(1001));
        succeed(succeed(kernels.random_bits(&bits, seed)).run());
        let found = ok(Tensor::random_bits([7, 143], seed, DType::U32, gpu));
        assert_eq!(ok(found.to_vec::<u32>()), succeed(bits.download()));
        // The library's numbers are the same on every device; some lack 16-bit types.
        let cpu = crate::support::cpu();
        let library = succeed(Kernels::new(&cpu));
        let (half, brain) = (succeed(cpu.alloc::<f16>(99)), succeed(cpu.alloc::<bf16>(99)));
        succeed(succeed(library.random_uniform(&half, seed)).run());
        succeed(succeed(library.random_uniform(&brain, seed)).run());
        let of = |dtype| ok(Tensor::rand([99], seed, dtype, gpu));
        assert_eq!(ok(of(DType::F16).to_vec::<f16>()), succeed(half.download()));
        assert_eq!(ok(of(DType::BF16).to_vec::<bf16>()), succeed(brain.download()));
        let normal = succeed(gpu.alloc::<f32>(5000));
        succeed(succeed(kernels.random_normal(&normal, seed)).run());
        let found = ok(ok(Tensor::randn([5000], seed, DType::F32, gpu)).to_vec::<f32>());
        for (found, wanted) in found.iter().zip(succeed(normal.download())) {
            assert!((found - wanted).abs() < 2e-5, "{found} {wanted}");
        }
    });
}

#[test]
fn seed_is_an_input_of_each_run() {
    on_each_device(|gpu| {
        let g = ok(Graph::new(gpu));
        let (x, seed) =
            (ok(g.input("x", [4, 25])), ok(g.input_with_dtype("seed", [2], DType::U32)));
        let plan = ok(g.compile(&[ok(x.dropout(0.25, &seed)), ok(x.dropout(0.25, 9))]));
        let data = ok(Tensor::ones([4, 25], DType::F32, gpu));
        let run = |seed: u32| {
            let seed = ok(Tensor::new([seed, 0], gpu));
            let outputs = ok(plan.run(&[("x", &data), ("seed", &seed)]));
            outputs.iter().map(|it| ok(it.to_vec::<f32>())).collect::<Vec<_>>()
        };
        let (first, second) = (run(9), run(10));
        assert_eq!(first[0], ok(ok(data.dropout(0.25, 9)).to_vec::<f32>()));
        assert_eq!((&first[1], &second[1]), (&first[0], &first[0]));
        assert_ne!(second[0], first[0]);
        let kept = first[0].iter().filter(|it| **it == 4.0 / 3.0).count();
        assert!(
            (60..90).contains(&kept) && first[0].iter().all(|it| [0.0, 4.0 / 3.0].contains(it))
        );
        let all = ok(ok(data.dropout(0.0, 1)).to_vec::<f32>());
        let none = ok(ok(data.dropout(1.0, 1)).to_vec::<f32>());
        assert_eq!((all, none), (vec![1.0; 100], vec![0.0; 100]));
    });
}

#[test]
fn dropout_scales_16_bit_floats_in_f32() {
    on_each_device(|gpu| {
        // The factor is above every finite f16, and what is kept is not.
        let probability = 1.0 - 1e-5f32;
        let small = ok(ok(Tensor::ones([1 << 20], DType::F16, gpu)).mul(2f32.powi(-10)));
        let kept = ok(ok(small.dropout(probability, 3)).to_vec::<f16>());
        let kept: Vec<f32> = kept.iter().map(|it| it.to_f32()).filter(|it| *it != 0.0).collect();
        assert!((1..60).contains(&kept.len()), "{}", kept.len());
        let wanted = f16::from_f32(2f32.powi(-10) / (1.0 - probability)).to_f32();
        assert!(kept.iter().all(|it| *it == wanted), "{kept:?}, not {wanted}");
    });
}
