//! SPIR-V as text, for debugging.

use std::fmt::Write as _;

use spirv::Op;

/// Returns SPIR-V as text, one instruction per line: its result and the result's type, its name,
/// and its other operands as numbers. Identifiers and literals look alike; `spirv-dis` of
/// SPIRV-Tools distinguishes them. Words that are not SPIR-V are printed as numbers.
///
/// ```
/// use scry_ir::{Program, SpirvOptions, spirv_text};
/// # use scry_ir::{FloatTypes, MatrixProducts, SpirvWorkarounds};
///
/// # let options = SpirvOptions {
/// #     version: (1, 3),
/// #     checked: true,
/// #     native_workgroup_zeroing: false,
/// #     linearised: false,
/// #     workarounds: SpirvWorkarounds::default(),
/// #     reports_aborted_loops: false,
/// #     polls: false,
/// #     matrices: MatrixProducts::empty(),
/// #     nan_preserving: FloatTypes::empty(),
/// #     max_workgroup_memory: 32 << 10,
/// # };
/// let program = Program::parse("@compute @workgroup_size(1) fn main() {}")?;
/// let text = spirv_text(&program.to_spirv(&options)?);
/// assert!(text.starts_with("; SPIR-V 1.3"));
/// assert!(text.contains("EntryPoint 5 "), "{text}");
/// assert!(text.contains(" \"main\""), "{text}");
/// # Ok::<(), scry_ir::ShaderError>(())
/// ```
#[must_use]
pub fn spirv_text(words: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = match words {
        [spirv::MAGIC_NUMBER, version, _, bound, _, rest @ ..] => {
            let [_, major, minor, _] = version.to_be_bytes();
            let _ = writeln!(text, "; SPIR-V {major}.{minor}, identifiers below {bound}");
            rest
        }
        _ => words,
    };
    while let [first, ..] = rest {
        let length = (first >> 16) as usize;
        let op = Op::from_u32(first & 0xffff).filter(|_| (1..=rest.len()).contains(&length));
        let length = if op.is_some() { length } else { 1 };
        let (instruction, after) = rest.split_at(length);
        match op {
            Some(op) => write_instruction(op, &instruction[1..], &mut text),
            None => {
                let _ = writeln!(text, "{first:#010x}");
            }
        }
        rest = after;
    }
    text
}

/// Writes an instruction as a line.
fn write_instruction(op: Op, operands: &[u32], text: &mut String) {
    let mut operands = operands;
    let has_type = has_result(op) && !is_untyped(op);
    let ty = if has_type { operands.split_off_first() } else { None };
    let result = if has_result(op) { operands.split_off_first() } else { None };
    let _ = match (result, ty) {
        (Some(result), Some(ty)) => write!(text, "%{result}: %{ty} = {op:?}"),
        (Some(result), None) => write!(text, "%{result} = {op:?}"),
        (None, _) => write!(text, "{op:?}"),
    };
    let numbers = string_position(op).map_or(operands.len(), |at| at.min(operands.len()));
    let (before, string) = operands.split_at(numbers);
    before.iter().for_each(|word| {
        let _ = write!(text, " {word}");
    });
    if string_position(op).is_some() {
        let length = string.iter().position(|word| word.to_le_bytes().contains(&0));
        let (string, after) = string.split_at(length.map_or(string.len(), |at| at + 1));
        let bytes: Vec<u8> = string.iter().flat_map(|word| word.to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let _ = write!(text, " {:?}", String::from_utf8_lossy(&bytes[..end]));
        after.iter().for_each(|word| {
            let _ = write!(text, " {word}");
        });
    }
    text.push('\n');
}

/// Returns how many operands, without results, precede the string of an instruction.
fn string_position(op: Op) -> Option<usize> {
    match op {
        Op::Extension | Op::ExtInstImport | Op::String | Op::SourceExtension => Some(0),
        Op::Name => Some(1),
        Op::EntryPoint | Op::MemberName => Some(2),
        _ => None,
    }
}

/// Whether a result has no type.
fn is_untyped(op: Op) -> bool {
    matches!(op, Op::Label | Op::ExtInstImport | Op::String | Op::DecorationGroup)
        || format!("{op:?}").starts_with("Type")
}

/// Whether an instruction that occurs in kernels has a result.
fn has_result(op: Op) -> bool {
    !matches!(
        op,
        Op::Nop
            | Op::Source
            | Op::SourceExtension
            | Op::Name
            | Op::MemberName
            | Op::Line
            | Op::NoLine
            | Op::Extension
            | Op::MemoryModel
            | Op::EntryPoint
            | Op::ExecutionMode
            | Op::ExecutionModeId
            | Op::Capability
            | Op::Decorate
            | Op::DecorateId
            | Op::MemberDecorate
            | Op::FunctionEnd
            | Op::Store
            | Op::CopyMemory
            | Op::AtomicStore
            | Op::ControlBarrier
            | Op::MemoryBarrier
            | Op::LoopMerge
            | Op::SelectionMerge
            | Op::Branch
            | Op::BranchConditional
            | Op::Switch
            | Op::Kill
            | Op::Return
            | Op::ReturnValue
            | Op::Unreachable
            | Op::CooperativeMatrixStoreKHR
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_types_and_strings_are_printed() {
        let words = [
            spirv::MAGIC_NUMBER,
            0x0001_0500,
            0,
            9,
            0,
            4 << 16 | Op::TypeInt as u32,
            3,
            32,
            0,
            5 << 16 | Op::IAdd as u32,
            3,
            8,
            1,
            2,
            4 << 16 | Op::Name as u32,
            8,
            u32::from_le_bytes(*b"main"),
            0,
            1 << 16 | Op::Return as u32,
        ];
        let expected = "; SPIR-V 1.5, identifiers below 9\n%3 = TypeInt 32 0\n%8: %3 = IAdd 1 2\n\
                        Name 8 \"main\"\nReturn\n";
        assert_eq!(spirv_text(&words), expected);
    }

    #[test]
    fn invalid_words_are_printed_as_numbers() {
        assert_eq!(spirv_text(&[]), "");
        assert_eq!(spirv_text(&[0, 7]), "0x00000000\n0x00000007\n");
        let too_long = 9 << 16 | Op::Return as u32;
        assert_eq!(spirv_text(&[too_long]), format!("{too_long:#010x}\n"));
        // Instructions that lack their result or string.
        assert_eq!(spirv_text(&[1 << 16 | Op::IAdd as u32]), "IAdd\n");
        assert_eq!(spirv_text(&[1 << 16 | Op::Name as u32]), "Name \"\"\n");
    }
}
