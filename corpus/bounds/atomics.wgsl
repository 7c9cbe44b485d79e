// Atomics past the end, in a buffer and in workgroup memory.
// Binding 0: counts, 4 words of zeros. Binding 1: index, one u32. Binding 2: out, 2 words.
// One workgroup of 32. With index in 0..4: counts[index] = 32 afterwards, the others 0.
// With any other index: one word of counts is 32, the others 0.
// out[0] = 32 always: the workgroup's counters are summed. out[1] = 31: the greatest invocation.

@group(0) @binding(0) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read> index: u32;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;

var<workgroup> inside: array<atomic<u32>, 4>;
var<workgroup> greatest: atomic<u32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) local: u32) {
    atomicAdd(&counts[index], 1u);
    atomicAdd(&inside[index], 1u);
    atomicMax(&greatest, local);
    workgroupBarrier();
    if local == 0u {
        var sum = 0u;
        for (var i = 0; i < 4; i++) {
            sum += atomicLoad(&inside[i]);
        }
        out[0] = sum;
        out[1] = atomicLoad(&greatest);
    }
}
