//! Builds kernels of several maps, each with a result of its own.
//!
//! Consecutive ranges of invocations compute the words of one map each. A result is a buffer, a
//! range of words of one, or the row of a table at an index in memory.

use scry_gpu::kir::{Access as Buffer, BinaryOp, Builder, Kir, Type, Value};

use super::kernel::{Lowering, WORKGROUP};
use super::memory::{Conversions, decode};
use super::steps::{Parameters, stored};
use super::{Classes, GatherAxis, Iteration, KernelKey};
use crate::dtype::DType;
use crate::expr::Map;
use crate::shape::Layout;

/// Where a map of several stores its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StoreKind {
    /// From a word on, which is a parameter.
    Words,
    /// In the row at the index that an operand of the kernel has first. A parameter is the number
    /// of rows: with another index, nothing is stored.
    Row(u32),
}

/// One map of several.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PartKey {
    map: KernelKey,
    /// The operands of the kernel that those of the map are.
    operands: Vec<u32>,
    /// The result, by position.
    result: u32,
    store: StoreKind,
}

/// What a kernel of several maps depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct MapsKey {
    pub(crate) parts: Vec<PartKey>,
    pub(crate) results: u32,
    /// The element types of the operands in memory, each a buffer.
    pub(crate) operands: Vec<DType>,
    /// Whether the parameters are in a buffer.
    pub(crate) in_buffer: bool,
}

/// One map of a launch.
pub(crate) struct PartLaunch<'l> {
    pub(crate) map: &'l Map,
    pub(crate) sizes: &'l [usize],
    /// The number of elements, at least 1.
    pub(crate) count: u32,
    /// The operands of the kernel, with the result's shape.
    pub(crate) operands: Vec<(u32, Layout)>,
    pub(crate) gathered: Option<GatherAxis>,
    pub(crate) arguments: &'l [u32],
    pub(crate) result: u32,
    pub(crate) store: StoreKind,
    /// The parameter of the store: the first word, or the number of rows.
    pub(crate) place: u32,
}

impl PartLaunch<'_> {
    /// Returns what the kernel depends on, the parameters, and the number of invocations.
    pub(crate) fn key(&self) -> (PartKey, Vec<u32>, u32) {
        let layouts: Vec<Layout> = self.operands.iter().map(|(_, it)| it.clone()).collect();
        let iteration = Iteration::new(self.map, self.count, self.sizes, &layouts);
        let mut parameters = iteration.parameters(self.gathered, self.arguments);
        parameters.push(self.place);
        let (invocations, unroll) = (iteration.invocations(), iteration.unroll);
        let classes: Classes = iteration.classes;
        let map = self.map.clone();
        let map = KernelKey { map, classes, in_buffer: false, unroll, in_place: None };
        let operands = self.operands.iter().map(|(operand, _)| *operand).collect();
        let (result, store) = (self.result, self.store);
        (PartKey { map, operands, result, store }, parameters, invocations)
    }
}

/// Builds the kernel. Its buffers are the results, the operands, and the parameters if they are in
/// a buffer.
pub(crate) fn build_maps(key: &MapsKey, parameters: usize, conversions: Conversions) -> Kir {
    let mut b = Builder::new("maps", [WORKGROUP, 1, 1]);
    let results: Vec<u32> = (0..key.results)
        .map(|n| b.named_buffer(&format!("result{n}"), Type::U32, Buffer::ReadWrite))
        .collect();
    let operands = key.operands.iter().enumerate();
    let operands: Vec<u32> = operands
        .map(|(n, dtype)| b.named_buffer(&format!("operand{n}"), stored(*dtype), Buffer::Read))
        .collect();
    let mut parameters = Parameters::declare(&mut b, parameters, key.in_buffer);
    let mut word = b.global_id(0);
    for part in &key.parts {
        let words = parameters.read(&mut b);
        let is_own = b.binary(BinaryOp::Lt, word, words);
        b.open();
        let buffers = part.operands.iter().map(|it| operands[*it as usize]).collect();
        let output = results[part.result as usize];
        let mut lowering = Lowering { key: &part.map, b, output, buffers, parameters, conversions };
        let index = match part.store {
            StoreKind::Words => None,
            StoreKind::Row(n) => Some((operands[n as usize], key.operands[n as usize])),
        };
        store(&mut lowering, [word, words], index);
        Lowering { b, parameters, .. } = lowering;
        let block = b.close();
        b.if_then(is_own, |b| block.into_iter().for_each(|stmt| b.push(stmt)));
        // Of the invocations before, it is more than any number of words.
        word = b.binary(BinaryOp::Sub, word, words);
    }
    b.finish()
}

/// Computes a word of a map of `words`, and stores it: in the row at an index, if there is one.
fn store(part: &mut Lowering<'_>, [word, words]: [Value; 2], index: Option<(u32, DType)>) {
    let loaded = part.load_parameters();
    let place = part.parameters.read(&mut part.b);
    let value = part.word(word, &loaded);
    let (b, output) = (&mut part.b, part.output);
    let Some((buffer, dtype)) = index else {
        let at = b.binary(BinaryOp::Add, place, word);
        let at = b.element(output, at);
        return b.store(at, vec![value]);
    };
    let first = b.u32(0);
    let index = decode(b, part.conversions, buffer, dtype, first);
    let index = b.bitcast(Type::U32, index);
    let is_row = b.binary(BinaryOp::Lt, index, place);
    let row = b.binary(BinaryOp::Mul, index, words);
    let at = b.binary(BinaryOp::Add, row, word);
    let at = b.element(output, at);
    b.if_then(is_row, |b| b.store(at, vec![value]));
}
