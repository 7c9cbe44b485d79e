//! Replaces matrix values, variables and arrays by scalar ones, which hold a lane's elements.

use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::RandomState;

use super::MatrixFragments;
use crate::kir::alignment::Alignment;
use crate::kir::{
    AddressSpace, Block, Builder, Const, Inst, Kir, MatrixType, Place, Stmt, Value, Var,
};

/// Maximum number of values of a load or store.
const MAX_RUN: usize = 4;

/// Lanes of a subgroup, among which the elements of a matrix are distributed.
pub(super) const LANES: u32 = 32;

/// A kernel being expanded.
pub(super) struct Expand<'k> {
    pub(super) kir: &'k Kir,
    pub(super) builder: Builder,
    pub(super) layout: &'k MatrixFragments,
    /// The alignment of values, if the layout has loads that need it.
    pub(super) alignment: Option<Alignment>,
    /// For each matrix, the elements that a lane holds.
    fragments: HashMap<Value, Rc<[Value]>, RandomState>,
    /// For each matrix variable, the variables of its elements.
    vars: HashMap<Var, Vec<Var>, RandomState>,
    /// For each local array of matrices, the array of their elements.
    locals: HashMap<u32, AddressSpace, RandomState>,
}

/// Expands the matrices of a kernel.
pub(super) fn expand(kir: &Kir, layout: &MatrixFragments) -> Kir {
    let empty = Kir { body: Block::new(), ..kir.clone() };
    let mut expand = Expand {
        kir,
        builder: Builder::continuing(empty),
        layout,
        alignment: layout.has_load.then(|| Alignment::analyse(kir)),
        fragments: HashMap::default(),
        vars: HashMap::default(),
        locals: HashMap::default(),
    };
    expand.declare();
    expand.block(&kir.body);
    expand.builder.finish()
}

impl Expand<'_> {
    /// Adds variables and arrays for the elements.
    fn declare(&mut self) {
        for (nth, ty) in (0..).zip(&self.kir.vars) {
            if let Some(matrix) = ty.matrix() {
                let element = matrix.element.ty();
                let vars = (0..matrix.size.elements_per_lane())
                    .map(|_| self.builder.var(element))
                    .collect();
                self.vars.insert(Var(nth), vars);
            }
        }
        for (nth, array) in (0..).zip(&self.kir.locals) {
            if let Some(matrix) = array.ty.matrix() {
                let len = array.len.saturating_mul(matrix.size.elements_per_lane());
                let elements = self.builder.local_array(matrix.element.ty(), len);
                self.locals.insert(nth, elements);
            }
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn nested(&mut self, block: &Block) -> Block {
        self.builder.open();
        self.block(block);
        self.builder.close()
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.builder.set_position(self.kir.position(stmt));
        match stmt {
            Stmt::Let(value) => match self.kir.ty(*value).matrix() {
                Some(ty) => {
                    let elements = self.compute(*value, ty);
                    self.fragments.insert(*value, elements);
                }
                None => self.builder.push(stmt.clone()),
            },
            Stmt::Set(var, value) if self.vars.contains_key(var) => {
                let (vars, elements) = (self.vars[var].clone(), self.elements(*value));
                for (var, element) in vars.into_iter().zip(&*elements) {
                    self.builder.set(var, *element);
                }
            }
            Stmt::Store { place, values, .. } if self.fragments.contains_key(&values[0]) => {
                self.store_local(place, values[0]);
            }
            Stmt::MatrixStore { place, value, .. } => {
                let elements = self.elements(*value);
                if let Some(ty) = self.kir.ty(*value).matrix() {
                    self.store(place, ty, &elements);
                }
            }
            Stmt::If { condition, then_block, else_block, at } => {
                let (condition, at) = (*condition, *at);
                let (then_block, else_block) = (self.nested(then_block), self.nested(else_block));
                self.builder.push(Stmt::If { condition, then_block, else_block, at });
            }
            Stmt::Loop { label, body, finite } => {
                let (label, finite, body) = (*label, *finite, self.nested(body));
                self.builder.push(Stmt::Loop { label, body, finite });
            }
            Stmt::Scope { label, body } => {
                let (label, body) = (*label, self.nested(body));
                self.builder.push(Stmt::Scope { label, body });
            }
            Stmt::Set(..) | Stmt::Store { .. } | Stmt::Break(_) | Stmt::Barrier(..) => {
                self.builder.push(stmt.clone());
            }
        }
    }

    /// Returns the elements of a matrix that is visible here.
    pub(super) fn elements(&self, value: Value) -> Rc<[Value]> {
        self.fragments.get(&value).cloned().expect("the verifier has found the matrix computed")
    }

    /// Computes the elements of a matrix.
    fn compute(&mut self, value: Value, ty: MatrixType) -> Rc<[Value]> {
        let (count, element) = (ty.size.elements_per_lane(), ty.element.ty());
        match *self.kir.inst(value) {
            Inst::MatrixFill(of) => (0..count).map(|_| of).collect(),
            Inst::MatrixLoad(place) => self.load(&place, ty).into(),
            Inst::MultiplyAdd(a, b, c) => {
                let operands = [a, b, c].map(|operand| self.elements(operand));
                self.multiply_add(ty.size, operands).into()
            }
            Inst::Get(var) => {
                let vars = self.vars[&var].clone();
                vars.into_iter().map(|var| self.builder.get(var)).collect()
            }
            Inst::Load { place, .. } => self.load_local(&place, ty),
            Inst::Unary(op, a) => {
                let a = self.elements(a);
                a.iter().map(|a| self.builder.unary(op, *a)).collect()
            }
            Inst::Binary(op, a, b) => {
                let (a, b) = (self.elements(a), self.elements(b));
                a.iter().zip(&*b).map(|(a, b)| self.builder.binary(op, *a, *b)).collect()
            }
            // No other instruction has matrices as results.
            _ => {
                let zero = self.builder.constant(Const::zero(element));
                (0..count).map(|_| zero).collect()
            }
        }
    }

    /// Returns the address of a lane's elements of a matrix in local memory, given that of the
    /// matrix. A lane holds one of `LANES` equal parts, so strides and offsets shrink by that
    /// factor.
    fn local_place(&self, place: &Place) -> Place {
        let AddressSpace::Local(nth) = place.space else { return *place };
        let space = self.locals.get(&nth).copied().unwrap_or(place.space);
        Place { space, stride: place.stride / LANES, offset: place.offset / LANES, ..*place }
    }

    fn load_local(&mut self, place: &Place, ty: MatrixType) -> Rc<[Value]> {
        let (mut place, element) = (self.local_place(place), ty.element.ty());
        let mut elements = Vec::new();
        while elements.len() < ty.size.elements_per_lane() as usize {
            let count = MAX_RUN.min(ty.size.elements_per_lane() as usize);
            elements.extend(self.builder.load(element, place, count as u8));
            place.offset += count as u32 * element.size();
        }
        elements.into()
    }

    fn store_local(&mut self, place: &Place, value: Value) {
        let mut place = self.local_place(place);
        for run in self.elements(value).chunks(MAX_RUN) {
            let size = self.builder.ty(run[0]).size();
            self.builder.store(place, run.to_vec());
            place.offset += run.len() as u32 * size;
        }
    }

    /// Adds a constant.
    pub(super) fn constant(&mut self, value: u32) -> Value {
        self.builder.constant(Const::u32(value))
    }
}
