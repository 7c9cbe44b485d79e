//! Finds bindings of which no two invocations access the same element.
//!
//! Threads that run different workgroups may access a binding at the same time. Plain (non-atomic)
//! accesses are free of data races only if no two threads access the same element, which is proven
//! here for the pattern of most kernels: each access to the binding has the global invocation index
//! along x as its element index. If that index is clamped to the last element of the binding's
//! array, the last element is shared; the executor treats it separately.

use scry_ir::kir::{AddressSpace, BinaryOp, Builtin, Inst, Kir, Place, Stmt, Value, for_each_stmt};

use crate::code::Disjoint;

/// Returns the disjoint elements of each buffer, `None` where they are not proven disjoint.
pub(crate) fn disjoint(kir: &Kir) -> Vec<Option<Disjoint>> {
    let mut found: Vec<Option<Option<Disjoint>>> = vec![None; kir.buffers.len()];
    let mut record = |place: &Place, bytes: u32| {
        if let AddressSpace::Binding(binding) = place.space {
            let element = own_element(kir, place, bytes);
            let merged = &mut found[binding as usize];
            *merged = Some(match merged {
                None => element,
                Some(before) => merge(*before, element),
            });
        }
    };
    for_each_stmt(&kir.body, &mut |stmt| match stmt {
        Stmt::Store { place, values, .. } => {
            let size = values.first().map_or(0, |value| kir.ty(*value).size());
            record(place, size * values.len() as u32);
        }
        Stmt::Let(value) => match kir.inst(*value) {
            Inst::Load { place, count } => record(place, kir.ty(*value).size() * u32::from(*count)),
            Inst::Atomic { place, .. } => record(place, u32::MAX),
            _ => {}
        },
        _ => {}
    });
    found.into_iter().map(Option::flatten).collect()
}

/// Merges accesses to the same array, which have the same stride and start; else returns `None`.
fn merge(a: Option<Disjoint>, b: Option<Disjoint>) -> Option<Disjoint> {
    a.filter(|a| Some(*a) == b)
}

/// Returns the element of an access, if it is the invocation's own and the access stays within it.
fn own_element(kir: &Kir, place: &Place, bytes: u32) -> Option<Disjoint> {
    let index = unclamped(kir, place)?;
    let offset = place.offset.checked_rem(place.stride)?;
    let fits = offset.checked_add(bytes).is_some_and(|end| end <= place.stride);
    let start = place.offset - offset;
    (fits && is_global_index_x(kir, index))
        .then_some(Disjoint { stride: place.stride, offset: start })
}

/// Returns the index of a place without its clamp to the length of the accessed array.
fn unclamped(kir: &Kir, place: &Place) -> Option<Value> {
    let index = place.index?;
    let Inst::Binary(BinaryOp::Min, a, b) = *kir.inst(index) else { return Some(index) };
    let is_last = |value: Value| match *kir.inst(value) {
        Inst::Binary(BinaryOp::Sub, length, one) => {
            is_length(kir, place, length) && kir.constant(one).is_some_and(|one| one.bits == 1)
        }
        Inst::Binary(BinaryOp::Add, length, minus_one) => {
            is_length(kir, place, length)
                && kir.constant(minus_one).is_some_and(|one| one.as_i64() == i64::from(u32::MAX))
        }
        _ => false,
    };
    match (is_last(a), is_last(b)) {
        (false, true) => Some(a),
        (true, false) => Some(b),
        _ => Some(index),
    }
}

/// Returns whether a value is the length of the array that is accessed. The length of another array
/// would make invocations share an element in the middle.
fn is_length(kir: &Kir, place: &Place, value: Value) -> bool {
    match *kir.inst(value) {
        Inst::ArrayLength { binding, offset, stride } => {
            place.space == AddressSpace::Binding(binding)
                && place.stride == stride
                && place.offset.checked_sub(offset).is_some_and(|member| member < stride)
        }
        _ => false,
    }
}

