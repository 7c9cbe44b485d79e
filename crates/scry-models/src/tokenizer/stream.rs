//! Decoding ids that arrive one by one.

use std::str;

use super::{Tokenizer, byte_level};
use crate::error::Result;

/// A streaming detokenizer: decodes token ids that are passed one by one, as a model generates
/// them. A character whose bytes are in several tokens is held back until it is complete, so that
/// the parts, joined, are the text that [`Tokenizer::decode`] returns for all ids.
///
/// ```no_run
/// # let tokenizer = scry_models::Tokenizer::from_file("tokenizer.json")?;
/// let mut stream = tokenizer.decode_stream();
/// for id in tokenizer.encode("a long text 🎉")? {
///     print!("{}", stream.push(id)?);
/// }
/// println!("{}", stream.finish()?);
/// # Ok::<(), scry_models::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DecodeStream {
    tokenizer: Tokenizer,
    /// Bytes of a character that is not complete, of tokens that are bytes.
    bytes: Vec<u8>,
    /// Ids since the last text, after those of that text, of other tokens.
    ids: Vec<u32>,
    /// The number of ids of the last text.
    returned: usize,
}

impl DecodeStream {
    pub(super) fn new(tokenizer: Tokenizer) -> Self {
        Self { tokenizer, bytes: Vec::new(), ids: Vec::new(), returned: 0 }
    }

    /// Adds an id, and returns the text that is complete: empty within a character, and for special
    /// tokens.
    ///
    /// ```no_run
    /// # let tokenizer = scry_models::Tokenizer::from_file("tokenizer.json")?;
    /// let mut stream = tokenizer.decode_stream();
    /// assert_eq!(stream.push(1037)?, "a");
    /// assert_eq!(stream.push(4937)?, " cat");
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`](crate::ErrorKind::Tokenizer) for an id without a token. The stream
    /// remains as it was.
    pub fn push(&mut self, id: u32) -> Result<String> {
        const CALL: &str = "DecodeStream::push";
        let Some(token) = self.tokenizer.id_to_token(id) else {
            return Err(self.tokenizer.unknown(CALL, &id.to_string()));
        };
        if self.tokenizer.is_special(id) {
            return Ok(String::new());
        }
        if self.tokenizer.0.is_byte_level {
            byte_level::append_bytes(&token, &mut self.bytes);
            return Ok(complete(&mut self.bytes));
        }
        self.ids.push(id);
        let text = self.pending(CALL)?;
        if text.ends_with(char::REPLACEMENT_CHARACTER) {
            return Ok(String::new());
        }
        self.ids.drain(..self.returned);
        self.returned = self.ids.len();
        Ok(text)
    }

    /// Returns the rest: U+FFFD for a character that is not complete, usually nothing.
    ///
    /// ```no_run
    /// # let tokenizer = scry_models::Tokenizer::from_file("tokenizer.json")?;
    /// assert_eq!(tokenizer.decode_stream().finish()?, "");
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn finish(mut self) -> Result<String> {
        if self.tokenizer.0.is_byte_level {
            return Ok(String::from_utf8_lossy(&self.bytes).into_owned());
        }
        let text = self.pending("DecodeStream::finish");
        self.ids.clear();
        text
    }

    /// Returns the text of the ids since the last text: what they add to the text before.
    fn pending(&self, call: &'static str) -> Result<String> {
        let before = self.tokenizer.decode_known(call, &self.ids[..self.returned])?;
        let all = self.tokenizer.decode_known(call, &self.ids)?;
        // Decoders that change earlier text, such as spaces before punctuation, change its end.
        Ok(all.get(before.len()..).unwrap_or_default().to_owned())
    }
}

/// Removes all complete characters from bytes and returns them. What cannot become a character is
/// U+FFFD, as for [`String::from_utf8_lossy`].
fn complete(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut rest = &bytes[..];
    loop {
        match str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                rest = &[];
                break;
            }
            Err(error) => {
                let (valid, others) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                rest = others;
                let Some(len) = error.error_len() else { break };
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &rest[len..];
            }
        }
    }
    *bytes = rest.to_vec();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of bytes that arrive in pieces.
    fn parts(pieces: &[&[u8]]) -> Vec<String> {
        let mut bytes = Vec::new();
        let mut parts: Vec<String> = Vec::new();
        for piece in pieces {
            bytes.extend(*piece);
            parts.push(complete(&mut bytes));
        }
        parts.push(String::from_utf8_lossy(&bytes).into_owned());
        parts
    }

    #[test]
    fn incomplete_characters_are_held_back() {
        assert_eq!(parts(&[b"a\xf0\x9f", b"\x8e", b"\x89!"]), ["a", "", "🎉!", ""]);
        assert_eq!(parts(&[b"\xe6\x97", b"x"]), ["", "\u{fffd}x", ""]);
        assert_eq!(parts(&[b"\xe2\x82"]), ["", "\u{fffd}"]);
    }

    #[test]
    fn parts_join_to_the_lossy_text() {
        let bytes = b"a\xff\xf0\x9f\x8e\x89\xe2\x28\xa1\xc3\xed\xa0\x80\xf0\x9f";
        for size in 1..=bytes.len() {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(parts(&pieces).concat(), String::from_utf8_lossy(bytes), "{size}");
        }
    }
}
