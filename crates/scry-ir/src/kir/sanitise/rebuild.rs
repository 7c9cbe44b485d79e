//! Copies a kernel: renumbers what is used, clamps indices, and drops the kernel's claims.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{invalid, places};
use crate::ShaderError;
use crate::kir::print::Line;
use crate::kir::{
    AddressSpace, AtomicOp, Block, Const, Definition, Inst, Kir, Label, Place, SourceMap, Stmt,
    Type, Value, Var,
};

/// For each value of the copy, the value of the original kernel that it comes from, if any.
pub(super) struct Origins(Vec<Option<Value>>);

impl Origins {
    /// Returns the statement of the original kernel that a value comes from, for messages.
    pub(super) fn describe(&self, kir: &Kir, value: Value) -> String {
        match self.0.get(value.index()).copied().flatten() {
            Some(origin) => {
                let at = kir.source.parenthesised(kir.source.value(origin));
                format!("`{}`{at}", Line { kir, stmt: &Stmt::Let(origin) })
            }
            None => "a constant".to_owned(),
        }
    }
}

/// Copies a valid kernel.
///
/// # Errors
/// For an access that no clamp makes valid, for a use of the result of an atomic store, and for
/// what is valid but not accepted: fragment loads, indices of the arrays of matrices, float atomics
/// in workgroup memory, and array lengths that are not whole elements.
pub(super) fn rebuild(kir: &Kir) -> Result<(Kir, Origins), ShaderError> {
    let mut rebuild = Rebuild::new(kir);
    let body = rebuild.block(&kir.body)?;
    let Rebuild { mut out, mut prologue, origins, labels, .. } = rebuild;
    prologue.extend(body);
    out.body = prologue;
    out.source = kir.source.renumbered(origins.iter().copied()).relabelled(&labels);
    Ok((out, Origins(origins)))
}

/// A kernel being copied.
pub(super) struct Rebuild<'k> {
    pub(super) kir: &'k Kir,
    pub(super) out: Kir,
    /// For each original value computed so far, its copy.
    values: Vec<Option<Value>>,
    /// As [`Origins`].
    origins: Vec<Option<Value>>,
    /// For each original variable used so far, its copy.
    vars: Vec<Option<Var>>,
    /// For each original label, its copy; `KERNEL` if there is none.
    labels: Vec<Label>,
    /// Constants and lengths of buffers, which precede all other statements.
    prologue: Block,
    constants: HashMap<Const, Value, RandomState>,
    /// Lengths of buffers, by binding, offset and stride.
    lengths: HashMap<[u32; 3], Value, RandomState>,
}

impl<'k> Rebuild<'k> {
    fn new(kir: &'k Kir) -> Self {
        let out = Kir {
            values: Vec::with_capacity(kir.values.len()),
            vars: Vec::new(),
            body: Vec::new(),
            labels: Label::KERNEL.0 + 1,
            buffers: kir.buffers.clone(),
            name: kir.name.clone(),
            workgroup: kir.workgroup.clone(),
            locals: kir.locals.clone(),
            source: SourceMap::default(),
            ..*kir
        };
        let mut rebuild = Self {
            kir,
            out,
            values: vec![None; kir.values.len()],
            origins: Vec::new(),
            vars: vec![None; kir.vars.len()],
            labels: vec![Label::KERNEL; kir.labels as usize],
            prologue: Vec::new(),
            constants: HashMap::default(),
            lengths: HashMap::default(),
        };
        rebuild.out.buffers.iter_mut().for_each(|buffer| buffer.min_size = 0);
        rebuild
    }

    fn block(&mut self, block: &Block) -> Result<Block, ShaderError> {
        let mut out = Vec::with_capacity(block.len());
        for stmt in block {
            self.stmt(stmt, &mut out)?;
        }
        Ok(out)
    }

