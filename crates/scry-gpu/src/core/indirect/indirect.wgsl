// The grid of an indirect launch, from the workgroup counts in a buffer.

struct Params {
    /// Maximum native workgroups on each axis.
    max_native: vec3<u32>,
    /// Index of the first count.
    first: u32,
    /// Invocations of a workgroup.
    size: vec3<u32>,
}

/// The fields up to `padding` are those of `scry_ir::LinearisedGrid`, in the same order: they are
/// bound as the uniform buffer of the linearised kernel.
struct Grid {
    /// Logical workgroups of the launch along x, y and z.
    groups: vec3<u32>,
    /// Native workgroups in a row, along x.
    width: u32,
    /// Native rows along y.
    height: u32,
    /// Rows that contain workgroups of the launch.
    rows: u32,
    /// Workgroups of the launch in the last of those rows.
    last_row: u32,
    /// Keeps the size of these fields a multiple of 16 bytes.
    padding: u32,
    /// The native grid: the workgroup counts that the device reads.
    native: vec3<u32>,
    /// Pads the native grid to 16 bytes.
    unused: u32,
}

@group(0) @binding(0) var<storage, read> counts: array<u32>;
@group(0) @binding(1) var<storage, read_write> grid: Grid;
var<immediate> params: Params;

const MAX: u32 = 0xffffffffu;

/// Returns whether the invocations along each axis and all workgroups can be numbered in 32 bits.
fn is_runnable(groups: vec3<u32>) -> bool {
    if any(groups == vec3(0u)) || any(groups > MAX / params.size) {
        return false;
    }
    return groups.y <= MAX / groups.x && groups.z <= MAX / (groups.x * groups.y);
}

/// Linearises the grid into rows of native workgroups along x. All rows but the last have the same
/// length; the rows are numbered along y and z.
fn linearise(groups: vec3<u32>) -> Grid {
    let total = groups.x * groups.y * groups.z;
    let fewest_rows = (total - 1u) / params.max_native.x + 1u;
    let depth = (fewest_rows - 1u) / params.max_native.y + 1u;
    let height = (fewest_rows - 1u) / depth + 1u;
    if depth > params.max_native.z || height > MAX / depth {
        return Grid();
    }
    let width = (total - 1u) / (height * depth) + 1u;
    let rows = (total - 1u) / width + 1u;
    let last_row = total - (rows - 1u) * width;
    return Grid(groups, width, height, rows, last_row, 0u, vec3(width, height, depth), 0u);
}

@compute @workgroup_size(1)
fn prepare_indirect_launch() {
    let first = params.first;
    let groups = vec3(counts[first], counts[first + 1u], counts[first + 2u]);
    if !is_runnable(groups) {
        grid = Grid();
    } else if all(groups <= params.max_native) {
        let rows = groups.y * groups.z;
        grid = Grid(groups, groups.x, groups.y, rows, groups.x, 0u, groups, 0u);
    } else {
        grid = linearise(groups);
    }
}
