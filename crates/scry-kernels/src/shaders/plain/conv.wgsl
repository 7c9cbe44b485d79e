// Convolution, one result by each invocation. Preceded by the elements' definitions, the bindings of
// `x`, `weights` and `y`, the function `bias` of a channel, and by
//
//     const HAS_PADDING: bool.

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

@compute @workgroup_size(16, 16)
fn conv_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.out_size.x || id.y >= shape.out_size.y {
        return;
    }
    let channel = id.z % (shape.groups * shape.out_channels);
    // The number of the group among those of all images.
    let group = id.z / shape.out_channels;
    let start = id.xy * shape.stride - shape.padding;
    var sum = 0.0;
    for (var nth = 0u; nth < shape.in_channels; nth++) {
        let in_plane = (group * shape.in_channels + nth) * shape.size.y;
        let kernel = (channel * shape.in_channels + nth) * shape.kernel.y;
        for (var row = 0u; row < shape.kernel.y; row++) {
            let y_at = start.y + row * shape.dilation.y;
            let x_row = (in_plane + y_at) * shape.size.x;
            let weight_row = (kernel + row) * shape.kernel.x;
            var x_at = start.x;
            for (var column = 0u; column < shape.kernel.x; column++) {
                let weight = widen(weights[weight_row + column]);
                if !HAS_PADDING || (x_at < shape.size.x && y_at < shape.size.y) {
                    sum += weight * widen(x[x_row + x_at]);
                } else {
                    sum += weight * 0.0;
                }
                x_at += shape.dilation.x;
            }
        }
    }
    y[(id.z * shape.out_size.y + id.y) * shape.out_size.x + id.x] = narrow(sum + bias(channel));
}