    fn stmt(&mut self, stmt: &Stmt, out: &mut Block) -> Result<(), ShaderError> {
        let copy = match stmt {
            Stmt::Let(value) => return self.compute(*value, out),
            Stmt::Set(var, value) => Stmt::Set(self.var(*var), self.value(*value)?),
            Stmt::Store { place, values, at } => {
                let values: Vec<Value> =
                    values.iter().map(|value| self.value(*value)).collect::<Result<_, _>>()?;
                let ty = self.out.ty(values[0]);
                let place = self.copy_place(place, ty, values.len() as u32, out)?;
                Stmt::Store { place, values, at: *at }
            }
            Stmt::MatrixStore { place, value, at } => {
                places::require_unindexed(&place.array)?;
                let (value, mut place) = (self.value(*value)?, *place);
                self.replace_operands(|each| place.visit_operands(each))?;
                let place = self.matrix_place(&place, self.out.ty(value))?;
                Stmt::MatrixStore { place, value, at: *at }
            }
            Stmt::If { condition, then_block, else_block, at } => Stmt::If {
                condition: self.value(*condition)?,
                then_block: self.block(then_block)?,
                else_block: self.block(else_block)?,
                at: *at,
            },
            Stmt::Loop { label, body, finite: _ } => {
                let label = self.label(*label);
                Stmt::Loop { label, body: self.block(body)?, finite: false }
            }
            Stmt::Scope { label, body } => {
                let label = self.label(*label);
                Stmt::Scope { label, body: self.block(body)? }
            }
            Stmt::Break(label) => Stmt::Break(self.labels[label.0 as usize]),
            Stmt::Barrier(barrier, at) => Stmt::Barrier(*barrier, *at),
        };
        out.push(copy);
        Ok(())
    }

    /// Copies the definition of a value.
    fn compute(&mut self, value: Value, out: &mut Block) -> Result<(), ShaderError> {
        let Definition { ty, mut inst } = self.kir.values[value.index()];
        if let Inst::MatrixLoad(place) = &inst {
            places::require_unindexed(&place.array)?;
        }
        self.replace_operands(|each| inst.for_each_operand_mut(each))?;
        let shared = match &mut inst {
            Inst::Const(constant) => Some(self.constant(*constant)),
            Inst::ArrayLength { binding, offset, stride } => {
                Some(self.array_length(*binding, *offset, *stride)?)
            }
            Inst::Get(var) => {
                *var = self.var(*var);
                None
            }
            Inst::Load { place, count } | Inst::WorkgroupUniformLoad { place, count } => {
                *place = self.clamp_place(place, ty, (*count).into(), out)?;
                None
            }
            Inst::Atomic { place, .. } => {
                places::check_atomic(place.space, ty)?;
                *place = self.clamp_place(place, ty, 1, out)?;
                None
            }
            Inst::LoadFragment(_) => {
                let message = "`load_fragment` is not accepted: `Kir::with_fragments` adds it; \
                     help: use `matrix_load`";
                return Err(invalid(message.to_owned()));
            }
            Inst::MatrixLoad(place) => {
                *place = self.matrix_place(place, ty)?;
                None
            }
            Inst::Builtin(_)
            | Inst::Unary(..)
            | Inst::Binary(..)
            | Inst::Fma(..)
            | Inst::Select(..)
            | Inst::Convert(_)
            | Inst::Bitcast(_)
            | Inst::Extra(..)
            | Inst::Subgroup(_)
            | Inst::MatrixFill(_)
            | Inst::MultiplyAdd(..)
            | Inst::MultiplyFragments { .. } => None,
        };
        // Constants and lengths are in the prologue, shared by all their uses.
        if let Some(shared) = shared {
            self.values[value.index()] = Some(shared);
            return Ok(());
        }
        let results = inst.results();
        let first = self.define(ty, inst, Some(value));
        for n in 1..results {
            self.define(ty, Inst::Extra(first, n as u8), Some(value));
        }
        if !matches!(inst, Inst::Atomic { op: AtomicOp::Store, .. }) {
            for nth in 0..results {
                self.values[value.index() + nth as usize] = Some(Value(first.0 + nth));
            }
        }
        out.push(Stmt::Let(first));
        Ok(())
    }

