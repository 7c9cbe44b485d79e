//! Cooperative matrices, by `SPV_KHR_cooperative_matrix`. The emitter sees loads and stores of
//! whole matrices only: [`stage`](crate::kir::staging::stage) has replaced the others.

use spirv::{Capability, CooperativeMatrixLayout, CooperativeMatrixUse, Op, Scope, StorageClass};

use super::module::Id;
use super::state::{ArrayVariable, Resolved};
use super::{Emitter, Result, lacking};
use crate::kir::staging;
use crate::kir::{
    AddressSpace, Array, BinaryOp, Inst, Kir, MatrixElement, MatrixPlace, MatrixSize, MatrixType,
    MatrixUse, Place, Type, UnaryOp, Value,
};
use crate::{
    BufferBindingType, Features, Interface, MatrixProducts, ShaderError, ShaderErrorKind,
    SpirvOptions,
};

/// The extension with the types and instructions.
const EXTENSION: &str = "SPV_KHR_cooperative_matrix";

/// Invocations of a subgroup in kernels with matrices.
const SUBGROUP_SIZE: u32 = 32;

/// Prepares a kernel with matrices for the emitter: stages its loads and stores where necessary.
///
/// # Errors
/// [`UnsupportedFeatures`](ShaderErrorKind::UnsupportedFeatures) for matrices that the device does
/// not have, for workgroups whose subgroups would not all be full, and if there is too little
/// workgroup memory for the tiles.
pub(super) fn prepare(kir: &Kir, interface: &Interface, options: &SpirvOptions) -> Result<Kir> {
    check_types(kir, options.matrices)?;
    let [width, ..] = kir.workgroup_size;
    if !width.is_multiple_of(SUBGROUP_SIZE) {
        return Err(unsupported(&format!(
            "a workgroup with cooperative matrices has {width} invocations along x: subgroups \
             that are all full need a multiple of {SUBGROUP_SIZE}; help: change `@workgroup_size`"
        )));
    }
    let is_accessible = |space| match space {
        AddressSpace::Binding(i) => interface.bindings[i as usize].ty == BufferBindingType::Storage,
        AddressSpace::Workgroup(_) => true,
        _ => false,
    };
    let staged = staging::stage(kir, &is_accessible);
    check_memory(kir, &staged, options)?;
    Ok(staged)
}

fn unsupported(message: &str) -> ShaderError {
    ShaderError::new(
        ShaderErrorKind::UnsupportedFeatures(Features::COOPERATIVE_MATRIX),
        message.to_owned(),
    )
}

/// Requires that the device has the products of a kernel, and the types of all its matrices.
fn check_types(kir: &Kir, offered: MatrixProducts) -> Result<()> {
    for definition in &kir.values {
        let Inst::MultiplyAdd(a, _, c) = definition.inst else { continue };
        let [Some(a), Some(c)] = [kir.ty(a), kir.ty(c)].map(Type::matrix) else { continue };
        let product = product(a.size, a.element, c.element);
        if !offered.contains(product) {
            return Err(unavailable(&format!("{product} products of matrices"), offered));
        }
    }
    for definition in &kir.values {
        if let Type::Matrix(ty) = definition.ty
            && !has_type(offered, ty)
        {
            let n = ty.size.rows();
            let what = format!("{n}x{n} matrices of {}", ty.element.ty());
            return Err(unavailable(&what, offered));
        }
    }
    Ok(())
}

fn unavailable(what: &str, offered: MatrixProducts) -> ShaderError {
    let products = match offered.is_empty() {
        true => "none".to_owned(),
        false => offered.to_string(),
    };
    unsupported(&format!(
        "the device has no {what}; its products are: {products}; help: use one of these, use a \
         CUDA or CPU device, or multiply tiles in workgroup memory"
    ))
}

fn product(
    size: MatrixSize,
    operands: MatrixElement,
    accumulators: MatrixElement,
) -> MatrixProducts {
    match (size, operands, accumulators) {
        (MatrixSize::M8, MatrixElement::F16, MatrixElement::F16) => MatrixProducts::F16_8X8,
        (MatrixSize::M8, MatrixElement::F16, MatrixElement::F32) => MatrixProducts::F16_F32_8X8,
        (MatrixSize::M8, ..) => MatrixProducts::F32_8X8,
        (MatrixSize::M16, MatrixElement::F16, MatrixElement::F16) => MatrixProducts::F16_16X16,
        (MatrixSize::M16, MatrixElement::F16, MatrixElement::F32) => MatrixProducts::F16_F32_16X16,
        (MatrixSize::M16, ..) => MatrixProducts::F32_16X16,
    }
}

