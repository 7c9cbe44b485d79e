//! Runtime-sized arrays in bindings that end within an element: the length is rounded down, and the
//! bytes after the last whole element are not accessed.

use scry_gpu::{DType, DeviceInfo, Launch};

use crate::case::{BufferBinding, Case, Data, Expected};

/// A structure that ends in a runtime-sized array, or the array alone.
struct Shape {
    /// Members before the array, and their size in bytes.
    head: (&'static str, usize),
    /// Type of an element, and its size in bytes.
    element: (&'static str, usize),
}

const SHAPES: [Shape; 5] = [
    Shape { head: ("", 0), element: ("u32", 4) },
    Shape { head: ("", 0), element: ("vec2<u32>", 8) },
    Shape { head: ("", 0), element: ("vec4<u32>", 16) },
    Shape { head: ("n: u32,", 4), element: ("u32", 4) },
    Shape { head: ("n: vec2<u32>,", 8), element: ("vec2<u32>", 8) },
];

impl Shape {
    /// Returns a kernel that writes sevens to every element of the array, and past its end.
    fn source(&self) -> String {
        let (element, members) = (self.element.0, self.head.0);
        let (ty, items) = match members {
            "" => (format!("array<{element}>"), "data"),
            _ => ("Data".to_owned(), "data.items"),
        };
        format!(
            "
            struct Data {{ {members} items: array<{element}> }}
            @group(0) @binding(0) var<storage, read_write> data: {ty};
            @group(0) @binding(1) var<storage, read_write> length: u32;

            @compute @workgroup_size(1)
            fn main() {{
                length = arrayLength(&{items});
                for (var i = 0u; i < length + 4u; i++) {{ {items}[i] = {element}(7u); }}
            }}"
        )
    }

    /// Returns the array's length, and the bytes of the buffer after the launch. Before it, all
    /// bytes are 0xff.
    fn expected(&self, size: usize) -> (u32, Vec<u8>) {
        let ((_, head), (_, stride)) = (self.head, self.element);
        let len = (size - head) / stride;
        let mut bytes = vec![0xff; head];
        bytes.extend([7, 0, 0, 0].into_iter().cycle().take(len * stride));
        bytes.resize(size, 0xff);
        (len as u32, bytes)
    }

    fn case(&self, size: usize) -> Case {
        let (length, bytes) = self.expected(size);
        let mut case = Case::new(format!("{}, {size} bytes", self.element.0), self.source())
            .buffer(Data::bytes(vec![0xff; size]).typed(DType::U8))
            .buffer(Data::zeros(DType::U32, 1))
            .launch(Launch::invocations(1))
            .expect_words(1, vec![length]);
        case.expected.push(Expected::Bytes(0, bytes));
        case
    }
}

pub(crate) fn lengths_are_rounded_down(_: &DeviceInfo) -> Vec<Case> {
    let cases = |shape: &Shape| {
        let min_size = shape.head.1 + shape.element.1;
        let sizes = (min_size..min_size + 2 * shape.element.1 + 1).chain([1000, 1001, 1003]);
        sizes.map(|size| shape.case(size)).collect::<Vec<_>>()
    };
    SHAPES.iter().flat_map(cases).collect()
}

pub(crate) fn rejects_bindings_below_one_element(_: &DeviceInfo) -> Vec<Case> {
    let case = |shape: &Shape| {
        let min_size = shape.head.1 + shape.element.1;
        let size = format!("{} bytes were given", min_size - 1);
        Case::new(shape.element.0, shape.source())
            .buffer(Data::zeros(DType::U8, min_size - 1))
            .buffer(Data::zeros(DType::U32, 1))
            .launch(Launch::invocations(1))
            .expect_error(&["`data`", &size, &format!("at least {min_size}")])
    };
    SHAPES.iter().map(case).collect()
}

/// The trailing bytes of slice `a` are the first of slice `b`; the kernel writes both.
pub(crate) fn trailing_bytes_may_be_bound_elsewhere(gpu: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read_write> a: array<vec4<u32>>;
        @group(0) @binding(1) var<storage, read_write> b: array<vec4<u32>>;
        @compute @workgroup_size(1)
        fn main() {
            for (var i = 0u; i < 100u; i++) { a[i] = vec4(1u); }
            for (var i = 0u; i < arrayLength(&b); i++) { b[i] = vec4(2u); }
        }";
    let align = (gpu.binding_alignment as usize / 4).max(4);
    let mut case = Case::new("", source).buffer(Data::zeros(DType::U32, 2 * align));
    case.bindings = vec![
        BufferBinding::part(0, 0..4 * (align + 3)),
        BufferBinding::part(0, 4 * align..8 * align),
    ];
    let mut a = vec![1; align];
    a.extend([2; 3]);
    case.launch(Launch::invocations(1)).expect_words(0, a).expect_words(1, vec![2; align])
}
