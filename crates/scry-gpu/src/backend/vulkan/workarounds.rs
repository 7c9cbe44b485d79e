//! Known defects of Vulkan drivers, and their workarounds.
//!
//! Each row of the table describes a defect: the driver, the tested versions, the reason for the
//! workaround, and the test that fails without it. A driver without a row is assumed to conform to
//! the specification. A row applies to all versions of its driver up to the first one that is known
//! to be fixed: untested versions count as affected.

use ash::vk::DriverId;
use scry_ir::SpirvWorkarounds;

use crate::api::info::Workaround;

/// NVIDIA's proprietary driver.
const NVIDIA: DriverId = DriverId::NVIDIA_PROPRIETARY;
/// Mesa's software driver lavapipe, which is based on llvmpipe.
const LAVAPIPE: DriverId = DriverId::MESA_LLVMPIPE;

/// Google's software driver SwiftShader, which is part of Chromium.
const SWIFTSHADER: DriverId = DriverId::GOOGLE_SWIFTSHADER;

/// The workaround for a defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fix {
    /// Write the SPIR-V differently.
    Spirv(SpirvWorkarounds),
    /// Kernels whose loops may be long report it if the driver ended them early; the launch then
    /// fails.
    ReportAbortedLoops,
    /// Reject kernels whose control flow nests more deeply than the driver has execution masks.
    RejectDeepNesting,
    /// Reuse an opened device instead of destroying it.
    ReuseDevices,
    /// Keep the driver's libraries loaded until the process exits.
    PinLibraries,
}

/// A row of the table: a defect of a driver.
pub(super) struct Row {
    fix: Fix,
    driver: DriverId,
    /// The first version without the defect, if known.
    fixed_in: Option<Version>,
    /// The tested versions, all of which have the defect.
    tested_versions: &'static str,
    name: &'static str,
    reason: &'static str,
    /// Source file, from the repository's root, and name of the test that fails without the
    /// workaround.
    #[cfg_attr(not(test), expect(dead_code, reason = "for those who read the table"))]
    test: (&'static str, &'static str),
}

/// Version of a driver, from `driverInfo`. `VkPhysicalDeviceProperties::driverVersion` cannot be
/// compared: each driver encodes it differently, and lavapipe 22.3 always reports 1.
type Version = [u32; 3];

const REGRESSIONS: &str = "crates/scry-gpu/tests/random/regressions.rs";

