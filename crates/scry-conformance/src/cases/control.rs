//! Loops, branches, functions and pointers, against the same program on the host.

use scry_gpu::DeviceInfo;

use crate::case::Case;
use crate::table::{Row, function_table};

/// Returns pairs: the first words are 0 to 63, the second words less than 13.
fn inputs() -> Vec<[u32; 2]> {
    (0..64).map(|i| [i, i * 7 % 13]).collect()
}

fn cases(declarations: &str, rows: &[Row]) -> Vec<Case> {
    function_table(declarations, rows, &inputs())
}

pub(crate) fn loops(_: &DeviceInfo) -> Vec<Case> {
    let functions = "
        fn f0(x: u32, y: u32) -> u32 {
            var sum = 0u;
            for (var i = 0u; i < x; i++) {
                if i % 3u == 1u { continue; }
                if i > 40u { break; }
                sum += i * y + 1u;
            }
            return sum;
        }
        fn f1(x: u32, y: u32) -> u32 {
            var n = x + 1u;
            var steps = 0u;
            while n != 1u {
                n = select(n / 2u, 3u * n + 1u, n % 2u == 1u);
                steps++;
            }
            return steps;
        }
        fn f2(x: u32, y: u32) -> u32 {
            var i = 0u;
            var sum = 0u;
            loop {
                if i % 2u == 0u { continue; }
                sum += i;
                continuing {
                    i += 1u;
                    sum += 100u;
                    break if i >= x;
                }
            }
            return sum;
        }";
    const CASES: [Row; 3] = [
        ("f0(x, y)", |x, y| (0..x.min(41)).filter(|i| i % 3 != 1).map(|i| i * y + 1).sum()),
        ("f1(x, y)", |x, _| {
            let (mut n, mut steps) = (x + 1, 0);
            while n != 1 {
                n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
                steps += 1;
            }
            steps
        }),
        ("f2(x, y)", |x, _| {
            let iterations = x.max(1);
            (0..iterations).filter(|i| i % 2 == 1).sum::<u32>() + 100 * iterations
        }),
    ];
    cases(functions, &CASES)
}

pub(crate) fn nested_loops(_: &DeviceInfo) -> Vec<Case> {
    let functions = "
        fn f0(x: u32, y: u32) -> u32 {
            for (var i = 0u; ; i++) {
                for (var j = 0u; j < 10u; j++) {
                    if i * j >= x { return i * 100u + j; }
                }
            }
            return 0u;
        }
        fn f1(x: u32, y: u32) -> u32 {
            var sum = 0u;
            for (var i = x; i > 0u; i -= min(i, 3u)) {
                var j = 0u;
                loop {
                    if j == y { break; }
                    j++;
                    if (i + j) % 5u == 0u { continue; }
                    sum = sum * 3u + j;
                }
            }
            return sum;
        }";
    const CASES: [Row; 2] = [
        ("f0(x, y)", |x, _| {
            let mut pairs = (0..).flat_map(|i| (0..10).map(move |j| (i, j)));
            let (i, j) = pairs.find(|(i, j)| i * j >= x).expect("the products have no end");
            i * 100 + j
        }),
        ("f1(x, y)", |x, y| {
            let (mut sum, mut i) = (0u32, x);
            while i > 0 {
                for j in (1..=y).filter(|j| (i + j) % 5 != 0) {
                    sum = sum.wrapping_mul(3).wrapping_add(j);
                }
                i = i.saturating_sub(3);
            }
            sum
        }),
    ];
    cases(functions, &CASES)
}

pub(crate) fn switches(_: &DeviceInfo) -> Vec<Case> {
    let functions = "
        fn f0(x: u32, y: u32) -> u32 {
            switch x % 8u {
                case 0u: { return 10u; }
                case 1u, 2u: { return 20u + y; }
                case 5u, default: { return 30u; }
                case 3u: { break; }
                case 4u: {
                    if y > 6u { break; }
                    return 40u;
                }
            }
            return 50u;
        }
        fn f1(x: u32, y: u32) -> u32 {
            var sum = 0u;
            for (var i = 0; i < i32(x); i++) {
                switch i - 2 {
                    case -2: { sum += 1u; }
                    case 3: { continue; }
                    case 7: {
                        switch y {
                            case 0u: { return sum; }
                            case 1u: { break; }
                            default: { sum += 1000u; }
                        }
                        sum += 10u;
                    }
                    default: { if i > 30 { break; } sum += 2u; }
                }
                sum += 100u;
            }
            return sum;
        }
        fn f2(x: u32, y: u32) -> u32 {
            switch x { default: { return y; } }
        }";
    const CASES: [Row; 3] = [
        ("f0(x, y)", |x, y| match x % 8 {
            0 => 10,
            1 | 2 => 20 + y,
            3 => 50,
            4 if y > 6 => 50,
            4 => 40,
            _ => 30,
        }),
        ("f1(x, y)", |x, y| {
            let mut sum = 0;
            for i in 0..x {
                match i {
                    0 => sum += 1,
                    5 => continue,
                    9 => match y {
                        0 => return sum,
                        1 => sum += 10,
                        _ => sum += 1010,
                    },
                    31.. => {}
                    _ => sum += 2,
                }
                sum += 100;
            }
            sum
        }),
        ("f2(x, y)", |_, y| y),
    ];
    cases(functions, &CASES)
}

