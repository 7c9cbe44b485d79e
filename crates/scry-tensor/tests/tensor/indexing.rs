//! Indices in tensors.

use proptest::prelude::*;
use scry_tensor::{DType, Ellipsis, NewAxis, Tensor, Value, step};
use scry_test_support::on_each_device;

use crate::support::{ELEMENTS, Host, check, ok, source, view};

#[test]
fn indices_select_coordinates() {
    for dtype in ELEMENTS {
        let indices = prop::collection::vec(-8..8i64, 1..7);
        check(20, (source(dtype), indices, 0..8usize), |gpu, ((host, steps), indices, axis)| {
            let (x, host) = view(host.upload(gpu), host, &steps);
            if host.shape.is_empty() {
                return;
            }
            let axis = axis % host.shape.len();
            let selected = ok(x.index_select(
                axis as i64,
                &ok(Tensor::from_slice(&indices, [indices.len()], gpu)),
            ));
            let size = host.shape[axis] as i64;
            let mut shape = host.shape.clone();
            shape[axis] = indices.len();
            let zero = Host::download(&ok(Tensor::zeros((), dtype, gpu))).values[0];
            let wanted = Host::build(dtype, &shape, |at| {
                let index = indices[at[axis]];
                let index = if index < 0 { index + size } else { index };
                let mut own = at.to_vec();
                own[axis] = index as usize;
                if (0..size).contains(&index) { host.at(&own) } else { zero }
            });
            assert_eq!(format!("{:?}", Host::download(&selected)), format!("{wanted:?}"));
        });
    }
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "-1 is the last coordinate")]
fn index_is_that_of_numpy() {
    on_each_device(|gpu| {
        let x = ok(ok(Tensor::arange(24, DType::I32, gpu)).reshape([2, 3, 4]));
        let shape = |y: scry_tensor::Result<Tensor>| ok(y).shape().to_vec();
        assert_eq!(shape(x.i((.., NewAxis, Ellipsis, 0..=1))), [2, 1, 3, 2]);
        assert_eq!(shape(x.i((1.., ..-1, step(.., 3)))), [1, 2, 2]);
        assert_eq!(shape(x.i((5..9, Ellipsis))), [0, 3, 4]);
        assert_eq!(shape(x.i((.., 2..=-1))), [2, 1, 4]);
        let rows = ok(Tensor::new([[0u32, 2], [1, 1]], gpu));
        assert_eq!(shape(x.i((.., &rows))), [2, 2, 2, 4]);
        assert_eq!(shape(x.i((1, &rows))), [2, 2, 4]);
        // NumPy puts the axes of the indices first if a range is between them.
        let columns = ok(Tensor::new([3, 0, 0], gpu));
        let split = ok(x.i((1, .., &columns)));
        assert_eq!(*split.shape(), [3, 3]);
        assert_eq!(ok(split.to_vec::<i32>()), [15, 19, 23, 12, 16, 20, 12, 16, 20]);
        let nothing = ok(Tensor::from_slice::<i32>(&[], [0], gpu));
        assert_eq!(shape(x.i((.., &nothing))), [2, 0, 4]);
    });
}

#[test]
fn indices_of_empty_axes_select_zero() {
    on_each_device(|gpu| {
        let x = ok(Tensor::zeros([2, 0], DType::F16, gpu));
        let y = ok(x.index_select(1, &ok(Tensor::new([0, 5], gpu))));
        let wanted = vec![Value::Float(0.0); 4];
        assert_eq!(
            Host::download(&y),
            Host { dtype: DType::F16, shape: vec![2, 2], values: wanted }
        );
    });
}
