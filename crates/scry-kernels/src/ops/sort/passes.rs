//! A radix sort with workgroup memory only: each pass counts the digits of tiles, scans the counts,
//! and moves keys and values.

use scry_gpu::{DType, PreparedLaunch, Result, UntypedBuffer};

use super::{Sort, Sorted};
use crate::kernels::Kernels;
use crate::operation::Preparation;
use crate::ops::scan;
use crate::wgsl::{Immediates, WgslLaunch};

/// Keys of a tile.
pub(super) const TILE: u64 = 2048;

/// Passes by all bits, each by 8.
pub(super) const MAX_PASSES: usize = 4;

const PARAMETERS: &str = include_str!("../../shaders/sort/parameters.wgsl");
const ROUND: &str = concat!(
    include_str!("../../shaders/sums_before.wgsl"),
    "\n",
    include_str!("../../shaders/sort/round.wgsl")
);

/// The buffers of a pass.
pub(super) struct Pass {
    pub(super) keys: UntypedBuffer,
    /// `None` in the last pass of a sort of positions.
    pub(super) sorted_keys: Option<UntypedBuffer>,
    /// `None` where values are positions.
    pub(super) values: Option<UntypedBuffer>,
    /// `None` if only keys are sorted.
    pub(super) sorted_values: Option<UntypedBuffer>,
}

impl Sort {
    /// Returns the arguments as words of `u32`, without elements after the last key.
    pub(super) fn words(&self, preparation: &Preparation<'_>) -> Result<Vec<UntypedBuffer>> {
        let words = |buffer: &UntypedBuffer| buffer.slice(..self.len as usize)?.view_as(DType::U32);
        preparation.buffers.iter().map(words).collect()
    }

    /// Returns whether the sort is one of a tile, in place.
    pub(super) fn is_tile(&self) -> bool {
        self.len <= TILE
    }

    /// Returns the keys and the values in scratch memory, where odd passes of pairs move them.
    pub(super) fn other_buffers(
        &self,
        preparation: &Preparation<'_>,
    ) -> Result<[UntypedBuffer; 2]> {
        let scratch = |nth| preparation.kernels.scratch_of(nth, DType::U32, self.len);
        Ok([scratch(1)?, scratch(3)?])
    }

    /// Returns the passes. They alternate between the arguments and scratch memory, from the second
    /// scratch buffer on; what is sorted in place by an even number ends where it was.
    pub(super) fn passes(&self, preparation: &Preparation<'_>) -> Result<Vec<Pass>> {
        let kernels: &Kernels = preparation.kernels;
        let arguments = self.words(preparation)?;
        let scratch = |nth| kernels.scratch_of(nth, DType::U32, self.len);
        let [other_keys, other_values] = self.other_buffers(preparation)?;
        // Keys before each pass, and after the last one.
        let keys = match self.sorted {
            Sorted::Positions => {
                let (more, keys) = (scratch(2)?, arguments[0].clone());
                [keys, other_keys.clone(), more.clone(), other_keys, more]
            }
            _ => {
                let keys = || arguments[0].clone();
                [keys(), other_keys.clone(), keys(), other_keys, keys()]
            }
        };
        let values = match arguments.get(1) {
            None => [const { None }; MAX_PASSES + 1],
            Some(values) => {
                let other = || Some(other_values.clone());
                let values = || Some(values.clone());
                [values(), other(), values(), other(), values()]
            }
        };
        let pass = |nth: usize| Pass {
            keys: keys[nth].clone(),
            sorted_keys: (self.sorted != Sorted::Positions || nth + 1 < MAX_PASSES)
                .then(|| keys[nth + 1].clone()),
            values: values[nth].clone().filter(|_| self.sorted != Sorted::Positions || nth > 0),
            sorted_values: values[nth + 1].clone(),
        };
        Ok((0..self.passes).map(pass).collect())
    }

    /// Returns the definitions of `encode` and `decode`.
    pub(super) fn codes(&self) -> &'static str {
        match self.dtype {
            DType::F32 => include_str!("../../shaders/sort/f32.wgsl"),
            DType::I32 => include_str!("../../shaders/sort/i32.wgsl"),
            _ => include_str!("../../shaders/sort/u32.wgsl"),
        }
    }
}

