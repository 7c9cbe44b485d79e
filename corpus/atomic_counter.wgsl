// No arguments: every invocation adds one to a counter.

@group(0) @binding(0) var<storage, read_write> count: atomic<u32>;

@compute @workgroup_size(1)
fn atomic_counter() {
    atomicAdd(&count, 1u);
}