    fn define(&mut self, ty: Type, inst: Inst, origin: Option<Value>) -> Value {
        self.out.values.push(Definition { ty, inst });
        self.origins.push(origin);
        Value(self.out.values.len() as u32 - 1)
    }

    /// Adds an instruction that the original kernel does not have. Its origin is that of `like`.
    pub(super) fn add(&mut self, like: Value, ty: Type, inst: Inst, out: &mut Block) -> Value {
        let value = self.define(ty, inst, self.origins[like.index()]);
        out.push(Stmt::Let(value));
        value
    }

    /// Returns a constant of the prologue.
    pub(super) fn constant(&mut self, constant: Const) -> Value {
        if let Some(value) = self.constants.get(&constant) {
            return *value;
        }
        let value = self.define(constant.ty, Inst::Const(constant), None);
        self.prologue.push(Stmt::Let(value));
        self.constants.insert(constant, value);
        value
    }

    /// Returns the length of the array from byte `offset` of a buffer to its end.
    pub(super) fn buffer_length(&mut self, binding: u32, offset: u32, stride: u32) -> Value {
        if let Some(value) = self.lengths.get(&[binding, offset, stride]) {
            return *value;
        }
        let value = self.define(Type::U32, Inst::ArrayLength { binding, offset, stride }, None);
        self.prologue.push(Stmt::Let(value));
        self.lengths.insert([binding, offset, stride], value);
        value
    }

    /// Returns the copy of a value.
    fn value(&self, value: Value) -> Result<Value, ShaderError> {
        // The verifier has checked that the value is computed before.
        self.values[value.index()].ok_or_else(|| {
            let stmt = Stmt::Let(value);
            let line = Line { kir: self.kir, stmt: &stmt };
            invalid(format!("the result of `{line}` is used, but an atomic store has none"))
        })
    }

    /// Replaces each operand that `visit` visits by its copy.
    fn replace_operands(
        &self,
        visit: impl FnOnce(&mut dyn FnMut(&mut Value)),
    ) -> Result<(), ShaderError> {
        let mut result = Ok(());
        visit(&mut |operand| match self.value(*operand) {
            Ok(value) => *operand = value,
            Err(error) => result = Err(error),
        });
        result
    }

    /// Returns the address of an original access, its index copied and clamped.
    fn copy_place(
        &mut self,
        place: &Place,
        ty: Type,
        count: u32,
        out: &mut Block,
    ) -> Result<Place, ShaderError> {
        let index = place.index.map(|index| self.value(index)).transpose()?;
        self.clamp_place(&Place { index, ..*place }, ty, count, out)
    }

    fn var(&mut self, var: Var) -> Var {
        let ty = self.kir.vars[var.index()];
        let vars = &mut self.out.vars;
        *self.vars[var.index()].get_or_insert_with(|| {
            vars.push(ty);
            Var(vars.len() as u32 - 1)
        })
    }

    fn label(&mut self, label: Label) -> Label {
        let new = Label(self.out.labels);
        self.out.labels += 1;
        self.labels[label.0 as usize] = new;
        new
    }

    /// Requires a buffer to have at least this many bytes.
    pub(super) fn require_size(&mut self, binding: u32, bytes: u64) -> Result<(), ShaderError> {
        if bytes > u64::from(u32::MAX) {
            let space = AddressSpace::Binding(binding);
            return Err(invalid(format!("{space} would need {bytes} bytes, more than 4 GiB")));
        }
        let buffer = &mut self.out.buffers[binding as usize];
        buffer.min_size = buffer.min_size.max(bytes);
        Ok(())
    }
}
