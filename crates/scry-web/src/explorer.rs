//! The compiler explorer: a kernel in every language that Scry translates it to, with the source
//! line that each line is from. It needs no device.

use scry_ir::kir::{Kir, KirOptions};
use scry_ir::{Interface, ShaderError, SpirvOptions, spirv_text};
use scry_ptx::{PtxOptions, Target, translate};
use serde_json::{Value, json};

use crate::reflect::{self, error_value};

/// Lines of a text, each with the line of the source that it is from; 0 if that is unknown.
type Lines = Vec<(String, u32)>;

/// Translates a kernel. Returns JSON: either `panes`, the languages with their lines, beside the
/// interface of the kernel; or `error`.
///
/// `entry` selects an entry point; if there is none of this name, the first one. Overrides without
/// a default are 1.
#[must_use]
pub fn explore(source: &str, entry: &str, target: &str, checked: bool) -> Value {
    match translated(source, entry, target, checked) {
        Ok(found) => found,
        Err(error) => json!({ "error": error_value(&error) }),
    }
}

fn translated(
    source: &str,
    entry: &str,
    target: &str,
    checked: bool,
) -> Result<Value, ShaderError> {
    let selected = reflect::select(source, entry)?;
    let interface = selected.program.interface();
    let target = target.parse().unwrap_or(Target::SM_90);
    let panes = selected.program.with_kir(&KirOptions { checked }, |mut kir| {
        kir.source.name = Some("kernel.wgsl".to_owned());
        kir.source.line_info = true;
        panes(&kir, interface, target, checked)
    })?;
    let mut found = reflect::interface_value(&selected);
    found["panes"] = panes.into();
    Ok(found)
}

/// Returns the panes: KIR, PTX, SPIR-V and WGSL. Each has lines or an error.
fn panes(kir: &Kir, interface: &Interface, target: Target, checked: bool) -> Vec<Value> {
    let pane = |name: &str, lines: Result<Lines, ShaderError>| match lines {
        Ok(lines) => {
            let (text, from): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
            json!({ "name": name, "lines": text, "from": from })
        }
        Err(error) => json!({ "name": name, "error": error.to_string() }),
    };
    let ptx = translate(kir, &PtxOptions::new(target));
    let options = SpirvOptions::portable(checked);
    let spirv = kir.to_spirv(interface, &options);
    vec![
        pane("KIR", Ok(kir_lines(&kir.with_positions().to_string()))),
        pane("PTX", Ok(ptx_lines(&ptx.text))),
        pane("SPIR-V", spirv.map(|words| spirv_lines(&spirv_text(&words)))),
        pane("WGSL", kir.to_wgsl(interface).map(|text| wgsl_lines(&text))),
    ]
}

/// Returns the number at the start of a text; 0 if there is none.
fn number(text: &str) -> u32 {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().unwrap_or(0)
}

/// Moves positions such as `@12:5` at the end of a line, or before its brace, out of the text.
fn kir_lines(text: &str) -> Lines {
    let line = |line: &str| match line.rfind(" @") {
        Some(at) => {
            let brace = if line.ends_with('{') { " {" } else { "" };
            (format!("{}{brace}", &line[..at]), number(&line[at + 2..]))
        }
        None => (line.to_owned(), 0),
    };
    text.lines().map(line).collect()
}

/// Removes the lines `.loc`, which give the lines after them their position.
fn ptx_lines(text: &str) -> Lines {
    located(text, |line| line.strip_prefix("\t.loc 1 ").map(number))
}

/// Removes the instructions `OpLine`, which give the ones after them their position.
fn spirv_lines(text: &str) -> Lines {
    located(text, |line| {
        let operands = line.strip_prefix("Line ")?;
        operands.split(' ').nth(1).map(number)
    })
}

/// Moves comments such as `// line 12` out of the text.
fn wgsl_lines(text: &str) -> Lines {
    let line = |line: &str| match line.split_once(" // line ") {
        Some((code, from)) => (code.to_owned(), number(from)),
        None => (line.to_owned(), 0),
    };
    text.lines().map(line).collect()
}

/// Removes the lines of a text that are positions, and gives them to the lines after them.
fn located(text: &str, position: impl Fn(&str) -> Option<u32>) -> Lines {
    let (mut lines, mut from) = (Lines::new(), 0);
    for line in text.lines() {
        match position(line) {
            Some(at) => from = at,
            None => lines.push((line.replace('\t', "    "), from)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: &str = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64)
fn double(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&data) {
        data[id.x] *= 2.0;
    }
}";

    /// The lines of a pane that are from a line of the source.
    fn lines_from(found: &Value, pane: usize, line: u32) -> Vec<String> {
        let pane = &found["panes"][pane];
        let lines = pane["lines"].as_array().unwrap().iter();
        let from = pane["from"].as_array().unwrap().iter();
        let of_line = lines.zip(from).filter(|(_, from)| **from == line);
        of_line.map(|(text, _)| text.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_language_is_linked_to_the_source() {
        let found = explore(DOUBLE, "", "sm_90", true);
        assert_eq!(found["entry"], "double");
        for (pane, (name, multiplication)) in
            [("KIR", "mul"), ("PTX", "mul"), ("SPIR-V", "FMul"), ("WGSL", "* ")].iter().enumerate()
        {
            assert_eq!(found["panes"][pane]["name"], *name);
            let lines = lines_from(&found, pane, 5);
            assert!(lines.iter().any(|line| line.contains(multiplication)), "{name}: {lines:?}");
        }
        let texts = found["panes"].to_string();
        assert!(!texts.contains(".loc") && !texts.contains("// line"), "{texts}");
    }

    #[test]
    fn errors_have_their_position() {
        let found = explore(&DOUBLE.replace("2.0", "missing"), "", "sm_90", true);
        assert_eq!(found["error"]["line"], 5);
        assert!(found["error"]["message"].as_str().unwrap().contains("missing"), "{found}");
    }

    #[test]
    fn an_entry_point_is_selected_by_name() {
        let source = "override n: u32; @compute @workgroup_size(n) fn first() {}
            @compute @workgroup_size(8) fn second() {}";
        assert_eq!(explore(source, "second", "sm_80", true)["entry"], "second");
        let first = explore(source, "missing", "sm_80", true);
        assert_eq!((&first["entry"], &first["assumed"][0]), (&json!("first"), &json!("n")));
    }

    #[test]
    fn a_language_that_lacks_a_feature_says_so() {
        let source = "@group(0) @binding(0) var<storage, read_write> data: array<f64>;
            @compute @workgroup_size(1) fn main() { data[0] *= 2.0lf; }";
        let found = explore(source, "", "sm_90", true);
        assert!(found["panes"][1]["lines"].is_array(), "PTX has f64: {found}");
        assert!(found["panes"][3]["error"].as_str().unwrap().contains("f64"), "{found}");
    }
}