const ROWS: [Row; 13] = [
    Row {
        fix: Fix::ReportAbortedLoops,
        driver: LAVAPIPE,
        fixed_in: None,
        tested_versions: "22.3.6",
        name: "report-aborted-loops",
        reason: "it ends all loops of an invocation after 65535 iterations in total, counted for \
                 all invocations of a vector, and continues after them",
        test: ("crates/scry-conformance/src/cases/limits.rs", "long_loops_finish_or_fail"),
    },
    Row {
        fix: Fix::RejectDeepNesting,
        driver: LAVAPIPE,
        fixed_in: None,
        tested_versions: "22.3.6",
        name: "reject-deep-nesting",
        reason: "conditions nested more than 80 deep are ignored, so their code is executed",
        test: ("crates/scry-gpu/tests/conformance/limits.rs", "deep_nesting_works_or_is_rejected"),
    },
    Row {
        fix: Fix::Spirv(SpirvWorkarounds::HIDE_LOOP_BOUNDS),
        driver: LAVAPIPE,
        fixed_in: None,
        tested_versions: "22.3.6",
        name: "hide-loop-bounds",
        reason: "a loop with two exits ends too early if its counter, start and bound being \
                 constants, reaches the bound only after it has wrapped around",
        test: (REGRESSIONS, "counters_may_wrap_to_a_constant_bound"),
    },
    Row {
        fix: Fix::Spirv(SpirvWorkarounds::EXPAND_MIX),
        driver: NVIDIA,
        fixed_in: None,
        tested_versions: "580",
        name: "expand-mix",
        reason: "FMix is computed as a + c * (b - a), which is less accurate than WGSL allows",
        test: ("crates/scry-conformance/src/cases/accuracy/mod.rs", "interpolation"),
    },
    Row {
        fix: Fix::Spirv(SpirvWorkarounds::WORKGROUP_BOOL_AS_U32),
        driver: NVIDIA,
        fixed_in: None,
        tested_versions: "580",
        name: "workgroup-bool-as-u32",
        reason: "stores to an OpTypeBool in workgroup memory are not visible to other invocations",
        test: ("crates/scry-conformance/src/cases/memory_types.rs", "bools_in_workgroup_memory"),
    },
    Row {
        fix: Fix::Spirv(SpirvWorkarounds::STORE_INITIAL_VECTORS),
        driver: NVIDIA,
        fixed_in: None,
        tested_versions: "580",
        name: "store-initial-vectors",
        reason: "a constant stored to one component of an initialised vector is visible to loads \
                 before the store, if the index is dynamic",
        test: (REGRESSIONS, "loads_precede_component_stores"),
    },
    Row {
        fix: Fix::Spirv(SpirvWorkarounds::SPLIT_VECTOR_DIVISIONS),
        driver: NVIDIA,
        fixed_in: None,
        tested_versions: "580",
        name: "split-vector-divisions",
        reason: "components after the first of a splat divided by a constant are undefined, and \
                 stores of them are dropped",
        test: (REGRESSIONS, "quotient_components_are_all_computed"),
    },
    Row {
        fix: Fix::Spirv(SpirvWorkarounds::EXPAND_SIGNS),
        driver: NVIDIA,
        fixed_in: None,
        tested_versions: "580",
        name: "expand-signs",
        reason: "negations, absolute values and signs of integers are assumed not to overflow, \
                 the minimum of an absolute value ignores that it is one, 16-bit bounds are \
                 wrong, and pipeline creation fails for some kernels with signs",
        test: (REGRESSIONS, "negating_int_min_wraps"),
    },
    Row {
        fix: Fix::Spirv(SpirvWorkarounds::EXPAND_BIT_FIELDS),
        driver: NVIDIA,
        fixed_in: None,
        tested_versions: "580",
        name: "expand-bit-fields",
        reason: "OpBitFieldUExtract and similar instructions return wrong bits for uniform words",
        test: (REGRESSIONS, "bit_fields_use_their_offset"),
    },
    Row {
        fix: Fix::Spirv(SpirvWorkarounds::EXPAND_LOOP_COMPARISONS),
        driver: NVIDIA,
        fixed_in: None,
        tested_versions: "580",
        name: "expand-loop-comparisons",
        reason: "a loop beside a private array ends after one iteration if its unsigned counter \
                 starts at its bound, or at a sum with it",
        test: (REGRESSIONS, "loops_from_their_bound_wrap_around"),
    },
    Row {
        fix: Fix::Spirv(SpirvWorkarounds::EXPAND_TANH),
        driver: SWIFTSHADER,
        fixed_in: None,
        tested_versions: "5.0.0",
        name: "expand-tanh",
        reason: "Tanh of a number whose exponential overflows is NaN",
        test: ("crates/scry-conformance/src/cases/accuracy/mod.rs", "hyperbolic_functions"),
    },
    Row {
        fix: Fix::ReuseDevices,
        driver: NVIDIA,
        fixed_in: None,
        tested_versions: "580",
        name: "reuse-devices",
        reason: "vkDestroyDevice deadlocks if a thread that used Vulkan exits meanwhile",
        test: (
            "crates/scry-gpu/src/backend/vulkan/tests/submissions.rs",
            "devices_close_while_threads_exit",
        ),
    },
    Row {
        fix: Fix::PinLibraries,
        driver: NVIDIA,
        fixed_in: None,
        tested_versions: "580",
        name: "pin-libraries",
        reason: "the driver's threads outlive its libraries, and crash when those are unloaded",
        test: ("crates/scry-gpu/src/lifecycle/pinned_libraries.rs", "pinned_libraries_stay_loaded"),
    },
];

