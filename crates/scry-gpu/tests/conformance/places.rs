//! Reads and writes of one indexed element, with every out-of-bounds index.

use scry_gpu::Features;

use crate::guarded::{all_indices, run_guarded};
use crate::harness::on_each_device;

/// An indexed element: a kernel with `index`, a statement that writes 0xffff there, and an
/// expression that reads it.
pub struct Place {
    /// Declarations; storage at group 0, binding 0 is `data`.
    pub declarations: &'static str,
    /// Statements before, such as those that fill a variable with the words of `data`.
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

    /// Tries every index on every device; word `i` of `data` is `1000 + i` before.
    pub fn check(&self) {
        self.check_where(Features::empty());
    }

    /// As [`Place::check`], on the devices that have some features.
    pub fn check_where(&self, features: Features) {
        self.for_each_index(features, |index, before, after, out, what| {
            self.check_one(index, before, after, out, what);
        });
    }

    /// Tests every index where the write copies several words, perhaps from another element.
    pub fn check_known(&self) {
        self.for_each_index(Features::empty(), |_, before, after, out, what| {
            let is_known = |word: &u32| before.contains(word) || [0, 0xffff].contains(word);
            assert!(after.iter().all(is_known), "{what}");
            assert!(out.iter().all(is_known), "{what}");
        });
    }

    fn for_each_index(
        &self,
        features: Features,
        check: impl Fn(u32, &[u32], &[u32], &[u32], &str),
    ) {
        let source = self.kernel();
        let data: Vec<u32> = (0..self.words).map(|i| 1000 + i).collect();
        on_each_device(|gpu| {
            if !gpu.info().features.contains(features) {
                eprintln!("skipped: {} has no {features}", gpu.name());
                return;
            }
            for index in all_indices(self.len) {
                let after = run_guarded(gpu, &source, &[&data, &[index], &[7, 7]]);
                let what = format!("`{}` with index {index:#x}: {after:?}", self.write);
                check(index, &data, &after[0], &after[2], &what);
            }
        });
    }

    /// Tests one index: the words of `data` before and after, and the values read before and after.
    pub fn check_one(&self, index: u32, before: &[u32], after: &[u32], out: &[u32], what: &str) {
        let differ = |i: &usize| before[*i] != after[*i];
        let changed: Vec<usize> = (0..before.len()).filter(differ).collect();
        assert!(changed.iter().all(|place| after[*place] == 0xffff), "{what}");
        if index < self.len {
            let place = (self.word_of)(index);
            assert_eq!(changed, [place as usize], "{what}");
            assert_eq!(out, [1000 + place, 0xffff], "{what}");
        } else {
            assert!(changed.len() <= 1, "{what}");
            let mut known: Vec<u32> = (0..self.len).map(|i| 1000 + (self.word_of)(i)).collect();
            known.push(0);
            assert!(known.contains(&out[0]), "{what}");
            known.push(0xffff);
            assert!(known.contains(&out[1]), "{what}");
            let elements: Vec<usize> = (0..self.len).map(|i| (self.word_of)(i) as usize).collect();
            assert!(changed.iter().all(|place| elements.contains(place)), "{what}");
        }
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
