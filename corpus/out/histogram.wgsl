@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<atomic<u32>, 258>;
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
        var t0 = atomicLoad(&result[257u]);
        loop {
            let t1 = bitcast<u32>(min(bitcast<i32>(t0), x13));
            let t2 = atomicCompareExchangeWeak(&result[257u], t0, t1);
            if t2.exchanged { break; }
            t0 = t2.old_value;
        }
        let x14 = bitcast<i32>(t0);
    }
    storageBarrier();
    workgroupBarrier();
    let x15 = atomicExchange(&workgroup0[local_invocation_id.x], 0u);
    let x16 = x15 > 0u;
    if x16 {
        let x17 = atomicAdd(&result[local_invocation_id.x], x15);
        let x18 = atomicLoad(&result[256u]);
        v0 = x18;
        loop {
            let x19 = atomicLoad(&result[local_invocation_id.x]);
            let x20 = v0;
            let x21 = x19 <= x20;
            if x21 {
                break;
            }
            var t3: u32;
            loop {
                let t4 = atomicCompareExchangeWeak(&result[256u], x20, x19);
                t3 = t4.old_value;
                if t4.exchanged || t3 != x20 { break; }
            }
            let x22 = t3;
            let x23 = x22 == x20;
            if x23 {
                break;
            }
            v0 = x22;
        }
    }
}
