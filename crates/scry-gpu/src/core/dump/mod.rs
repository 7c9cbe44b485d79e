//! Stages of compilations, printed for debugging: `SCRY_DEBUG` selects stages and kernels.
//!
//! Output is for a person at a terminal and goes to standard error or to files, not to the log: it
//! needs no logger. Without `SCRY_DEBUG` a compilation pays for one comparison.

mod output;
mod settings;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::OnceLock;

use scry_ir::Program;
use scry_ir::kir::{Kir, KirOptions};
#[cfg(feature = "vulkan")]
use scry_ir::spirv_text;

use self::output::Output;
use self::settings::Settings;
pub(crate) use self::settings::Stage;
use crate::core::driver::GridSource;

/// One compilation of a selected kernel.
pub(crate) struct Dump {
    output: &'static Output,
    kernel: String,
    /// What precedes the extension of its files, and what follows the name in headings.
    file: String,
    heading: String,
    written: RefCell<Vec<Stage>>,
}

/// Returns where stages are printed, if any are.
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
    /// Returns the output of a compilation that begins now, if the kernel is selected.
    pub(crate) fn of(kernel: &str, grid: GridSource, checked: bool) -> Option<Self> {
        let output = process_output()?;
        let nth = output.select(kernel)?;
        let mut heading = String::new();
        if !checked {
            heading.push_str(", unchecked");
        }
        match grid {
            GridSource::Native => {}
            GridSource::Linearised => heading.push_str(", grid linearised"),
            GridSource::Counts => heading.push_str(", indirect grid"),
        }
        let mut file = output::file_name(kernel);
        if nth > 1 {
            let _ = write!(file, "-{nth}");
        }
        Some(Self { output, kernel: kernel.to_owned(), file, heading, written: RefCell::default() })
    }

    /// Returns whether a stage is printed.
    pub(crate) fn wants(&self, stage: Stage) -> bool {
        self.output.settings.stages.contains(&stage)
    }

    /// Prints the stages that do not depend on the device.
    pub(crate) fn program(&self, program: &Program, checked: bool) {
        let options = KirOptions { checked };
        if self.wants(Stage::Passes) {
            let text = passes(program, &options);
            self.text(Stage::Passes, "", &text.unwrap_or_else(|error| format!("{error}\n")));
        }
        if self.wants(Stage::Kir) {
            let text = program.with_kir(&options, |kir| kir.with_positions().to_string());
            self.text(Stage::Kir, "", &text.unwrap_or_else(|error| format!("{error}\n")));
        }
        if self.wants(Stage::Wgsl) {
            let text = program.with_kir(&options, |kir| kir.to_wgsl(program.interface()));
            match text.and_then(|text| text) {
                Ok(text) => self.text(Stage::Wgsl, "", &text),
                Err(error) => self.missing(Stage::Wgsl, &error.message),
            }
        }
    }

    /// Prints the SPIR-V.
    #[cfg(feature = "vulkan")]
    pub(crate) fn spirv(&self, words: &[u32]) {
        if !self.wants(Stage::Spirv) {
            return;
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.written.borrow_mut().push(Stage::Spirv);
        if !self.output.write_file(&format!("{}.spv", self.file), &bytes) {
            self.output.print(&self.title(Stage::Spirv, ""), &spirv_text(words));
        }
    }

    /// Prints PTX; `variant` distinguishes several of one compilation.
    pub(crate) fn ptx(&self, variant: &str, text: &str) {
        if self.wants(Stage::Ptx) {
            self.text(Stage::Ptx, variant, text);
        }
    }

    /// Ends the output: says which stages the device did not have.
    pub(crate) fn finish(&self, device: &str) {
        for stage in [Stage::Spirv, Stage::Ptx] {
            if self.wants(stage) && !self.written.borrow().contains(&stage) {
                let other = match stage {
                    Stage::Spirv => "Vulkan",
                    _ => "CUDA",
                };
                let name = stage.name();
                self.missing(
                    stage,
                    &format!(
                        "{device} does not compile {name}; help: open a {other} device, or run \
                         `scry emit --target {name}`"
                    ),
                );
            }
        }
    }

    fn text(&self, stage: Stage, variant: &str, text: &str) {
        self.written.borrow_mut().push(stage);
        let separator = if variant.is_empty() { "" } else { "." };
        let name = format!("{}{separator}{variant}.{}", self.file, stage.extension());
        if !self.output.write_file(&name, text.as_bytes()) {
            self.output.print(&self.title(stage, variant), text);
        }
    }

    fn title(&self, stage: Stage, variant: &str) -> String {
        let Self { kernel, heading, .. } = self;
        let separator = if variant.is_empty() { "" } else { ", " };
        format!("kernel `{kernel}`, {}{heading}{separator}{variant}", stage.name())
    }

    fn missing(&self, stage: Stage, why: &str) {
        output::note(&format!("{}: not available: {why}", self.title(stage, "")));
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
