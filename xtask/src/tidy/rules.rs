//! Local rules: module documentation, unsafe code, unwraps, silenced lints.

use proc_macro2::{Delimiter, TokenTree};

use super::Finding;
use super::source::{Source, braces, is_punct, is_word, line};

/// Finds all violations.
pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    for source in sources {
        check_opening(source, findings);
        check_unsafe(source, findings);
        check_unwraps(source, findings);
        check_allow(source, findings);
    }
}

fn check_opening(source: &Source, findings: &mut Vec<Finding>) {
    if !source.text.starts_with("//!") {
        let what = "no `//!` at the start: say what the file is for";
        findings.push(Finding::new(&source.path, 1, "opening", what));
    }
}

fn check_unsafe(source: &Source, findings: &mut Vec<Finding>) {
    let lines: Vec<&str> = source.text.lines().collect();
    source.for_each(|tokens| {
        let Some(kind) = unsafe_kind(tokens) else {
            return;
        };
        let line = line(&tokens[0]);
        if !is_justified(&lines, line) {
            let what = format!("unsafe {kind} without `// SAFETY:` or `# Safety` above it");
            findings.push(Finding::new(&source.path, line, "safety", what));
        }
    });
}

/// Returns the kind of item that a leading `unsafe` marks. Function pointer types are ignored.
fn unsafe_kind(tokens: &[TokenTree]) -> Option<&'static str> {
    let [keyword, next, rest @ ..] = tokens else {
        return None;
    };
    if !is_word(keyword, "unsafe") {
        return None;
    }
    if braces(next).is_some() {
        return Some("block");
    }
    let impl_or_trait = ["impl", "trait"].into_iter().find(|kind| is_word(next, kind));
    impl_or_trait.or_else(|| {
        let mut declared = [next].into_iter().chain(rest);
        let after_abi = declared.find(|tree| !is_abi(tree))?;
        let named = matches!(declared.next(), Some(TokenTree::Ident(_)));
        match braces(after_abi) {
            Some(_) => Some("extern block"),
            None => (is_word(after_abi, "fn") && named).then_some("fn"),
        }
    })
}

fn is_abi(tree: &TokenTree) -> bool {
    is_word(tree, "extern") || matches!(tree, TokenTree::Literal(_))
}

/// Returns whether the comments directly above the statement or item with this line contain a
/// safety comment.
fn is_justified(lines: &[&str], line: usize) -> bool {
    for (i, text) in lines[..line].iter().rev().map(|text| text.trim()).enumerate() {
        if text.contains("SAFETY:") || text.contains("# Safety") {
            return true;
        }
        let ends_a_statement = text.is_empty() || text.ends_with([';', '{', '}']);
        if i > 0 && ends_a_statement && !text.starts_with("//") {
            return false;
        }
    }
    false
}

fn check_unwraps(source: &Source, findings: &mut Vec<Finding>) {
    source.for_each(|tokens| {
        let [dot, name, TokenTree::Group(arguments), ..] = tokens else {
            return;
        };
        let unwrap = is_punct(dot, '.') && is_word(name, "unwrap") && arguments.stream().is_empty();
        if unwrap && !source.is_test(line(name)) {
            let what = "`.unwrap()` outside tests: return an error, or `expect` with the reason \
                        why it cannot fail";
            findings.push(Finding::new(&source.path, line(name), "unwrap", what));
        }
    });
}

fn check_allow(source: &Source, findings: &mut Vec<Finding>) {
    source.for_each(|tokens| {
        let Some(attribute) = attribute(tokens) else {
            return;
        };
        let trees: Vec<TokenTree> = attribute.into_iter().collect();
        let silences = |i: usize| is_word(&trees[i], "allow") && trees.get(i + 1).is_some();
        let conditional = trees.first().is_some_and(|tree| is_word(tree, "cfg_attr"))
            && trees.iter().any(mentions_allow);
        if conditional || (!trees.is_empty() && silences(0)) {
            let what = "`#[allow(…)]`: use `#[expect(lint, reason = \"…\")]`";
            findings.push(Finding::new(&source.path, line(&tokens[0]), "allow", what));
        }
    });
}

/// Returns the content of the brackets, if an attribute starts here.
fn attribute(tokens: &[TokenTree]) -> Option<proc_macro2::TokenStream> {
    let (hash, rest) = tokens.split_first()?;
    let group = match rest {
        [bang, TokenTree::Group(group), ..] if is_punct(bang, '!') => group,
        [TokenTree::Group(group), ..] => group,
        _ => return None,
    };
    let bracketed = is_punct(hash, '#') && group.delimiter() == Delimiter::Bracket;
    bracketed.then(|| group.stream())
}

fn mentions_allow(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else {
        return false;
    };
    group.stream().into_iter().any(|inner| is_word(&inner, "allow"))
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, usize)> {
        violations(check, "src/a.rs", &format!("//! Doc.\n{text}"))
    }

    #[test]
    fn missing_module_docs_are_found() {
        assert_eq!(violations(check, "src/a.rs", "fn f() {}\n"), [("opening", 1)]);
        assert_eq!(found(""), []);
    }

    #[test]
    fn unjustified_unsafe_is_found() {
        for bare in [
            "fn f() {\n    unsafe { g() }\n}",
            "struct S;\nunsafe impl Send for S {}",
            "\npub unsafe fn f() {}",
            "\nunsafe extern \"C\" fn f() {}",
            "\nunsafe trait T {}",
            "\nunsafe extern \"C\" {}",
            "fn f() {\n    println!(\"{}\", unsafe { g() });\n}",
            "// SAFETY: of another statement\nfn f() {}\nunsafe impl Send for S {}",
        ] {
            let found = found(bare);
            assert!(matches!(found[..], [("safety", 3 | 4)]), "{bare}: {found:?}");
        }
    }

    #[test]
    fn justified_unsafe_passes() {
        for good in [
            "fn f() {\n    // SAFETY: reason,\n    // in two lines;\n    unsafe { g() }\n}",
            "fn f() {\n    // SAFETY: reason\n    let x =\n        unsafe { g() };\n}",
            "// SAFETY: reason\n#[cfg(unix)]\nunsafe impl Send for S {}",
            "/// Does.\n///\n/// # Safety\n/// Reason.\npub unsafe fn f() {}",
            "type F = unsafe extern \"C\" fn(u32) -> u32;",
            "#[unsafe(no_mangle)]\nfn f() {}",
            "// The word unsafe { in a comment\nconst S: &str = \"unsafe { }\";",
        ] {
            assert_eq!(found(good), [], "{good}");
        }
    }

    #[test]
    fn unwrap_is_allowed_in_tests() {
        assert_eq!(found("fn f() { g().unwrap(); }"), [("unwrap", 2)]);
        assert_eq!(found("fn f() {\n    assert!(g().unwrap());\n}"), [("unwrap", 3)]);
        assert_eq!(found("fn f() { g().unwrap_or(1); }"), []);
        assert_eq!(found("#[cfg(test)]\nmod tests {\n    fn f() { g().unwrap(); }\n}"), []);
        assert_eq!(found("#[test]\nfn f() { g().unwrap(); }"), []);
    }

    #[test]
    fn silenced_lints_are_found() {
        assert_eq!(found("#[allow(dead_code)]\nfn f() {}"), [("allow", 2)]);
        assert_eq!(found("#![allow(dead_code)]"), [("allow", 2)]);
        assert_eq!(found("#[cfg_attr(unix, allow(dead_code))]\nfn f() {}"), [("allow", 2)]);
        assert_eq!(found("#[expect(dead_code, reason = \"why\")]\nfn f() {}"), []);
    }
}