/// Returns whether a value is the global invocation index along x, in workgroups of one row.
fn is_global_index_x(kir: &Kir, value: Value) -> bool {
    let [width, height, depth] = kir.workgroup_size;
    let is_local = |value: Value| *kir.inst(value) == Inst::Builtin(Builtin::LocalId(0));
    let is_group = |value: Value| *kir.inst(value) == Inst::Builtin(Builtin::GroupId(0));
    let is_width =
        |value: Value| kir.constant(value).is_some_and(|size| size.bits == u64::from(width));
    let is_workgroup_start = |value: Value| match *kir.inst(value) {
        Inst::Binary(BinaryOp::Mul, a, b) => {
            (is_group(a) && is_width(b)) || (is_group(b) && is_width(a))
        }
        Inst::Binary(BinaryOp::Shl, a, by) => {
            is_group(a)
                && kir.constant(by).is_some_and(|by| 1u64 << (by.bits & 31) == u64::from(width))
        }
        Inst::Builtin(Builtin::GroupId(0)) => width == 1,
        _ => false,
    };
    height == 1
        && depth == 1
        && match *kir.inst(value) {
            Inst::Binary(BinaryOp::Add, a, b) => {
                (is_workgroup_start(a) && is_local(b)) || (is_workgroup_start(b) && is_local(a))
            }
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use scry_ir::Program;
    use scry_ir::kir::KirOptions;

    use super::*;

    /// Returns the result of the analysis for each buffer of a kernel.
    fn analyse(source: &str) -> Vec<Option<Disjoint>> {
        let program = Program::parse(source).unwrap();
        let kir = program.to_kir(&KirOptions { checked: true }).unwrap();
        disjoint(&kir)
    }

    /// The elements of an array with this stride at the start of a buffer.
    fn elements(stride: u32) -> Option<Disjoint> {
        Some(Disjoint { stride, offset: 0 })
    }

    #[test]
    fn elements_at_invocation_index_are_disjoint() {
        let kernel = |body: &str| {
            format!(
                "struct Pair {{ a: f32, b: f32 }}
                 @group(0) @binding(0) var<storage, read_write> y: array<f32>;
                 @group(0) @binding(1) var<storage, read_write> p: array<Pair>;
                 @compute @workgroup_size(64)
                 fn main(@builtin(global_invocation_id) id: vec3u) {{ let i = id.x; {body} }}"
            )
        };
        let both = vec![elements(4), elements(8)];
        assert_eq!(analyse(&kernel("y[i] += p[i].a; p[i].b = 1;")), both, "clamped");
        let proven = "if i < arrayLength(&y) && i < arrayLength(&p) { y[i] = p[i].a; }";
        assert_eq!(analyse(&kernel(proven)), both);
        for shared in ["y[i + 1]", "y[i / 2]", "y[0]", "y[id.y]"] {
            let body = format!("{shared} = p[i].a;");
            assert_eq!(analyse(&kernel(&body)), vec![None, elements(8)], "{shared}");
        }
        assert_eq!(analyse(&kernel("y[i] = p[i].a; y[i + 1] = 0;")), vec![None, elements(8)]);
    }

    #[test]
    fn clamps_to_other_lengths_prove_nothing() {
        let length_of_another_buffer = "
            @group(0) @binding(0) var<storage, read> few: array<f32>;
            @group(0) @binding(1) var<storage, read_write> y: array<f32, 4096>;
            @compute @workgroup_size(64)
            fn main(@builtin(global_invocation_id) id: vec3u) {
                if id.x < 4096 { y[min(id.x, arrayLength(&few) - 1)] = 1; }
            }";
        assert_eq!(analyse(length_of_another_buffer)[1], None);
        let length_of_another_array = "
            struct Both { head: array<f32, 4096>, tail: array<f32> }
            @group(0) @binding(0) var<storage, read_write> y: Both;
            @compute @workgroup_size(64)
            fn main(@builtin(global_invocation_id) id: vec3u) {
                if id.x < 4096 { y.head[min(id.x, arrayLength(&y.tail) - 1)] = 1; }
            }";
        assert_eq!(analyse(length_of_another_array), vec![None]);
    }
}
