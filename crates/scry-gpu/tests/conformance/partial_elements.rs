//! Runtime-sized arrays in bindings of partial elements: the length is rounded down, and the bytes
//! after the last whole element are not accessed.

use scry_gpu::Device;

use crate::harness::{assert_says, on_each_device, refused, succeed};

/// A structure that ends in a runtime-sized array, or the array alone.
struct Case {
    /// Members before the array, and their bytes.
    head: (&'static str, usize),
    /// Type of an element, and its bytes.
    element: (&'static str, usize),
}

const CASES: [Case; 5] = [
    Case { head: ("", 0), element: ("u32", 4) },
    Case { head: ("", 0), element: ("vec2<u32>", 8) },
    Case { head: ("", 0), element: ("vec4<u32>", 16) },
    Case { head: ("n: u32,", 4), element: ("u32", 4) },
    Case { head: ("n: vec2<u32>,", 8), element: ("vec2<u32>", 8) },
];

impl Case {
    /// Writes sevens to every element of the array, and past its end.
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

    /// Bytes of the buffer after the launch, initially all ones.
    fn expected(&self, size: usize) -> (u32, Vec<u8>) {
        let ((_, head), (_, stride)) = (self.head, self.element);
        let len = (size - head) / stride;
        let mut bytes = vec![0xff; head];
        bytes.extend([7, 0, 0, 0].into_iter().cycle().take(len * stride));
        bytes.resize(size, 0xff);
        (len as u32, bytes)
    }

    fn run(&self, gpu: &Device, size: usize) -> (u32, Vec<u8>) {
        let data = succeed(gpu.upload(&vec![0xffu8; size]));
        let length = succeed(gpu.alloc::<u32>(1));
        succeed(gpu.dispatch(&self.source(), &[&data, &length], 1));
        (succeed(length.download())[0], succeed(data.download()))
    }
}

#[test]
fn lengths_are_rounded_down() {
    on_each_device(|gpu| {
        for case in &CASES {
            let least = case.head.1 + case.element.1;
            for size in (least..least + 2 * case.element.1 + 1).chain([1000, 1001, 1003]) {
                let (what, _) = case.element;
                assert_eq!(case.run(gpu, size), case.expected(size), "{what}, {size} bytes");
            }
        }
    });
}

#[test]
fn rejects_bindings_below_one_element() {
    on_each_device(|gpu| {
        for case in &CASES {
            let least = case.head.1 + case.element.1;
            let data = succeed(gpu.alloc::<u8>(least - 1));
            let length = succeed(gpu.alloc::<u32>(1));
            let text = refused(gpu.dispatch(&case.source(), &[&data, &length], 1));
            let given = format!("{} bytes were given", least - 1);
            assert_says(&text, &["`data`", &given, &format!("at least {least}")]);
        }
    });
}

/// The trailing bytes of one slice belong to the next one, which the same kernel writes.
#[test]
fn trailing_bytes_may_be_bound_elsewhere() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> a: array<vec4<u32>>;
        @group(0) @binding(1) var<storage, read_write> b: array<vec4<u32>>;
        @compute @workgroup_size(1)
        fn main() {
            for (var i = 0u; i < 100u; i++) { a[i] = vec4(1u); }
            for (var i = 0u; i < arrayLength(&b); i++) { b[i] = vec4(2u); }
        }";
    on_each_device(|gpu| {
        let step = (gpu.info().binding_alignment as usize / 4).max(4);
        let all = succeed(gpu.alloc::<u32>(2 * step));
        let (a, b) = (succeed(all.slice(..step + 3)), succeed(all.slice(step..)));
        succeed(gpu.dispatch(source, &[&a, &b], 1));
        let mut want = vec![1; step];
        want.resize(2 * step, 2);
        assert_eq!(succeed(all.download()), want);
    });
}
