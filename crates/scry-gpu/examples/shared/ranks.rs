//! Runs a program as the ranks of a group: this process as one of them, or threads as all.

use std::env;

use scry_gpu::{BackendKind, Device, DeviceGroup, DeviceKind, Membership, Result};

/// Runs `program` as the rank that the environment states. Without one, forms a group of the GPUs
/// present, or of two CPU devices, and runs it for each.
pub fn run(program: impl Fn(&DeviceGroup) -> Result<()> + Sync) -> Result<()> {
    let variables = ["SCRY_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
    if !variables.iter().any(|variable| env::var_os(variable).is_some()) {
        return DeviceGroup::on_each(&devices()?, program).map(|_| ());
    }
    let membership = Membership::from_env()?;
    let gpu = open(membership.local_rank())?;
    program(&membership.join(&gpu)?)
}

/// Opens the GPU of a rank of this host; without CUDA, the processor.
fn open(local_rank: usize) -> Result<Device> {
    match Device::list().iter().any(|info| info.backend == BackendKind::Cuda) {
        true => Device::open(&format!("cuda:{local_rank}")),
        false => Device::open("cpu"),
    }
}

/// Opens the GPUs of the best backend; without GPUs, two CPU devices.
fn devices() -> Result<Vec<Device>> {
    let mut gpus = Device::list();
    gpus.retain(|info| info.kind != DeviceKind::Software);
    let Some(backend) = gpus.first().map(|info| info.backend) else {
        return Ok(vec![Device::open("cpu")?, Device::open("cpu")?]);
    };
    gpus.retain(|info| info.backend == backend);
    gpus.iter().map(|info| Device::open(&format!("{}:{}", info.backend, info.index))).collect()
}
