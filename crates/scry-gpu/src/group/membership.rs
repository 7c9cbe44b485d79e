//! The rank of this process, as its launcher states it in the environment.

use std::net::Ipv6Addr;

use super::device_group::DeviceGroup;
use super::rendezvous::Rendezvous;
use crate::api::device::Device;
use crate::api::error::{ArgumentError, GpuError, Result};

/// The place of this process in a group: read from the environment, which `scry launch`, torchrun,
/// MPI or Slurm has set.
///
/// The first of these variables that is set counts:
///
/// - the rank: `SCRY_RANK`, `RANK`, `OMPI_COMM_WORLD_RANK`, `PMI_RANK`, `SLURM_PROCID`;
/// - the number of ranks: `SCRY_WORLD_SIZE`, `WORLD_SIZE`, `OMPI_COMM_WORLD_SIZE`, `PMI_SIZE`,
///   `SLURM_NTASKS`;
/// - the rank on this host: `SCRY_LOCAL_RANK`, `LOCAL_RANK`, `OMPI_COMM_WORLD_LOCAL_RANK`,
///   `MPI_LOCALRANKID`, `SLURM_LOCALID`, else the rank;
/// - the rendezvous: `SCRY_RENDEZVOUS`, else `MASTER_ADDR` and `MASTER_PORT`;
/// - the token: `SCRY_TOKEN`.
///
/// torchrun itself may use the port `MASTER_PORT`; it then sets `TORCHELASTIC_USE_AGENT_STORE`, and
/// `SCRY_RENDEZVOUS` is required.
///
/// ```no_run
/// use scry_gpu::{Device, Membership};
///
/// # fn main() -> scry_gpu::Result<()> {
/// let membership = Membership::from_env()?;
/// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
/// let group = membership.join(&gpu)?;
/// println!("rank {} of {}", group.rank(), group.world_size());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Membership {
    rank: usize,
    world: usize,
    local_rank: usize,
    rendezvous: Rendezvous,
}

const RANK: [&str; 5] = ["SCRY_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
const WORLD: [&str; 5] =
    ["SCRY_WORLD_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"];
const LOCAL_RANK: [&str; 5] = [
    "SCRY_LOCAL_RANK",
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
];

const FUNCTION: &str = "Membership::from_env";
const LAUNCH: &str = "start the program with `scry launch --ranks N -- PROGRAM`, or set SCRY_RANK, \
                      SCRY_WORLD_SIZE, SCRY_RENDEZVOUS and SCRY_TOKEN";

impl Membership {
    /// Reads the environment of the process.
    ///
    /// # Errors
    /// [`GpuError::Argument`] for a variable that is missing or invalid; it names the variable.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(&|name| std::env::var(name).ok())
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let (rank, world) = (number(&variable, &RANK)?, number(&variable, &WORLD)?);
        let missing = |what: &str| error(what, "is not set", LAUNCH);
        let rank = rank.ok_or_else(|| missing("SCRY_RANK"))?;
        let world = world.ok_or_else(|| missing("SCRY_WORLD_SIZE"))?;
        let local_rank = number(&variable, &LOCAL_RANK)?.unwrap_or(rank);
        let rendezvous = Rendezvous::tcp(address(&variable)?).default_token(variable("SCRY_TOKEN"));
        Ok(Self { rank, world, local_rank, rendezvous })
    }

    /// Returns the rank, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn world_size(&self) -> usize {
        self.world
    }

    /// Returns the rank among those of this host, from 0: the index of its GPU, if each rank has
    /// one.
    #[must_use]
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// Returns where the ranks meet.
    #[must_use]
    pub fn rendezvous(&self) -> &Rendezvous {
        &self.rendezvous
    }

    /// Joins the group with a device.
    ///
    /// # Errors
    /// As [`DeviceGroup::join`].
    pub fn join(self, device: &Device) -> Result<DeviceGroup> {
        DeviceGroup::join(device, self.rendezvous, self.rank, self.world)
    }
}

/// Returns the number in the first of the variables that is set; `None` if none is.
fn number(variable: &dyn Fn(&str) -> Option<String>, names: &[&str]) -> Result<Option<usize>> {
    let found = names.iter().find_map(|name| Some((*name, variable(name)?)));
    let Some((name, value)) = found else { return Ok(None) };
    match value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(error(name, format!("is `{value}`"), "set it to a whole number, from 0")),
    }
}

