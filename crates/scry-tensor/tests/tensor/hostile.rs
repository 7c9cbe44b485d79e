//! Inputs at and beyond the limits: NumPy's result, or an error that names the problem.

use scry_tensor::{DType, ErrorKind, Tensor, operations};
use scry_test_support::on_each_device;

use crate::support::{ELEMENTS, ok};

#[test]
fn empty_tensors_have_empty_results() {
    on_each_device(|gpu| {
        for operation in operations().filter(|it| it.is_elementwise()) {
            for dtype in operation.types {
                let x = ok(Tensor::zeros([3, 0, 2], *dtype, gpu));
                let y = ok(Tensor::ones([2], *dtype, gpu));
                let result = ok(operation.call(&x, &y).expect("it is element-wise"));
                assert_eq!(*result.shape(), [3, 0, 2], "{}", operation.name);
            }
        }
        for dtype in ELEMENTS {
            let x = ok(Tensor::zeros([0], dtype, gpu));
            assert_eq!(ok(x.reshape([4, 0])).numel(), 0);
            assert_eq!(ok(x.expand([5, 0])).numel(), 0);
            assert_eq!(ok(ok(x.cast(DType::F32)).to_vec::<f32>()), []);
        }
    });
}

#[test]
fn views_may_exceed_the_index_range() {
    on_each_device(|gpu| {
        // 2^34 elements of one word.
        let x = ok(Tensor::ones([1 << 17, 1 << 17], DType::U32, gpu));
        assert_eq!(x.numel(), 1 << 34);
        let corner = ok(x.i(((1 << 17) - 2.., 5..8)));
        assert_eq!(ok(corner.to_vec::<u32>()), [1; 6]);
        for error in [x.add(1).unwrap_err(), x.sum(..).unwrap_err(), x.to_vec::<u32>().unwrap_err()]
        {
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        }
        let huge = Tensor::zeros([usize::MAX, usize::MAX], DType::F32, gpu);
        assert_eq!(huge.unwrap_err().kind(), ErrorKind::TooLarge);
        assert!(Tensor::zeros([usize::MAX, 0], DType::F32, gpu).is_err());
        let wide = ok(Tensor::zeros([1 << 40, 1 << 20], DType::F32, gpu));
        assert_eq!(ok(wide.reshape([-1])).numel(), 1 << 60);
        assert_eq!(wide.relu().unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(
            wide.unsqueeze(0).unwrap().expand([8, 1 << 40, 1 << 20]).unwrap_err().kind(),
            ErrorKind::TooLarge
        );
        assert_eq!(ok(ok(wide.i((-1, -1))).item::<f32>()), 0.0);
    });
}

#[test]
fn ends_of_wide_views_are_read() {
    on_each_device(|gpu| {
        let x = ok(Tensor::arange(7, DType::I32, gpu));
        let reversed = ok(x.i(scry_tensor::step(.., -1)));
        let wide = ok(ok(reversed.unsqueeze(1)).expand([7, 1 << 30]));
        let last = ok(wide.i((.., (1 << 30) - 3..)));
        assert_eq!(ok(ok(last.add(1)).to_vec::<i32>())[..4], [7, 7, 7, 6]);
    });
}

#[test]
fn indices_into_larger_axes_are_rejected() {
    on_each_device(|gpu| {
        let indices = ok(Tensor::new([5], gpu));
        for size in [1 << 32, (1 << 32) + 10, 1 << 33] {
            let x = ok(Tensor::ones([size], DType::F32, gpu));
            assert_eq!(x.index_select(0, &indices).unwrap_err().kind(), ErrorKind::TooLarge);
            assert_eq!(x.i(&indices).unwrap_err().kind(), ErrorKind::TooLarge);
        }
        let x = ok(Tensor::ones([(1 << 32) - 1], DType::F32, gpu));
        assert_eq!(ok(ok(x.index_select(0, &indices)).to_vec::<f32>()), [1.0]);
    });
}

#[test]
fn huge_views_are_printed() {
    on_each_device(|gpu| {
        for size in [1 << 32, (1 << 32) + 5, 1 << 33] {
            let x = ok(Tensor::ones([size], DType::I32, gpu));
            assert_eq!(x.to_string(), "[1 1 1 ... 1 1 1]");
        }
        let x = ok(Tensor::zeros([1 << 31, 1 << 31], DType::U32, gpu)).to_string();
        assert_eq!(x.matches("[0 0 0 ... 0 0 0]").count(), 6, "{x}");
        // The corners of distinct elements, in their order.
        let x = ok(ok(Tensor::arange(10_000, DType::I32, gpu)).reshape([100, 100]));
        let (first, last) =
            (" [   0    1    2 ...   97   98   99]", "[9900 9901 9902 ... 9997 9998 9999]");
        let text = x.to_string();
        assert!(text.contains(first.trim()) && text.contains(last), "{text}");
    });
}

#[test]
fn empty_tensors_have_bounded_sizes() {
    on_each_device(|gpu| {
        let empty = |shape: &[usize]| Tensor::from_slice::<f32>(&[], shape, gpu);
        for shape in [&[0, usize::MAX][..], &[0, 1 << 62, 8], &[0; 17]] {
            let error = empty(shape).unwrap_err().kind();
            assert!(matches!(error, ErrorKind::TooLarge | ErrorKind::Shape), "{error:?}");
        }
        let x = ok(empty(&[0, 7]));
        assert_eq!(x.reshape([0, 1i64 << 62, 8]).unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(*ok(x.i((.., 1..))).shape(), [0, 6]);
        let moved = ok(ok(x.i(..)).to(&crate::support::cpu()));
        assert_eq!(*moved.shape(), [0, 7]);
    });
}

#[test]
fn integers_wrap() {
    on_each_device(|gpu| {
        let x = ok(Tensor::new([i32::MAX, i32::MIN], gpu));
        assert_eq!(ok(ok(&x + 1).to_vec::<i32>()), [i32::MIN, i32::MIN + 1]);
        assert_eq!(ok(ok(x.floor_divide(-1)).to_vec::<i32>()), [-i32::MAX, i32::MIN]);
        assert_eq!(ok(ok(x.floor_divide(0)).to_vec::<i32>()), [0, 0]);
        assert_eq!(ok(ok(x.remainder(0)).to_vec::<i32>()), [0, 0]);
        let y = ok(Tensor::new([0u32, u32::MAX], gpu));
        assert_eq!(ok(ok(&y - 1).to_vec::<u32>()), [u32::MAX, u32::MAX - 1]);
    });
}

#[test]
fn too_many_axes_are_an_error() {
    on_each_device(|gpu| {
        let mut x = ok(Tensor::new(1.0f32, gpu));
        for _ in 0..16 {
            x = ok(x.unsqueeze(0));
        }
        assert_eq!(ok(ok(x.exp()).sum(..)).rank(), 0);
        let results = [
            x.unsqueeze(0),
            x.expand([1; 17]),
            x.reshape([1; 17]),
            Tensor::ones([1; 17], DType::F32, gpu),
            Tensor::from_slice(&[1.0f32], [1; 17], gpu),
            x.i(scry_tensor::NewAxis),
        ];
        for result in results {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Shape);
        }
    });
}

#[test]
fn threads_share_tensors() {
    on_each_device(|gpu| {
        let x = ok(Tensor::arange(1000, DType::F32, gpu));
        std::thread::scope(|scope| {
            let sum = |n: i32| {
                let x = x.clone();
                move || ok(ok(ok(&x * n).sum(..)).item::<f32>())
            };
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(sum(n))).collect();
            for (n, thread) in threads.into_iter().enumerate() {
                assert_eq!(thread.join().unwrap(), n as f32 * 499_500.0);
            }
        });
    });
}

