//! Tests of the kernel that prepares indirect launches, against the same computation on the host.

use proptest::prelude::*;
use scry_ir::{Program, runnable_workgroups};

use super::*;
use crate::api::device::Device;
use crate::api::info::DeviceInfo;
use crate::api::launch::{GridSize, grid};
use crate::backend::null::null_info;
use crate::testing::observed;

/// The kernel on the CPU backend.
struct OnCpu {
    gpu: Device,
    kernel: Kernel,
}

impl OnCpu {
    fn new() -> Self {
        let gpu = Device::open("cpu").unwrap();
        let kernel = gpu.compile(SOURCE).unwrap();
        Self { gpu, kernel }
    }

    /// Returns the grid parameters and the native grid for counts in the last three of `words`.
    fn prepare(
        &self,
        interface: &Interface,
        max_native: [u32; 3],
        words: &[u32],
    ) -> ([u32; 8], [u32; 3]) {
        let counts = self.gpu.upload(words).unwrap();
        let out = self.gpu.upload(&[u32::MAX; 12]).unwrap();
        let immediates = immediates(max_native, words.len() as u32 - 3, interface);
        let launch = Launch::workgroups([1; 3]).immediate_bytes(immediates);
        self.gpu.run(&self.kernel, &[&counts, &out], launch).unwrap();
        let found = out.download().unwrap();
        (found[..8].try_into().unwrap(), found[8..11].try_into().unwrap())
    }
}

/// Returns the interface of a kernel with this workgroup size.
fn interface(size: [u32; 3]) -> Interface {
    let [x, y, z] = size;
    let source = format!("@compute @workgroup_size({x}, {y}, {z}) fn main() {{}}");
    Program::parse(&source).unwrap().interface().clone()
}

/// Returns the grid parameters and the native grid as the host computes them for a direct launch.
fn expected(interface: &Interface, max_native: [u32; 3], counts: [u32; 3]) -> ([u32; 8], [u32; 3]) {
    let mut info: DeviceInfo = null_info();
    info.limits.max_native_workgroups = max_native;
    let groups = runnable_workgroups(interface.workgroup_size, counts);
    let grid = grid(interface.into(), &info, GridSize::Workgroups(groups));
    let Some(grid) = grid.ok().filter(|grid| !grid.empty) else {
        return ([0; 8], [0; 3]);
    };
    let [x, y, z] = grid.groups;
    let plain = LinearisedGrid {
        groups: grid.groups,
        width: x,
        height: y,
        rows: y.wrapping_mul(z),
        last_row: x,
        padding: 0,
    };
    let LinearisedGrid { groups: [x, y, z], width, height, rows, last_row, padding } =
        grid.linearised.unwrap_or(plain);
    ([x, y, z, width, height, rows, last_row, padding], grid.native)
}

const SIZES: [[u32; 3]; 4] = [[1, 1, 1], [64, 1, 1], [8, 8, 4], [3, 1, 1]];
const LIMITS: [[u32; 3]; 5] =
    [[65535; 3], [i32::MAX as u32, 65535, 65535], [4, 4, 4], [1, 1, 1], [u32::MAX, 1, 1]];

#[test]
fn prepared_grid_equals_direct_grid() {
    let on_cpu = OnCpu::new();
    let axis = [0, 1, 2, 3, 5, 64, 65535, 65536, 70000, 1 << 26, 1 << 31, u32::MAX];
    for size in SIZES {
        let interface = interface(size);
        for max_native in LIMITS {
            for x in axis {
                for (y, z) in [(1, 1), (0, 1), (1, 0), (2, 1), (1, 7), (65536, 1), (65535, 65537)] {
                    for counts in [[x, y, z], [z, x, y], [y, z, x]] {
                        let found = on_cpu.prepare(&interface, max_native, &counts);
                        let case = (size, max_native, counts);
                        assert_eq!(found, expected(&interface, max_native, counts), "{case:?}");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn random_counts_match_the_host(
        size in 0..SIZES.len(),
        max_native in prop_oneof![
            (0..LIMITS.len()).prop_map(|index| LIMITS[index]),
            prop::array::uniform3(1u32..100),
            any::<[u32; 3]>().prop_map(|axes| axes.map(|n| n.max(1))),
        ],
        counts in prop_oneof![
            prop::array::uniform3(0u32..100),
            prop::array::uniform3(0u32..5000),
            any::<[u32; 3]>(),
            (any::<u32>(), 0u32..4, 0u32..4).prop_map(|(x, y, z)| [x, y, z]),
        ],
        before in 0usize..4,
    ) {
        thread_local!(static ON_CPU: OnCpu = OnCpu::new());
        let interface = interface(SIZES[size]);
        let mut words = vec![u32::MAX; before];
        words.extend(counts);
        let found = ON_CPU.with(|on_cpu| on_cpu.prepare(&interface, max_native, &words));
        prop_assert_eq!(found, expected(&interface, max_native, counts));
    }
}

#[test]
fn indirect_launches_release_the_device() {
    let (gpu, _) = observed(null_info());
    let source = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
                  @compute @workgroup_size(64) fn main() { x[0] = 1u; }";
    let kernel = gpu.compile(source).unwrap();
    let counts = gpu.upload(&[1u32; 3]).unwrap();
    let x = gpu.alloc::<u32>(4).unwrap();
    gpu.run(&kernel, &[&x], Launch::indirect(&counts)).unwrap();
    gpu.wait().unwrap();
    let context = Arc::downgrade(&gpu.context);
    drop((gpu, kernel, counts, x));
    assert_eq!(context.strong_count(), 0, "a leaked handle keeps the device alive");
}
