//! Parts of texts: found, and joined. The standard library's searches are fast for long texts, which
//! takes a good deal of code for each kind of search; these are of messages and headings.

/// Where a text first holds a part.
pub(crate) fn find(text: &str, part: &str) -> Option<usize> {
    text.as_bytes().windows(part.len().max(1)).position(|here| here == part.as_bytes())
}

/// Where a text last holds a part.
pub(crate) fn rfind(text: &str, part: &str) -> Option<usize> {
    text.as_bytes().windows(part.len().max(1)).rposition(|here| here == part.as_bytes())
}

/// The parts, with a text between each two.
pub(crate) fn join(parts: &mut dyn Iterator<Item = &str>, between: &str) -> String {
    let mut text = String::new();
    for (nth, part) in parts.enumerate() {
        if nth != 0 {
            text += between;
        }
        text += part;
    }
    text
}

/// A list of words as a sentence has them.
pub(crate) fn list(words: &[String]) -> String {
    join(&mut words.iter().map(String::as_str), ", ")
}

/// A text on one line.
pub(crate) fn on_one_line(text: &str) -> String {
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
    fn what_is_joined_has_something_between() {
        assert_eq!(list(&["a".into(), "b".into()]), "a, b");
        assert_eq!((list(&[]), on_one_line(" a\n\t b ")), (String::new(), "a b".to_owned()));
    }
}