#[test]
#[ignore = "needs 3 GiB on the device, and minutes on the processor"]
fn positions_above_two_to_the_31_are_reached() {
    const N: usize = 46_341; // N * N > 2^31
    on_each_device(|gpu| {
        // Operations that gather elements need the whole operand in one binding.
        let limit = gpu.info().limits.max_storage_binding_size;
        if limit < (N * N) as u64 {
            eprintln!("skipped: {} binds at most {limit} bytes, not {}", gpu.name(), N * N);
            return;
        }
        let x = ok(Tensor::eye(N, DType::Bool, gpu));
        assert!(x.numel() > 1 << 31);
        let corner = ok(x.i((N - 3.., N - 2..)));
        assert_eq!(ok(corner.to_vec::<bool>()), [false, false, true, false, false, true]);
        let reversed = ok(x.i((scry_tensor::step(.., -1), scry_tensor::step(.., -1))));
        let first = ok(ok(reversed.i((0..2, 0..3))).logical_not());
        assert_eq!(ok(first.to_vec::<bool>()), [false, true, true, true, false, true]);
        let row = ok(Tensor::new([-1, 7], gpu));
        let rows = ok(ok(x.index_select(0, &row)).i((.., N - 1)));
        assert_eq!(ok(rows.to_vec::<bool>()), [true, false]);
    });
}

#[test]
fn bindings_above_the_limit_are_an_error() {
    let mut info = scry_gpu::testing::null_info();
    info.limits.max_storage_binding_size = 1024;
    let (gpu, _) = scry_gpu::testing::observed(info);
    let small = ok(Tensor::ones([257], DType::F16, &gpu));
    ok(small.relu());
    // Rows of 516 bytes do not begin where buffers are bound, so that they cannot be split.
    let columns = ok(Tensor::arange(258, DType::F16, &gpu));
    let error = ok(ok(columns.reshape([129, 2])).t()).cast(DType::F32).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("the result has 1032 bytes in memory"), "{error}");
    let (large, rows) =
        (ok(Tensor::arange(257, DType::F32, &gpu)), ok(Tensor::new([1u32, 2], &gpu)));
    let error = large.index_select(0, &rows).unwrap_err();
    assert!(error.to_string().contains("an operand has 1028 bytes in memory"), "{error}");
}

#[test]
fn tensors_are_send_and_sync() {
    fn assert<T: Clone + Send + Sync + 'static>() {}
    assert::<Tensor>();
    assert::<scry_tensor::Error>();
}
