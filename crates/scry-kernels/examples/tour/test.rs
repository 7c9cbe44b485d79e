//! Runs the example `tour` on every device: it fails if a result differs from its reference, or if
//! an operation of the library has no stop.
//!
//! `Cargo.toml` names this file as the test `tour`, so that the modules are those beside it.

mod stops;

use scry_test_support::on_each_device;

#[test]
fn tour_visits_every_operation() {
    on_each_device(|gpu| stops::run(gpu, 1).unwrap_or_else(|error| panic!("{error}")));
}