/// Whether a product that the device has uses matrices of a type.
fn has_type(offered: MatrixProducts, ty: MatrixType) -> bool {
    let elements = [MatrixElement::F16, MatrixElement::F32];
    let products = match ty.role {
        MatrixUse::A | MatrixUse::B => {
            elements.map(|accumulators| product(ty.size, ty.element, accumulators))
        }
        MatrixUse::C => elements.map(|operands| product(ty.size, operands, ty.element)),
    };
    // No product has f32 operands and f16 accumulators: for these, `product` returns that of f32.
    let is_f16_accumulator = ty.role == MatrixUse::C && ty.element == MatrixElement::F16;
    let count = if is_f16_accumulator { 1 } else { 2 };
    products[..count].iter().any(|product| offered.contains(*product))
}

/// Requires that workgroup memory suffices for the tiles and the kernel's own arrays.
fn check_memory(kir: &Kir, staged: &Kir, options: &SpirvOptions) -> Result<()> {
    let bytes = |kir: &Kir| kir.workgroup.iter().map(Array::size).sum::<u64>();
    let stop = if options.polls { u64::from(SpirvOptions::STOP_SIZE) } else { 0 };
    let (own, all) = (bytes(kir), bytes(staged) + stop);
    let max = u64::from(options.max_workgroup_memory);
    if all == own + stop || all <= max {
        return Ok(());
    }
    let tiles = all - own;
    Err(unsupported(&format!(
        "the kernel has {own} bytes of workgroup memory, and its matrices need {tiles} more, of at \
         most {max}, since they may be partly outside of their arrays or misaligned; help: use \
         smaller arrays or fewer invocations in a workgroup"
    )))
}

