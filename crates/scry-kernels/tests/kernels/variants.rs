//! Tests of the choice of variants.

use scry_gpu::{BackendKind, DeviceKind};
use scry_kernels::{
    KernelOptions, Kernels, Metric, OperationInfo, Pool, Pool2d, Reduction, ScanKind, VariantInfo,
    operations,
};
use scry_test_support::{golden, on_each_device, root, succeed};

use crate::support::{poisoned, random};

#[test]
fn every_operation_has_a_portable_reference() {
    for operation in operations() {
        let last = operation.variants.last().expect("there is a variant");
        assert_eq!((last.name, last.needs), ("wgsl", ""), "{}", operation.name);
        let mut names: Vec<_> = operation.variants.iter().map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), operation.variants.len(), "{}", operation.name);
    }
}

/// The file with the table of operations, and the lines around the table.
const README: &str = "crates/scry-kernels/README.md";
const TABLE_START: &str =
    "<!-- operations: SCRY_BLESS=1 cargo test -p scry-kernels --test kernels -->\n";
const TABLE_END: &str = "<!-- end of operations -->\n";

/// The guide, whose table of special values has a row for every operation.
const GUIDE: &str = "crates/scry-kernels/src/guide/using_operations.md";

#[test]
fn guide_has_rules_for_all_operations() {
    let guide = std::fs::read_to_string(root().join(GUIDE)).expect("the guide exists");
    let (_, rules) = guide.split_once("# Special values and indices").expect("it has the table");
    let (rules, _) = rules.split_once("\n# ").expect("a chapter follows");
    let rows = rules.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    let listed: Vec<_> = rows.flat_map(|(names, _)| names.split("`, `")).collect();
    let listed: Vec<_> = listed.iter().map(|name| name.trim_end_matches('`')).collect();
    let missing: Vec<_> =
        operations().iter().map(|it| it.name).filter(|name| !listed.contains(name)).collect();
    assert!(missing.is_empty(), "the guide has no rules for {missing:?}");
    assert_eq!(listed.len(), operations().len(), "the guide has rules for other operations");
}

fn describe_variant(variant: &VariantInfo) -> String {
    let order = (!variant.deterministic).then_some("not deterministic");
    let notes = [Some(variant.needs), order].into_iter().flatten().filter(|it| !it.is_empty());
    match notes.collect::<Vec<_>>().join("; ") {
        notes if notes.is_empty() => format!("`{}`", variant.name),
        notes => format!("`{}` ({notes})", variant.name),
    }
}

fn table_row(operation: &OperationInfo) -> String {
    let OperationInfo { name, summary, types, variants, .. } = operation;
    let variants: Vec<_> = variants.iter().map(describe_variant).collect();
    format!("| `{name}` | {summary} | {types} | {} |\n", variants.join(", "))
}

#[test]
fn readme_lists_all_operations() {
    let path = root().join(README);
    let readme = std::fs::read_to_string(&path).expect("the README exists");
    let (before, rest) = readme.split_once(TABLE_START).expect("the table has a start");
    let (_, after) = rest.split_once(TABLE_END).expect("the table has an end");
    let rows: String = operations().iter().map(table_row).collect();
    let head = "| function | computes | element types | variants |\n| --- | --- | --- | --- |\n";
    let text = format!("{before}{TABLE_START}\n{head}{rows}\n{TABLE_END}{after}");
    golden::compare_file(&path, &text);
}

#[test]
fn explanation_names_variant_and_obstacles() {
    let gpu = succeed(scry_gpu::Device::open("cpu"));
    let (x, y) = (poisoned::<f32>(&gpu, 8), poisoned::<f32>(&gpu, 8));
    let op = succeed(succeed(Kernels::new(&gpu)).softmax(&x, &y, 2, 4));
    assert_eq!(
        op.explain().to_string(),
        "Kernels::softmax (rows=2, columns=4): variant `wgsl`, because it is the first one that \
         suits the sizes and the device\n  `ptx`: needs CUDA\n  `wgsl-subgroups`: could be used"
    );
    assert_eq!(op.kernel_names(), ["softmax"]);
}

