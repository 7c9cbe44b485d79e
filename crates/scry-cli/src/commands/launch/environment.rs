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

impl Environment {
    /// Chooses a free port of this host, and a random token.
    pub fn new(world: u32) -> Result<Self, Failure> {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = address
            .map_err(|error| Failure::Runtime(format!("no port for the rendezvous: {error}")))?;
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| Failure::Runtime(format!("no random numbers: {error}")))?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { world, rendezvous: address.to_string(), token })
    }

    /// Sets the variables of a rank.
    pub fn set(&self, rank: u32, command: &mut Command) {
        command
            .env("SCRY_RANK", rank.to_string())
            .env("SCRY_LOCAL_RANK", rank.to_string())
            .env("SCRY_WORLD", self.world.to_string())
            .env("SCRY_RENDEZVOUS", &self.rendezvous)
            .env("SCRY_TOKEN", &self.token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launch_has_its_own_token() {
        let tokens = [Environment::new(1), Environment::new(1)].map(|it| it.unwrap().token);
        assert_ne!(tokens[0], tokens[1]);
        assert!(tokens.iter().all(|token| token.len() == 32), "{tokens:?}");
    }
}
