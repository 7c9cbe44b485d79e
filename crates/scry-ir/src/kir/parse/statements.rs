//! Parses the body of a kernel, line by line.

use std::collections::BTreeMap;

use super::cursor::{Cursor, ParseResult};
use super::instructions::instruction;
use crate::Location;
use crate::kir::verify::MAX_NESTING;
use crate::kir::{Barrier, Block, Definition, Inst, Kir, Label, SourceMap, Stmt, Type, Value};

/// The statements parsed so far. Open blocks are in a list instead of recursion, so that no nesting
/// exhausts the stack.
#[derive(Default)]
pub(super) struct Body {
    /// The statements of the innermost open block.
    block: Block,
    /// The statements whose blocks are open, the outermost first, each with the statements that
    /// precede it in its block.
    open: Vec<(Open, Block)>,
    definitions: BTreeMap<u32, Definition>,
    /// The largest label in use.
    last_label: u32,
    /// Source locations of values.
    locations: Vec<(Value, Location)>,
    source: SourceMap,
}

const HAS_NO_POSITION: &str = "assignments and exits have no positions";

/// Splits a line into the statement, and the source location at its end, if any.
fn split_location(line: &str) -> ParseResult<(&str, Option<Location>)> {
    let Some((line, location)) = line.rsplit_once(" @") else { return Ok((line, None)) };
    let mut cursor = Cursor(location);
    let number = cursor.number()?;
    cursor.expect(":")?;
    let at = Location { line: number, column: cursor.number()? };
    cursor.expect_end()?;
    Ok((line, Some(at)))
}

/// A statement whose block is being read.
enum Open {
    If { condition: Value, then_block: Option<Block>, at: Option<Location> },
    Loop { label: Label, finite: bool },
    Scope(Label),
}

impl Body {
    /// Parses a line.
    pub(super) fn line(&mut self, line: &str) -> ParseResult<()> {
        match line {
            "}" => self.close(),
            "} else {" => self.begin_else(),
            _ => match line.strip_suffix(" {") {
                Some(head) => self.open(head),
                None => {
                    let (line, at) = split_location(line)?;
                    let mut stmt = self.statement(line)?;
                    match (&mut stmt, at) {
                        (Stmt::Let(value), Some(at)) => self.locations.push((*value, at)),
                        (
                            Stmt::Store { at: location, .. }
                            | Stmt::MatrixStore { at: location, .. }
                            | Stmt::Barrier(_, location),
                            at,
                        ) => *location = at,
                        (_, Some(_)) => return Err(HAS_NO_POSITION.to_owned()),
                        (_, None) => {}
                    }
                    self.block.push(stmt);
                    Ok(())
                }
            },
        }
    }

    /// Returns the kernel with the parsed body.
    pub(super) fn finish(self, mut kir: Kir) -> ParseResult<Kir> {
        if !self.open.is_empty() {
            return Err(format!("{} blocks are not closed", self.open.len()));
        }
        for (expected, number) in (0..).zip(self.definitions.keys()) {
            if *number != expected {
                return Err(format!(
                    "values are numbered without gaps, but %{expected} is missing"
                ));
            }
        }
        kir.values = self.definitions.into_values().collect();
        kir.body = self.block;
        kir.labels = self.last_label + 1;
        let mut source = SourceMap { name: kir.source.name, ..self.source };
        self.locations.into_iter().for_each(|(value, at)| source.set_value(value, at));
        kir.source = source;
        Ok(kir)
    }

    fn open(&mut self, head: &str) -> ParseResult<()> {
        let (head, at) = split_location(head)?;
        let mut cursor = Cursor(head);
        let open = if cursor.eat("if ") {
            Open::If { condition: cursor.value()?, then_block: None, at }
        } else {
            let label = self.label(&mut cursor)?;
            cursor.expect(": ")?;
            match cursor.0 {
                "loop" => Open::Loop { label, finite: false },
                "finite loop" => Open::Loop { label, finite: true },
                "scope" => Open::Scope(label),
                other => return Err(format!("expected `loop` or `scope`, found `{other}`")),
            }
        };
        if let (Open::Loop { label, .. } | Open::Scope(label), Some(at)) = (&open, at) {
            self.source.set_label(*label, at);
        }
        if self.open.len() == MAX_NESTING {
            return Err(format!("blocks are nested more than {MAX_NESTING} deep"));
        }
        self.open.push((open, std::mem::take(&mut self.block)));
        Ok(())
    }

