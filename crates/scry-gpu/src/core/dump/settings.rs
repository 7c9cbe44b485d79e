//! The environment variables `SCRY_DEBUG` and `SCRY_DEBUG_DIR`.

use std::path::PathBuf;

/// The variable with the stages and the kernels, such as `kir,ptx:saxpy`.
pub(super) const STAGES: &str = "SCRY_DEBUG";

/// The variable with the folder to write files to.
pub(super) const FOLDER: &str = "SCRY_DEBUG_DIR";

/// A stage of the compilation of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The kernel IR that backends compile.
    Kir,
    /// The kernel IR after lowering, and after each pass.
    Passes,
    /// The SPIR-V of Vulkan devices.
    Spirv,
    /// The PTX of CUDA devices.
    Ptx,
    /// The kernel IR as WGSL.
    Wgsl,
}

/// Stages of the compilation of graphs, which scry-tensor prints.
const GRAPH_STAGES: [&str; 4] = ["graph", "simplify", "group", "plan"];

impl Stage {
    pub(super) const ALL: [Self; 5] = [Self::Kir, Self::Passes, Self::Spirv, Self::Ptx, Self::Wgsl];

    /// Returns the name in `SCRY_DEBUG`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kir => "kir",
            Self::Passes => "passes",
            Self::Spirv => "spirv",
            Self::Ptx => "ptx",
            Self::Wgsl => "wgsl",
        }
    }

    /// Returns the extension of files.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Passes => "passes.txt",
            Self::Spirv => "spv",
            Self::Kir | Self::Ptx | Self::Wgsl => self.name(),
        }
    }
}

/// The selected stages and kernels, and the output folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) stages: Vec<Stage>,
    /// Names of kernels; all kernels if empty.
    pub(super) kernels: Vec<String>,
    /// `None`: standard error.
    pub(super) folder: Option<PathBuf>,
}

impl Settings {
    /// Reads the environment of the process. The second value is a warning, if the value is
    /// invalid.
    pub(super) fn from_environment() -> (Self, Option<String>) {
        let value = std::env::var_os(STAGES).unwrap_or_default();
        let (mut settings, warning) = Self::parse(&value.to_string_lossy());
        let folder = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
        settings.folder = folder.map(PathBuf::from);
        (settings, warning)
    }

    /// Parses a value of `SCRY_DEBUG`. Unknown stages are ignored with a warning.
    fn parse(value: &str) -> (Self, Option<String>) {
        let (stages, kernels) = value.split_once(':').unwrap_or((value, ""));
        let mut settings =
            Self { kernels: words(kernels).map(str::to_owned).collect(), ..Self::default() };
        let mut unknown = Vec::new();
        let has_graph_stage = words(stages).any(|word| GRAPH_STAGES.contains(&word));
        for word in words(stages).filter(|word| !GRAPH_STAGES.contains(word)) {
            match Stage::ALL.into_iter().find(|stage| stage.name() == word) {
                Some(stage) if settings.stages.contains(&stage) => {}
                Some(stage) => settings.stages.push(stage),
                None => unknown.push(format!("`{word}`")),
            }
        }
        let names = [&Stage::ALL.map(Stage::name)[..], &GRAPH_STAGES].concat().join(", ");
        let problem = match unknown.as_slice() {
            [] if settings.stages.is_empty() && !kernels.is_empty() && !has_graph_stage => {
                "no stage is named".to_owned()
            }
            [] => return (settings, None),
            [one] => format!("unknown stage {one}"),
            _ => format!("unknown stages {}", unknown.join(", ")),
        };
        let help = format!(
            "write stages ({names}), and after `:` names of kernels, unless all are meant: \
             kir,ptx:saxpy"
        );
        (settings, Some(format!("{STAGES}={value}: {problem}; help: {help}")))
    }

    /// Returns whether any stage is selected.
    pub(super) fn is_enabled(&self) -> bool {
        !self.stages.is_empty()
    }

    /// Returns whether a kernel is selected.
    pub(super) fn selects(&self, kernel: &str) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|name| name == kernel)
    }
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_and_kernels_are_lists() {
        let (settings, warning) = Settings::parse("kir, ptx,kir:saxpy,blur");
        assert_eq!(warning, None);
        assert_eq!(settings.stages, [Stage::Kir, Stage::Ptx]);
        assert!(settings.selects("saxpy") && settings.selects("blur") && !settings.selects("kir"));
        let (all, warning) = Settings::parse("passes,spirv,wgsl");
        assert_eq!((all.stages.len(), warning), (3, None));
        assert!(all.selects("saxpy"));
        let (graph, warning) = Settings::parse("graph,plan,kir");
        assert_eq!((graph.stages.as_slice(), warning), (&[Stage::Kir][..], None));
        let (off, warning) = Settings::parse("");
        assert_eq!((off.is_enabled(), warning), (false, None));
    }

    #[test]
    fn unknown_stages_are_named() {
        let (settings, warning) = Settings::parse("kri,kir:saxpy");
        assert_eq!(settings.stages, [Stage::Kir]);
        assert_eq!(
            warning.unwrap(),
            "SCRY_DEBUG=kri,kir:saxpy: unknown stage `kri`; help: write stages (kir, passes, \
             spirv, ptx, wgsl, graph, simplify, group, plan), and after `:` names of kernels, \
             unless all are meant: kir,ptx:saxpy"
        );
        let (settings, warning) = Settings::parse("1,true");
        assert!(!settings.is_enabled());
        assert!(warning.unwrap().contains("unknown stages `1`, `true`; help: "));
        assert!(Settings::parse(":saxpy").1.unwrap().contains("no stage is named"));
    }
}
