//! Distances between all points of two sets.

/// Squared Euclidean distances: `distances[i][j]` = Σ (`queries[i][c]` − `points[j][c]`)².
///
/// Differences are squared directly, without expanding the square: distances of close points
/// lose no precision, those of equal points are exactly 0, and none is negative.
///
/// Bindings: `queries: array<f32>` (n_q × d), `points: array<f32>` (n_p × d) and
/// `distances: array<f32>` (n_q × n_p, written). Parameters, three `u32`: n_q, n_p, d. Each
/// invocation computes 4×4 distances: launch (⌈n_p/4⌉, ⌈n_q/4⌉) invocations.
pub const EUCLIDEAN_SQUARED: &str =
    concat!(include_str!("io_scalar.wgsl"), include_str!("euclidean_squared.wgsl"));

/// [`EUCLIDEAN_SQUARED`] for a d that is a multiple of four, with the same launch.
///
/// Bindings: `queries: array<vec4<f32>>`, `points: array<vec4<f32>>` and
/// `distances: array<f32>`. Parameters: n_q, n_p, d, in elements.
pub const EUCLIDEAN_SQUARED_VEC4: &str =
    concat!(include_str!("io_vec4.wgsl"), include_str!("euclidean_squared.wgsl"));
