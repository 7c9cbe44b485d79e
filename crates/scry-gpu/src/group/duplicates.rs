//! Which ranks use the same GPU.

use siphasher::sip128::SipHasher24;

use super::fault::Fault;
use crate::api::error::GroupFault;
use crate::api::info::{DeviceInfo, DeviceKind, PciAddress};

/// The identity of a rank's GPU, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Gpu {
    /// Compared on one host only: some Vulkan drivers derive it from the model of the GPU and its
    /// address, so that equal hosts have equal ones.
    pub uuid: Option<[u8; 16]>,
    /// Compared within one process only: hosts have the same addresses.
    pub pci: Option<PciAddress>,
    /// The identity of its host.
    pub host: Option<[u8; 16]>,
}

/// The identity of the host of ranks that are in one process.
pub(super) const THIS_HOST: [u8; 16] = [0; 16];

impl Gpu {
    /// Returns the identity of a device. That of software is unknown: each device of a process has
    /// buffers of its own, and any number of ranks may share the CPU.
    pub(super) fn of(info: &DeviceInfo, host: Option<[u8; 16]>) -> Self {
        match info.kind {
            DeviceKind::Software => Self::default(),
            _ => Self { uuid: info.uuid, pci: info.pci, host },
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let is_same_host = self.host.is_some() && self.host == other.host;
        (is_same_host && self.uuid.is_some() && self.uuid == other.uuid)
            || (self.pci.is_some() && self.pci == other.pci)
    }
}

/// Returns the identity of this host, the same in all its processes; `None` if it is not known.
pub(super) fn host() -> Option<[u8; 16]> {
    let name = if cfg!(target_os = "linux") {
        // A new one at each start of the system, the same in containers.
        std::fs::read("/proc/sys/kernel/random/boot_id").ok()
    } else {
        std::env::var("COMPUTERNAME").ok().map(String::into_bytes)
    };
    let name = name.filter(|name| !name.is_empty())?;
    Some(SipHasher24::new_with_key(b"scry group host!").hash(&name).as_bytes())
}

/// Returns the fault of a group in which two ranks have the same GPU. `gpus` are in order of rank.
pub(super) fn check(gpus: &[Gpu]) -> Result<(), Fault> {
    for (rank, gpu) in gpus.iter().enumerate() {
        if let Some(first) = gpus[..rank].iter().position(|other| other.is_same(gpu)) {
            return Err(fault(first, rank, "use the same GPU"));
        }
    }
    Ok(())
}

/// Returns the fault of two ranks that `share` a device.
pub(super) fn fault(first: usize, second: usize, share: &str) -> Fault {
    Fault::new(
        GroupFault::Mismatch,
        [first, second],
        format!("ranks {first} and {second} {share}"),
        "open another GPU on each rank, such as `cuda:N` for local rank N (Membership::local_rank)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(uuid: Option<u8>, bus: Option<u32>) -> Gpu {
        let pci = bus.map(|bus| PciAddress { domain: 0, bus, device: 0, function: 0 });
        Gpu { uuid: uuid.map(|byte| [byte; 16]), pci, host: Some(THIS_HOST) }
    }

    /// Equal UUIDs on different hosts, or on hosts of which one is not known.
    #[test]
    fn uuids_are_compared_on_one_host() {
        let on = |host: Option<u8>| Gpu { host: host.map(|it| [it; 16]), ..gpu(Some(1), None) };
        assert_eq!(check(&[on(Some(1)), on(Some(2)), on(None), on(None)]), Ok(()));
        assert_eq!(check(&[on(Some(1)), on(Some(2)), on(Some(1))]).unwrap_err().ranks, [0, 2]);
    }

    #[test]
    fn a_host_has_one_identity() {
        assert_eq!(host(), host());
        assert!(host().is_some() || cfg!(not(target_os = "linux")));
    }

    #[test]
    fn equal_gpus_are_found() {
        let different = [gpu(Some(1), Some(1)), gpu(Some(2), Some(2)), gpu(None, None)];
        assert_eq!(check(&different), Ok(()));
        assert_eq!(check(&[gpu(None, None), gpu(None, None)]), Ok(()));
        for other in [gpu(Some(2), None), gpu(None, Some(1)), gpu(Some(9), Some(2))] {
            let fault = check(&[&different[..], &[other]].concat()).unwrap_err();
            assert_eq!(fault.ranks[1], 3);
            assert!(fault.problem.ends_with("and 3 use the same GPU"), "{}", fault.problem);
        }
    }
}
