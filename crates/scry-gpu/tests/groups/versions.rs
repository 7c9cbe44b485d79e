//! Ranks with different versions of NCCL, which cannot communicate: a stub of the library that
//! reports a version, built by the system's C compiler, and devices that execute nothing and state
//! that they are CUDA devices.

use std::path::{Path, PathBuf};
use std::process::Command;

use scry_gpu::testing::{null_info, observed};
use scry_gpu::{BackendKind, DeviceGroup, GroupFault, GroupTransport, Membership, Result};
use scry_test_support::succeed;

use crate::support::{Ended, free_address, group_error, run_if_child, start_processes};

/// Every function that is needed to open the library; all but the first fail with
/// `ncclInternalError`.
const SOURCE: &str = "
int ncclGetVersion(int *version) { *version = VERSION; return 0; }
#define STUB(name) int name(void) { return 3; }
STUB(ncclGetUniqueId) STUB(ncclCommInitRankConfig) STUB(ncclCommAbort) STUB(ncclCommDestroy)
STUB(ncclCommGetAsyncError) STUB(ncclGroupStart) STUB(ncclGroupEnd) STUB(ncclAllReduce)
STUB(ncclReduceScatter) STUB(ncclAllGather) STUB(ncclBroadcast) STUB(ncclReduce) STUB(ncclSend)
STUB(ncclRecv)
";

/// Builds a library that reports a version; an error without a compiler.
fn stub(folder: &Path, version: u32) -> std::result::Result<PathBuf, String> {
    let (source, library) = (folder.join("nccl.c"), folder.join(format!("libnccl-{version}.so")));
    std::fs::write(&source, SOURCE).unwrap();
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg(format!("-DVERSION={version}"))
        .output()
        .map_err(|error| format!("`cc` cannot be started: {error}"))?;
    match output.status.success() {
        true => Ok(library),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Joins with a device that states that it is another GPU of CUDA on each rank.
fn join() -> Result<DeviceGroup> {
    let membership = succeed(Membership::from_env());
    let mut info = null_info();
    info.backend = BackendKind::Cuda;
    info.uuid = Some([1 + membership.rank() as u8; 16]);
    membership.join(&observed(info).0)
}

/// Runs a test in a process for each version; `setting` is `SCRY_GROUP`. `None` without a compiler.
fn run(name: &str, versions: &[u32], setting: &str) -> Option<Vec<Ended>> {
    if !cfg!(all(feature = "cuda", target_os = "linux")) {
        eprintln!("skipped: {name}: a build without CUDA, or another system than Linux");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let built = versions.iter().map(|version| stub(folder.path(), *version));
    let libraries = match built.collect::<std::result::Result<Vec<_>, _>>() {
        Ok(libraries) => libraries,
        Err(problem) => {
            eprintln!("skipped: {name}: no C compiler builds a shared library: {problem}");
            return None;
        }
    };
    let own = std::env::current_exe().unwrap();
    let command = |rank: usize| {
        let mut command = Command::new(&own);
        command.env("SCRY_NCCL", &libraries[rank]).env("SCRY_GROUP", setting);
        command
    };
    Some(start_processes(name, versions.len(), &free_address(), command, |_| ()))
}

#[test]
fn different_versions_use_host_memory() {
    let name = "versions::different_versions_use_host_memory";
    run_if_child(name, || {
        let group = succeed(join());
        assert_eq!(group.transport(), GroupTransport::HostMemory);
        let expected = match group.world_size() {
            3 => "rank 0 has NCCL 2.28.3, and rank 1 2.27.5",
            _ => "rank 1 has no usable NCCL: `scry doctor` says why",
        };
        assert_eq!(group.transport_reason(), expected);
        succeed(group.barrier());
    });
    // Versions older than 2.19.1 are not usable.
    for versions in [&[22_803, 22_705, 22_803][..], &[22_803, 21_805]] {
        let Some(ranks) = run(name, versions, "auto") else { return };
        ranks.iter().for_each(Ended::assert_done);
    }
}

#[test]
fn different_versions_are_named() {
    let name = "versions::different_versions_are_named";
    run_if_child(name, || {
        let error = group_error(join());
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Mismatch, &[2][..]), "{error}");
        let problem = "SCRY_GROUP is `nccl`, but rank 0 has NCCL 2.28.3, and rank 2 2.30.1";
        assert_eq!(error.problem(), problem);
        assert!(error.help().starts_with("install the same version of NCCL"), "{error}");
    });
    let Some(ranks) = run(name, &[22_803, 22_803, 23_001], "nccl") else { return };
    ranks.iter().for_each(Ended::assert_done);
}
