//! `#[derive(Element)]` for `scry-gpu`.
