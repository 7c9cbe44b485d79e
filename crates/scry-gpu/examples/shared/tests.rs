//! Tests of the examples' code: results against references in plain Rust.
//!
//! `Cargo.toml` names this file as the test `examples`, so that the modules are those beside it.

mod digits;
mod fused;
mod photo;

mod edges;
mod expression;
mod fusion;
mod image;
mod knn;
mod stats;

#[test]
fn summaries_need_a_measurement() {
    assert!(stats::Summary::from_seconds(Vec::new()).is_none());
    let summary = stats::Summary::from_seconds(vec![3.0, 1.0, 2.0]).unwrap();
    assert_eq!(summary.times(), "2.00s (1.00s to 3.00s)");
    stats::measure(1, || Ok::<(), ()>(())).unwrap();
}