/// Returns the address of the rendezvous.
fn address(variable: &dyn Fn(&str) -> Option<String>) -> Result<String> {
    if let Some(address) = variable("SCRY_RENDEZVOUS") {
        return Ok(address);
    }
    let torch = "TORCHELASTIC_USE_AGENT_STORE";
    if variable(torch).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        let problem = "is not set, and torchrun itself uses MASTER_PORT";
        let help = "set SCRY_RENDEZVOUS to HOST:PORT with the host of rank 0 and a free port";
        return Err(error("SCRY_RENDEZVOUS", problem, help));
    }
    match (variable("MASTER_ADDR"), variable("MASTER_PORT")) {
        (Some(host), Some(port)) if host.parse::<Ipv6Addr>().is_ok() => {
            Ok(format!("[{host}]:{port}"))
        }
        (Some(host), Some(port)) => Ok(format!("{host}:{port}")),
        _ => Err(error("SCRY_RENDEZVOUS", "is not set", LAUNCH)),
    }
}

fn error(variable: &str, problem: impl Into<String>, help: &str) -> GpuError {
    GpuError::Argument(ArgumentError::new(FUNCTION, variable, problem, help))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Membership> {
        Membership::from_variables(&|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn place(variables: &[(&str, &str)]) -> (usize, usize, usize, String) {
        let it = read(variables).unwrap();
        (it.rank, it.world, it.local_rank, it.rendezvous.address().to_owned())
    }

    #[test]
    fn own_variables_come_first() {
        let variables = [
            ("SCRY_RANK", "2"),
            ("RANK", "7"),
            ("SCRY_WORLD_SIZE", " 4 "),
            ("SCRY_RENDEZVOUS", "node:1"),
            ("MASTER_ADDR", "other"),
            ("SCRY_TOKEN", "0123456789abcdef"),
        ];
        assert_eq!(place(&variables), (2, 4, 2, "node:1".to_owned()));
        assert!(read(&variables).unwrap().rendezvous.required_token("f").is_ok());
    }

    #[test]
    fn other_launchers_are_understood() {
        let torch = [
            ("RANK", "5"),
            ("WORLD_SIZE", "8"),
            ("LOCAL_RANK", "1"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("MASTER_PORT", "29500"),
        ];
        assert_eq!(place(&torch), (5, 8, 1, "10.0.0.1:29500".to_owned()));
        let ipv6 = [
            ("RANK", "0"),
            ("WORLD_SIZE", "1"),
            ("MASTER_ADDR", "fe80::1"),
            ("MASTER_PORT", "29500"),
        ];
        assert_eq!(place(&ipv6).3, "[fe80::1]:29500");
        let mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
            ("SCRY_RENDEZVOUS", "node:1"),
        ];
        assert_eq!(place(&mpi), (1, 2, 0, "node:1".to_owned()));
    }

    #[test]
    fn missing_and_invalid_variables_are_named() {
        let text = |variables: &[(&str, &str)]| read(variables).unwrap_err().to_string();
        assert_eq!(
            text(&[("RANK", "1")]),
            "Membership::from_env: SCRY_WORLD_SIZE is not set; help: start the program with `scry \
             launch --ranks N -- PROGRAM`, or set SCRY_RANK, SCRY_WORLD_SIZE, SCRY_RENDEZVOUS and \
             SCRY_TOKEN"
        );
        assert_eq!(
            text(&[("RANK", "-1"), ("WORLD_SIZE", "2")]),
            "Membership::from_env: RANK is `-1`; help: set it to a whole number, from 0"
        );
        let torch = [
            ("RANK", "1"),
            ("WORLD_SIZE", "2"),
            ("MASTER_ADDR", "node"),
            ("MASTER_PORT", "1"),
            ("TORCHELASTIC_USE_AGENT_STORE", "True"),
        ];
        assert_eq!(
            text(&torch),
            "Membership::from_env: SCRY_RENDEZVOUS is not set, and torchrun itself uses \
             MASTER_PORT; help: set SCRY_RENDEZVOUS to HOST:PORT with the host of rank 0 and a \
             free port"
        );
    }
}
