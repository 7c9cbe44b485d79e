// Convolution, one result per invocation, for kernels that are too large for tiles. Preceded by the
// elements' definitions, the bindings of `x`, `weights` and `y`, and the function `bias` of a channel.

struct Shape {
    // Channels of a group.
    in_channels: u32,
    out_channels: u32,
    groups: u32,
    // Results.
    count: u32,
    size: vec2<u32>,
    out_size: vec2<u32>,
    padding: vec2<u32>,
    kernel: vec2<u32>,
    stride: vec2<u32>,
    dilation: vec2<u32>,
}

var<immediate> shape: Shape;

@compute @workgroup_size(256)
fn conv_direct(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let result = workgroup.x * 256u + local_index;
    if result >= shape.count {
        return;
    }
    let column = result % shape.out_size.x;
    let row = result / shape.out_size.x % shape.out_size.y;
    let plane = result / shape.out_size.x / shape.out_size.y;
    let channel = plane % (shape.groups * shape.out_channels);
    // The number of the group among those of all images.
    let group = plane / shape.out_channels;
    let start = vec2<u32>(column, row) * shape.stride - shape.padding;
    var sum = 0.0;
    for (var nth = 0u; nth < shape.in_channels; nth++) {
        let in_plane = (group * shape.in_channels + nth) * shape.size.y;
        let kernel = (channel * shape.in_channels + nth) * shape.kernel.y;
        for (var row = 0u; row < shape.kernel.y; row++) {
            let y_at = start.y + row * shape.dilation.y;
            if y_at >= shape.size.y {
                continue;
            }
            for (var column = 0u; column < shape.kernel.x; column++) {
                let x_at = start.x + column * shape.dilation.x;
                if x_at < shape.size.x {
                    let value = widen(x[(in_plane + y_at) * shape.size.x + x_at]);
                    sum += widen(weights[(kernel + row) * shape.kernel.x + column]) * value;
                }
            }
        }
    }
    y[result] = narrow(sum + bias(channel));
}
