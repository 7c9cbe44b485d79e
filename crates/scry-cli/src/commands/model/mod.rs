//! `scry model`: models in files, if the program is built with the feature `models`.

#[cfg(feature = "models")]
mod info;

use crate::args::Model;
use crate::report::{Failure, Report};

/// Runs an action.
#[cfg(feature = "models")]
pub fn run(action: &Model) -> Result<Report, Failure> {
    match action {
        Model::Info(args) => info::run(args),
    }
}

/// Reports how to get the command.
#[cfg(not(feature = "models"))]
pub fn run(_: &Model) -> Result<Report, Failure> {
    Err(Failure::usage(
        "this program is built without the feature `models`, which `scry model` needs; help: \
         `cargo install scry-cli --features models`, or in the repository `cargo run --release \
         -p scry-cli --features models -- model …`",
    ))
}
