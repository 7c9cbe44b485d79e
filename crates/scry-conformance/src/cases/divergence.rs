//! Divergent control flow: nested loops, switches and returns, against the same program on the
//! host.

use scry_gpu::DeviceInfo;

use crate::case::Case;
use crate::random::RandomWords;
use crate::table::{Row, function_table};

/// Returns 80 pairs of random words below 97.
fn inputs() -> Vec<[u32; 2]> {
    let random: Vec<u32> = RandomWords(77).take(160).map(|word| word % 97).collect();
    random.chunks(2).map(|pair| [pair[0], pair[1]]).collect()
}

pub(crate) fn continuing_blocks_see_body_variables(_: &DeviceInfo) -> Vec<Case> {
    let functions = "
        fn f0(x: u32, y: u32) -> u32 {
            var i = 0u;
            var sum = 0u;
            loop {
                let odd = (i ^ y) % 2u == 1u;
                if odd { i += 2u; continue; }
                sum += i;
                if sum > 300u { break; }
                i += 1u;
                continuing {
                    sum += select(1u, 5u, odd);
                    let enough = i > x;
                    break if enough || sum % 50u == 49u;
                }
            }
            return sum * 100u + i;
        }
        fn f1(x: u32, y: u32) -> u32 {
            var last = 0u;
            loop {
                var i = last;
                loop {
                    i++;
                    if i % 4u == y % 4u { continue; }
                    last += i;
                    continuing { break if i > x % 9u; }
                }
                continuing { last += 1u; break if last > y; }
            }
            return last;
        }";
    const CASES: [Row; 2] = [
        ("f0(x, y)", |x, y| {
            let (mut i, mut sum) = (0u32, 0u32);
            loop {
                let odd = (i ^ y) % 2 == 1;
                if odd {
                    i += 2;
                } else {
                    sum += i;
                    if sum > 300 {
                        break;
                    }
                    i += 1;
                }
                sum += if odd { 5 } else { 1 };
                if i > x || sum % 50 == 49 {
                    break;
                }
            }
            sum * 100 + i
        }),
        ("f1(x, y)", |x, y| {
            let mut last = 0u32;
            loop {
                let mut i = last;
                loop {
                    i += 1;
                    if i % 4 != y % 4 {
                        last += i;
                    }
                    if i > x % 9 {
                        break;
                    }
                }
                last += 1;
                if last > y {
                    return last;
                }
            }
        }),
    ];
    function_table(functions, &CASES, &inputs())
}

pub(crate) fn switches_in_loops_in_switches(_: &DeviceInfo) -> Vec<Case> {
    let functions = "
        fn f0(x: u32, y: u32) -> u32 {
            var state = x % 5u;
            var log = 0u;
            for (var n = 0u; n < 40u; n++) {
                switch state {
                    case 0u, 3u: {
                        state = (state + y) % 7u;
                        if n % 3u == 1u { continue; }
                        log += 1u;
                    }
                    case 1u: {
                        for (var i = 0u; i < y % 4u; i++) {
                            switch i {
                                case 2u: { state = 4u; break; }
                                case 1u, default: { log += 10u; continue; }
                            }
                            log += 100u;
                        }
                        state += 1u;
                    }
                    default: { state -= 1u; }
                    case 6u: { return log + 7u; }
                    case 5u: { if log > 60u { break; } state = 0u; log += 3u; continue; }
                }
                log += n % 2u;
                if log > 400u { return log; }
            }
            return log * 10u + state;
        }
        fn f1(x: u32, y: u32) -> u32 {
            var r = y;
            switch i32(x % 7u) - 3 {
                case -3, -1: { r += 1u; }
                case 2: {}
                default: { r *= 2u; }
                case 0: { if y % 2u == 0u { break; } r = 5u; }
            }
            return r + x;
        }";
    const CASES: [Row; 2] = [
        ("f0(x, y)", state_machine),
        ("f1(x, y)", |x, y| match x % 7 {
            0 | 2 => y + 1 + x,
            5 => y + x,
            3 if y % 2 == 0 => y + x,
            3 => 5 + x,
            _ => y * 2 + x,
        }),
    ];
    function_table(functions, &CASES, &inputs())
}