/// Plain kernels suit devices that run kernels in software, and no others.
#[test]
fn plain_kernels_suit_software_devices() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let x = succeed(gpu.upload(&random::<f32>(1, 64 * 100)));
        let words = succeed(gpu.upload(&[1u32; 6400]));
        let (y, counts) = (poisoned::<f32>(gpu, 6400), succeed(gpu.alloc::<u32>(6400)));
        let ops = [
            kernels.reduce(Reduction::Min, &x, &y),
            kernels.reduce_rows(Reduction::Max, &x, &y, 64, 100),
            kernels.reduce_columns(Reduction::Mean, &x, &y, 100, 64),
            kernels.histogram(&words, &counts),
            kernels.top_k(&x, &y, &counts, 64, 100, 3),
            kernels.pairwise_distances(Metric::L1, &x, &x, &y, 50, 60, 4),
        ];
        let is_software = gpu.info().kind == DeviceKind::Software;
        for op in ops.into_iter().map(succeed) {
            let is_plain = op.explain().variant() == "wgsl-plain";
            assert_eq!(is_plain, is_software, "{}", op.explain());
        }
        // The CPU device has functions of the host.
        let is_cpu = gpu.backend_kind() == BackendKind::Cpu;
        let ops = [
            kernels.scan(ScanKind::Inclusive, &words, &counts),
            kernels.compact(&x, &words, &y, &counts),
            kernels.reduce_rows(Reduction::ArgMax, &x, &counts, 64, 100),
            kernels.reduce(Reduction::Sum, &x, &y),
            kernels.pool2d(Pool::Max, &x, &y, &Pool2d::new(1, [64, 100], [2, 2])),
            kernels.gemv(&x, &y, &succeed(gpu.alloc::<f32>(64)), 64, 100),
        ];
        for op in ops.into_iter().map(succeed) {
            let variant = op.explain().variant().to_owned();
            assert_eq!(variant == "cpu", is_cpu, "{}", op.explain());
            assert_eq!(variant == "wgsl-plain", is_software && !is_cpu, "{}", op.explain());
        }
        // They would add floats one by one.
        let scanned = succeed(kernels.scan(ScanKind::Inclusive, &x, &y));
        assert_ne!(scanned.explain().variant(), "wgsl-plain");
    });
}

#[test]
fn unknown_and_unsupported_variants_are_rejected() {
    let gpu = succeed(scry_gpu::Device::open("cpu"));
    let (x, y) = (poisoned::<f32>(&gpu, 8), poisoned::<f32>(&gpu, 8));
    let error = |variant: &str| {
        let options = KernelOptions { variant: Some(variant.to_owned()), ..Default::default() };
        let kernels = succeed(Kernels::with_options(&gpu, options));
        kernels.softmax(&x, &y, 2, 4).unwrap_err().to_string()
    };
    assert_eq!(
        error("fast"),
        "Kernels::softmax: the option `variant` is `fast`, which this function does not have; \
         help: use one of ptx, wgsl-subgroups, wgsl, or none"
    );
    let text = error("ptx");
    let start = "Kernels::softmax (rows=2, columns=4) needs support for its variant `ptx`, which \
                 the options request, but ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains(" has none: it needs CUDA; help: leave the choice"), "{text}");
}

#[test]
fn tuned_variant_matches_and_is_kept() {
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let x = succeed(gpu.upload(&random::<f32>(1, 300 * 70)));
        let y = poisoned::<f32>(gpu, 300 * 70);
        let tuned = succeed(succeed(kernels.softmax(&x, &y, 300, 70)).tune());
        assert_eq!(tuned.explain().reason(), "it was the fastest when tuned");
        assert!(succeed(y.download()).iter().all(|y| y.is_nan()), "the output was written");
        let again = succeed(kernels.softmax(&x, &y, 300, 70));
        assert_eq!(again.explain(), tuned.explain());
        let other = succeed(kernels.softmax(&x, &y, 30, 70));
        assert_ne!(other.explain().reason(), tuned.explain().reason());
    });
}
