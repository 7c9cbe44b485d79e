//! Merges the states of the invocations of a thread group.
//!
//! States merge in a binary tree: each with that half the group further, then each of the first
//! half with that a quarter further, and so on. All forms of [`Exchange`] do so, so that their
//! results have the same bits.

use scry_gpu::kir::{
    AddressSpace, Barrier, BinaryOp, Builder, Builtin, Place, ShuffleSource, SubgroupOp, Type,
    Value,
};

use super::rows::WORKGROUP;

/// The invocations of a subgroup, where thread groups exchange states within subgroups.
pub(crate) const SUBGROUP: u32 = 32;

/// How the invocations of a thread group exchange states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// By shuffles, on devices whose subgroups are [`SUBGROUP`] invocations in order; between
    /// subgroups by workgroup memory, with one barrier.
    Subgroups,
    /// By workgroup memory, with a barrier for each level of the tree.
    WorkgroupMemory,
}

/// A thread group: a power of two of consecutive invocations.
pub(super) struct ThreadGroup {
    exchange: Exchange,
    threads: u32,
    /// Two arrays, which merges use alternately: the barriers of the merge between two that use the
    /// same one order their accesses.
    arrays: Vec<AddressSpace>,
    /// The invocation in the workgroup.
    local: Value,
}

impl ThreadGroup {
    /// Declares the memory of thread groups.
    pub(super) fn new(b: &mut Builder, exchange: Exchange, threads: u32) -> Self {
        let shuffled = if exchange == Exchange::Subgroups { SUBGROUP } else { 1 };
        let count = if threads > shuffled { 2 } else { 0 };
        let arrays = (0..count).map(|_| b.workgroup_array(Type::U32, WORKGROUP)).collect();
        let local = b.builtin(Builtin::LocalId(0));
        Self { exchange, threads, arrays, local }
    }

    /// Merges the states of a group, of 32 bits each. All its invocations receive the result.
    /// `merge` is commutative.
    pub(super) fn merge(
        &mut self,
        b: &mut Builder,
        own: Value,
        merge: impl Fn(&mut Builder, Value, Value) -> Value,
    ) -> Value {
        match self.exchange {
            Exchange::Subgroups => self.merge_by_shuffles(b, own, merge),
            Exchange::WorkgroupMemory if self.threads == 1 => own,
            Exchange::WorkgroupMemory => self.merge_in_memory(b, own, merge),
        }
    }

    fn merge_by_shuffles(
        &mut self,
        b: &mut Builder,
        own: Value,
        merge: impl Fn(&mut Builder, Value, Value) -> Value,
    ) -> Value {
        let mut state = own;
        if self.threads > SUBGROUP {
            let array = self.next_array();
            store(b, array, self.local, own);
            b.barrier(Barrier::Workgroup);
            // Each subgroup merges the states of all.
            let lane = binary(b, BinaryOp::And, self.local, SUBGROUP - 1);
            let base = binary(b, BinaryOp::And, self.local, !(self.threads - 1));
            let first = b.binary(BinaryOp::Add, base, lane);
            let distances = (0..self.threads / SUBGROUP).map(|nth| nth * SUBGROUP);
            let mut states: Vec<Value> = distances
                .map(|distance| {
                    let at = binary(b, BinaryOp::Add, first, distance);
                    load(b, array, at, own)
                })
                .collect();
            while states.len() > 1 {
                let others = states.split_off(states.len() / 2);
                let pairs = states.iter().zip(&others);
                states = pairs.map(|(first, second)| merge(b, *first, *second)).collect();
            }
            state = states[0];
        }
        let mut distance = self.threads.min(SUBGROUP) / 2;
        while distance > 0 {
            let source = ShuffleSource::Xor(b.u32(distance));
            let other = b.subgroup(SubgroupOp::Shuffle { source, value: state });
            state = merge(b, state, other);
            distance /= 2;
        }
        state
    }

    fn merge_in_memory(
        &mut self,
        b: &mut Builder,
        own: Value,
        merge: impl Fn(&mut Builder, Value, Value) -> Value,
    ) -> Value {
        let array = self.next_array();
        store(b, array, self.local, own);
        b.barrier(Barrier::Workgroup);
        let thread = binary(b, BinaryOp::And, self.local, self.threads - 1);
        let mut distance = self.threads / 2;
        while distance > 0 {
            let limit = b.u32(distance);
            let is_first = b.binary(BinaryOp::Lt, thread, limit);
            b.if_then(is_first, |b| {
                let other = binary(b, BinaryOp::Add, self.local, distance);
                let (first, second) = (load(b, array, self.local, own), load(b, array, other, own));
                let merged = merge(b, first, second);
                store(b, array, self.local, merged);
            });
            b.barrier(Barrier::Workgroup);
            distance /= 2;
        }
        let first = b.binary(BinaryOp::Sub, self.local, thread);
        load(b, array, first, own)
    }

    fn next_array(&mut self) -> AddressSpace {
        self.arrays.rotate_left(1);
        self.arrays[0]
    }
}

/// Loads a state of the type of another one.
fn load(b: &mut Builder, array: AddressSpace, at: Value, other: Value) -> Value {
    let bits = b.load(Type::U32, Place::new(array, Some(at), 4, 0), 1)[0];
    let ty = b.ty(other);
    b.bitcast(ty, bits)
}

fn store(b: &mut Builder, array: AddressSpace, at: Value, state: Value) {
    let bits = b.bitcast(Type::U32, state);
    b.store(Place::new(array, Some(at), 4, 0), vec![bits]);
}

/// Adds an operation with a constant.
fn binary(b: &mut Builder, op: BinaryOp, a: Value, constant: u32) -> Value {
    let constant = b.u32(constant);
    b.binary(op, a, constant)
}
