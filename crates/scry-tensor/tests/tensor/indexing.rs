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

#[test]
fn several_tensors_select_together() {
    on_each_device(|gpu| {
        let x = ok(ok(Tensor::arange(60, DType::I32, gpu)).reshape([3, 4, 5]));
        let rows = ok(Tensor::new([[0], [-1]], gpu));
        let columns = ok(Tensor::new([1u32, 3, 9], gpu));
        let found = ok(x.i((&rows, &columns)));
        assert_eq!(*found.shape(), [2, 3, 5]);
        // The last column is out of range.
        assert_eq!(ok(ok(found.i((.., .., 0))).to_vec::<i32>()), [5, 15, 0, 45, 55, 0]);
        let found = ok(x.i((.., &columns, &ok(Tensor::new([0, 4, 0], gpu)))));
        assert_eq!(*found.shape(), [3, 3]);
        assert_eq!(ok(found.to_vec::<i32>()), [5, 19, 0, 25, 39, 0, 45, 59, 0]);
        // NumPy puts their axes first if a range is between them.
        let found = ok(x.i((&rows, step(.., -2), &ok(Tensor::new([2, 2, 3], gpu)))));
        assert_eq!(*found.shape(), [2, 3, 2]);
        let wanted = [17, 7, 17, 7, 18, 8, 57, 47, 57, 47, 58, 48];
        assert_eq!(ok(found.to_vec::<i32>()), wanted);
        let reversed = ok(ok(x.permute([2, 0, 1])).i((&columns, &ok(Tensor::new([2], gpu)))));
        assert_eq!(ok(ok(reversed.i((.., 0))).to_vec::<i32>()), [41, 43, 0]);
    });
}

#[test]
fn masks_select_where_they_are_true() {
    on_each_device(|gpu| {
        let x = ok(ok(Tensor::arange(24, DType::I32, gpu)).reshape([2, 3, 4]));
        let multiples = ok(ok(x.remainder(7)).eq(0));
        assert_eq!(ok(ok(x.i(&multiples)).to_vec::<i32>()), [0, 7, 14, 21]);
        let rows = ok(Tensor::new([[false, true, true], [false, false, true]], gpu));
        let found = ok(x.i(&rows));
        assert_eq!(*found.shape(), [3, 4]);
        assert_eq!(ok(ok(found.sum(-1)).to_vec::<i32>()), [22, 38, 86]);
        let columns = ok(Tensor::new([true, false, false, true], gpu));
        let found = ok(ok(x.t()).i((1, &columns, ..2)));
        assert_eq!(ok(found.to_vec::<i32>()), [12, 16, 15, 19]);
        // With indices, one for each true element.
        let found = ok(x.i((&ok(Tensor::new([1, 0], gpu)), 2, &ok(columns.logical_not()))));
        assert_eq!(ok(found.to_vec::<i32>()), [21, 10]);
        let none = ok(x.i(&ok(x.lt(0))));
        assert_eq!(*none.shape(), [0]);
        let nothing = ok(Tensor::zeros([0, 2], DType::F32, gpu));
        assert_eq!(*ok(nothing.i(&ok(nothing.isnan()))).shape(), [0]);
    });
}

#[test]
fn mask_of_a_graph_is_rejected() {
    let gpu = crate::support::cpu();
    let g = ok(scry_tensor::Graph::new(&gpu));
    let x = ok(g.input("x", [3]));
    let error = x.i(&ok(x.gt(0.0))).unwrap_err();
    assert_eq!(error.kind(), scry_tensor::ErrorKind::Graph, "{error}");
    // One in memory is a parameter.
    let mask = ok(Tensor::new([true, false, true], &gpu));
    let plan = ok(g.compile(&[ok(x.i(&mask))]));
    let data = ok(Tensor::new([1.0f32, 2.0, 3.0], &gpu));
    assert_eq!(ok(ok(plan.run(&[("x", &data)]))[0].to_vec::<f32>()), [1.0, 3.0]);
}
