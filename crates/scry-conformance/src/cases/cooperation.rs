//! Cooperation of invocations: barriers, workgroup memory, atomics.

use scry_gpu::{DType, DeviceInfo, Launch};

use crate::case::{Case, Data};
use crate::check::{ensure, ensure_eq};
use crate::random::RandomWords;

const SCAN: &str = "
    const SIZE = 128u;
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    var<workgroup> sums: array<u32, SIZE>;

    @compute @workgroup_size(SIZE)
    fn main(
        @builtin(local_invocation_id) local_id: vec3<u32>,
        @builtin(global_invocation_id) id: vec3<u32>,
    ) {
        let local = local_id.x;
        let in_bounds = id.x < arrayLength(&input);
        sums[local] = select(0u, input[min(id.x, arrayLength(&input) - 1u)], in_bounds);
        for (var step = 1u; step < SIZE; step *= 2u) {
            workgroupBarrier();
            var sum = sums[local];
            if local >= step { sum += sums[local - step]; }
            workgroupBarrier();
            sums[local] = sum;
        }
        if in_bounds { output[id.x] = sums[local]; }
    }";

pub(crate) fn scan_in_workgroup_memory(_: &DeviceInfo) -> Case {
    let input: Vec<u32> = RandomWords(20).take(1000).map(|word| word % 1000).collect();
    let mut want = Vec::new();
    for group in input.chunks(128) {
        let mut sum = 0;
        want.extend(group.iter().map(|word| {
            sum += word;
            sum
        }));
    }
    let launch = Launch::invocations(input.len());
    Case::new("", SCAN).words(&[&input]).output(want).launch(launch)
}

const TRANSPOSE: &str = "
    const TILE = 16u;
    const WIDTH = 50u;
    const HEIGHT = 37u;
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    var<workgroup> tile: array<array<u32, TILE>, TILE>;

    @compute @workgroup_size(TILE, TILE)
    fn main(
        @builtin(local_invocation_id) local: vec3<u32>,
        @builtin(workgroup_id) group: vec3<u32>,
    ) {
        let source = group.xy * TILE + local.xy;
        if source.x < WIDTH && source.y < HEIGHT {
            tile[local.y][local.x] = input[source.y * WIDTH + source.x];
        }
        workgroupBarrier();
        let to = group.yx * TILE + local.xy;
        if to.x < HEIGHT && to.y < WIDTH {
            output[to.y * HEIGHT + to.x] = tile[local.x][local.y];
        }
    }";

pub(crate) fn transpose_through_workgroup_memory(_: &DeviceInfo) -> Case {
    let (width, height) = (50, 37);
    let input: Vec<u32> = (0..width * height).collect();
    let at = |x: u32, y: u32| y * width + x;
    let want: Vec<u32> = (0..width).flat_map(|x| (0..height).map(move |y| at(x, y))).collect();
    let launch = Launch::invocations([width, height]);
    Case::new("", TRANSPOSE).words(&[&input]).output(want).launch(launch)
}

pub(crate) fn storage_barriers_and_uniform_loads(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        var<workgroup> chosen: u32;
        var<workgroup> pair: vec2<u32>;

        @compute @workgroup_size(64)
        fn main(
            @builtin(local_invocation_index) local: u32,
            @builtin(workgroup_id) group: vec3<u32>,
        ) {
            let base = group.x * 128u;
            out[base + local] = local * local;
            storageBarrier();
            let other = out[base + 63u - local];
            if local == 37u { chosen = group.x + 1000u; pair = vec2(5u, group.x); }
            let all = workgroupUniformLoad(&chosen);
            let both = workgroupUniformLoad(&pair);
            out[base + 64u + local] = other + all * 10000u + both.x + both.y;
        }";
    let row = |group: u32| {
        let read =
            move |local: u32| (63 - local) * (63 - local) + (group + 1000) * 10000 + 5 + group;
        (0..64).map(|local| local * local).chain((0..64).map(read))
    };
    let want = (0..3).flat_map(row).collect();
    Case::new("", source).output(want).launch(Launch::workgroups([3, 1, 1]))
}

