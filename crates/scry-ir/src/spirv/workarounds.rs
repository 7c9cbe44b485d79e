//! Workarounds for driver bugs in the SPIR-V that is written.
//!
//! The caller decides which of them to use for which driver.

bitflags::bitflags! {
    /// Workarounds for driver bugs: none of them changes the kernel's behaviour. Those marked
    /// "Naga" affect only naga's writer: SPIR-V from the kernel IR has none of the instructions
    /// that they replace.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SpirvWorkarounds: u32 {
        /// Naga: `mix(a, b, c)` becomes `a * (1 - c) + b * c`, for drivers whose `FMix` is less
        /// accurate than that.
        const EXPAND_MIX = 1 << 0;
        /// Naga: `bool` in workgroup memory becomes `u32`, for drivers where an invocation does not
        /// see values that others have stored to an `OpTypeBool`.
        const WORKGROUP_BOOL_AS_U32 = 1 << 1;
        /// Naga: initial values of variables that contain several vectors are stored by statements,
        /// for drivers that forward a later store to an earlier load.
        const STORE_INITIAL_VECTORS = 1 << 2;
        /// Naga: integer vectors are divided component by component, for drivers that lose
        /// quotients of splats by constants.
        const SPLIT_VECTOR_DIVISIONS = 1 << 3;
        /// `sign`, `abs`, negation, 16-bit subtraction, and 16-bit `min`, `max` and `clamp` are
        /// written with other instructions, for drivers that assume that negating an integer does
        /// not overflow, or lose the absolute value of an integer whose minimum is taken.
        const EXPAND_SIGNS = 1 << 4;
        /// Naga: `extractBits` and `insertBits` become shifts and masks, for drivers that get wrong
        /// bits where the word is uniform.
        const EXPAND_BIT_FIELDS = 1 << 5;
        /// Kernel IR: `tanh(x)` becomes `sign(x)` for large `x`, where the result rounds to -1 or
        /// 1, for drivers that divide infinities there.
        const EXPAND_TANH = 1 << 6;
        /// Kernel IR: in loops of kernels with private arrays, `a >= b` of unsigned integers
        /// becomes `max(a, b) == a`, and others likewise, for drivers that end a loop too early if
        /// its counter starts at a value that its bound is computed from.
        const EXPAND_LOOP_COMPARISONS = 1 << 7;
        /// Kernel IR: in loops, the second operand of comparisons becomes a value that compilers
        /// cannot compute, for drivers that compute wrong trip counts from constants.
        const HIDE_LOOP_BOUNDS = 1 << 8;
    }
}

impl SpirvWorkarounds {
    /// Returns the names of the workarounds in the set, for tools.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(SpirvWorkarounds, &str); 9] = [
            (SpirvWorkarounds::EXPAND_MIX, "expand-mix"),
            (SpirvWorkarounds::WORKGROUP_BOOL_AS_U32, "workgroup-bool-as-u32"),
            (SpirvWorkarounds::STORE_INITIAL_VECTORS, "store-initial-vectors"),
            (SpirvWorkarounds::SPLIT_VECTOR_DIVISIONS, "split-vector-divisions"),
            (SpirvWorkarounds::EXPAND_SIGNS, "expand-signs"),
            (SpirvWorkarounds::EXPAND_BIT_FIELDS, "expand-bit-fields"),
            (SpirvWorkarounds::EXPAND_TANH, "expand-tanh"),
            (SpirvWorkarounds::EXPAND_LOOP_COMPARISONS, "expand-loop-comparisons"),
            (SpirvWorkarounds::HIDE_LOOP_BOUNDS, "hide-loop-bounds"),
        ];
        NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| name)
    }

    /// Returns the workaround with this name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().iter().find(|flag| flag.names().any(|flag_name| flag_name == name))
    }
}
