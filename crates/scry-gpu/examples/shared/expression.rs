//! Element-wise expressions, such as `sqrt(x * x + y * y)`.

use scry_gpu::kir::{BinaryOp, UnaryOp};

/// Maximum number of operands, signs and parentheses of an expression: a limit for the recursive
/// functions that parse it and build kernels of it.
const MAX_SIZE: usize = 200;

/// An expression over inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Number(f32),
    /// The input with this index.
    Input(usize),
    Unary(UnaryOp, Box<Self>),
    Binary(BinaryOp, Box<Self>, Box<Self>),
}

/// Parses an expression. Returns it with the names of its inputs in the order of their appearance.
pub fn parse(text: &str) -> Result<(Expression, Vec<String>), String> {
    let mut parser = Parser { text, rest: text, inputs: Vec::new(), size: 0 };
    let expression = parser.sum()?;
    match parser.rest.trim_start() {
        "" => Ok((expression, parser.inputs)),
        _ => Err(parser.expected("an operator")),
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    inputs: Vec<String>,
    size: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        loop {
            let op = match self.one_of("+-") {
                Some('+') => BinaryOp::Add,
                Some(_) => BinaryOp::Sub,
                None => return Ok(left),
            };
            left = Expression::Binary(op, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.signed_operand()?;
        loop {
            let op = match self.one_of("*/") {
                Some('*') => BinaryOp::Mul,
                Some(_) => BinaryOp::Div,
                None => return Ok(left),
            };
            left = Expression::Binary(op, Box::new(left), Box::new(self.signed_operand()?));
        }
    }

    fn signed_operand(&mut self) -> Result<Expression, String> {
        self.size += 1;
        if self.size > MAX_SIZE {
            return Err(format!(
                "the expression has more than {MAX_SIZE} operands, signs and parentheses"
            ));
        }
        match self.one_of("-(") {
            Some('-') => Ok(Expression::Unary(UnaryOp::Neg, Box::new(self.signed_operand()?))),
            Some(_) => {
                let inner = self.sum()?;
                self.expect_closing(inner)
            }
            None => self.operand(),
        }
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let start = self.rest.trim_start();
        let word = &start[..start.find(|c| !is_word(c)).unwrap_or(start.len())];
        if word.is_empty() {
            return Err(self.expected("a number, an input or a function"));
        }
        self.rest = &start[word.len()..];
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            let number = word.parse().map_err(|_| format!("`{word}` is not a number"))?;
            return Ok(Expression::Number(number));
        }
        if self.one_of("(").is_some() {
            return self.call(word);
        }
        let position = self.inputs.iter().position(|input| input == word);
        Ok(Expression::Input(position.unwrap_or_else(|| {
            self.inputs.push(word.to_owned());
            self.inputs.len() - 1
        })))
    }

    /// Parses the arguments of a function.
    fn call(&mut self, name: &str) -> Result<Expression, String> {
        let first = Box::new(self.sum()?);
        let binary = match name {
            "min" => Some(BinaryOp::Min),
            "max" => Some(BinaryOp::Max),
            _ => None,
        };
        if let Some(op) = binary {
            self.one_of(",").ok_or_else(|| self.expected("a second argument"))?;
            let second = Box::new(self.sum()?);
            return self.expect_closing(Expression::Binary(op, first, second));
        }
        let op = match name {
            "abs" => UnaryOp::Abs,
            "cos" => UnaryOp::Cos,
            "exp" => UnaryOp::Exp,
            "floor" => UnaryOp::Floor,
            "log" => UnaryOp::Log,
            "sin" => UnaryOp::Sin,
            "sqrt" => UnaryOp::Sqrt,
            "tanh" => UnaryOp::Tanh,
            _ => return Err(format!("there is no function `{name}`")),
        };
        self.expect_closing(Expression::Unary(op, first))
    }

    fn expect_closing(&mut self, inner: Expression) -> Result<Expression, String> {
        self.one_of(")").map(|_| inner).ok_or_else(|| self.expected("`)`"))
    }

    /// Consumes one of these characters, if it is next.
    fn one_of(&mut self, characters: &str) -> Option<char> {
        let start = self.rest.trim_start();
        let next = start.chars().next().filter(|c| characters.contains(*c))?;
        self.rest = &start[next.len_utf8()..];
        Some(next)
    }

    fn expected(&self, what: &str) -> String {
        let at = self.text.len() - self.rest.trim_start().len();
        format!("expected {what} after `{}`", self.text[..at].trim_end())
    }
}
