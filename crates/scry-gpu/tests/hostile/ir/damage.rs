//! Damages valid kernels: false claims, unclamped and wrong indices, wrong types, removed loop
//! exits.

use scry_gpu::kir::{
    AddressSpace, Barrier, Block, Inst, Kir, Label, Place, Stmt, Type, Value, Var,
    for_each_stmt_mut,
};

use super::random::Random;

/// Makes a kernel claim that all its loops are finite, and that its buffers are huge.
pub fn make_false_claims(kir: &mut Kir) {
    for_each_stmt_mut(&mut kir.body, &mut |stmt| {
        if let Stmt::Loop { finite, .. } = stmt {
            *finite = true;
        }
    });
    kir.buffers.iter_mut().for_each(|buffer| buffer.min_size = 1 << 40);
}

/// Changes one thing in a kernel. If `endless` is false, loops stay unchanged.
pub fn damage(kir: &mut Kir, random: &mut Random, endless: bool) {
    match random.below(if endless { 12 } else { 6 }) {
        0..4 => damage_access(kir, random),
        4 => {
            let chosen = random.below(kir.values.len());
            if let Some(definition) = kir.values.get_mut(chosen) {
                definition.ty = random.one_of(&Type::ALL);
            }
        }
        5 => {
            let chosen = random.below(kir.buffers.len());
            if let Some(buffer) = kir.buffers.get_mut(chosen) {
                buffer.writable = !buffer.writable;
                buffer.element = random.one_of(&Type::ALL);
            }
        }
        6 => damage_declaration(kir, random),
        7..9 => remove_stmt(kir, random),
        _ => replace_stmt(kir, random),
    }
}

/// Changes the address of an access to memory.
fn damage_access(kir: &mut Kir, random: &mut Random) {
    let mut accesses = 0;
    for_each_place_mut(kir, &mut |_, _| accesses += 1);
    let chosen = random.below(accesses);
    let mut i = 0;
    for_each_place_mut(kir, &mut |place, is_load| {
        if i == chosen {
            damage_place(place, is_load, random);
        }
        i += 1;
    });
}

/// Calls `visit` with the place of each load, atomic and store, and whether it is a load.
fn for_each_place_mut(kir: &mut Kir, visit: &mut dyn FnMut(&mut Place, bool)) {
    for definition in &mut kir.values {
        match &mut definition.inst {
            Inst::Load { place, .. } => visit(place, true),
            Inst::Atomic { place, .. } => visit(place, false),
            _ => {}
        }
    }
    for_each_stmt_mut(&mut kir.body, &mut |stmt| {
        if let Stmt::Store { place, .. } = stmt {
            visit(place, false);
        }
    });
}

fn damage_place(place: &mut Place, is_load: bool, random: &mut Random) {
    match random.below(8) {
        0 => place.stride = random.number() & !7,
        1 => place.offset = random.below(10) as u32 * 4,
        2 => place.offset = random.number() & !7,
        3 if is_load => place.space = AddressSpace::Binding(random.below(3) as u32),
        3 | 4 => place.index = None,
        // The first values are mostly invocation ids and constants.
        _ => place.index = Some(Value(random.below(10) as u32)),
    }
}

fn damage_declaration(kir: &mut Kir, random: &mut Random) {
    match random.below(4) {
        0 => kir.labels = random.number(),
        1 => kir.immediates = random.number(),
        2 => drop(kir.vars.pop()),
        _ => kir.workgroup_size[random.below(3)] = random.number(),
    }
}

/// Removes a statement other than `Let`, such as the exit of a loop.
fn remove_stmt(kir: &mut Kir, random: &mut Random) {
    let mut remaining = random.below(count(&kir.body));
    edit(&mut kir.body, &mut |block, i| {
        let chosen = remaining == 0 && !matches!(block[i], Stmt::Let(_));
        remaining = remaining.saturating_sub(1);
        if chosen {
            block.remove(i);
        }
        chosen
    });
}

/// Replaces a statement other than `Let` by another one.
fn replace_stmt(kir: &mut Kir, random: &mut Random) {
    let mut remaining = random.below(count(&kir.body));
    let value = Value(random.below(kir.values.len()) as u32);
    let replacement = match random.below(6) {
        0 => Stmt::Break(Label(random.below(kir.labels as usize) as u32)),
        1 => Stmt::Barrier(random.one_of(&[Barrier::Workgroup, Barrier::Subgroup]), None),
        2 => Stmt::Let(value),
        3 => {
            let place = Place::new(AddressSpace::Workgroup(0), Some(value), 4, 0);
            Stmt::Store { place, values: vec![value; random.below(6)], at: None }
        }
        _ => Stmt::Set(Var(random.below(kir.vars.len()) as u32), value),
    };
    let mut replacement = Some(replacement);
    edit(&mut kir.body, &mut |block, i| {
        let chosen = remaining == 0 && !matches!(block[i], Stmt::Let(_));
        remaining = remaining.saturating_sub(1);
        if chosen && let Some(stmt) = replacement.take() {
            block[i] = stmt;
        }
        chosen
    });
}

/// Returns the number of statements, nested ones included.
pub fn count(block: &Block) -> usize {
    block.iter().map(|stmt| 1 + stmt.blocks().map(count).sum::<usize>()).sum()
}

/// Calls `change` with each statement, by its block and position, until it returns true.
pub fn edit(block: &mut Block, change: &mut impl FnMut(&mut Block, usize) -> bool) -> bool {
    let mut i = 0;
    while i < block.len() {
        if change(block, i) {
            return true;
        }
        if block[i].blocks_mut().any(|inner| edit(inner, change)) {
            return true;
        }
        i += 1;
    }
    false
}
