//! Which ranks use the same GPU.

use super::fault::Fault;
use crate::api::error::GroupFault;
use crate::api::info::{DeviceInfo, DeviceKind, PciAddress};

/// The identity of a rank's GPU, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Gpu {
    pub uuid: Option<[u8; 16]>,
    /// Compared within one process only: hosts have the same addresses.
    pub pci: Option<PciAddress>,
}

impl Gpu {
    /// Returns the identity of a device. That of software is unknown: each device of a process has
    /// buffers of its own, and any number of ranks may share the processor.
    pub(super) fn of(info: &DeviceInfo) -> Self {
        match info.kind {
            DeviceKind::Software => Self::default(),
            _ => Self { uuid: info.uuid, pci: info.pci },
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.uuid.is_some() && self.uuid == other.uuid)
            || (self.pci.is_some() && self.pci == other.pci)
    }
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
        Gpu { uuid: uuid.map(|byte| [byte; 16]), pci }
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
