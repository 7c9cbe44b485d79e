@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<atomic<i32>, 258>;
var<workgroup> workgroup0: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn histogram(
    @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    var v0: u32;
    let x4 = arrayLength(&input);
    let x7 = workgroup_id.x * 256u;
    let x8 = x7 + local_invocation_id.x;
    let x9 = x8 < x4;
    if x9 {
        let x10 = input[x8];
        let x11 = x10 & 255u;
        let x12 = atomicAdd(&workgroup0[x11], 1u);
        let x13 = bitcast<i32>(x10);
        let x14 = atomicMin(&result[257u], x13);
    }
    workgroupBarrier();
    let x15 = atomicExchange(&workgroup0[local_invocation_id.x], 0u);
    let x16 = x15 > 0u;
    if x16 {
        let x17 = bitcast<u32>(atomicAdd(&result[local_invocation_id.x], bitcast<i32>(x15)));
        let x18 = bitcast<u32>(atomicLoad(&result[256u]));
        v0 = x18;
        loop {
            let x19 = bitcast<u32>(atomicLoad(&result[local_invocation_id.x]));
            let x20 = v0;
            let x21 = x19 <= x20;
            if x21 {
                break;
            }
            var t0: i32;
            loop {
                let t1 = atomicCompareExchangeWeak(&result[256u], bitcast<i32>(x20), bitcast<i32>(x19));
                t0 = t1.old_value;
                if t1.exchanged || t0 != bitcast<i32>(x20) { break; }
            }
            let x22 = bitcast<u32>(t0);
            let x23 = x22 == x20;
            if x23 {
                break;
            }
            v0 = x22;
        }
    }
}