pub(crate) fn branches_and_early_returns(_: &DeviceInfo) -> Vec<Case> {
    let functions = "
        fn f0(x: u32, y: u32) -> u32 {
            if x < 10u { return 1u; } else if x < 20u { if y > 6u { return 2u; } }
            else if x == 25u { return 3u; } else { return 4u + y; }
            return 5u;
        }
        fn inner(x: u32) -> u32 { if x % 2u == 0u { return x / 2u; } return x * 3u; }
        fn f1(x: u32, y: u32) -> u32 { return inner(inner(x) + inner(y)); }
        fn nothing(x: u32) { if x > 3u { return; } }
        fn f2(x: u32, y: u32) -> u32 { nothing(x); return select(x, y, x > y); }";
    const CASES: [Row; 3] = [
        ("f0(x, y)", |x, y| match x {
            0..10 => 1,
            10..20 if y > 6 => 2,
            10..20 => 5,
            25 => 3,
            _ => 4 + y,
        }),
        ("f1(x, y)", |x, y| {
            let inner = |x: u32| if x.is_multiple_of(2) { x / 2 } else { x * 3 };
            inner(inner(x) + inner(y))
        }),
        ("f2(x, y)", |x, y| x.min(y)),
    ];
    cases(functions, &CASES)
}

pub(crate) fn pointers_to_variables_and_their_parts(_: &DeviceInfo) -> Vec<Case> {
    let functions = "
        struct Pair { first: u32, second: array<u32, 3> }
        var<private> own: array<u32, 4>;
        fn swap(a: ptr<function, u32>, b: ptr<function, u32>) { let t = *a; *a = *b; *b = t; }
        fn raise(p: ptr<private, array<u32, 4>>, i: u32) { (*p)[i] += 5u; }
        fn last(p: ptr<function, Pair>) -> u32 { (*p).second[2] += 1u; return (*p).second[2]; }
        fn f0(x: u32, y: u32) -> u32 {
            var a = x; var b = y;
            swap(&a, &b);
            return a * 1000u + b;
        }
        fn f1(x: u32, y: u32) -> u32 {
            own = array(1u, 2u, 3u, 4u);
            raise(&own, x % 4u);
            raise(&own, x % 4u);
            return own[0] + own[1] * 100u + own[2] * 10000u + own[3] * 1000000u;
        }
        fn f2(x: u32, y: u32) -> u32 {
            var pair = Pair(x, array(y, 7u, x));
            let p = &pair.second;
            (*p)[0] += 2u;
            let q = &pair;
            return last(q) * 100u + pair.second[0] + q.first;
        }
        fn f3(x: u32, y: u32) -> u32 {
            var v = vec3(x, y, 1u);
            let p = &v;
            (*p).z = 5u;
            v[x % 2u] += 100u;
            return (*p).x + (*p).y * 1000u + p.z;
        }";
    const CASES: [Row; 4] = [
        ("f0(x, y)", |x, y| y * 1000 + x),
        ("f1(x, y)", |x, _| {
            let mut own = [1, 2, 3, 4];
            own[x as usize % 4] += 10;
            own[0] + own[1] * 100 + own[2] * 10000 + own[3] * 1_000_000
        }),
        ("f2(x, y)", |x, y| (x + 1) * 100 + y + 2 + x),
        ("f3(x, y)", |x, y| {
            let mut v = [x, y];
            v[x as usize % 2] += 100;
            v[0] + v[1] * 1000 + 5
        }),
    ];
    cases(functions, &CASES)
}

pub(crate) fn functions_accept_every_value_type(_: &DeviceInfo) -> Case {
    let source = "
        struct Inner { v: vec3<f32>, n: u32 }
        struct Outer { list: array<Inner, 2>, m: mat2x2<f32> }
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;

        fn make(n: u32) -> Outer {
            let f = f32(n);
            return Outer(
                array(Inner(vec3(f, f + 1.0, f + 2.0), n), Inner(vec3(f + 3.0), n + 1u)),
                mat2x2<f32>(f, f * 2.0, f * 3.0, f * 4.0),
            );
        }
        fn twice(o: Outer) -> Outer {
            var copy = o;
            for (var i = 0; i < 2; i++) {
                copy.list[i].v *= 2.0;
                copy.list[i].n *= 2u;
            }
            copy.m = copy.m * 2.0;
            return copy;
        }
        const START = array<vec2<u32>, 2>(vec2(3u, 4u), vec2(5u, 6u));

        @compute @workgroup_size(1)
        fn main() {
            let o = make(input[0]);
            let t = twice(o);
            out[0] = u32(t.list[0].v.z);
            out[1] = u32(t.list[1].v.x);
            out[2] = t.list[1].n;
            out[3] = u32(t.m[1].y);
            out[4] = o.list[1].n;
            out[5] = START[input[0] % 2u].y;
            var zero = Outer();
            out[6] = zero.list[1].n + u32(zero.m[0].x);
        }";
    let want = vec![18, 20, 16, 56, 8, 6, 0];
    Case::new("", source).words(&[&[7]]).output(want).one_workgroup()
}

/// Statements before a loop's condition are executed once more than the rest of its body.
pub(crate) fn side_effects_before_loop_conditions(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read_write> counter: atomic<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32, 3>;
        @compute @workgroup_size(1) fn main() {
            var counts = 0u;
            var i = 7u;
            for (var outer = 1u; outer < 3u; outer++) {
                i = 1u;
                loop {
                    let before = atomicAdd(&counter, 1u);
                    if i < 5u {} else { break; }
                    counts = counts * 16u + before;
                    i += 1u;
                }
            }
            out[0] = atomicLoad(&counter);
            out[1] = counts;
            out[2] = i;
        }";
    // Twice: four iterations, and the condition that ends the loop. The counter starts at zero.
    let want = vec![10, 0x0123_5678, 5];
    Case::new("", source).words(&[&[0]]).output(want).one_workgroup()
}
