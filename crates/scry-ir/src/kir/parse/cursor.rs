//! Reads tokens from a line.

use std::str::FromStr;

use crate::kir::{
    AddressSpace, FragmentPlace, Label, MatrixPlace, MatrixType, Place, Type, Value, Var,
};

/// The result of parsing, with an error message.
pub(super) type ParseResult<T> = Result<T, String>;

/// The part of a line that is not parsed yet.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(pub &'a str);

impl<'a> Cursor<'a> {
    /// Consumes a token if it comes next; returns whether it does.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        match self.0.strip_prefix(token) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// Consumes a required token.
    pub(super) fn expect(&mut self, token: &str) -> ParseResult<()> {
        match self.eat(token) {
            true => Ok(()),
            false if token.trim().is_empty() => {
                Err(format!("expected a space, found `{}`", self.0))
            }
            false => Err(format!("expected `{}`, found `{}`", token.trim(), self.0)),
        }
    }

    /// Checks that the line ends here.
    pub(super) fn expect_end(self) -> ParseResult<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(format!("expected the end of the line, found `{}`", self.0)),
        }
    }

    /// Consumes and returns the longest prefix whose characters all satisfy `is_part`.
    pub(super) fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !is_part(c)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        token
    }

    /// Reads an identifier of letters, digits and underscores.
    pub(super) fn word(&mut self) -> &'a str {
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    /// Reads a decimal number.
    pub(super) fn number<T: FromStr>(&mut self) -> ParseResult<T> {
        let line = self.0;
        let digits = self.take_while(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| format!("expected a number in range, found `{line}`"))
    }

    /// Reads a value, such as `%7`.
    pub(super) fn value(&mut self) -> ParseResult<Value> {
        self.expect("%")?;
        self.number().map(Value)
    }

    /// Reads values that are separated by commas.
    pub(super) fn values(&mut self) -> ParseResult<Vec<Value>> {
        let mut values = vec![self.value()?];
        while self.eat(", ") {
            values.push(self.value()?);
        }
        Ok(values)
    }

    /// Reads exactly `N` values that are separated by commas.
    pub(super) fn array<const N: usize>(&mut self) -> ParseResult<[Value; N]> {
        let values = self.values()?;
        let count = values.len();
        values.try_into().map_err(|_| format!("expected {N} values, found {count}"))
    }

    /// Reads a variable, such as `v3`.
    pub(super) fn var(&mut self) -> ParseResult<Var> {
        self.expect("v")?;
        self.number().map(Var)
    }

    /// Reads a label, such as `L1`.
    pub(super) fn label(&mut self) -> ParseResult<Label> {
        self.expect("L")?;
        self.number().map(Label)
    }

    /// Reads a type.
    pub(super) fn ty(&mut self) -> ParseResult<Type> {
        let name = self.word();
        let matrices = MatrixType::ALL.into_iter().map(Type::Matrix);
        let found = Type::ALL.into_iter().chain(matrices).find(|ty| ty.name() == name);
        found.ok_or_else(|| format!("`{name}` is not a type"))
    }

    /// Reads an address, such as `binding0[%1 * 16 + 8]`.
    pub(super) fn place(&mut self) -> ParseResult<Place> {
        let space = self.address_space()?;
        self.expect("[")?;
        let place = if self.0.starts_with('%') {
            let index = Some(self.value()?);
            self.expect(" * ")?;
            let stride = self.number()?;
            let offset = if self.eat(" + ") { self.number()? } else { 0 };
            Place { space, index, stride, offset }
        } else {
            Place { space, index: None, stride: 0, offset: self.number()? }
        };
        self.expect("]")?;
        Ok(place)
    }

    /// Reads the memory of a matrix, such as `binding0[0] from %1 rows %2 below %3`.
    pub(super) fn matrix_place(&mut self) -> ParseResult<MatrixPlace> {
        let array = self.place()?;
        self.expect(" from ")?;
        let index = self.value()?;
        let row_major = self.row_major()?;
        let stride = self.value()?;
        let len = self.eat(" below ").then(|| self.value()).transpose()?;
        Ok(MatrixPlace { array, len, index, stride, row_major })
    }

    /// Reads the memory of a fragment, such as `a16x16_f16 workgroup0[%1 * 2] rows %2`.
    pub(super) fn fragment_place(&mut self) -> ParseResult<FragmentPlace> {
        let ty = self.ty()?;
        let matrix = ty.matrix().ok_or_else(|| format!("{ty} is not a matrix"))?;
        self.expect(" ")?;
        let place = self.place()?;
        let row_major = self.row_major()?;
        Ok(FragmentPlace { matrix, place, stride: self.value()?, row_major })
    }

    fn row_major(&mut self) -> ParseResult<bool> {
        let row_major = self.eat(" rows ");
        if !row_major {
            self.expect(" columns ")?;
        }
        Ok(row_major)
    }

    fn address_space(&mut self) -> ParseResult<AddressSpace> {
        if self.eat("immediate") {
            return Ok(AddressSpace::Immediate);
        }
        let name = self.take_while(|c| c.is_ascii_alphabetic());
        let space = |nth: u32| match name {
            "binding" => Ok(AddressSpace::Binding(nth)),
            "workgroup" => Ok(AddressSpace::Workgroup(nth)),
            "local" => Ok(AddressSpace::Local(nth)),
            _ => Err(format!("`{name}` is not an address space")),
        };
        self.number().and_then(space)
    }
}
