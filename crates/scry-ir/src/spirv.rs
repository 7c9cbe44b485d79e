//! A program as SPIR-V, through naga's writer.

use crate::{Program, ShaderError};

/// How to write SPIR-V.
///
/// Every buffer of the interface is bound in descriptor set 0, at its index in
/// [`Interface::bindings`](crate::Interface::bindings), whatever its WGSL group: gaps cost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpirvOptions {
    /// SPIR-V version, (1, 3) or newer.
    pub version: (u8, u8),
    /// Clamp every index and bound every loop not proven finite. Off only for callers that vouch
    /// for their kernel.
    pub checked: bool,
    /// The device zeroes workgroup memory itself
    /// (`VK_KHR_zero_initialize_workgroup_memory`); otherwise the kernel does.
    pub native_workgroup_zeroing: bool,
    /// Rewrite the kernel to run on a folded grid: one more uniform buffer, a [`FoldParams`], is
    /// bound after the interface's last one.
    pub folded: bool,
}

/// The grid of a folded launch, as the uniform buffer of a folded kernel holds it.
///
/// A launch of more workgroups on an axis than the device takes is laid out as rows of `width`
/// physical workgroups along x, stacked along y and z. The kernel numbers its physical workgroups,
/// leaves at once if it is in excess, and computes the ids that it would have had.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldParams {
    /// Workgroups of the launch as the caller sees it, along x, y and z.
    pub groups: [u32; 3],
    /// Physical workgroups in a row, along x.
    pub width: u32,
    /// Physical rows along y.
    pub height: u32,
    /// Rows that hold any workgroup of the launch.
    pub rows: u32,
    /// Workgroups of the launch in the last of those rows.
    pub last_row: u32,
    /// Unused; keeps the size a multiple of 16 bytes.
    pub padding: u32,
}

impl Program {
    /// Writes the program as SPIR-V words, entry point named as in the source.
    ///
    /// # Errors
    /// [`ShaderErrorKind::Compiler`](crate::ShaderErrorKind::Compiler) if naga's writer fails.
    pub fn to_spirv(&self, options: &SpirvOptions) -> Result<Vec<u32>, ShaderError> {
        let _ = options;
        todo!()
    }
}