pub(crate) fn shared_counter_is_exact(_: &DeviceInfo) -> Case {
    let source = "
        struct Counters {
            sum: atomic<u32>, difference: atomic<i32>, max: atomic<u32>, min: atomic<i32>,
            or: atomic<u32>, and: atomic<u32>, xor: atomic<u32>,
        }
        @group(0) @binding(0) var<storage, read_write> c: Counters;
        @group(0) @binding(1) var<storage, read_write> tickets: array<u32>;

        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            // Each invocation gets a different ticket. Together the tickets are 0 to n - 1.
            let ticket = atomicAdd(&c.sum, 1u);
            tickets[ticket] = id.x + 1u;
            atomicSub(&c.difference, 3);
            atomicMax(&c.max, id.x);
            atomicMin(&c.min, -i32(id.x));
            atomicOr(&c.or, 1u << (id.x % 31u));
            atomicAnd(&c.and, ~(1u << (id.x % 7u)));
            atomicXor(&c.xor, id.x);
        }";
    let groups = 500u32;
    let n = groups * 64;
    let xor = (0..n).fold(0, |xor, id| xor ^ id);
    let want = [
        n,
        (3 * n).wrapping_neg(),
        n - 1,
        (n - 1).wrapping_neg(),
        u32::MAX >> 1,
        u32::MAX << 7,
        xor,
    ];
    Case::new("", source)
        .words(&[&[0, 0, 0, 0, 0, u32::MAX, 0]])
        .buffer(Data::zeros(DType::U32, n as usize))
        .launch(Launch::workgroups([groups, 1, 1]))
        .expect_words(0, want.into())
        .expect(move |out| {
            let mut ids = out.words(1);
            ids.sort_unstable();
            ensure!(ids == (1..=n).collect::<Vec<u32>>(), "a ticket is missing");
            Ok(())
        })
}

pub(crate) fn exchange_and_compare_exchange(_: &DeviceInfo) -> Case {
    let source = "
        struct State { last: atomic<u32>, wins: atomic<u32>, sum: atomic<u32>, word: atomic<i32> }
        @group(0) @binding(0) var<storage, read_write> state: State;
        @group(0) @binding(1) var<storage, read_write> previous: array<u32>;

        @compute @workgroup_size(32)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            // Each number is stored once. So it is once in `previous`, or in `last` at the end.
            previous[id.x] = atomicExchange(&state.last, id.x + 1u);
            // Adds by compare-exchange, and retries if another invocation changed the sum.
            var old = atomicLoad(&state.sum);
            loop {
                let result = atomicCompareExchangeWeak(&state.sum, old, old + id.x);
                if result.exchanged { break; }
                old = result.old_value;
            }
            // At most one invocation finds the initial value.
            let won = atomicCompareExchangeWeak(&state.word, -7, i32(id.x));
            if won.exchanged { atomicAdd(&state.wins, 1u); }
        }";
    let n = 3200u32;
    Case::new("", source)
        .words(&[&[0, 0, 0, 7u32.wrapping_neg()]])
        .buffer(Data::zeros(DType::U32, n as usize))
        .launch(Launch::invocations(n))
        .expect(move |out| {
            let state = out.words(0);
            let [last, wins, sum, word] = state[..] else {
                return Err(format!("the state has four words: {state:?}"));
            };
            let mut previous = out.words(1);
            previous.push(last);
            previous.sort_unstable();
            ensure!(previous == (0..=n).collect::<Vec<u32>>(), "a number is missing");
            ensure_eq!(sum, n * (n - 1) / 2);
            // A weak exchange may fail spuriously, so there may be no winner.
            ensure!(wins == 1 && word < n || wins == 0 && word as i32 == -7);
            Ok(())
        })
}

pub(crate) fn atomics_in_workgroup_memory(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        var<workgroup> counts: array<atomic<u32>, 10>;
        var<workgroup> extremes: array<atomic<i32>, 2>;

        @compute @workgroup_size(128)
        fn main(
            @builtin(local_invocation_index) local: u32,
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(workgroup_id) group: vec3<u32>,
        ) {
            let word = input[id.x];
            atomicAdd(&counts[word % 10u], 1u);
            atomicMax(&extremes[0], i32(word % 1000u) - 500);
            atomicMin(&extremes[1], i32(word % 1000u) - 500);
            workgroupBarrier();
            if local < 10u { out[group.x * 12u + local] = atomicLoad(&counts[local]); }
            if local < 2u {
                out[group.x * 12u + 10u + local] = bitcast<u32>(atomicLoad(&extremes[local]));
                atomicStore(&extremes[local], 0);
            }
        }";
    let input: Vec<u32> = RandomWords(21).take(128 * 9).collect();
    let mut want = Vec::new();
    for group in input.chunks(128) {
        let count = |n| group.iter().filter(|word| *word % 10 == n).count() as u32;
        want.extend((0..10).map(count));
        let centred = || group.iter().map(|word| (word % 1000) as i32 - 500);
        // Workgroup memory is zero-initialised, so both extremes include zero.
        want.push(centred().max().expect("a group is not empty").max(0) as u32);
        want.push(centred().min().expect("a group is not empty").min(0) as u32);
    }
    let launch = Launch::workgroups([9, 1, 1]);
    Case::new("", source).words(&[&input]).output(want).launch(launch)
}
