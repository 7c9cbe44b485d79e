//! Tests that passes preserve the effects of random kernels.

use super::super::super::interpret::{Event, Interpreter, Invocation};
use super::super::super::{AddressSpace, Block, Kir, verify};
use super::super::{PASSES, optimise};
use super::random::{LENGTHS, Rng, SIZE, kernel};

/// The stores of an invocation to buffers, in order: buffer, byte offset, bits.
type Effects = Vec<(AddressSpace, u64, u64)>;

/// Executes one invocation of a grid of 3 by 3 by 3 workgroups; returns its stores.
fn run(kir: &Kir, local: [u32; 3], buffers: &[Vec<u8>]) -> Effects {
    let mut effects = Effects::new();
    let mut record = |_, event| {
        if let Event::Written { space: space @ AddressSpace::Binding(_), byte, value } = event {
            effects.push((space, byte, value.bits));
        }
    };
    let mut interpreter = Interpreter::new(kir, buffers.to_vec());
    let invocation = Invocation { group: [2, 1, 0], local };
    let executed = interpreter.observe_invocation([3; 3], invocation, &mut record);
    executed.unwrap_or_else(|error| panic!("{error}"));
    effects
}

/// Returns initial contents of the buffers.
fn buffers(seed: u64) -> Vec<Vec<u8>> {
    let mut rng = Rng(!seed);
    let words = [0, 1, 2, 3, 5, 9, 0x3f80_0000, 0x7fc0_0000, 0xffff_ffff, 0x8000_0000_u32];
    let mut fill = |len: u32| (0..len).flat_map(|_| rng.pick(&words).to_le_bytes()).collect();
    LENGTHS.iter().map(|len| fill(*len)).collect()
}

/// Returns the effects of three invocations.
fn effects(kir: &Kir, seed: u64) -> Vec<Effects> {
    let buffers = buffers(seed);
    let ids = [[0, 0, 0], [SIZE[0] - 1, SIZE[1] - 1, 0], [2, 1, 0]];
    ids.iter().map(|id| run(kir, *id, &buffers)).collect()
}

/// Returns whether a kernel has the same effects after a change; false if an access is out of
/// bounds.
fn has_same_effects(kir: &Kir, seed: u64, change: fn(&mut Kir)) -> bool {
    std::panic::catch_unwind(|| {
        let mut changed = kir.clone();
        change(&mut changed);
        effects(kir, seed) == effects(&changed, seed)
    })
    .unwrap_or(false)
}

fn count_statements(block: &Block) -> usize {
    let mut count = 0;
    crate::kir::for_each_stmt(block, &mut |_| count += 1);
    count
}

/// Asserts that a change preserves the effects of random kernels. If it does not, prints the
/// smallest of the first failing kernels.
fn assert_preserves_effects(seeds: std::ops::Range<u64>, change: fn(&mut Kir)) {
    let kernels = seeds.flat_map(|seed| [(seed, 12), (seed, 60)]);
    let failing =
        kernels.filter(|(seed, budget)| !has_same_effects(&kernel(*seed, *budget), *seed, change));
    let found = failing
        .take(20)
        .min_by_key(|(seed, budget)| count_statements(&kernel(*seed, *budget).body));
    if let Some((seed, budget)) = found {
        let before = kernel(seed, budget);
        let mut after = before.clone();
        change(&mut after);
        panic!("seed {seed}, budget {budget}\n{before}\nbecomes\n{after}");
    }
}

/// Optimises a kernel, and verifies it after each pass.
fn optimise_verified(kir: &mut Kir) {
    assert_eq!(verify(kir), Ok(()), "before");
    for (name, pass) in PASSES {
        pass(kir);
        assert_eq!(verify(kir), Ok(()), "after {name}");
    }
}

#[test]
fn optimising_changes_no_result() {
    assert_preserves_effects(0..2000, optimise_verified);
}

#[test]
fn optimising_makes_kernels_smaller() {
    let size = |kir: &Kir| count_statements(&kir.body);
    let (mut before, mut after) = (0, 0);
    for seed in 0..200 {
        let mut kir = kernel(seed, 60);
        before += size(&kir);
        optimise(&mut kir);
        after += size(&kir);
    }
    assert!(after * 3 < before * 2, "{before} statements became {after}");
}
