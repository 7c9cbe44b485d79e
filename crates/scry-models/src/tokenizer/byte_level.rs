//! The characters that write bytes in the vocabularies of GPT-2 and its successors.

use std::sync::LazyLock;

/// The byte that a character below U+0144 means.
static BYTES: LazyLock<[Option<u8>; 0x144]> = LazyLock::new(|| {
    let mut bytes = [None; 0x144];
    // Printable characters of Latin-1 mean themselves; the others follow from U+0100 on.
    let is_printable = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    for byte in (0..=255u8).filter(is_printable) {
        bytes[usize::from(byte)] = Some(byte);
    }
    for (position, byte) in (0..=255u8).filter(|byte| !is_printable(byte)).enumerate() {
        bytes[0x100 + position] = Some(byte);
    }
    bytes
});

/// Appends the bytes of a token. A token with other characters means its own text.
pub(super) fn append_bytes(token: &str, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    for character in token.chars() {
        let Some(byte) = BYTES.get(character as usize).copied().flatten() else {
            bytes.truncate(start);
            bytes.extend(token.bytes());
            return;
        };
        bytes.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tokenizers::pre_tokenizers::byte_level::ByteLevel;

    use super::*;

    #[test]
    fn alphabet_has_every_byte_once() {
        let bytes: HashSet<u8> = BYTES.iter().flatten().copied().collect();
        assert_eq!((bytes.len(), BYTES.iter().flatten().count()), (256, 256));
        let characters = ByteLevel::alphabet();
        assert!(characters.iter().all(|it| BYTES[*it as usize].is_some()));
    }

    #[test]
    fn other_characters_mean_their_text() {
        let mut bytes = Vec::new();
        append_bytes("Ġa", &mut bytes);
        append_bytes("é", &mut bytes);
        append_bytes("Ġ日", &mut bytes);
        assert_eq!(bytes, [b" a\xe9".as_slice(), "Ġ日".as_bytes()].concat());
    }
}
