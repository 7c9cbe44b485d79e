//! Reads and writes of one indexed element, with every out-of-bounds index.

use scry_gpu::{DeviceInfo, Features};

use crate::case::Case;
use crate::check::{ensure, ensure_eq};
use crate::guarded::{all_indices, guarded};

/// An indexed element: a kernel with `index`, a statement that writes 0xffff there, and an
/// expression that reads it.
#[derive(Clone, Copy)]
pub struct Place {
    /// Declarations; storage at group 0, binding 0 is `data`.
    pub declarations: &'static str,
    /// Statements before the accesses, such as those that copy the words of `data` to a variable.
    pub before: &'static str,
    pub write: &'static str,
    pub read: &'static str,
    /// Statements that copy a variable back to `data`.
    pub after: &'static str,
    /// Words of `data`.
    pub words: u32,
    /// Number of elements that the index selects from.
    pub len: u32,
    /// The word of `data` that holds element `i`.
    pub word_of: fn(u32) -> u32,
}

impl Place {
    pub fn kernel(&self) -> String {
        let Self { declarations, before, write, read, after, .. } = self;
        format!(
            "{declarations}
            @group(0) @binding(1) var<storage, read> indices: array<u32>;
            @group(0) @binding(2) var<storage, read_write> out: array<u32>;

            @compute @workgroup_size(1)
            fn main() {{
                var index = indices[0];
                var signed = bitcast<i32>(index);
                {before}
                out[0] = {read};
                {write}
                out[1] = {read};
                {after}
            }}"
        )
    }

    /// Tests every index; word `i` of `data` is initially `1000 + i`.
    pub fn check(self, gpu: &DeviceInfo) -> Vec<Case> {
        self.check_where(gpu, Features::empty())
    }

    /// Like [`Place::check`], on devices that have some features.
    pub fn check_where(self, gpu: &DeviceInfo, features: Features) -> Vec<Case> {
        let case = |index| {
            let case = self.case(gpu, index).needs(features);
            case.expect(move |out| self.check_one(index, &out.words(0), &out.words(2)))
        };
        all_indices(self.len).into_iter().map(case).collect()
    }

    /// Tests every index for writes that copy several words, possibly from another element.
    pub fn check_known(self, gpu: &DeviceInfo) -> Vec<Case> {
        let before = self.before();
        let case = |index| {
            let before = before.clone();
            self.case(gpu, index).expect(move |out| {
                let is_known = |word: &u32| before.contains(word) || [0, 0xffff].contains(word);
                ensure!(out.words(0).iter().all(is_known), "data is {:?}", out.words(0));
                ensure!(out.words(2).iter().all(is_known), "the values are {:?}", out.words(2));
                Ok(())
            })
        };
        all_indices(self.len).into_iter().map(case).collect()
    }

    /// Returns the initial words of `data`.
    fn before(&self) -> Vec<u32> {
        (0..self.words).map(|i| 1000 + i).collect()
    }

    /// Returns the case of one index, without expected results.
    pub fn case(&self, gpu: &DeviceInfo, index: u32) -> Case {
        let name = format!("`{}` with index {index:#x}", self.write);
        guarded(gpu, name, &self.kernel(), &[&self.before(), &[index], &[7, 7]])
    }

    /// Tests one index: the words of `data`, and the values read before and after the write.
    pub fn check_one(&self, index: u32, after: &[u32], out: &[u32]) -> Result<(), String> {
        let before = self.before();
        let what = format!("{after:?}, {out:?}");
        let differ = |i: &usize| before[*i] != after[*i];
        let changed: Vec<usize> = (0..before.len()).filter(differ).collect();
        ensure!(changed.iter().all(|place| after[*place] == 0xffff), "{what}");
        if index < self.len {
            let place = (self.word_of)(index);
            ensure_eq!(changed, [place as usize], "{what}");
            ensure_eq!(out, [1000 + place, 0xffff], "{what}");
        } else {
            ensure!(changed.len() <= 1, "{what}");
            let mut known: Vec<u32> = (0..self.len).map(|i| 1000 + (self.word_of)(i)).collect();
            known.push(0);
            ensure!(known.contains(&out[0]), "{what}");
            known.push(0xffff);
            ensure!(known.contains(&out[1]), "{what}");
            let elements: Vec<usize> = (0..self.len).map(|i| (self.word_of)(i) as usize).collect();
            ensure!(changed.iter().all(|place| elements.contains(place)), "{what}");
        }
        Ok(())
    }
}

/// A word of a runtime-sized array.
pub const PLAIN: Place = Place {
    declarations: "@group(0) @binding(0) var<storage, read_write> data: array<u32>;",
    before: "",
    write: "data[index] = 0xffffu;",
    read: "data[index]",
    after: "",
    words: 8,
    len: 8,
    word_of: |i| i,
};
