//! `scry model`: models in files, if the program is built with the feature `models`.

#[cfg(feature = "models")]
mod generate;
#[cfg(feature = "models")]
mod info;
#[cfg(feature = "models")]
mod search;

use crate::args::Model;
use crate::report::{Failure, Report};

/// Runs an action.
#[cfg(feature = "models")]
pub fn run(action: &Model, as_json: bool) -> Result<Report, Failure> {
    match action {
        Model::Info(args) => info::run(args),
        Model::Search(args) => search::run(args),
        Model::Generate(args) => generate::run(args, as_json),
    }
}

/// Returns the failure of a model: of its files, its options or its device.
#[cfg(feature = "models")]
fn failure(error: scry_models::Error) -> Failure {
    match error.kind() {
        // Values of tensors are the file's.
        scry_models::ErrorKind::Value if error.tensor().is_none() => {
            Failure::usage(error.to_string())
        }
        _ => Failure::Runtime(error.to_string()),
    }
}

/// Reports how to get the command.
#[cfg(not(feature = "models"))]
pub fn run(_: &Model, _: bool) -> Result<Report, Failure> {
    Err(Failure::usage(
        "this build of scry lacks the feature `models`, which `scry model` needs; help: `cargo \
         install --path crates/scry-cli --features models` in the repository, or `cargo install \
         scry-cli --features models`",
    ))
}
