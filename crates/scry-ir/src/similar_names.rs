//! Suggestions for misspelt names.

/// Returns the candidate that is most similar to a misspelt name, the first of several, or `None`
/// if none is similar enough. Names of up to five characters may differ by one edit, longer ones by
/// one edit per three characters, and all by fewer edits than the candidate has characters; an edit
/// is an insertion, deletion, substitution or transposition. Case is ignored, and so is what
/// follows the 64th character.
///
/// ```
/// let names = ["TILE", "FACTOR"];
/// assert_eq!(scry_ir::nearest_name("FACTR", names), Some("FACTOR"));
/// assert_eq!(scry_ir::nearest_name("tile", names), Some("TILE"));
/// assert_eq!(scry_ir::nearest_name("WIDTH", names), None);
/// ```
#[must_use]
pub fn nearest_name<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().take(MAX_CHARS).collect();
    let max_edits = (name.len() / 3).max(1);
    let distances = candidates.into_iter().map(|candidate| {
        let other: Vec<char> = candidate.to_lowercase().chars().take(MAX_CHARS).collect();
        (distance(&name, &other), other.len(), candidate)
    });
    // A candidate all of whose characters differ is not similar.
    let near = distances.filter(|(distance, len, _)| *distance <= max_edits && distance < len);
    near.min_by_key(|(distance, ..)| *distance).map(|(.., candidate)| candidate)
}

/// Maximum number of characters compared: the time is quadratic.
const MAX_CHARS: usize = 64;

/// Returns the optimal string alignment distance: the minimum number of edits, none within a
/// transposed pair.
fn distance(a: &[char], b: &[char]) -> usize {
    // `before`, `last` and `row`: the table's rows for prefixes of `a` of length i - 2, i - 1, i.
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substituted = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substituted.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        (before, last) = (last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(a: &str, b: &str) -> usize {
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        distance(&chars(a), &chars(b))
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("radius", "raduis"), 1);
        assert_eq!(edits("abcd", "badc"), 2);
        assert_eq!(edits("same", "same"), 0);
    }

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(nearest_name("RADUIS", ["TILE", "RADIUS"]), Some("RADIUS"));
        assert_eq!(nearest_name("scr", ["dst", "src"]), Some("src"));
        assert_eq!(nearest_name("x", ["y"]), None, "a name of one letter resembles no other");
        assert_eq!(nearest_name("", ["y"]), None);
        assert_eq!(nearest_name("count", []), None);
        assert_eq!(nearest_name("heigth", ["height", "weight"]), Some("height"));
    }
}
