//! The environment variables of the ranks.

use std::net::TcpListener;
use std::process::Command;

use crate::report::Failure;

/// What the ranks of a launch have in common.
pub struct Environment {
    world: u32,
    rendezvous: String,
    token: String,
}

/// NCCL's variable for NVLink multicast, which stays off unless the user sets it.
const NVLS: &str = "NCCL_NVLS_ENABLE";

impl Environment {
    /// Chooses a free port of this host, and a random token.
    pub fn new(world: u32) -> Result<Self, Failure> {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = address.map_err(|error| {
            Failure::Runtime(format!(
                "cannot bind a port of 127.0.0.1 for the rendezvous: {error}; help: check the \
                 loopback interface and the limit of open files"
            ))
        })?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| {
            Failure::Runtime(format!(
                "the system returned no random bytes for the token: {error}; help: set SCRY_TOKEN \
                 yourself, and start the ranks without scry launch"
            ))
        })?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { world, rendezvous: address.to_string(), token })
    }

    /// Sets the variables of a rank.
    pub fn set(&self, rank: u32, command: &mut Command) {
        command
            .env("SCRY_RANK", rank.to_string())
            .env("SCRY_LOCAL_RANK", rank.to_string())
            .env("SCRY_WORLD_SIZE", self.world.to_string())
            .env("SCRY_RENDEZVOUS", &self.rendezvous)
            .env("SCRY_TOKEN", &self.token);
        if std::env::var_os(NVLS).is_none() {
            command.env(NVLS, "0");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The environment of the tests may have the variable.
    #[test]
    fn multicast_is_off_unless_set() {
        let mut command = Command::new("program");
        Environment::new(2).unwrap().set(1, &mut command);
        let value = command.get_envs().find(|(name, _)| *name == NVLS).and_then(|it| it.1);
        let expected = if std::env::var_os(NVLS).is_none() { Some("0".as_ref()) } else { None };
        assert_eq!(value, expected);
    }

    #[test]
    fn each_launch_has_its_own_token() {
        let tokens = [Environment::new(1), Environment::new(1)].map(|it| it.unwrap().token);
        assert_ne!(tokens[0], tokens[1]);
        assert!(tokens.iter().all(|token| token.len() == 32), "{tokens:?}");
    }
}
