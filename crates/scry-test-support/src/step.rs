//! The kernel `step`, which many tests run.

/// A kernel that adds one to every element.
pub const STEP: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;

    @compute @workgroup_size(64)
    fn step(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&input) {
            output[id.x] = input[id.x] + 1u;
        }
    }
";
