//! Damage to valid kernels: false claims, raw and wrong indices, wrong types, lost exits.

use scry_gpu::kir::{
    AddressSpace, Barrier, Block, Inst, Kir, Label, Place, Stmt, Type, Value, Var,
    for_each_stmt_mut,
};

use super::random::Random;

/// Makes every claim of a kernel false: loops end, and buffers are huge.
pub fn claim(kir: &mut Kir) {
    for_each_stmt_mut(&mut kir.body, &mut |stmt| {
        if let Stmt::Loop { finite, .. } = stmt {
            *finite = true;
        }
    });
    kir.buffers.iter_mut().for_each(|buffer| buffer.size = 1 << 40);
}

/// Changes one thing. Without `endless` loops are left as they are.
pub fn damage(kir: &mut Kir, random: &mut Random, endless: bool) {
    match random.below(if endless { 12 } else { 6 }) {
        0..4 => places(kir, random),
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
        6 => declarations(kir, random),
        7..9 => remove(kir, random),
        _ => replace(kir, random),
    }
}

/// Changes the place of an access.
fn places(kir: &mut Kir, random: &mut Random) {
    let mut accesses = 0;
    each_place(kir, &mut |_, _| accesses += 1);
    let chosen = random.below(accesses);
    let mut nth = 0;
    each_place(kir, &mut |place, reads| {
        if nth == chosen {
            change(place, reads, random);
        }
        nth += 1;
    });
}

/// Calls `visit` with the place of each load, atomic and store, and whether it is only read.
fn each_place(kir: &mut Kir, visit: &mut dyn FnMut(&mut Place, bool)) {
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

fn change(place: &mut Place, reads: bool, random: &mut Random) {
    match random.below(8) {
        0 => place.stride = random.number() & !7,
        1 => place.offset = random.below(10) as u32 * 4,
        2 => place.offset = random.number() & !7,
        3 if reads => place.space = AddressSpace::Binding(random.below(3) as u32),
        3 | 4 => place.index = None,
        // The first values are mostly positions of the invocation, and constants.
        _ => place.index = Some(Value(random.below(10) as u32)),
    }
}

fn declarations(kir: &mut Kir, random: &mut Random) {
    match random.below(4) {
        0 => kir.labels = random.number(),
        1 => kir.immediates = random.number(),
        2 => drop(kir.vars.pop()),
        _ => kir.workgroup_size[random.below(3)] = random.number(),
    }
}

/// Removes a statement that computes no value, such as the exit of a loop.
fn remove(kir: &mut Kir, random: &mut Random) {
    let mut left = random.below(count(&kir.body));
    edit(&mut kir.body, &mut |block, nth| {
        let chosen = left == 0 && !matches!(block[nth], Stmt::Let(_));
        left = left.saturating_sub(1);
        if chosen {
            block.remove(nth);
        }
        chosen
    });
}

/// Replaces a statement that computes no value by another one.
fn replace(kir: &mut Kir, random: &mut Random) {
    let mut left = random.below(count(&kir.body));
    let value = Value(random.below(kir.values.len()) as u32);
    let with = match random.below(6) {
        0 => Stmt::Leave(Label(random.below(kir.labels as usize) as u32)),
        1 => Stmt::Barrier(random.one_of(&[Barrier::Workgroup, Barrier::Subgroup]), None),
        2 => Stmt::Let(value),
        3 => {
            let place = Place::new(AddressSpace::Workgroup(0), Some(value), 4, 0);
            Stmt::Store { place, values: vec![value; random.below(6)], at: None }
        }
        _ => Stmt::Set(Var(random.below(kir.vars.len()) as u32), value),
    };
    let mut with = Some(with);
    edit(&mut kir.body, &mut |block, nth| {
        let chosen = left == 0 && !matches!(block[nth], Stmt::Let(_));
        left = left.saturating_sub(1);
        if chosen && let Some(with) = with.take() {
            block[nth] = with;
        }
        chosen
    });
}

/// Returns the number of statements.
pub fn count(block: &Block) -> usize {
    block.iter().map(|stmt| 1 + stmt.blocks().map(count).sum::<usize>()).sum()
}

/// Calls `change` with each statement, by its block and position, until it returns true.
pub fn edit(block: &mut Block, change: &mut impl FnMut(&mut Block, usize) -> bool) -> bool {
    let mut nth = 0;
    while nth < block.len() {
        if change(block, nth) {
            return true;
        }
        if block[nth].blocks_mut().any(|inner| edit(inner, change)) {
            return true;
        }
        nth += 1;
    }
    false
}
