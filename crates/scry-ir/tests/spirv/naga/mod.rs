//! What naga's writer makes of rewritten modules.

mod bits;
mod bools;
mod bounds;
mod initial;
mod integers;
mod linearised_grid;
mod mixes;
mod numbers;
