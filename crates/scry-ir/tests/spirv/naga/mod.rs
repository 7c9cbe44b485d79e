//! What naga's writer makes of rewritten modules.

mod bits;
mod bools;
mod bounds;
mod cooperative;
mod corpus;
mod initial;
mod integers;
mod linearised_grid;
mod loop_bounds;
mod mixes;
mod numbers;
mod workarounds;