/// The rows that match a driver.
#[derive(Clone, Default)]
pub(super) struct Workarounds(Vec<&'static Row>);

impl Workarounds {
    /// Returns the rows for a driver, by `VkDriverId` and `driverInfo`.
    pub(super) fn matching(driver: DriverId, info: &str) -> Self {
        Self::among(&ROWS, driver, info)
    }

    fn among(rows: &'static [Row], driver: DriverId, info: &str) -> Self {
        let version = version(info);
        let applies = |row: &&Row| match (row.fixed_in, version) {
            _ if row.driver != driver => false,
            (Some(fixed), Some(version)) => version < fixed,
            _ => true,
        };
        Self(rows.iter().filter(applies).collect())
    }

    /// Returns whether a workaround is needed.
    pub(super) fn has(&self, fix: Fix) -> bool {
        self.0.iter().any(|row| row.fix == fix)
    }

    /// Returns all SPIR-V rewrites that are needed.
    pub(super) fn spirv(&self) -> SpirvWorkarounds {
        let rewrites = self.0.iter().filter_map(|row| match row.fix {
            Fix::Spirv(rewrite) => Some(rewrite),
            _ => None,
        });
        rewrites.fold(SpirvWorkarounds::empty(), |all, rewrite| all | rewrite)
    }

    /// Returns the workarounds for `DeviceInfo`.
    pub(super) fn to_info(&self) -> Vec<Workaround> {
        let workarounds = self.0.iter().map(|row| {
            let Row { name, reason, tested_versions, .. } = **row;
            Workaround { name, reason, tested_versions }
        });
        workarounds.collect()
    }
}

/// Parses the first version number of a text such as `Mesa 22.3.6 (LLVM 15.0.6)` or `580.65.06`.
fn version(info: &str) -> Option<Version> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let number = info.split(|c| !is_part(c)).find(|word| word.contains(|c: char| c != '.'))?;
    let mut version = [0; 3];
    for (part, text) in version.iter_mut().zip(number.split('.')) {
        *part = text.parse().ok()?;
    }
    Some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_versions_are_parsed() {
        assert_eq!(version("Mesa 22.3.6 (LLVM 15.0.6)"), Some([22, 3, 6]));
        assert_eq!(version("580.65.06"), Some([580, 65, 6]));
        assert_eq!(version("Mesa 25.1-devel (git-0a1b)"), Some([25, 1, 0]));
        assert_eq!(version("an unnumbered build"), None);
    }

    #[test]
    fn workarounds_end_with_the_fixed_version() {
        const FIXED: Row = Row { fixed_in: Some([23, 1, 0]), ..ROWS[0] };
        static FIXED_ROWS: [Row; 1] = [FIXED];
        let matches = |driver, info| Workarounds::among(&FIXED_ROWS, driver, info).0.len();
        assert_eq!(matches(LAVAPIPE, "Mesa 22.3.6 (LLVM 15.0.6)"), 1);
        assert_eq!(matches(LAVAPIPE, "Mesa 23.0.9"), 1);
        assert_eq!(matches(LAVAPIPE, "Mesa 23.1.0"), 0);
        assert_eq!(matches(LAVAPIPE, "24.0"), 0);
        assert_eq!(matches(LAVAPIPE, "no version"), 1, "unknown versions count as affected");
        assert_eq!(matches(NVIDIA, "22.3.6"), 0);
        assert_eq!(
            Workarounds::matching(LAVAPIPE, "Mesa 99.0.0").0.len(),
            3,
            "no defect of lavapipe is known to be fixed"
        );
    }

    #[test]
    fn drivers_without_rows_have_no_defects() {
        for driver in [0, 1, 3, 5, 12, 14].map(DriverId::from_raw) {
            let found = Workarounds::matching(driver, "580.65.06");
            assert!(found.to_info().is_empty() && found.spirv().is_empty());
        }
    }

    #[test]
    fn spirv_is_rewritten_for_the_driver() {
        let nvidia = Workarounds::matching(NVIDIA, "580.65.06").spirv();
        let swiftshader = Workarounds::matching(SWIFTSHADER, "SwiftShader driver-5.0.0").spirv();
        let others = SpirvWorkarounds::EXPAND_TANH | SpirvWorkarounds::HIDE_LOOP_BOUNDS;
        assert_eq!(nvidia, SpirvWorkarounds::all() - others);
        assert_eq!(swiftshader, SpirvWorkarounds::EXPAND_TANH);
        let lavapipe = Workarounds::matching(LAVAPIPE, "Mesa 22.3.6 (LLVM 15.0.6)");
        assert_eq!(lavapipe.spirv(), SpirvWorkarounds::HIDE_LOOP_BOUNDS);
        assert!(lavapipe.has(Fix::ReportAbortedLoops) && !lavapipe.has(Fix::ReuseDevices));
    }

    #[test]
    fn every_row_names_a_test() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for Row { name, test: (file, test), .. } in &ROWS {
            let source = std::fs::read_to_string(root.join(file)).unwrap();
            assert!(source.contains(&format!("fn {test}(")), "{name}: {file} has no test `{test}`");
        }
    }
}