    fn begin_else(&mut self) -> ParseResult<()> {
        match self.open.last_mut() {
            Some((Open::If { then_block: then_block @ None, .. }, _)) => {
                *then_block = Some(std::mem::take(&mut self.block));
                Ok(())
            }
            _ => Err("there is no `if` for this `else`".to_owned()),
        }
    }

    fn close(&mut self) -> ParseResult<()> {
        let Some((open, before)) = self.open.pop() else {
            return Err("no block is open".to_owned());
        };
        let body = std::mem::replace(&mut self.block, before);
        self.block.push(match open {
            Open::If { condition, then_block: None, at } => {
                Stmt::If { condition, then_block: body, else_block: Vec::new(), at }
            }
            Open::If { condition, then_block: Some(then_block), at } => {
                Stmt::If { condition, then_block, else_block: body, at }
            }
            Open::Loop { label, finite } => Stmt::Loop { label, body, finite },
            Open::Scope(label) => Stmt::Scope { label, body },
        });
        Ok(())
    }

    fn label(&mut self, cursor: &mut Cursor<'_>) -> ParseResult<Label> {
        let label = cursor.label()?;
        if label.0 == u32::MAX {
            return Err(format!("{label} is out of range"));
        }
        self.last_label = self.last_label.max(label.0);
        Ok(label)
    }

    /// Parses a statement without a block.
    fn statement(&mut self, line: &str) -> ParseResult<Stmt> {
        let mut cursor = Cursor(line);
        let stmt = if line.starts_with('%') {
            self.definition(&mut cursor)?
        } else if cursor.eat("store ") {
            let place = cursor.place()?;
            cursor.expect(" = ")?;
            Stmt::Store { place, values: cursor.values()?, at: None }
        } else if cursor.eat("matrix_store ") {
            let place = cursor.matrix_place()?;
            cursor.expect(" = ")?;
            Stmt::MatrixStore { place, value: cursor.value()?, at: None }
        } else if cursor.eat("break kernel") {
            Stmt::Break(Label::KERNEL)
        } else if cursor.eat("break ") {
            Stmt::Break(self.label(&mut cursor)?)
        } else if cursor.eat("barrier workgroup") {
            Stmt::Barrier(Barrier::Workgroup, None)
        } else if cursor.eat("barrier subgroup") {
            Stmt::Barrier(Barrier::Subgroup, None)
        } else {
            let var = cursor.var()?;
            cursor.expect(" = ")?;
            Stmt::Set(var, cursor.value()?)
        };
        cursor.expect_end()?;
        Ok(stmt)
    }

    /// Parses the definition of one or several values.
    fn definition(&mut self, cursor: &mut Cursor<'_>) -> ParseResult<Stmt> {
        let values = cursor.values()?;
        cursor.expect(": ")?;
        let ty = cursor.ty()?;
        cursor.expect(" = ")?;
        let first = values[0];
        let inst = instruction(cursor, ty, values.len())?;
        if inst.results() as usize != values.len() {
            let (results, listed) = (inst.results(), values.len());
            return Err(format!(
                "the instruction has {results} results, but {listed} values are listed"
            ));
        }
        self.define(first, ty, inst)?;
        for (n, value) in values.iter().enumerate().skip(1) {
            if u64::from(value.0) != u64::from(first.0) + n as u64 {
                return Err(format!("{value} does not follow {first}"));
            }
            self.define(*value, ty, Inst::Extra(first, n as u8))?;
        }
        Ok(Stmt::Let(first))
    }

    fn define(&mut self, value: Value, ty: Type, inst: Inst) -> ParseResult<()> {
        match self.definitions.insert(value.0, Definition { ty, inst }) {
            None => Ok(()),
            Some(_) => Err(format!("{value} is defined twice")),
        }
    }
}
