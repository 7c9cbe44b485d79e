//! The optional language features that a kernel may use and a device may have.

use std::fmt;

bitflags::bitflags! {
    /// A set of optional WGSL features: what a kernel uses, or what a device has.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Features: u32 {
        /// 16-bit floats (`enable f16;`).
        const F16 = 1 << 0;
        /// 64-bit floats (`1.0lf`).
        const F64 = 1 << 1;
        /// 64-bit integers (`1li`, `1lu`).
        const I64 = 1 << 2;
        /// 16-bit integers (`enable wgpu_int16;`).
        const I16 = 1 << 3;
        /// Subgroup builtins and operations.
        const SUBGROUPS = 1 << 4;
        /// `atomicAdd`, `atomicSub` and `atomicExchange` on `atomic<f32>` in storage buffers.
        const F32_ATOMICS = 1 << 5;
        /// Atomics on `atomic<i64>` and `atomic<u64>`.
        const I64_ATOMICS = 1 << 6;
        /// Cooperative matrices (`enable wgpu_cooperative_matrix;`).
        const COOPERATIVE_MATRIX = 1 << 7;
    }
}

impl Features {
    /// Returns the names of the features in the set, as in documentation and errors.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(Features, &str); 8] = [
            (Features::F16, "f16"),
            (Features::F64, "f64"),
            (Features::I64, "i64"),
            (Features::I16, "i16"),
            (Features::SUBGROUPS, "subgroups"),
            (Features::F32_ATOMICS, "f32-atomics"),
            (Features::I64_ATOMICS, "i64-atomics"),
            (Features::COOPERATIVE_MATRIX, "cooperative-matrix"),
        ];
        NAMES.into_iter().filter(move |(f, _)| self.contains(*f)).map(|(_, name)| name)
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.names().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
