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
        &[
            "BoundPlan",
            "DType",
            "Error",
            "Graph",
            "Operation",
            "Plan",
            "Shape",
            "State",
            "Tensor",
            "TensorBatch",
        ],
    ),
];

/// The folders in which every public item needs an example: types, traits and getters, too.
const COMPLETE: [&str; 1] = ["crates/scry-tensor/src/"];

/// A module of such a folder that documentation hides.
const HIDDEN: &str = "crates/scry-tensor/src/waiting.rs";

/// Finds methods without an example. Getters, which are `#[must_use]` without arguments except
/// `&self`, need none outside of [`COMPLETE`] folders.
pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    for source in sources {
        let types = TYPES.iter().find(|(folder, _)| source.path.starts_with(folder));
        let Some((_, types)) = types else { continue };
        let mut found = without_example(&source.text, types);
        if COMPLETE.iter().any(|it| source.path.starts_with(it)) && source.path != HIDDEN {
            found.extend(any_without_example(&source.text));
            found.sort_unstable();
            found.dedup();
        }
        for (line, name) in found {
            if source.is_test(line) {
                continue;
            }
            let what = format!("`{name}` has no example in its documentation");
            findings.push(Finding::new(&source.path, line, "examples", what));
        }
    }
}

/// Returns public methods of the types without an example, each with its line.
fn without_example<'a>(text: &'a str, types: &[&str]) -> Vec<(usize, &'a str)> {
    let is_getter = |item: &Item<'_>| item.is_must_use && item.text.contains("(&self)");
    let items = items(text).into_iter();
    let items = items.filter(|it| types.contains(&it.of) && !it.has_example && !is_getter(it));
    items.filter_map(|it| Some((it.line, public_method(it.text)?))).collect()
}

/// Returns documented types, traits, functions and methods without an example, each with its line.
/// Those that documentation hides are left out, and the methods of such types.
fn any_without_example(text: &str) -> Vec<(usize, &str)> {
    let items = items(text);
    let hidden: Vec<&str> =
        items.iter().filter(|it| it.is_hidden).filter_map(|it| public_type(it.text)).collect();
    // The documentation of methods of macros is an attribute.
    let is_macro = |it: &Item<'_>| it.text.contains("fn $");
    let is_shown =
        |it: &&Item<'_>| !is_macro(it) && it.has_docs && !it.is_hidden && !hidden.contains(&it.of);
    let items = items.iter().filter(is_shown).filter(|it| !it.has_example);
    let name = |text| public_type(text).or_else(|| public_method(text));
    items.filter_map(|it| Some((it.line, name(it.text)?))).collect()
}

/// A line that begins a public item, and what is before it.
struct Item<'a> {
    /// The line, from 1.
    line: usize,
    text: &'a str,
    /// The type whose inherent `impl` block it is in; empty outside of one.
    of: &'a str,
    has_docs: bool,
    has_example: bool,
    is_must_use: bool,
    is_hidden: bool,
}

/// Returns the public items of a file.
fn items(text: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let (mut of, mut in_fence) = ("", false);
    let (mut has_docs, mut has_example, mut is_must_use, mut is_hidden) =
        (false, false, false, false);
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("impl") {
            of = implemented_type(line);
        } else if line == "}" {
            of = "";
        }
        let text = line.trim_start();
        if let Some(doc) = text.strip_prefix("///") {
            has_docs = true;
            if let Some(info) = doc.trim().strip_prefix("```") {
                has_example |= !in_fence && is_compiled(info);
                in_fence = !in_fence;
            }
            continue;
        }
        if text.starts_with("#[") {
            is_must_use |= text.starts_with("#[must_use");
            is_hidden |= text.starts_with("#[doc(hidden)]");
            continue;
        }
        if text.starts_with("pub ") {
            let line = number;
            items.push(Item { line, text, of, has_docs, has_example, is_must_use, is_hidden });
        }
        (in_fence, has_docs, has_example) = (false, false, false);
        (is_must_use, is_hidden) = (false, false);
    }
    items
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

/// Returns the name of a public type or trait that begins on this line.
fn public_type(line: &str) -> Option<&str> {
    let (kind, rest) = line.strip_prefix("pub ")?.split_once(' ')?;
    let is_type = matches!(kind, "struct" | "enum" | "trait" | "type" | "union");
    is_type.then(|| rest.split(|it: char| !it.is_alphanumeric() && it != '_').next())?
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
    fn any_item_without_example_is_found() {
        let text = format!(
            "{TEXT}/// A range.\n#[derive(Debug)]\npub struct Range<T>(T);\n\
             /// A name.\n///\n/// ```\n/// ```\npub trait Name {{}}\n\
             /// Hidden.\n#[doc(hidden)]\npub enum Hidden {{}}\n\
             impl Hidden {{\n    /// Reads.\n    pub fn read() {{}}\n}}\n\
             /// Frees.\npub fn free() {{}}\npub fn undocumented() {{}}\n"
        );
        let found: Vec<&str> = any_without_example(&text).into_iter().map(|it| it.1).collect();
        assert_eq!(found, ["len", "read", "label", "Range", "free"]);
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
