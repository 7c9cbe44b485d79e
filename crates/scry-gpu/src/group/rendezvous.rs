//! Where and how the ranks of several processes meet.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use super::fault::Fault;
use super::token::{MIN_TOKEN, Token};
use crate::api::error::{ArgumentError, GpuError, GroupFault, Result};

/// The time limit unless the program sets one.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Where the ranks of a group in several processes meet: rank 0 listens there until all ranks have
/// joined, and the others connect to it.
///
/// A shared secret, the token, keeps others out. Data and calls are not encrypted: use a network
/// that you trust.
///
/// ```
/// use std::time::Duration;
///
/// use scry_gpu::{Device, DeviceGroup, ReduceOp, Rendezvous};
///
/// // Usually one process for each rank; this group has only one rank.
/// let rendezvous = Rendezvous::tcp("127.0.0.1:29400")
///     .token("d1a9c5e0b3f74e28")
///     .time_limit(Duration::from_secs(20));
/// let gpu = Device::open("cpu")?;
/// let group = DeviceGroup::join(&gpu, rendezvous, 0, 1)?;
/// let x = gpu.upload(&[1.0f32, 2.0])?;
/// group.all_reduce(&x, &x, ReduceOp::Sum)?;
/// assert_eq!(x.download()?, [1.0, 2.0]);
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rendezvous {
    address: String,
    token: Option<Token>,
    pub(super) limit: Duration,
}

impl Rendezvous {
    /// Creates a rendezvous at `host:port`, an address of the host of rank 0.
    #[must_use]
    pub fn tcp(address: impl Into<String>) -> Self {
        Self { address: address.into(), token: None, limit: TIME_LIMIT }
    }

    /// Sets the secret that all ranks share, at least 16 bytes: random, such as the output of
    /// `openssl rand -hex 16`. Without this call it is that of the environment variable
    /// `SCRY_TOKEN`, which `scry launch` sets.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { token: Some(Token::new(token.into())), ..self }
    }

    /// Sets the longest time to wait for all ranks to join, and the initial
    /// [`DeviceGroup::set_time_limit`](crate::DeviceGroup::set_time_limit); by default 60 s.
    #[must_use]
    pub fn time_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Sets the token, unless the program has set one.
    pub(super) fn default_token(mut self, token: Option<String>) -> Self {
        self.token = self.token.or(token.map(Token::new));
        self
    }

    /// Returns `host:port`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the token; an error if it is missing or too short.
    pub(super) fn required_token(&self, function: &str) -> Result<Token> {
        let token = self.token.clone();
        let length = token.as_ref().map_or(0, Token::len);
        let problem = match token {
            Some(token) if length >= MIN_TOKEN => return Ok(token),
            Some(_) => format!("has a token of {length} bytes, but needs at least {MIN_TOKEN}"),
            None => "has no token".to_owned(),
        };
        let help = "start the ranks with `scry launch`, or set SCRY_TOKEN to the same secret on \
                    every rank, such as the output of `openssl rand -hex 16`";
        Err(GpuError::Argument(ArgumentError::new(function, "`rendezvous`", problem, help)))
    }

    /// Returns the addresses that the name stands for.
    pub(super) fn resolve(&self) -> Result<Vec<SocketAddr>, Fault> {
        match self.address.to_socket_addrs().map(Vec::from_iter) {
            Ok(addresses) if !addresses.is_empty() => Ok(addresses),
            Ok(_) => Err(self.fault("has no address", None)),
            Err(error) => Err(self.fault("cannot be resolved", Some(&error))),
        }
    }

    /// Returns an error if the address is not of the form `host:port`.
    pub(super) fn check_form(&self) -> Result<(), Fault> {
        let port = self.address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        match port {
            Some(_) => Ok(()),
            None => self.resolve().map(drop),
        }
    }

    /// Returns the fault of an address that cannot be used.
    pub(super) fn fault(&self, problem: &str, error: Option<&io::Error>) -> Fault {
        let error = error.map(|error| format!(": {error}")).unwrap_or_default();
        Fault::new(
            GroupFault::Network,
            [],
            format!("the rendezvous {} {problem}{error}", self.address),
            "use HOST:PORT with a name or address of the host of rank 0, and a free port that the \
             other ranks can reach",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_missing_tokens_are_rejected() {
        let rendezvous = Rendezvous::tcp("localhost:1");
        let error = rendezvous.required_token("DeviceGroup::join").unwrap_err();
        assert_eq!(
            error.to_string(),
            "DeviceGroup::join: `rendezvous` has no token; help: start the ranks with `scry \
             launch`, or set SCRY_TOKEN to the same secret on every rank, such as the output of \
             `openssl rand -hex 16`"
        );
        let error = rendezvous.token("secret").required_token("DeviceGroup::join").unwrap_err();
        assert!(error.to_string().contains("has a token of 6 bytes, but needs at least 16"));
    }

    #[test]
    fn tokens_of_the_program_win() {
        let rendezvous = Rendezvous::tcp("localhost:1").token("0123456789abcdef");
        let token = rendezvous.clone().default_token(Some("another".to_owned()));
        assert_eq!(token.required_token("f").unwrap(), Token::new("0123456789abcdef".to_owned()));
        assert!(!format!("{rendezvous:?}").contains("0123"), "{rendezvous:?}");
    }

    #[test]
    fn unknown_hosts_are_named() {
        let fault = Rendezvous::tcp("no port").resolve().unwrap_err();
        assert!(
            fault.problem.starts_with("the rendezvous no port cannot be resolved: "),
            "{}",
            fault.problem
        );
    }
}
