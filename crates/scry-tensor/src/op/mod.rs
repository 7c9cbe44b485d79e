//! What operations compute, as data: an [`Op`] is built once by a method of a tensor, and then
//! either runs eagerly, on elements in memory, or becomes a node of a graph.

mod attention;
mod computed;
mod contraction;
mod convolution;
mod gather;
mod join;
mod library;
mod matmul;
mod pairwise;
mod quantized;
mod random;
mod reduce;
mod rows;
mod rule;
mod scatter;
mod sharding;
mod view;

use std::sync::Arc;

pub(crate) use attention::{Attend, Rotate};
pub(crate) use computed::{Address, Computed};
pub(crate) use contraction::Contraction;
pub(crate) use convolution::{Convolve, PoolKind, Pooling};
pub(crate) use gather::{Gathered, Selection};
pub(crate) use join::{Join, Piece};
pub(crate) use library::{Library, packed_bytes};
pub(crate) use matmul::FusedProduct;
pub(crate) use pairwise::{Distance, Pairwise};
pub(crate) use quantized::QuantizedProduct;
pub(crate) use random::{Distribution, Random};
pub(crate) use reduce::Reduce;
pub(crate) use rows::{Norm, NormKind, Rows, TopK};
pub(crate) use rule::{Number, Trivial};
pub(crate) use scatter::ScatterAdd;
pub(crate) use view::{Part, View};
use view::{expanded_layout, run_view};

use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::expr::Map;
use crate::runtime::Runtime;
use crate::shape::{Shape, broadcast, check_count, check_view};
use crate::stored::{Computation, Stored, stored_word};

/// What an operation computes of its operands. Equal operations of equal operands are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// A scalar expression for each element, of operands that are broadcast, with the bits of its
    /// arguments.
    Map(Arc<Map>, Vec<u32>),
    /// The same elements with another shape. The second operand of [`View::Like`] and
    /// [`View::SameSize`] is only a shape.
    View(View),
    /// The first operand's elements at the indices of the second one, along an axis.
    Gather(Selection),
    /// Pieces of the operands.
    Join(Join),
    /// A function of coordinates and of indices. The last operand is only a shape.
    Computed(Computed),
    /// An operation of the kernel library.
    Library(Library),
}

impl Op {
    /// Returns an operation of a scalar expression.
    pub(crate) fn map(map: Map, arguments: Vec<u32>) -> Self {
        Self::Map(Arc::new(map), arguments)
    }

    /// Returns the shape of the result, or the error of the call. The first operand has elements
    /// of type `first`.
    pub(crate) fn shape(&self, call: Call, first: DType, operands: &[&Shape]) -> Result<Shape> {
        let shape = match self {
            Self::Map(..) => {
                let shapes: Vec<&[usize]> = operands.iter().map(|shape| &***shape).collect();
                broadcast(call, &shapes)?
            }
            Self::View(view) => return view.shape(call, operands[0], operands.get(1).copied()),
            Self::Gather(selection) => selection.shape(call, operands[0], operands[1])?,
            Self::Join(join) => join.shape(call, operands)?,
            Self::Computed(computed) => computed.shape(call, operands)?,
            Self::Library(library) => library.shape(call, first, operands)?,
        };
        check_count(call, &shape, self.dtype(first))?;
        Ok(shape)
    }

    /// Returns the element type of the result.
    pub(crate) fn dtype(&self, first: DType) -> DType {
        match self {
            Self::Map(map, _) => map.output,
            Self::View(_) | Self::Gather(_) | Self::Join(_) => first,
            Self::Computed(computed) => computed.dtype(),
            Self::Library(library) => library.dtype(first),
        }
    }

    /// Returns the result if the shapes alone decide it.
    pub(crate) fn trivial(
        &self,
        dtype: DType,
        operands: &[&Shape],
        shape: &Shape,
    ) -> Option<Trivial> {
        match self {
            // All indices are out of range.
            Self::Gather(_) => {
                let is_empty = operands[0].contains(&0) && !shape.contains(&0);
                is_empty.then_some(Trivial::Fill(0))
            }
            Self::Library(library) => library.trivial(dtype, operands, shape),
            Self::Join(join) => join.trivial(operands, shape),
            _ => None,
        }
    }

    /// Computes the result eagerly. Returns when the work is submitted.
    pub(crate) fn run(&self, call: Call, operands: &[&Stored]) -> Result<Stored> {
        let shapes: Vec<&Shape> = operands.iter().map(|it| it.shape()).collect();
        if let Self::View(view) = self {
            return run_view(view, call, operands[0], shapes.get(1).copied());
        }
        let first = operands[0];
        let shape = self.shape(call, first.dtype, &shapes)?;
        match self.trivial(first.dtype, &shapes, &shape) {
            Some(Trivial::Fill(bits)) => {
                let dtype = self.dtype(first.dtype);
                let word = stored_word(dtype, bits);
                return Stored::repeated(call, &first.runtime, shape, dtype, word);
            }
            Some(Trivial::Same) => {
                let view = View::Reshape((&shape).into());
                return run_view(&view, call, &first.contiguous(call)?, None);
            }
            None => {}
        }
        match self {
            Self::Map(map, arguments) => {
                run_map(call, &first.runtime, map, arguments, shape, operands)
            }
            Self::Gather(selection) => {
                let gathered =
                    Gathered::new(*selection, &first.layout, &operands[1].layout, &shape);
                let operands = vec![(operands[1], gathered.indices), (first, gathered.elements)];
                let map = Gathered::map(operands[0].0.dtype, first.dtype);
                let gathered = Some(gathered.axis);
                Computation { map: &map, shape, operands, gathered, arguments: &[] }
                    .run(call, &first.runtime)
            }
            Self::Library(library) => library.run(call, operands, shape),
            Self::Join(join) => {
                let (pieces, map, arguments) = join.pieces(first.dtype, &shapes);
                let piece = |piece: &Piece| {
                    let operand = operands[piece.operand];
                    (operand, piece.moved(&operand.layout, &shape))
                };
                let operands = pieces.iter().map(piece).collect();
                let (map, arguments, gathered) = (&map, &arguments[..], None);
                Computation { map, shape: shape.clone(), operands, gathered, arguments }
                    .run(call, &first.runtime)
            }
            Self::Computed(computed) => {
                let (like, operands) = (shapes[shapes.len() - 1], &operands[..shapes.len() - 1]);
                let dtypes: Vec<DType> = operands.iter().map(|it| it.dtype).collect();
                let (map, arguments) = computed.map(&dtypes, like);
                run_map(call, &first.runtime, &map, &arguments, shape, operands)
            }
            Self::View(_) => Ok(first.clone()),
        }
    }
}

fn run_map(
    call: Call,
    runtime: &Arc<Runtime>,
    map: &Map,
    arguments: &[u32],
    shape: Shape,
    operands: &[&Stored],
) -> Result<Stored> {
    check_view(call, &shape)?;
    let mut expanded = Vec::with_capacity(operands.len());
    for operand in operands {
        expanded.push((*operand, expanded_layout(call, &operand.layout, &shape)?));
    }
    Computation { map, shape, operands: expanded, gathered: None, arguments }.run(call, runtime)
}
