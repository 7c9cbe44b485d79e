//! Logging to standard error, as selected by the environment variable `RUST_LOG`.

use log::LevelFilter;

/// Shows the log lines that `RUST_LOG` selects; none if it is not set.
///
/// Lines of naga, which parses WGSL, are of interest to its maintainers: they are only shown if the
/// filter names naga.
pub fn init() {
    if std::env::var_os("RUST_LOG").is_none_or(|filter| filter.is_empty()) {
        return;
    }
    env_logger::Builder::new()
        .filter_module("naga", LevelFilter::Off)
        .parse_env("RUST_LOG")
        .format_timestamp(None)
        .init();
}
