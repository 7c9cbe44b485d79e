//! Queries the properties of the CPU and its memory.

use std::fs::{self, File};
use std::io::Read;
use std::sync::OnceLock;
use std::thread;

use scry_ir::{Features, MatrixProducts};

use crate::api::info::{BackendKind, DeviceInfo, DeviceKind, Limits};

/// Memory size in bytes where the system does not report it.
const UNKNOWN_MEMORY: u64 = 4 << 30;

/// Maximum binding size in bytes: byte offsets are 32-bit, and sizes multiples of 16.
const MAX_BINDING_SIZE: u64 = u32::MAX as u64 & !15;

/// Maximum number of storage bindings and of uniform bindings, from WebGPU's default limit
/// `maxBindingsPerBindGroup`.
const MAX_BINDINGS: u32 = 1000;

/// Returns the properties of the CPU, the only device of this backend.
pub(super) fn info() -> DeviceInfo {
    let memory = total_memory().unwrap_or(UNKNOWN_MEMORY);
    DeviceInfo {
        index: 0,
        name: name(),
        backend: BackendKind::Cpu,
        kind: DeviceKind::Software,
        vendor_id: 0,
        device_id: 0,
        // The CPU has none. The disk cache needs them, but this backend does not use it.
        uuid: None,
        driver_uuid: None,
        pci: None,
        driver: concat!("scry-cpu ", env!("CARGO_PKG_VERSION")).to_owned(),
        api_version: env!("CARGO_PKG_VERSION").to_owned(),
        compute_capability: None,
        multiprocessors: None,
        shared_memory: None,
        peers: Vec::new(),
        memory,
        memory_budget: available_memory(),
        subgroup_size: scry_cpu::SUBGROUP_SIZE,
        binding_alignment: 16,
        features: Features::all(),
        matrix_products: MatrixProducts::all(),
        limits: limits(memory),
        workarounds: Vec::new(),
    }
}

fn limits(memory: u64) -> Limits {
    let max_buffer_size = memory.min(isize::MAX as u64);
    Limits {
        max_buffer_size,
        max_storage_binding_size: max_buffer_size.min(MAX_BINDING_SIZE),
        max_uniform_binding_size: max_buffer_size.min(MAX_BINDING_SIZE),
        max_storage_bindings: MAX_BINDINGS,
        max_uniform_bindings: MAX_BINDINGS,
        max_workgroup_size: [1024; 3],
        max_workgroup_invocations: 1024,
        max_workgroup_memory: 64 << 10,
        max_immediates: 256,
        max_native_workgroups: [u32::MAX; 3],
    }
}

/// Returns the number of threads that run kernels: the CPUs that the process may use.
pub(super) fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns a name such as `AMD EPYC 9654 96-Core Processor, 8 threads`.
fn name() -> String {
    static MODEL: OnceLock<String> = OnceLock::new();
    let generic = || format!("{} processor", std::env::consts::ARCH);
    let model = MODEL.get_or_init(|| model().unwrap_or_else(generic));
    match threads() {
        1 => format!("{model}, 1 thread"),
        several => format!("{model}, {several} threads"),
    }
}

/// Returns the CPU's brand name on Linux.
fn model() -> Option<String> {
    let file = File::open("/proc/cpuinfo").ok()?;
    // The first CPU is enough; listing hundreds is slow.
    let mut start = Vec::new();
    (&file).take(8 << 10).read_to_end(&mut start).ok()?;
    String::from_utf8_lossy(&start).lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let (key, value) = (key.trim(), value.trim());
        (key == "model name" && !value.is_empty()).then(|| value.to_owned())
    })
}

/// Returns the machine's memory in bytes, or the limit of the control group that is mounted as the
/// root, as in a container, if it is lower. `None` if the system reports neither.
fn total_memory() -> Option<u64> {
    static TOTAL: OnceLock<Option<u64>> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        let limit_files =
            ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
        let limits = limit_files.into_iter().filter_map(read_number);
        limits.chain(meminfo("MemTotal")).min()
    })
}

/// Returns the memory in bytes that can be allocated now without swapping; `None` if the system
/// does not report it.
pub(super) fn available_memory() -> Option<u64> {
    // The limit and the usage of the control group, in versions 2 and 1.
    let group_files = [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ];
    let free = |(limit, usage)| Some(read_number(limit)?.saturating_sub(read_number(usage)?));
    group_files.into_iter().filter_map(free).chain(meminfo("MemAvailable")).min()
}

/// Reads a file that contains a number and nothing else.
fn read_number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the value of an entry in Linux's `/proc/meminfo`, in bytes.
fn meminfo(entry: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(entry)?.strip_prefix(':'))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_describes_the_cpu() {
        let info = info();
        assert!(info.name.ends_with("thread") || info.name.ends_with("threads"), "{}", info.name);
        assert!(info.memory >= 64 << 20 && info.limits.max_buffer_size <= info.memory);
        assert!(info.driver.starts_with("scry-cpu "));
        assert_eq!(info.features, Features::all());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_reports_memory() {
        let (total, available) = (total_memory().unwrap(), available_memory().unwrap());
        assert!(available <= total, "{available} of {total}");
        assert_eq!(meminfo("MemTotal").unwrap() % 1024, 0);
        assert_eq!(meminfo("NoSuchEntry"), None);
        assert_eq!(read_number("/proc/version"), None);
    }
}
