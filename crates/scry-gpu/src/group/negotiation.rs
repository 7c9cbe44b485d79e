//! Chooses how the collectives of a group move data, from what all ranks have.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::fault::{Fault, ranks_text};
use super::host_memory::HostMemory;
use super::nccl::{self, Nccl};
use super::token::nonce;
use crate::api::device::Device;
use crate::api::dtype::DType;
use crate::api::error::{ArgumentError, GpuError, GroupFault, Result};
use crate::api::info::BackendKind;
use crate::backend;
use crate::core::collective::Seat;
use crate::core::collective::{Call, Operation};
use crate::core::driver::CommunicatorJob;

/// The environment variable that chooses the transport.
const VARIABLE: &str = "SCRY_GROUP";

/// The environment variable that makes all calls of a group be compared first.
const CHECK_VARIABLE: &str = "SCRY_GROUP_CHECK";

/// NCCL's environment variable for NVLink multicast.
const MULTICAST_VARIABLE: &str = "NCCL_NVLS_ENABLE";

const INSTALL: &str = "install the same version of NCCL for all ranks: a package of the \
                       distribution (libnccl2), the PyPI package nvidia-nccl-cu12, or that of \
                       PyTorch, with SCRY_NCCL set to the path of its libnccl.so.2; `scry doctor` \
                       shows the version";

/// The transport that a rank demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    /// NCCL where possible.
    Any,
    Host,
    Nccl,
}

/// What a rank has and demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offer {
    setting: Setting,
    is_cuda: bool,
    /// The version of NCCL, such as 22803; 0 without it.
    version: u32,
    /// Whether the user decided on NVLink multicast, or NCCL can switch it off.
    controls_multicast: bool,
    /// Whether all calls are to be compared.
    checks: bool,
    /// A random number of the process.
    process: u64,
}

/// Bytes of an encoded offer.
const OFFER_SIZE: usize = 16;

/// How a group moves data, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Nccl { reason: String, checks: bool },
    Host { reason: String },
}

/// The chosen transport, and why it was chosen.
pub(super) struct Outcome {
    /// `None` for host memory.
    pub nccl: Option<Nccl>,
    pub reason: String,
}

impl Setting {
    /// Reads the environment.
    pub(super) fn from_env(function: &str) -> Result<Self> {
        Self::parse(function, std::env::var(VARIABLE).unwrap_or_default().trim())
    }

    fn parse(function: &str, text: &str) -> Result<Self> {
        match text {
            "" | "auto" => Ok(Self::Any),
            "host" => Ok(Self::Host),
            "nccl" => Ok(Self::Nccl),
            other => Err(GpuError::Argument(ArgumentError::new(
                function,
                VARIABLE,
                format!("is `{other}`"),
                "set it to `auto`, `host` or `nccl`, or unset it",
            ))),
        }
    }
}

/// Returns a random number, the same for all ranks of a process.
fn process() -> u64 {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    let random = || nonce().iter().fold(0, |number, byte| (number << 8) ^ u64::from(*byte));
    *PROCESS.get_or_init(random)
}

/// Returns whether an environment variable is set, and not empty.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Returns whether all calls are to be compared.
fn parse_check<E>(function: &str, value: Result<&str, E>) -> Result<bool> {
    match value.unwrap_or_default().trim() {
        "" | "0" => Ok(false),
        "1" => Ok(true),
        other => Err(GpuError::Argument(ArgumentError::new(
            function,
            CHECK_VARIABLE,
            format!("is `{other}`"),
            "set it to `1` or `0`, or unset it",
        ))),
    }
}

impl Offer {
    fn of(function: &str, device: &Device, setting: Setting) -> Result<Self> {
        let is_cuda = device.info().backend == BackendKind::Cuda;
        let mut offer = Self {
            setting,
            is_cuda,
            version: 0,
            controls_multicast: is_set(MULTICAST_VARIABLE),
            checks: parse_check(function, std::env::var(CHECK_VARIABLE).as_deref())?,
            process: process(),
        };
        if !is_cuda || setting == Setting::Host {
            return Ok(offer);
        }
        match backend::nccl_version() {
            Ok((version, can_disable)) => {
                offer.version = version;
                offer.controls_multicast |= can_disable;
            }
            Err(error) => log::debug!(target: "scry::group", "{error}"),
        }
        Ok(offer)
    }

