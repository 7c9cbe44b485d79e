//! The WGSL kernels; every library compiles the same text.

/// Adds one to each element of one buffer; 256 invocations a workgroup.
pub const INCREMENT: &str = include_str!("increment.wgsl");

/// Writes one more than each element of one buffer to another; 256 invocations a workgroup.
pub const SUCCESSOR: &str = include_str!("successor.wgsl");

/// `y = a·x + y`, one element an invocation; 256 invocations a workgroup.
pub const SAXPY: &str = include_str!("saxpy.wgsl");

/// `y = a·x + y`, four elements an invocation, workgroups numbered row by row.
pub const SAXPY_VEC4: &str = include_str!("saxpy_vec4.wgsl");

/// `y = x`, four elements an invocation, workgroups numbered row by row.
pub const COPY_VEC4: &str = include_str!("copy_vec4.wgsl");

/// Invocations of a workgroup, in all kernels.
pub const WORKGROUP: usize = 256;

/// Names and sources of all kernels.
pub const ALL: [(&str, &str); 5] = [
    ("increment", INCREMENT),
    ("successor", SUCCESSOR),
    ("saxpy", SAXPY),
    ("saxpy_vec4", SAXPY_VEC4),
    ("copy_vec4", COPY_VEC4),
];
