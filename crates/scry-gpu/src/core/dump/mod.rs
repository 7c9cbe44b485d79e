//! Prints intermediate stages of compilations: `SCRY_DEBUG` selects stages and kernels.
//!
//! The output is for interactive debugging. It is written to standard error or to files rather than
//! to the log, and needs no logger. Without `SCRY_DEBUG` it costs one comparison per compilation.

mod output;
mod settings;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::OnceLock;

use scry_ir::Program;
use scry_ir::kir::{Kir, KirOptions};
#[cfg(vulkan)]
use scry_ir::spirv_text;

use self::output::Output;
use self::settings::Settings;
pub(crate) use self::settings::Stage;
use crate::core::driver::GridSource;

/// One compilation of a selected kernel.
pub(crate) struct Dump {
    output: &'static Output,
    kernel: String,
    /// File name without the extension.
    file: String,
    /// Variant of the kernel, appended to the stage in titles.
    variant: String,
    /// Stages printed so far.
    printed: RefCell<Vec<Stage>>,
}

/// Returns the output of the process; `None` if `SCRY_DEBUG` selects no stage.
fn process_output() -> Option<&'static Output> {
    static OUTPUT: OnceLock<Option<Output>> = OnceLock::new();
    let read = || {
        let (settings, warning) = Settings::from_environment();
        let output = settings.is_enabled().then(|| Output::new(settings));
        if let Some(warning) = warning {
            output::note(&warning);
        }
        output
    };
    OUTPUT.get_or_init(read).as_ref()
}

impl Dump {
    /// Starts to print a compilation; `None` if the kernel is not selected.
    pub(crate) fn start(kernel: &str, grid: GridSource, checked: bool) -> Option<Self> {
        let output = process_output()?;
        let count = output.select(kernel)?;
        let mut variant = String::new();
        if !checked {
            variant.push_str(", unchecked");
        }
        match grid {
            GridSource::Native => {}
            GridSource::Linearised => variant.push_str(", grid linearised"),
            GridSource::Counts => variant.push_str(", indirect grid"),
        }
        let mut file = output::file_name(kernel);
        if count > 1 {
            let _ = write!(file, "-{count}");
        }
        Some(Self { output, kernel: kernel.to_owned(), file, variant, printed: RefCell::default() })
    }

    /// Returns whether a stage is printed.
    pub(crate) fn is_selected(&self, stage: Stage) -> bool {
        self.output.settings.stages.contains(&stage)
    }

    /// Prints the stages that do not depend on the device.
    pub(crate) fn program(&self, program: &Program, checked: bool) {
        let options = KirOptions { checked };
        if self.is_selected(Stage::Passes) {
            let text = passes(program, &options);
            self.write_stage(Stage::Passes, "", &text.unwrap_or_else(|error| format!("{error}\n")));
        }
        if self.is_selected(Stage::Kir) {
            let text = program.with_kir(&options, |kir| kir.with_positions().to_string());
            self.write_stage(Stage::Kir, "", &text.unwrap_or_else(|error| format!("{error}\n")));
        }
        if self.is_selected(Stage::Wgsl) {
            let text = program.with_kir(&options, |kir| kir.to_wgsl(program.interface()));
            match text.and_then(|text| text) {
                Ok(text) => self.write_stage(Stage::Wgsl, "", &text),
                Err(error) => self.note_missing(Stage::Wgsl, &error.message),
            }
        }
    }

    /// Prints the SPIR-V.
    #[cfg(vulkan)]
    pub(crate) fn spirv(&self, words: &[u32]) {
        if !self.is_selected(Stage::Spirv) {
            return;
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.printed.borrow_mut().push(Stage::Spirv);
        if !self.output.write_file(&format!("{}.spv", self.file), &bytes) {
            self.output.print(&self.title(Stage::Spirv, ""), &spirv_text(words));
        }
    }

    /// Prints PTX; `module` distinguishes several modules of one compilation.
    pub(crate) fn ptx(&self, module: &str, text: &str) {
        if self.is_selected(Stage::Ptx) {
            self.write_stage(Stage::Ptx, module, text);
        }
    }

    /// Ends the output: reports the selected stages that the device does not have.
    pub(crate) fn finish(&self, device: &str) {
        for stage in [Stage::Spirv, Stage::Ptx] {
            if self.is_selected(stage) && !self.printed.borrow().contains(&stage) {
                let other = match stage {
                    Stage::Spirv => "Vulkan",
                    _ => "CUDA",
                };
                let name = stage.name();
                self.note_missing(
                    stage,
                    &format!(
                        "{device} does not compile {name}; help: open a {other} device, or run \
                         `scry emit --target {name}`"
                    ),
                );
            }
        }
    }

    /// Writes a stage to its file; prints it if no folder is set, or if the write fails.
    fn write_stage(&self, stage: Stage, module: &str, text: &str) {
        self.printed.borrow_mut().push(stage);
        let separator = if module.is_empty() { "" } else { "." };
        let name = format!("{}{separator}{module}.{}", self.file, stage.extension());
        if !self.output.write_file(&name, text.as_bytes()) {
            self.output.print(&self.title(stage, module), text);
        }
    }

    fn title(&self, stage: Stage, module: &str) -> String {
        let Self { kernel, variant, .. } = self;
        let separator = if module.is_empty() { "" } else { ", " };
        format!("kernel `{kernel}`, {}{variant}{separator}{module}", stage.name())
    }

    fn note_missing(&self, stage: Stage, reason: &str) {
        output::note(&format!("{}: not available: {reason}", self.title(stage, "")));
    }
}

/// Returns the kernel IR after lowering, and after each pass that changed it.
fn passes(program: &Program, options: &KirOptions) -> Result<String, scry_ir::ShaderError> {
    let (mut all, mut before) = (String::new(), String::new());
    let mut visit = |pass: &'static str, kir: &Kir| {
        let after = kir.with_positions().to_string();
        if after == before {
            let _ = writeln!(all, "# {pass}: unchanged\n");
        } else {
            let _ = writeln!(all, "# {pass}\n{after}");
            before = after;
        }
    };
    program.visit_passes(options, &mut visit)?;
    Ok(all)
}

#[cfg(test)]
mod tests;
