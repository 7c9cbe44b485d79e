//! Compares the resources of assembled kernels with golden files: registers, shared memory, spills.

use std::borrow::Borrow;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use scry_ptx::Target;
use scry_ptx::kernels::{Plan, PtxKernel};

/// Compares the assembler's report on the kernels of some plans with a resource snapshot, if the
/// environment variable `SCRY_PTXAS` names the assembler; otherwise does nothing, and does not even
/// iterate over the plans. `SCRY_BLESS=1` replaces the snapshot. No kernel may spill registers or
/// use local memory.
pub fn compare(file: &str, plans: impl IntoIterator<Item: Borrow<Plan>>) {
    let Some(assembler) = std::env::var_os("SCRY_PTXAS") else {
        eprintln!("skipped: SCRY_PTXAS names no assembler");
        return;
    };
    let plans: Vec<_> = plans.into_iter().collect();
    let steps = plans.iter().flat_map(|plan| &plan.borrow().steps);
    let mut kernels: Vec<&dyn PtxKernel> = steps.map(|step| &*step.kernel).collect();
    kernels.sort_by_key(|kernel| kernel.name());
    kernels.dedup_by_key(|kernel| kernel.name());
    let mut text = String::from("kernel, target, registers, shared bytes, spilled bytes\n");
    let entries = entries(&kernels, Path::new(&assembler));
    entries.iter().for_each(|entry| text.extend([entry, "\n"]));
    let spills: Vec<_> = entries.iter().filter(|entry| !entry.ends_with(" 0")).collect();
    assert!(spills.is_empty(), "registers are spilled: {spills:#?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/out/kernels").join(file);
    if std::env::var_os("SCRY_BLESS").is_some_and(|v| v == "1") {
        let folder = path.parent().expect("the file is in a folder");
        std::fs::create_dir_all(folder).expect("the folder can be made");
        std::fs::write(&path, &text).expect("the snapshot can be written");
    }
    let blessed = std::fs::read_to_string(&path)
        .unwrap_or_else(|e| panic!("{}: {e}; SCRY_BLESS=1 writes it", path.display()));
    let change = blessed.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert_eq!(change, None, "{}: SCRY_BLESS=1 accepts the change", path.display());
    assert_eq!(blessed.lines().count(), text.lines().count(), "{}", path.display());
}

/// Returns the lines of some kernels, sorted by kernel. The kernels are assembled in parallel.
fn entries(kernels: &[&dyn PtxKernel], assembler: &Path) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let numbers = numbers.take_while(|nth| *nth < kernels.len());
        numbers.map(|nth| (nth, entry(kernels[nth], assembler))).collect::<Vec<_>>()
    };
    let workers = thread::available_parallelism().map_or(1, |count| count.get().min(16));
    let mut entries = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let results =
            workers.into_iter().map(|worker| worker.join().expect("it says why it failed"));
        results.flatten().collect::<Vec<_>>()
    });
    entries.sort_unstable();
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// Returns the line of a kernel.
fn entry(kernel: &dyn PtxKernel, assembler: &Path) -> String {
    let target = kernel.default_target();
    let report = assemble(&kernel.emit_ptx(), target, assembler);
    let number_after = |text: &str| {
        let rest = report.split(text).nth(1).unwrap_or("0");
        let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0)
    };
    let number_before = |text: &str| {
        let before = report.split(text).next().filter(|before| before.len() < report.len());
        let word = before.and_then(|before| before.split_whitespace().last());
        word.and_then(|word| word.parse::<u32>().ok()).unwrap_or(0)
    };
    assert!(!report.contains("serialized"), "{}: {report}", kernel.name());
    let shared = number_before(" bytes smem") + kernel.launch().dynamic_shared;
    let spilled = number_before(" bytes stack frame") + number_before(" bytes spill stores");
    let name = kernel.name();
    format!("{name}, {target}, {}, {shared}, {spilled}", number_after("Used"))
}

/// Returns the report of the assembler.
fn assemble(text: &str, target: Target, assembler: &Path) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("kernel.ptx");
    std::fs::write(&file, text).expect("the temporary folder can be written to");
    let output = Command::new(assembler)
        .args(["-v", &format!("-arch={target}"), "-o"])
        .arg(folder.path().join("kernel.cubin"))
        .arg(&file)
        .output()
        .expect("SCRY_PTXAS names a program");
    let report = [output.stdout, output.stderr].concat();
    let report = String::from_utf8(report).expect("the assembler writes text");
    assert!(output.status.success(), "{report}\n{text}");
    report
}