impl Emitter<'_> {
    /// Returns the type of a matrix.
    pub(super) fn matrix_ty(&mut self, ty: MatrixType) -> Id {
        self.m.require(Capability::CooperativeMatrixKHR);
        self.m.extension(EXTENSION);
        let role = match ty.role {
            MatrixUse::A => CooperativeMatrixUse::MatrixAKHR,
            MatrixUse::B => CooperativeMatrixUse::MatrixBKHR,
            MatrixUse::C => CooperativeMatrixUse::MatrixAccumulatorKHR,
        };
        let rows = ty.size.rows();
        let element = self.spirv_ty(ty.element.ty());
        let [scope, rows, role] =
            [Scope::Subgroup as u32, rows, role as u32].map(|word| self.m.u32(word));
        self.m.ty(Op::TypeCooperativeMatrixKHR, &[element, scope, rows, rows, role])
    }

    /// Declares a variable of the function, initially zero.
    pub(super) fn variable(&mut self, ty: Type) -> Id {
        let zero = match ty {
            Type::Matrix(matrix) => self.zero_matrix(matrix),
            _ => {
                let ty = self.spirv_ty(ty);
                self.m.null(ty)
            }
        };
        let ty = self.spirv_ty(ty);
        self.m.local(ty, zero)
    }

    /// Declares an array of the function, initially zero.
    pub(super) fn local_array(&mut self, array: Array) -> Id {
        let ty = self.array_ty(array.ty, 1, array.len);
        let zero = match array.ty {
            Type::Matrix(matrix) => {
                let zeros = vec![self.zero_matrix(matrix); array.len as usize];
                self.m.constant(Op::ConstantComposite, ty, &zeros)
            }
            _ => self.m.null(ty),
        };
        self.m.local(ty, zero)
    }

    fn zero_matrix(&mut self, ty: MatrixType) -> Id {
        let element = self.spirv_ty(ty.element.ty());
        let (zero, ty) = (self.m.null(element), self.matrix_ty(ty));
        self.m.constant(Op::ConstantComposite, ty, &[zero])
    }

    /// Emits a matrix whose elements are all `element`.
    pub(super) fn matrix_fill(&mut self, ty: Type, element: Value) -> Id {
        let (ty, id) = (self.spirv_ty(ty), self.value(element));
        match self.kir.constant(element) {
            Some(_) => self.m.constant(Op::ConstantComposite, ty, &[id]),
            None => self.m.op(Op::CompositeConstruct, ty, &[id]),
        }
    }

    /// Emits `a * b + c`.
    pub(super) fn multiply_add(&mut self, ty: Type, operands: [Value; 3]) -> Id {
        let operands = operands.map(|operand| self.value(operand));
        self.op(Op::CooperativeMatrixMulAddKHR, ty, &operands)
    }

    /// Emits a component-wise operation of one matrix.
    pub(super) fn matrix_unary(&mut self, op: UnaryOp, ty: Type, a: Value) -> Result<Id> {
        let id = self.value(a);
        match op {
            UnaryOp::Neg => Ok(self.op(Op::FNegate, ty, &[id])),
            _ => Err(lacking(&format!("{op:?} of {ty}"))),
        }
    }

    /// Emits a component-wise operation of two matrices.
    pub(super) fn matrix_binary(&mut self, op: BinaryOp, ty: Type, ids: [Id; 2]) -> Result<Id> {
        let code = match op {
            BinaryOp::Add => Op::FAdd,
            BinaryOp::Sub => Op::FSub,
            BinaryOp::Mul => Op::FMul,
            BinaryOp::Div => Op::FDiv,
            _ => return Err(lacking(&format!("{op:?} of {ty}"))),
        };
        Ok(self.op(code, ty, &ids))
    }

    /// Loads a whole matrix.
    pub(super) fn matrix_load(&mut self, ty: MatrixType, place: &MatrixPlace) -> Result<Id> {
        let operands = self.matrix_operands(ty, place, None)?;
        let ty = self.matrix_ty(ty);
        Ok(self.m.op(Op::CooperativeMatrixLoadKHR, ty, &operands))
    }

    /// Stores a whole matrix.
    pub(super) fn matrix_store(&mut self, place: &MatrixPlace, value: Value) -> Result<()> {
        let Type::Matrix(ty) = self.ty(value) else {
            return Err(lacking("a matrix store of what is not a matrix"));
        };
        let id = self.value(value);
        let operands = self.matrix_operands(ty, place, Some(id))?;
        self.m.run(Op::CooperativeMatrixStoreKHR, &operands);
        Ok(())
    }

    /// Returns the operands of a load, or of a store of a matrix.
    fn matrix_operands(
        &mut self,
        ty: MatrixType,
        place: &MatrixPlace,
        stored: Option<Id>,
    ) -> Result<Vec<Id>> {
        let (pointer, class, width) = self.matrix_pointer(ty, place)?;
        let layout = match place.row_major {
            true => CooperativeMatrixLayout::RowMajorKHR,
            false => CooperativeMatrixLayout::ColumnMajorKHR,
        };
        let layout = self.m.u32(layout as u32);
        let stride = match self.kir.constant(place.stride) {
            Some(stride) => self.m.u32(stride.bits as u32 / width),
            None => {
                let stride = self.value(place.stride);
                self.divide_by_power_of_two(stride, width)
            }
        };
        let access = self.access(class);
        let mut operands = vec![pointer];
        operands.extend(stored);
        operands.extend([layout, stride]);
        operands.extend(access);
        Ok(operands)
    }

    /// Returns a pointer to the first element, its storage class, and the number of scalars that it
    /// points to.
    fn matrix_pointer(
        &mut self,
        ty: MatrixType,
        place: &MatrixPlace,
    ) -> Result<(Id, StorageClass, u32)> {
        let element = ty.element.ty();
        let array = Place { index: Some(place.index), stride: element.size(), ..place.array };
        let resolved = self.resolve(&array);
        match array.space {
            AddressSpace::Binding(binding) => {
                let pointer = self.buffer_pointer(binding, &resolved, element, 0, 1);
                Ok((pointer, StorageClass::StorageBuffer, 1))
            }
            AddressSpace::Workgroup(i) => {
                let array = self.workgroup[i as usize];
                Ok((self.vector_pointer(&array, &resolved, element)?, array.class, array.width))
            }
            other => Err(lacking(&format!("a cooperative matrix in {other}"))),
        }
    }

    /// Returns a pointer to the array element at a place, which is aligned to elements.
    fn vector_pointer(&mut self, array: &ArrayVariable, place: &Resolved, ty: Type) -> Result<Id> {
        if ty != array.ty {
            return Err(lacking(&format!("a matrix of {ty} in an array of {}", array.ty)));
        }
        let index = match place.index {
            None => self.m.u32((place.offset / u64::from(ty.size() * array.width)) as u32),
            Some(_) => {
                let scalar = self.unit(place, ty.size(), 0);
                self.divide_by_power_of_two(scalar, array.width)
            }
        };
        let scalar = self.spirv_ty(ty);
        let element = self.m.vector(scalar, array.width);
        Ok(self.pointer_to(array.class, element, &[array.variable, index]))
    }

    /// Divides a `u32` by a power of two.
    fn divide_by_power_of_two(&mut self, id: Id, by: u32) -> Id {
        if by == 1 {
            return id;
        }
        let (u32, shift) = (self.m.u32_ty(), self.m.u32(by.trailing_zeros()));
        self.m.op(Op::ShiftRightLogical, u32, &[id, shift])
    }
}