    fn encode(&self) -> [u8; OFFER_SIZE] {
        let setting = match self.setting {
            Setting::Any => 0,
            Setting::Host => 1,
            Setting::Nccl => 2,
        };
        let mut bytes = [0; OFFER_SIZE];
        bytes[0] = setting;
        bytes[1] = self.is_cuda.into();
        bytes[2] = self.controls_multicast.into();
        bytes[3] = self.checks.into();
        bytes[4..8].copy_from_slice(&self.version.to_le_bytes());
        bytes[8..].copy_from_slice(&self.process.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (flags, rest) = bytes.split_first_chunk::<4>()?;
        let (version, process) = rest.split_first_chunk::<4>()?;
        let setting = match flags[0] {
            0 => Setting::Any,
            1 => Setting::Host,
            2 => Setting::Nccl,
            _ => return None,
        };
        let [_, is_cuda, controls_multicast, checks] = flags.map(|flag| flag == 1);
        let version = u32::from_le_bytes(*version);
        let process = u64::from_le_bytes(process.try_into().ok()?);
        Some(Self { setting, is_cuda, version, controls_multicast, checks, process })
    }
}

/// Agrees with all other ranks on the transport, and prepares it. `limit` is the time limit of
/// calls.
pub(super) fn negotiate(
    function: &'static str,
    (host, device, seat): (&Arc<HostMemory>, &Device, Seat),
    setting: Setting,
    limit: &Arc<Mutex<Duration>>,
) -> Result<Outcome> {
    let time = *limit.lock().unwrap_or_else(PoisonError::into_inner);
    let exchange = |operation, count, data: Vec<u8>| {
        let call = Call { operation, dtype: DType::U8, count, on_devices: false };
        host.exchange(function, &call, device, data, time)
    };
    let own = Offer::of(function, device, setting)?;
    let all = exchange(Operation::AllGather, OFFER_SIZE, own.encode().to_vec())?;
    let offers: Option<Vec<Offer>> = all.chunks(OFFER_SIZE).map(Offer::decode).collect();
    let invalid = || Fault::protocol(0, "an invalid offer").error(seat, function);
    let offers = offers.ok_or_else(invalid)?;
    let demanded = offers.iter().any(|offer| offer.setting == Setting::Nccl);
    let decision = decide(&offers);
    let (reason, checks) = match decision.map_err(|fault| fault.error(seat, function))? {
        Decision::Host { reason } => return Ok(Outcome { nccl: None, reason }),
        Decision::Nccl { reason, checks } => (reason, checks),
    };
    let own_id = (seat.rank == 0).then(backend::nccl_unique_id);
    let sent = match &own_id {
        // All ranks learn from its zeros that there is none.
        Some(id) => id.as_ref().map_or_else(|_| vec![0; nccl::ID_SIZE], |id| id.to_vec()),
        None => Vec::new(),
    };
    let id = exchange(Operation::Broadcast { root: 0 }, nccl::ID_SIZE, sent)?;
    let id: [u8; nccl::ID_SIZE] = (*id).try_into().map_err(|_| invalid())?;
    let Seat { rank, world } = seat;
    let job = CommunicatorJob {
        id: &id,
        rank,
        world,
        shares_process: offers.iter().filter(|offer| offer.process == own.process).count() > 1,
        disable_multicast: !is_set(MULTICAST_VARIABLE),
        deadline: Instant::now() + time,
    };
    let joined = match own_id {
        Some(Err(error)) => Err(error),
        _ if id == [0; nccl::ID_SIZE] => {
            Err(Fault::lost(0, "could not start NCCL").error(seat, function))
        }
        _ => Nccl::join(device, seat, &job, (host, limit), checks),
    };
    if let Err(error) = &joined {
        log::warn!(target: "scry::group", "rank {rank} could not join its group by NCCL: {error}");
    }
    let all = exchange(Operation::AllGather, 1, vec![joined.is_ok().into()])?;
    let failed: Vec<usize> = (0..world).filter(|rank| all[*rank] != 1).collect();
    match joined {
        Ok(nccl) if failed.is_empty() => Ok(Outcome { nccl: Some(nccl), reason }),
        Err(interrupted @ GpuError::Interrupted(_)) => Err(interrupted),
        joined => {
            let detail = joined.err().map(|error| format!(": {error}")).unwrap_or_default();
            let problem = format!("NCCL failed on {}{detail}", ranks_text(&failed));
            host_or_fault(demanded, failed, problem)
                .map(|reason| Outcome { nccl: None, reason })
                .map_err(|fault| fault.error(seat, function))
        }
    }
}

/// Returns why host memory is used; a fault if a rank demands NCCL.
fn host_or_fault(demanded: bool, ranks: Vec<usize>, problem: String) -> Result<String, Fault> {
    if !demanded {
        return Ok(problem);
    }
    let problem = format!("{VARIABLE} is `nccl`, but {problem}");
    Err(Fault::new(GroupFault::Mismatch, ranks, problem, INSTALL))
}

/// Describes an obstacle, by the ranks that it is due to.
type Describe<'a> = &'a dyn Fn(&[usize]) -> String;

/// Decides from the offers of all ranks, in order of rank. All ranks decide alike.
fn decide(offers: &[Offer]) -> Result<Decision, Fault> {
    let with = |condition: &dyn Fn(&Offer) -> bool| -> Vec<usize> {
        let all = offers.iter().enumerate();
        all.filter(|(_, offer)| condition(offer)).map(|(rank, _)| rank).collect()
    };
    let demanded = offers.iter().any(|offer| offer.setting == Setting::Nccl);
    let version = offers[0].version;
    let have = |ranks: &[usize]| if ranks.len() == 1 { "has" } else { "have" };
    let obstacles: [(Vec<usize>, Describe<'_>); 5] = [
        (with(&|it| it.setting == Setting::Host), &|ranks| {
            format!("{VARIABLE} is `host` on {}", ranks_text(ranks))
        }),
        (with(&|it| !it.is_cuda), &|ranks| {
            format!("{} {} no CUDA device", ranks_text(ranks), have(ranks))
        }),
        (with(&|it| it.version == 0), &|ranks| {
            format!("{} {} no usable NCCL: `scry doctor` says why", ranks_text(ranks), have(ranks))
        }),
        (with(&|it| it.version != version), &|ranks| {
            let other = version_text(offers[ranks[0]].version);
            format!("rank 0 has NCCL {}, and {} {other}", version_text(version), ranks_text(ranks))
        }),
        (with(&|it| !it.controls_multicast), &|ranks| {
            format!(
                "{} did not set {MULTICAST_VARIABLE}, and NCCL {} would use NVLink multicast: set \
                 it to 0, as `scry launch` does",
                ranks_text(ranks),
                version_text(version)
            )
        }),
    ];
    match obstacles.into_iter().find(|(ranks, _)| !ranks.is_empty()) {
        Some((ranks, describe)) => {
            let problem = describe(&ranks);
            host_or_fault(demanded, ranks, problem).map(|reason| Decision::Host { reason })
        }
        None => Ok(Decision::Nccl {
            reason: format!("all ranks have NCCL {}", version_text(version)),
            checks: offers.iter().any(|offer| offer.checks),
        }),
    }
}

fn version_text(version: u32) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Offer = Offer {
        setting: Setting::Any,
        is_cuda: true,
        version: 22_803,
        controls_multicast: true,
        checks: false,
        process: 7,
    };

    fn reason(offers: &[Offer]) -> String {
        match decide(offers).unwrap() {
            Decision::Host { reason } => reason,
            Decision::Nccl { reason, .. } => panic!("NCCL: {reason}"),
        }
    }

    #[test]
    fn equal_versions_use_nccl() {
        let reason = "all ranks have NCCL 2.28.3".to_owned();
        assert_eq!(decide(&[GPU; 3]), Ok(Decision::Nccl { reason: reason.clone(), checks: false }));
        let checks = Offer { checks: true, ..GPU };
        assert_eq!(decide(&[GPU, checks]), Ok(Decision::Nccl { reason, checks: true }));
    }

    #[test]
    fn obstacles_are_named() {
        let host = Offer { setting: Setting::Host, version: 0, ..GPU };
        assert_eq!(reason(&[GPU, host, host]), "SCRY_GROUP is `host` on ranks 1 and 2");
        let cpu = Offer { is_cuda: false, version: 0, ..GPU };
        assert_eq!(reason(&[GPU, cpu]), "rank 1 has no CUDA device");
        let none = Offer { version: 0, ..GPU };
        assert_eq!(reason(&[none, GPU]), "rank 0 has no usable NCCL: `scry doctor` says why");
        let other = Offer { version: 22_705, ..GPU };
        assert_eq!(reason(&[GPU, other, GPU]), "rank 0 has NCCL 2.28.3, and rank 1 2.27.5");
        let multicast = Offer { controls_multicast: false, ..GPU };
        assert_eq!(
            reason(&[GPU, multicast]),
            "rank 1 did not set NCCL_NVLS_ENABLE, and NCCL 2.28.3 would use NVLink multicast: set \
             it to 0, as `scry launch` does"
        );
    }

    /// A rank that demands NCCL gets an error, and so do all others.
    #[test]
    fn demands_are_not_ignored() {
        let demands = Offer { setting: Setting::Nccl, ..GPU };
        let other = Offer { version: 22_705, ..GPU };
        let fault = decide(&[demands, other]).unwrap_err();
        assert_eq!((fault.kind, &*fault.ranks), (GroupFault::Mismatch, &[1][..]));
        assert_eq!(
            fault.problem,
            "SCRY_GROUP is `nccl`, but rank 0 has NCCL 2.28.3, and rank 1 2.27.5"
        );
        assert!(fault.help.contains("nvidia-nccl-cu12"), "{}", fault.help);
        assert!(decide(&[demands, GPU]).is_ok());
    }

    #[test]
    fn offers_are_decoded() {
        for setting in [Setting::Any, Setting::Host, Setting::Nccl] {
            for flag in [false, true] {
                let offer =
                    Offer { setting, is_cuda: flag, checks: !flag, process: u64::MAX - 5, ..GPU };
                assert_eq!(Offer::decode(&offer.encode()), Some(offer));
            }
        }
        assert_eq!(Offer::decode(&[3; 16]), None);
        assert_eq!(Offer::decode(&[0; 3]), None);
    }

    #[test]
    fn checks_are_parsed() {
        let parse = |text| parse_check::<()>("DeviceGroup::join", Ok(text));
        assert_eq!(
            (parse("1").unwrap(), parse("0").unwrap(), parse("").unwrap()),
            (true, false, false)
        );
        assert!(!parse_check("DeviceGroup::join", Err(())).unwrap());
        assert_eq!(
            parse("yes").unwrap_err().to_string(),
            "DeviceGroup::join: SCRY_GROUP_CHECK is `yes`; help: set it to `1` or `0`, or unset it"
        );
    }

    #[test]
    fn settings_are_parsed() {
        let parse = |text| Setting::parse("DeviceGroup::join", text);
        assert_eq!(parse("").unwrap(), Setting::Any);
        assert_eq!(parse("auto").unwrap(), Setting::Any);
        assert_eq!(parse("host").unwrap(), Setting::Host);
        assert_eq!(parse("nccl").unwrap(), Setting::Nccl);
        assert_eq!(
            parse("tcp").unwrap_err().to_string(),
            "DeviceGroup::join: SCRY_GROUP is `tcp`; help: set it to `auto`, `host` or `nccl`, or \
             unset it"
        );
    }
}
