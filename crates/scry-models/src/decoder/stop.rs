//! Texts at which generation ends, in text that arrives in pieces.

/// Holds text back as long as it may be the beginning of a stop text.
#[derive(Debug, Default)]
pub(super) struct StopFilter {
    stops: Vec<String>,
    held: String,
}

impl StopFilter {
    pub(super) fn new(stops: &[String]) -> Self {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        Self { stops, held: String::new() }
    }

    /// Adds a piece. Returns the text that cannot belong to a stop text, and whether there was one:
    /// then the text ends before it.
    pub(super) fn push(&mut self, piece: &str) -> (String, bool) {
        self.held.push_str(piece);
        let found = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(start) = found {
            let mut text = std::mem::take(&mut self.held);
            text.truncate(start);
            return (text, true);
        }
        let kept = self.stops.iter().map(|stop| beginning(&self.held, stop)).max().unwrap_or(0);
        let held = self.held.split_off(self.held.len() - kept);
        (std::mem::replace(&mut self.held, held), false)
    }

    /// Returns the text that was held back.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Returns the bytes of the longest end of a text that is the beginning of a stop text.
fn beginning(text: &str, stop: &str) -> usize {
    let lengths = stop.char_indices().map(|(length, _)| length).rev();
    lengths.into_iter().find(|length| text.ends_with(&stop[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (Vec<String>, bool) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut filter = StopFilter::new(&stops);
        let mut texts = Vec::new();
        for piece in pieces {
            let (text, is_stopped) = filter.push(piece);
            texts.push(text);
            if is_stopped {
                return (texts, true);
            }
        }
        texts.push(filter.finish());
        (texts, false)
    }

    #[test]
    fn text_before_stop_remains() {
        assert_eq!(
            run(&["END"], &["a E", "N", "D b"]),
            (vec!["a ".into(), "".into(), "".into()], true)
        );
        assert_eq!(
            run(&["END"], &["a EN", "d", "E"]),
            (vec!["a ".into(), "ENd".into(), "".into(), "E".into()], false)
        );
        assert_eq!(run(&["aab", "ab"], &["xaa", "ab"]), (vec!["x".into(), "a".into()], true));
        assert_eq!(
            run(&["é!", ""], &["caf", "é", "?"]),
            (vec!["caf".into(), "".into(), "é?".into(), "".into()], false)
        );
        assert_eq!(run(&[], &["x"]), (vec!["x".into(), "".into()], false));
    }
}
