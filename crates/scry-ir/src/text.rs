//! Parts of texts: found, and joined. The standard library's searches are fast for long texts,
//! which takes a good deal of code for each kind of search; these are of messages and headings. For
//! the crates of this project alone.

/// Where a text first holds a part.
pub fn find(text: &str, part: &str) -> Option<usize> {
    let part = part.as_bytes();
    let first = *part.first()?;
    let mut places = text.as_bytes().windows(part.len());
    places.position(|here| here[0] == first && here == part)
}

/// Where a text last holds a part.
pub fn rfind(text: &str, part: &str) -> Option<usize> {
    text.as_bytes().windows(part.len().max(1)).rposition(|here| here == part.as_bytes())
}

/// What follows each occurrence of a part, up to the next one.
pub fn after_each<'a>(text: &'a str, part: &str) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut rest = find(text, part).map(|at| &text[at + part.len()..]);
    while let Some(from) = rest {
        let next = find(from, part);
        pieces.push(&from[..next.unwrap_or(from.len())]);
        rest = next.map(|at| &from[at + part.len()..]);
    }
    pieces
}

/// The parts, with a text between each two.
pub fn join(parts: &mut dyn Iterator<Item = &str>, between: &str) -> String {
    let mut text = String::new();
    for (nth, part) in parts.enumerate() {
        if nth != 0 {
            text += between;
        }
        text += part;
    }
    text
}

/// The words, with a text between each two.
pub fn join_words(words: &[String], between: &str) -> String {
    join(&mut words.iter().map(String::as_str), between)
}

/// Words as a sentence lists them.
pub fn list(words: &[String]) -> String {
    join_words(words, ", ")
}

/// A text on one line.
pub fn on_one_line(text: &str) -> String {
    join(&mut text.split_whitespace(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_where_they_are() {
        assert_eq!((find("a ─ b ─ c", "─"), rfind("a ─ b ─ c", "─")), (Some(2), Some(8)));
        assert_eq!((find("abc", "abcd"), rfind("abc", "x"), find("abc", "")), (None, None, None));
        assert_eq!((find("abab", "ab"), rfind("abab", "ab")), (Some(0), Some(2)));
    }

    #[test]
    fn pieces_begin_after_a_part_and_end_before_the_next() {
        assert_eq!(after_each("a.b c .b.b d", ".b"), [" c ", "", " d"]);
        assert!(after_each("a", ".b").is_empty());
    }

    #[test]
    fn what_is_joined_has_something_between() {
        assert_eq!(list(&["a".into(), "b".into()]), "a, b");
        assert_eq!((list(&[]), on_one_line(" a\n\t b ")), (String::new(), "a b".to_owned()));
    }
}
