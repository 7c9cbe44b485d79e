//! Main methods of public types must have an example in their documentation: Rust that rustdoc
//! compiles, not a block of text.

use super::{Finding, Source};

/// The types whose methods need an example, with their folder.
const TYPES: [(&str, &[&str]); 5] = [
    (
        "crates/scry-gpu/src/",
        &[
            "Batch",
            "BoundKernel",
            "Buffer",
            "CompileOptions",
            "Device",
            "DeviceGroup",
            "Download",
            "GpuError",
            "Kernel",
            "Launch",
            "PreparedLaunch",
            "Recording",
            "ReplayInputs",
            "Slice",
            "Ticket",
            "UntypedBuffer",
        ],
    ),
    ("crates/scry-ir/src/", &["Builder", "Program"]),
    ("crates/scry-kernels/src/", &["Kernels", "Op"]),
    (
        "crates/scry-models/src/",
        &["ChatTemplate", "DecodeStream", "ModelInfo", "StateDict", "Tokenizer", "Weights"],
    ),
    (
        "crates/scry-tensor/src/",
        &["DType", "Graph", "Operation", "Plan", "Shape", "State", "Tensor", "TensorBatch"],
    ),
];

/// Finds methods without an example. Getters, which are `#[must_use]` without arguments except
/// `&self`, need none.
pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    for source in sources {
        let types = TYPES.iter().find(|(folder, _)| source.path.starts_with(folder));
        let Some((_, types)) = types else { continue };
        for (line, name) in without_example(&source.text, types) {
            let what = format!("`{name}` has no example in its documentation");
            findings.push(Finding::new(&source.path, line, "examples", what));
        }
    }
}

/// Returns public methods of the types without an example, each with its line.
fn without_example<'a>(text: &'a str, types: &[&str]) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let (mut is_wanted, mut in_fence, mut has_example, mut is_must_use) =
        (false, false, false, false);
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("impl") {
            is_wanted = types.contains(&implemented_type(line));
        }
        let line = line.trim_start();
        if let Some(doc) = line.strip_prefix("///") {
            if let Some(info) = doc.trim().strip_prefix("```") {
                has_example |= !in_fence && is_compiled(info);
                in_fence = !in_fence;
            }
            continue;
        }
        if line.starts_with("#[") {
            is_must_use |= line.starts_with("#[must_use");
            continue;
        }
        let is_getter = is_must_use && line.contains("(&self)");
        if let Some(name) = public_method(line)
            && is_wanted
            && !has_example
            && !is_getter
        {
            found.push((number, name));
        }
        (in_fence, has_example, is_must_use) = (false, false, false);
    }
    found
}

/// Returns whether rustdoc compiles a code block with this text behind its opening fence.
fn is_compiled(info: &str) -> bool {
    const RUST: [&str; 4] = ["rust", "no_run", "should_panic", "compile_fail"];
    let is_code = |word: &str| word.starts_with('E') && word[1..].parse::<u16>().is_ok();
    info.split([',', ' '])
        .filter(|word| !word.is_empty())
        .all(|word| RUST.contains(&word) || word.starts_with("edition") || is_code(word))
}

/// Returns the type of an inherent `impl` block; an empty text for an `impl` of a trait.
fn implemented_type(line: &str) -> &str {
    let Some(line) = line.strip_suffix(" {").filter(|line| !line.contains(" for ")) else {
        return "";
    };
    let name = match line.strip_prefix("impl<").and_then(|rest| rest.split_once("> ")) {
        Some((_, name)) => name,
        None => line.trim_start_matches("impl "),
    };
    name.split('<').next().unwrap_or_default()
}

/// Returns the name of a public method that begins on this line.
fn public_method(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest).strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
impl<'a, T: Element> Slice<'a, T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize { 0 }
    /// Reads.
    pub fn read(&self) -> Result<()> { Ok(()) }
    /// Writes.
    ///
    /// ```
    /// ```
    pub fn write<U>(&self, data: &[U]) {}
    /// Labels.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self { self }
    pub(crate) fn inner(&self) {}
}
impl Clone for Slice<'_, u8> {
    pub fn clone(&self) -> Self { *self }
}
impl Other {
    pub unsafe fn other(&mut self) {}
}
";

    #[test]
    fn methods_without_example_are_found() {
        assert_eq!(without_example(TEXT, &["Slice"]), [(6, "read"), (14, "label")]);
        assert_eq!(without_example(TEXT, &["Other"]), [(21, "other")]);
    }

    #[test]
    fn text_is_not_an_example() {
        let found = |fence: &str| {
            let docs = format!("/// Reads.\n///\n/// ```{fence}\n/// a\n/// ```\n");
            let text = format!("impl Slice {{\n{docs}pub fn read(&mut self) {{}}\n}}\n");
            without_example(&text, &["Slice"]).len()
        };
        assert_eq!(["text", "ignore", "wgsl", "no_run,text"].map(found), [1; 4]);
        assert_eq!(["", "rust", "no_run", "compile_fail,E0277"].map(found), [0; 4]);
    }

    #[test]
    fn types_of_impl_blocks_are_read() {
        let lines = ["impl Device {", "impl<T: Element> Buffer<T> {", "impl From<A> for Device {"];
        assert_eq!(lines.map(implemented_type), ["Device", "Buffer", ""]);
    }
}
