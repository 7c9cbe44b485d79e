//! Locations of values and variables, and operands of operations.

use scry_ir::kir::{Const, Inst, Stmt, Type, Value, Var, Variability};

use super::emitter::{Emitter, Location, Reg};
use crate::code::{Affine, AffineOp, AffineSrc, Step};
use crate::lanes::{Args, LaneOp, Src};
use crate::ops;

/// Maximum number of statements that are searched for the assignment of a value.
const MAX_DISTANCE: usize = 16;

impl Emitter<'_> {
    pub(super) fn variability(&self, value: Value) -> Variability {
        self.uniformity.values[value.index()]
    }

    /// Allocates a scalar.
    pub(super) fn scalar(&mut self) -> u32 {
        self.code.scalars += 1;
        self.code.scalars as u32 - 1
    }

    /// Allocates an affine value with this lane register.
    pub(super) fn affine(&mut self, lanes: u32) -> Affine {
        self.code.affines += 1;
        Affine { slot: self.code.affines as u32 - 1, lanes }
    }

    /// Allocates a constant scalar.
    pub(super) fn constant_scalar(&mut self, bits: u64) -> u32 {
        let scalar = self.scalar();
        self.code.constants.push((scalar, bits));
        scalar
    }

    /// Returns the location of a value, which has been defined.
    pub(super) fn location(&mut self, value: Value) -> Location {
        if let Some(location) = self.locations[value.index()] {
            return location;
        }
        // Unreachable code may use values without a definition.
        let zero = Location::Scalar(self.constant_scalar(0));
        self.locations[value.index()] = Some(zero);
        zero
    }

    /// Allocates the location of a value.
    pub(super) fn define(&mut self, value: Value) -> Location {
        let live_range = self.live_ranges.values[value.index()];
        let location = self.allocate(self.kir.ty(value), self.variability(value), live_range);
        self.locations[value.index()] = Some(location);
        location
    }

    /// Allocates a constant, which no step computes.
    pub(super) fn constant(&mut self, value: Value, constant: Const) {
        let scalar = self.constant_scalar(constant.bits);
        self.locations[value.index()] = Some(Location::Scalar(scalar));
        if self.demand[value.index()] {
            let block = self.registers.allocate_block(constant.ty);
            self.code.splats.push((constant.ty, block, constant.bits));
            self.splats[value.index()] = Some(block);
        }
    }

    /// Allocates the broadcast of a constant.
    pub(super) fn constant_lanes(&mut self, constant: Const) -> Reg {
        let block = self.registers.allocate_block(constant.ty);
        self.code.splats.push((constant.ty, block, constant.bits));
        Reg::Lanes(Src { start: block, step: 0 })
    }

    /// Emits the expansion of a value that was just computed to lanes, if they are needed.
    pub(super) fn expand_if_needed(&mut self, value: Value) {
        if !self.demand[value.index()] {
            return;
        }
        match self.location(value) {
            Location::Scalar(scalar) => {
                let ty = self.kir.ty(value);
                let block = self.registers.allocate_block(ty);
                self.splats[value.index()] = Some(block);
                self.push(Step::Splat { ty, block, scalar });
            }
            Location::Affine(affine) => self.push(Step::Expand(affine)),
            Location::Lanes(_) => {}
        }
    }

    /// Returns the lanes of a value; emits a broadcast if it has none yet.
    pub(super) fn lanes(&mut self, value: Value) -> Src {
        match self.location(value) {
            Location::Lanes(start) | Location::Affine(Affine { lanes: start, .. }) => {
                Src { start, step: 1 }
            }
            Location::Scalar(scalar) => {
                let start = match self.splats[value.index()] {
                    Some(block) => block,
                    None => self.splat(self.kir.ty(value), scalar),
                };
                Src { start, step: 0 }
            }
        }
    }

    fn splat(&mut self, ty: Type, scalar: u32) -> u32 {
        let block = self.registers.allocate_block(ty);
        self.push(Step::Splat { ty, block, scalar });
        block
    }

    /// Returns the scalar of a uniform value.
    pub(super) fn uniform_scalar(&mut self, value: Value) -> u32 {
        match self.location(value) {
            Location::Scalar(scalar) => scalar,
            Location::Affine(_) | Location::Lanes(_) => {
                debug_assert!(false, "{value} is not uniform");
                self.constant_scalar(0)
            }
        }
    }

    /// Returns a value as an operand: its scalar, or its lanes.
    pub(super) fn operand(&mut self, value: Value, uniform: bool) -> Reg {
        if uniform {
            Reg::Scalar(self.uniform_scalar(value))
        } else {
            Reg::Lanes(self.lanes(value))
        }
    }

    /// Allocates a register until the end of the current statement.
    pub(super) fn temporary(&mut self, ty: Type, uniform: bool) -> Reg {
        if uniform {
            Reg::Scalar(self.scalar())
        } else {
            Reg::lanes(self.registers.allocate(self.position, ty))
        }
    }

    /// Emits an operation.
    pub(super) fn apply(&mut self, op: &'static dyn LaneOp, d: Reg, operands: &[Reg]) {
        match d {
            Reg::Scalar(d) => {
                let mut scalars = [0; 3];
                for (to, operand) in scalars.iter_mut().zip(operands) {
                    if let Reg::Scalar(scalar) = operand {
                        *to = *scalar;
                    }
                }
                self.push(Step::Scalar(op, d, scalars));
            }
            Reg::Lanes(d) => {
                let mut sources = [Src::default(); 3];
                for (to, operand) in sources.iter_mut().zip(operands) {
                    if let Reg::Lanes(source) = operand {
                        *to = *source;
                    }
                }
                let [a, b, c] = sources;
                self.push(Step::Lanes(op, Args { d: d.start, a, b, c }));
            }
        }
    }

    /// Returns a value as an operand of an affine operation.
    pub(super) fn affine_operand(&mut self, value: Value) -> AffineSrc {
        match self.location(value) {
            Location::Affine(affine) => AffineSrc::Slot(affine),
            Location::Scalar(index) => {
                let block = match self.splats[value.index()] {
                    Some(block) => block,
                    None => self.registers.allocate_block(Type::U32),
                };
                AffineSrc::Scalar { index, block }
            }
            Location::Lanes(_) => {
                debug_assert!(false, "{value} is not affine");
                AffineSrc::Scalar { index: self.constant_scalar(0), block: 0 }
            }
        }
    }

    /// Compiles the read of a variable. An aliased read shares the variable's location.
    pub(super) fn read_var(&mut self, value: Value, var: Var) {
        let from = self.var_location(var);
        if self.live_ranges.aliased[value.index()]
            && self.variability(value) == variability_of(from)
        {
            self.locations[value.index()] = Some(from);
        } else {
            let to = self.define(value);
            self.copy(self.kir.ty(value), to, from);
        }
        self.expand_if_needed(value);
    }

    /// Returns the location of a variable; allocates it at the first assignment.
    pub(super) fn var_location(&mut self, var: Var) -> Location {
        if let Some(location) = self.vars[var.index()] {
            return location;
        }
        let live_range = self.live_ranges.vars[var.index()].live_range;
        let variability = self.uniformity.vars[var.index()].variability;
        let location = self.allocate(self.kir.vars[var.index()], variability, live_range);
        self.vars[var.index()] = Some(location);
        location
    }

    /// Emits a copy in all lanes, between locations of the same variability, or from a scalar to an
    /// affine location.
    pub(super) fn copy(&mut self, ty: Type, to: Location, from: Location) {
        match (to, from) {
            (Location::Scalar(d), Location::Scalar(a)) => {
                self.push(Step::Scalar(ops::copy(ty), d, [a, 0, 0]));
            }
            (Location::Affine(d), Location::Affine(a)) => self.copy_affine(d, AffineSrc::Slot(a)),
            (Location::Affine(d), Location::Scalar(index)) => {
                let block = self.registers.allocate_block(ty);
                self.copy_affine(d, AffineSrc::Scalar { index, block });
            }
            (Location::Lanes(d), Location::Lanes(a)) => {
                self.apply(ops::copy(ty), Reg::lanes(d), &[Reg::lanes(a)]);
            }
            (to, from) => debug_assert!(false, "{from:?} cannot be copied to {to:?}"),
        }
    }

    fn copy_affine(&mut self, d: Affine, a: AffineSrc) {
        let lanes = ops::copy(Type::U32);
        self.push(Step::Affine { op: AffineOp::Copy, lanes, d, a, b: a });
    }

    /// Emits the assignment of zero to a location, in all lanes.
    pub(super) fn zero(&mut self, ty: Type, location: Location) {
        match location {
            Location::Scalar(_) | Location::Affine(_) => {
                let zero = Location::Scalar(self.constant_scalar(0));
                self.copy(ty, location, zero);
            }
            Location::Lanes(d) => self.push(Step::Zero { ty, d }),
        }
    }

    /// Compiles the assignment of a variable.
    pub(super) fn assign(&mut self, var: Var, value: Value) {
        let ty = self.kir.ty(value);
        match self.var_location(var) {
            Location::Lanes(d) => {
                let value = self.lanes(value);
                if self.uniformity.vars[var.index()].partially_assigned {
                    self.push(Step::Blend { ty, d, value });
                } else if value != (Src { start: d, step: 1 }) {
                    self.apply(ops::copy(ty), Reg::lanes(d), &[Reg::Lanes(value)]);
                }
            }
            to => {
                let from = self.location(value);
                if from != to {
                    self.copy(ty, to, from);
                }
            }
        }
    }

    /// Returns the register of a variable into which the value can be computed directly: the
    /// value's only use is an assignment to it soon after. `rest` are the following statements of
    /// the block.
    pub(super) fn destination(&mut self, value: Value, rest: &[Stmt]) -> Option<u32> {
        let can_write_anywhere = matches!(
            self.kir.inst(value),
            Inst::Unary(..) | Inst::Binary(..) | Inst::Fma(..) | Inst::Select(..)
        );
        if !can_write_anywhere || self.live_ranges.uses[value.index()] != 1 {
            return None;
        }
        let following = rest.iter().take(MAX_DISTANCE);
        let var =
            following.map_while(|stmt| self.search_assignment(stmt, value)).find_map(|var| var)?;
        let uniformity = self.uniformity.vars[var.index()];
        if uniformity.variability != Variability::Varying
            || uniformity.partially_assigned
            || self.is_needed(var, value, rest)
        {
            return None;
        }
        match self.var_location(var) {
            Location::Lanes(start) => Some(start),
            Location::Scalar(_) | Location::Affine(_) => None,
        }
    }

    /// Returns `Some(Some(var))` if the statement assigns the value to `var`, `Some(None)` to
    /// search the next statement, and `None` to give up.
    fn search_assignment(&self, stmt: &Stmt, value: Value) -> Option<Option<Var>> {
        match stmt {
            Stmt::Set(var, assigned) => Some((*assigned == value).then_some(*var)),
            Stmt::Let(_) => Some(None),
            _ => None,
        }
    }

    /// Returns whether the current value of a variable is read after the current statement and
    /// before `value` is assigned.
    fn is_needed(&self, var: Var, value: Value, rest: &[Stmt]) -> bool {
        let now = self.position;
        let alive = |read: &Value| {
            let live_range = self.live_ranges.values[read.index()];
            live_range.first <= now && live_range.last > now
        };
        let until = rest.iter().take_while(|stmt| **stmt != Stmt::Set(var, value));
        let touches = |stmt: &Stmt| match stmt {
            Stmt::Let(read) => *self.kir.inst(*read) == Inst::Get(var),
            Stmt::Set(other, _) => *other == var,
            _ => false,
        };
        self.live_ranges.vars[var.index()].aliases.iter().any(alive)
            || until.into_iter().any(touches)
    }
}

fn variability_of(location: Location) -> Variability {
    match location {
        Location::Scalar(_) => Variability::Uniform,
        Location::Affine(_) => Variability::Affine,
        Location::Lanes(_) => Variability::Varying,
    }
}
