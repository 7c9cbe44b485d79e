//! Quantises activations to int8 limbs in global memory, once for all blocks of a product.

use super::activations::{LimbBuffer, Limbs, Source};
use super::format::SPAN;
use super::matvec_shape::{Columns, MatVec};
use crate::kernels::name::Name;
use crate::kernels::{
    BufferAccess, BufferParameter, KernelInterface, LaunchShape, Parameter, PtxKernel,
};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, KernelBuilder};
use crate::types::PtxType;

/// Warps per block; each quantises a span of 256 values.
const WARPS: u32 = 4;

/// The kernel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuantizeActivations {
    layout: Limbs,
    product: MatVec,
    columns: Columns,
}

impl QuantizeActivations {
    /// Creates the kernel for some columns of a product.
    pub(super) fn new(layout: Limbs, product: MatVec, columns: Columns) -> Self {
        Self { layout, product, columns }
    }

    fn body(&self, k: &KernelBuilder) {
        k.pdl_wait();
        k.pdl_launch_dependents();
        let (x, limbs) = (k.pointer_param::<u32>("x"), k.pointer_param::<u32>("limbs"));
        let [len, first, columns] =
            ["k", "first", "columns"].map(|name| k.scalar_param::<u32>(name));
        let spans = (len + (SPAN - 1)) >> SPAN.ilog2();
        let unit = k.block_id(0) * WARPS + (k.thread_id() >> 5);
        let (span, column) =
            (unit >> self.layout.padded_columns.ilog2(), unit & (self.layout.padded_columns - 1));
        let in_bounds = span.lt(spans) & column.lt(columns);
        k.if_then(in_bounds, || {
            let lane = k.lane();
            let limb_buffer = LimbBuffer::new(k, self.layout, limbs, spans);
            let values =
                Source::new(&self.product, x, len).values(in_bounds, span, first + column, lane);
            limb_buffer.write(span, column, lane, values);
        });
    }
}

impl PtxKernel for QuantizeActivations {
    fn name(&self) -> String {
        let name = self.product.append_source_to(Name::new("matvec_limbs"));
        self.layout.append_to(name).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_75
    }

    fn write(&self, target: Target) -> PtxEntry {
        typed::kernel(&self.name(), target, [WARPS * 32, 1, 1], |k| self.body(k))
    }

    fn pdl_reads(&self) -> Option<&'static [usize]> {
        Some(&[])
    }

    fn launch(&self) -> LaunchShape {
        let units = self.product.k.div_ceil(SPAN.into()) as u32 * self.layout.padded_columns;
        LaunchShape {
            grid: [units.div_ceil(WARPS).max(1), 1, 1],
            block: [WARPS * 32, 1, 1],
            dynamic_shared: 0,
        }
    }

    fn interface(&self) -> KernelInterface {
        let bytes = self.layout.bytes(self.product.k);
        let [_, x, _] = self.product.buffers();
        let write = BufferAccess::Write;
        KernelInterface {
            buffers: vec![
                x,
                BufferParameter { name: "limbs", access: write, element: PtxType::B8, len: bytes },
            ],
            parameters: vec![
                Parameter::Pointer(0),
                Parameter::Pointer(1),
                Parameter::U32(self.product.k as u32),
                Parameter::U32(self.columns.first),
                Parameter::U32(self.columns.count),
            ],
        }
    }
}