fn state_machine(x: u32, y: u32) -> u32 {
    let (mut state, mut log) = (x % 5, 0);
    for n in 0..40 {
        match state {
            0 | 3 => {
                state = (state + y) % 7;
                if n % 3 == 1 {
                    continue;
                }
                log += 1;
            }
            1 => {
                for i in 0..y % 4 {
                    if i == 2 {
                        state = 4;
                        log += 100;
                    } else {
                        log += 10;
                    }
                }
                state += 1;
            }
            6 => return log + 7,
            5 if log > 60 => {}
            5 => {
                state = 0;
                log += 3;
                continue;
            }
            _ => state -= 1,
        }
        log += n % 2;
        if log > 400 {
            return log;
        }
    }
    log * 10 + state
}

pub(crate) fn returns_from_nested_callees(_: &DeviceInfo) -> Vec<Case> {
    let functions = "
        fn find(x: u32, y: u32) -> u32 {
            for (var i = 1u; i < 20u; i++) {
                var j = i;
                while true {
                    if j * i > x { if (i + j) % 3u == 0u { return i * 1000u + j; } break; }
                    if j == y { return 7u; }
                    j += i;
                }
            }
            return 0u;
        }
        fn nested(x: u32, y: u32) -> u32 {
            let first = find(x, y);
            if first == 0u { return 1u; }
            if first % 2u == 1u { return find(first % 90u, x % 11u) + 2u; }
            return first + find(y, x);
        }
        fn change(p: ptr<function, u32>, y: u32) -> bool {
            if *p > y { *p -= y; return true; }
            for (var i = 0u; i < 3u; i++) { if *p == i { return false; } *p += 1u; }
            return *p % 2u == 0u;
        }
        fn f1(x: u32, y: u32) -> u32 {
            var v = x;
            var iterations = 0u;
            while iterations < 6u && change(&v, y) { iterations++; }
            return v * 10u + iterations;
        }";
    const CASES: [Row; 2] = [
        ("nested(x, y)", nested),
        ("f1(x, y)", |x, y| {
            let (mut v, mut iterations) = (x, 0);
            while iterations < 6 && change(&mut v, y) {
                iterations += 1;
            }
            v * 10 + iterations
        }),
    ];
    function_table(functions, &CASES, &inputs())
}

fn find(x: u32, y: u32) -> u32 {
    for i in 1..20 {
        let mut j = i;
        loop {
            if j * i > x {
                if (i + j) % 3 == 0 {
                    return i * 1000 + j;
                }
                break;
            }
            if j == y {
                return 7;
            }
            j += i;
        }
    }
    0
}

fn nested(x: u32, y: u32) -> u32 {
    match find(x, y) {
        0 => 1,
        first if first % 2 == 1 => find(first % 90, x % 11) + 2,
        first => first + find(y, x),
    }
}

fn change(p: &mut u32, y: u32) -> bool {
    if *p > y {
        *p -= y;
        return true;
    }
    for i in 0..3 {
        if *p == i {
            return false;
        }
        *p += 1;
    }
    p.is_multiple_of(2)
}

pub(crate) fn arrays_written_on_different_paths(_: &DeviceInfo) -> Vec<Case> {
    let functions = "
        fn f0(x: u32, y: u32) -> u32 {
            var list: array<u32, 8>;
            var at = x;
            for (var i = 0u; i < y % 23u; i++) {
                at = (at * 5u + 3u) % 31u;
                if at % 2u == 0u { list[at % 8u] += i; } else { list[i % 8u] ^= at; }
                if list[3] > 20u { list[3] = 0u; continue; }
                list[(at + i) % 8u] += 1u;
            }
            var sum = 0u;
            for (var i = 0; i < 8; i++) { sum = sum * 3u + list[i]; }
            return sum;
        }";
    const CASES: [Row; 1] = [("f0(x, y)", |x, y| {
        let (mut list, mut at) = ([0u32; 8], x);
        for i in 0..y % 23 {
            at = (at * 5 + 3) % 31;
            if at % 2 == 0 {
                list[at as usize % 8] += i;
            } else {
                list[i as usize % 8] ^= at;
            }
            if list[3] > 20 {
                list[3] = 0;
                continue;
            }
            list[(at + i) as usize % 8] += 1;
        }
        list.iter().fold(0, |sum: u32, word| sum.wrapping_mul(3).wrapping_add(*word))
    })];
    function_table(functions, &CASES, &inputs())
}
