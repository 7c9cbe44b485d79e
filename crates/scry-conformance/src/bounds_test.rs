//! Tests of one indexed access, with every index in bounds and many out of bounds. Word `i` of
//! `data` is initially `1000 + i`, and 0xffff is written.

use scry_gpu::{DeviceInfo, Features};

use crate::case::Case;
use crate::check::{ensure, ensure_eq};
use crate::guarded::{all_indices, guarded};

/// A kernel that reads the element at `index`, writes 0xffff to it, and reads it again. The WGSL
/// texts refer to the index as `index`, a `u32`, or as `signed`, an `i32`.
#[derive(Clone, Copy)]
pub struct BoundsTest {
    /// Module-scope declarations, including the storage buffer `data` at group 0, binding 0.
    pub declarations: &'static str,
    /// Statements before the accesses: they fill a variable from `data`, if one is tested.
    pub prologue: &'static str,
    /// A statement that writes 0xffff to the element.
    pub write: &'static str,
    /// An expression that reads the element as a `u32`.
    pub read: &'static str,
    /// Statements after the accesses: they copy the variable back to `data`.
    pub epilogue: &'static str,
    /// Number of words in `data`.
    pub words: u32,
    /// Number of elements: indices below it are in bounds.
    pub len: u32,
    /// Returns the index of the word of `data` that is accessed for element `i`.
    pub word_index: fn(u32) -> u32,
}

impl BoundsTest {
    fn kernel(&self) -> String {
        let Self { declarations, prologue, write, read, epilogue, .. } = self;
        format!(
            "{declarations}
            @group(0) @binding(1) var<storage, read> indices: array<u32>;
            @group(0) @binding(2) var<storage, read_write> out: array<u32>;

            @compute @workgroup_size(1)
            fn main() {{
                var index = indices[0];
                var signed = bitcast<i32>(index);
                {prologue}
                out[0] = {read};
                {write}
                out[1] = {read};
                {epilogue}
            }}"
        )
    }

    /// Returns a case for every index.
    pub fn cases(self, gpu: &DeviceInfo) -> Vec<Case> {
        self.cases_with(gpu, Features::empty())
    }

    /// Like [`cases`](Self::cases), skipped on devices without these features.
    pub fn cases_with(self, gpu: &DeviceInfo, features: Features) -> Vec<Case> {
        let case = |index| {
            let case = self.case(gpu, index).skipped_without(features);
            case.expect(move |out| self.check_result(index, &out.words(0), &out.words(2)))
        };
        all_indices(self.len).into_iter().map(case).collect()
    }

    /// Like [`cases`](Self::cases), for a `write` that copies a whole element, which may be another
    /// one if the index is out of bounds: the words need only be initial words, 0 or 0xffff.
    pub fn whole_element_cases(self, gpu: &DeviceInfo) -> Vec<Case> {
        let initial = self.initial_words();
        let case = |index| {
            let initial = initial.clone();
            self.case(gpu, index).expect(move |out| {
                let is_valid = |word: &u32| initial.contains(word) || [0, 0xffff].contains(word);
                ensure!(out.words(0).iter().all(is_valid), "data is {:?}", out.words(0));
                ensure!(out.words(2).iter().all(is_valid), "the values are {:?}", out.words(2));
                Ok(())
            })
        };
        all_indices(self.len).into_iter().map(case).collect()
    }

    /// Returns the initial words of `data`.
    fn initial_words(&self) -> Vec<u32> {
        (0..self.words).map(|i| 1000 + i).collect()
    }

    /// Returns the case of one index, without expected results.
    pub fn case(&self, gpu: &DeviceInfo, index: u32) -> Case {
        let name = format!("`{}` with index {index:#x}", self.write);
        guarded(gpu, name, &self.kernel(), &[&self.initial_words(), &[index], &[7, 7]])
    }

    /// Checks the result for one index: `after`, the words of `data`, and `out`, the values read
    /// before and after the write.
    pub fn check_result(&self, index: u32, after: &[u32], out: &[u32]) -> Result<(), String> {
        let initial = self.initial_words();
        let what = format!("{after:?}, {out:?}");
        let differ = |i: &usize| initial[*i] != after[*i];
        let changed: Vec<usize> = (0..initial.len()).filter(differ).collect();
        ensure!(changed.iter().all(|word| after[*word] == 0xffff), "{what}");
        if index < self.len {
            let word = (self.word_index)(index);
            ensure_eq!(changed, [word as usize], "{what}");
            ensure_eq!(out, [1000 + word, 0xffff], "{what}");
        } else {
            ensure!(changed.len() <= 1, "{what}");
            let mut valid: Vec<u32> = (0..self.len).map(|i| 1000 + (self.word_index)(i)).collect();
            valid.push(0);
            ensure!(valid.contains(&out[0]), "{what}");
            valid.push(0xffff);
            ensure!(valid.contains(&out[1]), "{what}");
            let elements: Vec<usize> =
                (0..self.len).map(|i| (self.word_index)(i) as usize).collect();
            ensure!(changed.iter().all(|word| elements.contains(word)), "{what}");
        }
        Ok(())
    }
}

/// A runtime-sized array of words.
pub const U32_ARRAY: BoundsTest = BoundsTest {
    declarations: "@group(0) @binding(0) var<storage, read_write> data: array<u32>;",
    prologue: "",
    write: "data[index] = 0xffffu;",
    read: "data[index]",
    epilogue: "",
    words: 8,
    len: 8,
    word_index: |i| i,
};
