//! A text under construction: indented lines.

/// Lines so far, and the depth of the next one.
#[derive(Debug, Default)]
pub(super) struct Text {
    lines: Vec<String>,
    depth: usize,
    /// The line of the source that lines are from, which a comment names.
    source_line: Option<u32>,
}

impl Text {
    /// Creates an empty text whose first line has an indentation depth.
    pub(super) fn at_depth(depth: usize) -> Self {
        Self { depth, ..Self::default() }
    }

    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        let mut line = self.indented(line.as_ref());
        if let Some(source) = self.source_line {
            line.push_str(&format!(" // line {source}"));
        }
        self.lines.push(line);
    }

    /// Says which line of the source the following lines are from.
    pub(super) fn set_source_line(&mut self, line: u32) {
        self.source_line = Some(line);
    }

    /// Writes a line that opens a block.
    pub(super) fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.depth += 1;
    }

    /// Writes the line that closes a block.
    pub(super) fn close(&mut self, line: impl AsRef<str>) {
        self.depth -= 1;
        self.line(line);
    }

    /// Increases the depth, after a line such as `} else {` that closes one block and opens
    /// another.
    pub(super) fn indent(&mut self) {
        self.depth += 1;
    }

    /// Returns the position of the next line, and its depth, for [`Text::insert`].
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.lines.len(), self.depth)
    }

    /// Inserts a line at a mark. Marks before it stay valid.
    pub(super) fn insert(&mut self, (at, depth): (usize, usize), line: &str) {
        self.lines.insert(at, format!("{:1$}{line}", "", depth * 4));
    }

    pub(super) fn into_string(self) -> String {
        self.lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
    }

    fn indented(&self, line: &str) -> String {
        format!("{:1$}{line}", "", self.depth * 4)
    }
}
