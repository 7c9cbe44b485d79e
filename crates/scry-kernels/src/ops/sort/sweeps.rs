//! A radix sort with look-back: all digits are counted first, then each pass reads and writes
//! everything once.

use std::fmt::Write as _;

use scry_gpu::{DType, PreparedLaunch, Result};

use super::Sort;
use super::passes::{Pass, binding};
use crate::kernels::Kernels;
use crate::lookback;
use crate::occupancy::resident_workgroups;
use crate::operation::Preparation;
use crate::wgsl::{Immediates, WgslLaunch};

/// Invocations of a workgroup.
const THREADS: u64 = 256;

/// Keys of an invocation, for few and for many keys. Large tiles wait less for the tiles before.
const ITEMS: [u64; 2] = [16, 24];

/// Keys are counted in 30 bits.
const MAX_KEYS: u64 = (1 << 30) - 1;

/// Words before the states of tiles: tickets of passes, and starts of digits.
const HEADER: u64 = 4 + 4 * 256;

const SUBGROUPS: &str = "enable subgroups;\n";

/// Returns why look-back cannot be used; `None` if it can.
pub(super) fn obstacle(it: &Sort, kernels: &Kernels) -> Option<String> {
    let is_too_long = it.len > MAX_KEYS;
    lookback::obstacle(kernels)
        .or_else(|| is_too_long.then(|| format!("counts at most {MAX_KEYS} keys")))
}

/// Returns the keys of an invocation: many if large tiles occupy the device.
fn items(it: &Sort, kernels: &Kernels) -> u64 {
    let large_tiles = it.len / (THREADS * ITEMS[1]);
    ITEMS[usize::from(large_tiles >= resident_workgroups(kernels, 4))]
}

/// Prepares the sort.
pub(super) fn prepare(it: &Sort, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    let items = items(it, preparation.kernels);
    let tiles = it.len.div_ceil(THREADS * items);
    let states = HEADER + 4 * 256 * tiles;
    let states = preparation.kernels.scratch_of(4, DType::U32, states)?;
    let passes = it.passes(preparation)?;
    let counting = resident_workgroups(preparation.kernels, 8).min(tiles);
    let mut launches = vec![
        preparation.clear(&states)?,
        preparation.wgsl(&WgslLaunch {
            source: &[it.codes(), include_str!("../../shaders/sort/count_all_digits.wgsl")],
            buffers: &[&passes[0].keys, &states],
            immediates: Immediates::default().u32(it.len as u32),
            workgroups: [counting as u32, 1, 1],
        })?,
        preparation.wgsl(&WgslLaunch {
            source: &[SUBGROUPS, include_str!("../../shaders/sort/scan_digits.wgsl")],
            buffers: &[&states],
            immediates: Immediates::default(),
            workgroups: [4, 1, 1],
        })?,
    ];
    for (nth, pass) in (0..).zip(&passes) {
        let mut buffers = vec![&pass.keys];
        buffers
            .extend([&pass.sorted_keys, &pass.values, &pass.sorted_values].into_iter().flatten());
        buffers.push(&states);
        let tile_states = HEADER + u64::from(nth) * 256 * tiles;
        launches.push(preparation.wgsl(&WgslLaunch {
            source: &[
                SUBGROUPS,
                it.codes(),
                &moves(pass, items),
                include_str!("../../shaders/sort/sweep.wgsl"),
            ],
            buffers: &buffers,
            immediates: Immediates::default().u32(it.len as u32).u32(nth).u32(tile_states as u32),
            workgroups: [tiles as u32, 1, 1],
        })?);
    }
    Ok(launches)
}

/// Returns what precedes sweep.wgsl.
fn moves(pass: &Pass, items: u64) -> String {
    let has_values = pass.sorted_values.is_some();
    let mut text = format!(
        "const THREADS = {THREADS}u;\nconst ITEMS = {items}u;\nconst HAS_VALUES = {has_values};\n"
    );
    text += &binding(0, "read", "keys");
    let (mut key, mut value, mut stored) = ("", "at", "");
    if pass.sorted_keys.is_some() {
        text += &binding(1, "read_write", "sorted_keys");
        key = " sorted_keys[at] = key; ";
    }
    if pass.values.is_some() {
        text += &binding(2, "read", "unsorted_values");
        value = "unsorted_values[at]";
    }
    if has_values {
        text += &binding(3, "read_write", "sorted_values");
        stored = " sorted_values[at] = value; ";
    }
    text += &format!(
        "fn put_key(at: u32, key: u32) {{{key}}}\n\
         fn get_value(at: u32) -> u32 {{ return {value}; }}\n\
         fn put_value(at: u32, value: u32) {{{stored}}}\n"
    );
    text += "fn rank_keys(\n\
             codes: array<u32, ITEMS>, shift: u32, lane: u32, counters: u32,\n\
         ) -> array<u32, ITEMS> {\n\
         var ranks: array<u32, ITEMS>;\n";
    for nth in 0..items {
        writeln!(text, "ranks[{nth}] = rank_key((codes[{nth}] >> shift) & 255u, lane, counters);")
            .expect("writing to a string never fails");
    }
    text + "return ranks;\n}\n"
}
