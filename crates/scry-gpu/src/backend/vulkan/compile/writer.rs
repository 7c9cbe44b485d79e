//! Which of two writers makes the SPIR-V of a device's kernels, for development.

use std::cell::Cell;

use scry_ir::{NotEmitted, Program, ShaderError, SpirvOptions};

use crate::api::error::Result;

/// The environment variable that selects the writer of devices opened later.
const VARIABLE: &str = "SCRY_SPIRV";

thread_local! {
    static CHOSEN: Cell<Option<SpirvWriter>> = const { Cell::new(None) };
}

/// A writer of SPIR-V.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpirvWriter {
    /// naga's, from its module.
    Naga,
    /// Ours, from the kernel IR; naga's for kernels that it does not cover.
    Kir,
    /// Ours, which refuses kernels that it does not cover.
    KirOnly,
}

impl SpirvWriter {
    /// Returns the writer of a device that is opened now.
    pub(crate) fn selected() -> Self {
        let variable = || match std::env::var(VARIABLE).as_deref() {
            Ok("kir") => Self::Kir,
            Ok("kir-only") => Self::KirOnly,
            _ => Self::Naga,
        };
        CHOSEN.get().unwrap_or_else(variable)
    }

    /// Calls `open`; the Vulkan devices that it opens on this thread have this writer.
    pub fn while_opening<T>(self, open: impl FnOnce() -> T) -> T {
        let before = CHOSEN.replace(Some(self));
        let opened = open();
        CHOSEN.set(before);
        opened
    }

    /// Writes a program.
    pub(crate) fn write(self, program: &Program, options: &SpirvOptions) -> Result<Vec<u32>> {
        if self == Self::Naga {
            return Ok(program.to_spirv(options)?);
        }
        let kernel = &program.interface().entry_point;
        match program.to_spirv_from_kir(options) {
            Ok(words) => {
                log::debug!(target: "scry::kernel", "`{kernel}`: SPIR-V from the kernel IR");
                Ok(words)
            }
            Err(NotEmitted::NotCovered(what)) if self == Self::Kir => {
                log::warn!(
                    target: "scry::kernel",
                    "`{kernel}`: SPIR-V from naga's writer: the emitter does not cover {what}"
                );
                Ok(program.to_spirv(options)?)
            }
            Err(error) => Err(ShaderError::from(error).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: SpirvOptions = SpirvOptions {
        version: (1, 5),
        checked: true,
        native_workgroup_zeroing: true,
        linearised: false,
        workarounds: scry_ir::SpirvWorkarounds::empty(),
        reports_cut_loops: false,
    };

    #[test]
    fn a_choice_holds_while_devices_open() {
        let before = SpirvWriter::selected();
        let inner = SpirvWriter::Kir.while_opening(SpirvWriter::selected);
        assert_eq!((inner, SpirvWriter::selected()), (SpirvWriter::Kir, before));
    }

    #[test]
    fn writers_differ() {
        let program = Program::parse("@compute @workgroup_size(1) fn main() {}").unwrap();
        let [naga, kir] = [SpirvWriter::Naga, SpirvWriter::Kir]
            .map(|writer| writer.write(&program, &OPTIONS).unwrap());
        assert_ne!(naga, kir);
    }
}
