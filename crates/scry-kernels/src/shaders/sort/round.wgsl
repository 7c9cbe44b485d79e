// Stable sort of a tile of 2048 words by digits of 4 bits. An invocation has 8 consecutive words. Preceded
// by sums_before.wgsl.

const ITEMS: u32 = 8u;
const TILE: u32 = 2048u;

// Counters of digits, then sorted words. A counter is half a word: digits 0 to 7 have the lower
// halves, 8 to 15 the upper ones.
var<workgroup> words: array<u32, 2048>;

// Leaves the payloads in `words`, sorted by their digits.
fn sort_round(local_index: u32, digits: array<u32, ITEMS>, payloads: array<u32, ITEMS>) {
    workgroupBarrier();
    for (var nth = 0u; nth < ITEMS; nth++) {
        words[nth * 256u + local_index] = 0u;
    }
    // Counters of a digit are 256 words apart from those of the next, one for each invocation.
    var ranks: array<u32, ITEMS>;
    for (var nth = 0u; nth < ITEMS; nth++) {
        let counter = (digits[nth] & 7u) * 256u + local_index;
        let shift = (digits[nth] >> 3u) * 16u;
        let counts = words[counter];
        ranks[nth] = (counts >> shift) & 0xffffu;
        words[counter] = counts + (1u << shift);
    }
    workgroupBarrier();
    var counts: array<u32, ITEMS>;
    var count = 0u;
    for (var nth = 0u; nth < ITEMS; nth++) {
        counts[nth] = words[local_index * ITEMS + nth];
        count += counts[nth];
    }
    let before = sums_before(local_index, count);
    // Digits from 8 on come after those with lower halves.
    var start = before.x + (before.y << 16u);
    for (var nth = 0u; nth < ITEMS; nth++) {
        words[local_index * ITEMS + nth] = start;
        start += counts[nth];
    }
    workgroupBarrier();
    for (var nth = 0u; nth < ITEMS; nth++) {
        let counter = (digits[nth] & 7u) * 256u + local_index;
        let shift = (digits[nth] >> 3u) * 16u;
        ranks[nth] += (words[counter] >> shift) & 0xffffu;
    }
    workgroupBarrier();
    for (var nth = 0u; nth < ITEMS; nth++) {
        words[ranks[nth]] = payloads[nth];
    }
    workgroupBarrier();
}