/// Prepares the sort.
pub(super) fn prepare(it: &Sort, preparation: &Preparation<'_>) -> Result<Vec<PreparedLaunch>> {
    if it.is_tile() {
        return Ok(vec![tile_launch(it, preparation)?]);
    }
    let tiles = it.len.div_ceil(TILE);
    let scratch = |nth| preparation.kernels.scratch_of(nth, DType::U32, 256 * tiles);
    let (counts, starts) = (scratch(4)?, scratch(5)?);
    let mut launches = Vec::new();
    for (nth, pass) in (0..).zip(it.passes(preparation)?) {
        let immediates = || Immediates::default().u32(it.len as u32).u32(tiles as u32).u32(8 * nth);
        launches.push(preparation.wgsl(&WgslLaunch {
            source: &[PARAMETERS, it.codes(), include_str!("../../shaders/sort/count_digits.wgsl")],
            buffers: &[&pass.keys, &counts],
            immediates: immediates(),
            workgroups: [tiles as u32, 1, 1],
        })?);
        launches.extend(scan::exclusive(preparation, [&counts, &starts], 256 * tiles)?);
        let moves = moves(&pass);
        let mut buffers = vec![&pass.keys];
        buffers
            .extend([&pass.sorted_keys, &pass.values, &pass.sorted_values].into_iter().flatten());
        buffers.push(&starts);
        launches.push(preparation.wgsl(&WgslLaunch {
            source: &[
                PARAMETERS,
                it.codes(),
                ROUND,
                &moves,
                include_str!("../../shaders/sort/scatter.wgsl"),
            ],
            buffers: &buffers,
            immediates: immediates(),
            workgroups: [tiles as u32, 1, 1],
        })?);
    }
    Ok(launches)
}

/// Returns the bindings of a pass, and the functions that move keys and values.
fn moves(pass: &Pass) -> String {
    let mut text = binding(0, "read", "keys");
    let mut key = "";
    if pass.sorted_keys.is_some() {
        text += &binding(1, "read_write", "sorted_keys");
        key = " sorted_keys[to] = keys[source]; ";
    }
    let mut value = "";
    if pass.sorted_values.is_some() {
        text += &binding(3, "read_write", "sorted_values");
        value = " sorted_values[to] = source; ";
    }
    if pass.values.is_some() {
        text += &binding(2, "read", "values");
        value = " sorted_values[to] = values[source]; ";
    }
    format!(
        "{text}fn move_key(source: u32, to: u32) {{{key}}}\n\
         fn move_value(source: u32, to: u32) {{{value}}}\n"
    )
}

/// Declares a buffer of words.
pub(super) fn binding(nth: u32, access: &str, name: &str) -> String {
    format!("@group(0) @binding({nth}) var<storage, {access}> {name}: array<u32>;\n")
}

/// Prepares the sort of a single tile.
fn tile_launch(it: &Sort, preparation: &Preparation<'_>) -> Result<PreparedLaunch> {
    let (access, put_key) = match it.sorted {
        Sorted::Positions => ("read", ""),
        _ => ("read_write", " keys[at] = key; "),
    };
    let (get_value, put_value) = match it.sorted {
        Sorted::Keys => ("0u", ""),
        Sorted::Pairs(_) => ("values[at]", " values[at] = value; "),
        Sorted::Positions => ("at", " values[at] = value; "),
    };
    let mut moves = binding(0, access, "keys");
    if it.sorted != Sorted::Keys {
        moves += &binding(1, "read_write", "values");
    }
    moves += &format!(
        "fn put_key(at: u32, key: u32) {{{put_key}}}\n\
         fn get_value(at: u32) -> u32 {{ return {get_value}; }}\n\
         fn put_value(at: u32, value: u32) {{{put_value}}}\n"
    );
    preparation.wgsl(&WgslLaunch {
        source: &[
            PARAMETERS,
            it.codes(),
            ROUND,
            &moves,
            include_str!("../../shaders/sort/sort_tile.wgsl"),
        ],
        buffers: &it.words(preparation)?.iter().collect::<Vec<_>>(),
        immediates: Immediates::default().u32(it.len as u32).u32(1).u32(0),
        workgroups: [1; 3],
    })
}
