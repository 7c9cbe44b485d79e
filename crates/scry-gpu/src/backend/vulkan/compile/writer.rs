//! Selects which code generator writes the SPIR-V of a device's kernels. The second one is for
//! comparisons during development.

use std::cell::Cell;

use scry_ir::{ControlFlow, Program, SpirvOptions};

use crate::api::error::Result;

/// The environment variable that selects the writer of the devices opened after it is set.
const VARIABLE: &str = "SCRY_SPIRV";

thread_local! {
    /// The writer that [`SpirvWriter::while_opening`] selects, instead of the environment variable.
    static CHOSEN: Cell<Option<SpirvWriter>> = const { Cell::new(None) };
}

/// A writer of SPIR-V.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpirvWriter {
    /// Scry's own, which translates the kernel IR.
    Kir,
    /// naga's, which translates its module.
    #[cfg(feature = "naga-spirv")]
    Naga,
}

/// Why no writer is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoWriter {
    pub(crate) problem: String,
    pub(crate) help: &'static str,
}

impl SpirvWriter {
    /// Returns the selected writer, or why there is no such writer.
    pub(crate) fn selected() -> std::result::Result<Self, NoWriter> {
        match CHOSEN.get() {
            Some(chosen) => Ok(chosen),
            None => Self::named(&std::env::var(VARIABLE).unwrap_or_default()),
        }
    }

    /// Returns the writer for a value of the environment variable.
    fn named(value: &str) -> std::result::Result<Self, NoWriter> {
        match value {
            "" | "kir" => Ok(Self::Kir),
            #[cfg(feature = "naga-spirv")]
            "naga" => Ok(Self::Naga),
            #[cfg(not(feature = "naga-spirv"))]
            "naga" => Err(NoWriter {
                problem: format!("{VARIABLE} is `naga`, a writer that this build does not have"),
                help: "build scry-gpu with the feature `naga-spirv`, or unset SCRY_SPIRV",
            }),
            _ => Err(NoWriter {
                problem: format!("{VARIABLE} is `{value}`, which is not a writer of SPIR-V"),
                #[cfg(feature = "naga-spirv")]
                help: "set SCRY_SPIRV to `kir` or `naga`, or unset it",
                #[cfg(not(feature = "naga-spirv"))]
                help: "set SCRY_SPIRV to `kir`, or unset it",
            }),
        }
    }

    /// Returns whether it supports cooperative matrices.
    pub(crate) fn writes_matrices(self) -> bool {
        self == Self::Kir
    }

    /// Calls `open`. The Vulkan devices that it opens on this thread use this writer.
    pub fn while_opening<T>(self, open: impl FnOnce() -> T) -> T {
        let before = CHOSEN.replace(Some(self));
        let opened = open();
        CHOSEN.set(before);
        opened
    }

    /// Writes the SPIR-V of a program; `choose` returns the options for its control flow. Returns
    /// the SPIR-V and these options.
    pub(crate) fn write(
        self,
        program: &Program,
        checked: bool,
        choose: impl FnOnce(ControlFlow) -> Result<SpirvOptions> + Send,
    ) -> Result<(Vec<u32>, SpirvOptions)> {
        match self {
            Self::Kir => program.to_spirv_for(checked, choose),
            #[cfg(feature = "naga-spirv")]
            Self::Naga => {
                let options = choose(program.control_flow()?)?;
                Ok((program.to_spirv_with_naga(&options)?, options))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kir_writer_is_the_default() {
        assert_eq!(SpirvWriter::named(""), Ok(SpirvWriter::Kir));
        assert_eq!(SpirvWriter::named("kir"), Ok(SpirvWriter::Kir));
        let error = SpirvWriter::named("glslang").unwrap_err();
        assert!(error.problem.contains("SCRY_SPIRV is `glslang`"), "{error:?}");
    }

    #[cfg(not(feature = "naga-spirv"))]
    #[test]
    fn missing_writer_error_names_feature() {
        let error = SpirvWriter::named("naga").unwrap_err();
        assert!(error.help.contains("the feature `naga-spirv`"), "{error:?}");
    }

    #[cfg(feature = "naga-spirv")]
    #[test]
    fn choice_ends_after_opening() {
        let before = SpirvWriter::selected();
        let inner = SpirvWriter::Naga.while_opening(SpirvWriter::selected);
        assert_eq!((inner, SpirvWriter::selected()), (Ok(SpirvWriter::Naga), before));
    }

    #[cfg(feature = "naga-spirv")]
    #[test]
    fn writers_differ() {
        const OPTIONS: SpirvOptions = SpirvOptions {
            version: (1, 5),
            checked: true,
            native_workgroup_zeroing: true,
            linearised: false,
            workarounds: scry_ir::SpirvWorkarounds::empty(),
            reports_aborted_loops: false,
            polls: false,
            matrices: scry_ir::MatrixProducts::empty(),
            nan_preserving: scry_ir::FloatTypes::empty(),
            max_workgroup_memory: 32 << 10,
        };
        let program = Program::parse("@compute @workgroup_size(1) fn main() {}").unwrap();
        let [naga, kir] = [SpirvWriter::Naga, SpirvWriter::Kir]
            .map(|writer| writer.write(&program, true, |_| Ok(OPTIONS)).unwrap().0);
        assert_ne!(naga, kir);
    }
}
