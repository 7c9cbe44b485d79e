//! Parses the declarations of a kernel.

use super::cursor::{Cursor, ParseResult};
use crate::kir::{Array, Buffer, Kir, Label, SourceMap};

/// Parses the first line: name and workgroup size.
pub(super) fn kernel(line: &str) -> ParseResult<Kir> {
    let mut cursor = Cursor(line);
    cursor.expect("kernel ")?;
    let Some((name, size)) = cursor.0.rsplit_once(" [") else {
        return Err(format!("expected a name and a workgroup size, found `{}`", cursor.0));
    };
    let mut cursor = Cursor(size);
    let mut workgroup_size = [0; 3];
    for (axis, size) in workgroup_size.iter_mut().enumerate() {
        if axis > 0 {
            cursor.expect(", ")?;
        }
        *size = cursor.number()?;
    }
    cursor.expect("]")?;
    cursor.expect_end()?;
    Ok(Kir {
        name: name.to_owned(),
        workgroup_size,
        buffers: Vec::new(),
        immediates: 0,
        workgroup: Vec::new(),
        locals: Vec::new(),
        vars: Vec::new(),
        values: Vec::new(),
        body: Vec::new(),
        labels: Label::KERNEL.0 + 1,
        storage_barriers: false,
        source: SourceMap::default(),
    })
}

/// Returns whether a line declares the source's name, a buffer, an array, the immediates, a
/// variable, or the order of barriers.
pub(super) fn is_declaration(line: &str) -> bool {
    let prefixes = ["source ", "buffer ", "immediate: ", "workgroup", "local", "var ", "barriers "];
    prefixes.iter().any(|prefix| line.starts_with(prefix))
}

/// Parses a declaration.
pub(super) fn declaration(kir: &mut Kir, line: &str) -> ParseResult<()> {
    let mut cursor = Cursor(line);
    if cursor.eat("source ") {
        kir.source.name = Some(cursor.take_while(|_| true).to_owned());
    } else if cursor.eat("buffer ") {
        expect_index(&mut cursor, "binding", kir.buffers.len())?;
        kir.buffers.push(buffer(&mut cursor, kir.buffers.len())?);
    } else if cursor.eat("immediate: ") {
        kir.immediates = cursor.number()?;
        cursor.expect(" bytes")?;
    } else if cursor.eat("barriers ") {
        cursor.expect("order storage")?;
        kir.storage_barriers = true;
    } else if cursor.eat("var ") {
        expect_index(&mut cursor, "v", kir.vars.len())?;
        kir.vars.push(cursor.ty()?);
    } else if line.starts_with("workgroup") {
        expect_index(&mut cursor, "workgroup", kir.workgroup.len())?;
        kir.workgroup.push(array(&mut cursor)?);
    } else {
        expect_index(&mut cursor, "local", kir.locals.len())?;
        kir.locals.push(array(&mut cursor)?);
    }
    cursor.expect_end()
}

/// Expects `{name}{index}: `, where `index` is the number of declarations of this kind so far.
fn expect_index(cursor: &mut Cursor<'_>, name: &str, index: usize) -> ParseResult<()> {
    cursor.expect(&format!("{name}{index}"))?;
    cursor.expect(": ")
}

fn buffer(cursor: &mut Cursor<'_>, index: usize) -> ParseResult<Buffer> {
    let writable = cursor.eat("read_write ");
    if !writable {
        cursor.expect("read ")?;
    }
    let element = cursor.ty()?;
    let name = match cursor.eat(" ") {
        true => cursor.take_while(|c| c != ',').to_owned(),
        false => format!("binding{index}"),
    };
    let min_size = match cursor.eat(", at least ") {
        true => cursor.number()?,
        false => 0,
    };
    if min_size > 0 {
        cursor.expect(" bytes")?;
    }
    Ok(Buffer { name, element, writable, min_size })
}

fn array(cursor: &mut Cursor<'_>) -> ParseResult<Array> {
    let len = cursor.number()?;
    cursor.expect(" * ")?;
    Ok(Array { ty: cursor.ty()?, len })
}
