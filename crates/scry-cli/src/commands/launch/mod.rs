//! `scry launch`: starts a program as the ranks of a group of devices.

mod environment;
mod interrupt;
mod output;
mod process;
mod ranks;

use serde_json::json;

use self::environment::Environment;
use self::ranks::{Exit, Ranks};
use crate::args::Launch;
use crate::report::{Failure, Report};

/// Starts the ranks, and returns when all have ended. If one fails, the others are ended.
pub fn run(args: &Launch, json: bool) -> Result<Report, Failure> {
    let environment = Environment::new(args.ranks)?;
    let exits = Ranks::start(args, &environment, json)?.wait()?;
    match failure_text(&exits) {
        None => {
            let ranks: Vec<_> = exits.iter().map(|exit| json!({ "rank": exit.rank })).collect();
            Ok(Report::new(String::new(), json!({ "ranks": ranks })))
        }
        Some(text) => Err(Failure::Runtime(text)),
    }
}

/// Returns the message for ranks that have failed; `None` if none has. It does not say which was
/// the first: processes that end at nearly the same time have no order.
fn failure_text(exits: &[Exit]) -> Option<String> {
    let (ended, failed): (Vec<&Exit>, Vec<&Exit>) =
        exits.iter().filter(|exit| !exit.is_success()).partition(|exit| exit.was_ended);
    let prefix = match &failed[..] {
        [] => return None,
        [exit] => format!("[{}]", exit.rank),
        _ => "their rank".to_owned(),
    };
    let mut facts: Vec<String> =
        failed.iter().map(|exit| format!("rank {} {}", exit.rank, exit.text())).collect();
    facts.extend(
        ended.iter().map(|exit| format!("rank {} was then ended by scry launch", exit.rank)),
    );
    let facts = facts.join(", ");
    Some(format!("{facts}; help: see the output above, in the lines that begin with {prefix}"))
}
