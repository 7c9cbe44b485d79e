//! Tests of minimised random kernels that once showed a bug, mostly of a driver. The expected
//! results are those that WGSL specifies.

use std::fmt::Debug;

use scry_gpu::{BackendKind, Buffer, Device, Element, GpuError};
use scry_test_support::{devices, root};

use super::{Case, Problem, find_problem};

/// The input of each kernel, one word for each invocation.
const WORDS: [u32; 4] = [0, 1, 0x8000_0000, 0xffff_fffe];

/// Runs a kernel of the corpus on [`WORDS`], with four invocations; returns their results.
fn run<T: Element + Default>(gpu: &Device, path: &str) -> Result<Vec<T>, GpuError> {
    let path = root().join("corpus").join(path);
    let source = std::fs::read_to_string(&path).expect("a file of the corpus");
    let words = gpu.upload(&WORDS)?;
    let results: Buffer<T> = gpu.upload(&[T::default(); 4])?;
    gpu.dispatch(&source, &[&words, &results], 4)?;
    results.download()
}

/// Checks that every device computes `expected`.
fn check<T>(path: &str, expected: &[T])
where
    T: Element + Default + PartialEq + Debug,
{
    for gpu in devices() {
        let results = run::<T>(&gpu, path).unwrap_or_else(|error| panic!("{gpu:?}: {error}"));
        assert_eq!(results, expected, "{gpu:?}");
    }
}

/// [`check`], but devices may reject the kernel for a missing feature.
fn check_where_supported<T>(path: &str, expected: &[T], missing: &str)
where
    T: Element + Default + PartialEq + Debug,
{
    for gpu in devices() {
        match run::<T>(&gpu, path) {
            Ok(results) => assert_eq!(results, expected, "{gpu:?}"),
            Err(GpuError::Unsupported(_)) => eprintln!("skipped {gpu:?}: {missing}"),
            Err(error) => panic!("{gpu:?}: {error}"),
        }
    }
}

#[test]
fn widening_follows_the_operands_sign() {
    let expected = WORDS.map(|word| {
        let sign_extend = |word: u32| i64::from(word.cast_signed()).cast_unsigned();
        [sign_extend(word), word.into(), (!word).into(), sign_extend(!word)]
    });
    check_where_supported("fuzz/widening_signedness.wgsl", &expected, "no 64-bit integers");
}

#[test]
fn complements_and_negates_affine_values() {
    let expected: [[u32; 4]; 4] = std::array::from_fn(|i| {
        let n = i as u32;
        [!n, !(3 * n + 1), n.wrapping_neg(), WORDS[(!n % 4) as usize]]
    });
    check("fuzz/complement_of_affine.wgsl", &expected);
}

#[test]
fn i16_wraps_before_widening() {
    let expected = WORDS.map(|word| {
        let x = (word.cast_signed() >> 16) as i16;
        let product = x.wrapping_mul(x).wrapping_sub(x);
        [x.wrapping_neg() % 20, x.wrapping_abs() / 3, x.wrapping_add(x), product].map(i32::from)
    });
    check_where_supported("fuzz/i16_min_negation.wgsl", &expected, "no 16-bit integers");
}

#[test]
fn bit_fields_use_their_offset() {
    // For each invocation: bit `WORDS[i] + 3` of 204; bit `i` of 1, sign-extended; nine bits of 772
    // from bit `inserted[1]` on; and `inserted[0]`. `insertBits` replaces four bits from bit `i`
    // on.
    let expected: [[u32; 4]; 4] = std::array::from_fn(|i| {
        let bit = |at: u32| 204u32.checked_shr(at).unwrap_or(0) & 1;
        let cleared = 1u32 & !(15 << i);
        let inserted = [cleared | (402 & 15) << i, cleared];
        let sign_extended = if i == 0 { u32::MAX } else { 0 };
        [bit(WORDS[i].wrapping_add(3)), sign_extended, (772 >> inserted[1]) & 511, inserted[0]]
    });
    check("fuzz/insert_extract_bits.wgsl", &expected);
}

#[test]
fn missing_bit_position_is_minus_one() {
    let expected = WORDS.map(|word| {
        let differing = word ^ (word.cast_signed() >> 31).cast_unsigned();
        let leading = 31 - differing.leading_zeros() as i32;
        let trailing = if word == 0 { -1 } else { word.trailing_zeros() as i32 };
        [-1, leading % 5, trailing / 2, 1]
    });
    check("fuzz/find_bit_of_zero.wgsl", &expected);
}

#[test]
fn quotient_components_are_all_computed() {
    let expected: [[u32; 4]; 4] = std::array::from_fn(|i| {
        let (word, n) = (WORDS[i], i as u32);
        let one = 1f32.to_bits();
        let inserted = (4096 | (n & !(u32::MAX << n))) % 7;
        let zeros = n.trailing_zeros().cast_signed();
        let difference = (zeros - word.cast_signed() / 5).cast_unsigned();
        [one + word / 6, one ^ (word % 7), (inserted as f32).to_bits(), difference]
    });
    check("fuzz/component_of_quotient.wgsl", &expected);
}

#[test]
fn sign_of_complement_beside_i64_rem() {
    let expected = WORDS.map(|word| {
        let x = word.cast_signed();
        let x16 = !((x >> 16) as i16).max(1);
        let x64 = i64::from(x) << 4;
        let signs = (!x64).signum() * x64.signum();
        let rem = 77i64.checked_rem(x.into()).unwrap_or(0);
        [(x > (!x).signum()).into(), x16.signum().into(), signs as i32, rem as i32]
    });
    check_where_supported(
        "fuzz/sign_of_complement.wgsl",
        &expected,
        "no 16-bit or no 64-bit integers",
    );
}

#[test]
fn i16_abs_wraps_beside_i64_rem() {
    let expected = WORDS.map(|word| {
        let x = (word.cast_signed() >> 16) as i16;
        let [abs, negated] = [x.wrapping_abs(), x.wrapping_neg()].map(|x| i32::from(x) >> 3);
        // The kernel computes it in i64: the word is zero-extended.
        let rem = 77u32.checked_rem(word).unwrap_or(0);
        [abs, negated, i32::from(x).abs(), rem.cast_signed()]
    });
    check_where_supported(
        "fuzz/i16_min_widening.wgsl",
        &expected,
        "no 16-bit or no 64-bit integers",
    );
}

#[test]
fn min_and_max_of_absolute_value() {
    let expected: [[i32; 4]; 4] = std::array::from_fn(|i| {
        let [x, y, z] = [0, 1, 2].map(|at| WORDS[(i + at) % 4].cast_signed());
        let first_trailing_bit =
            |x: i32| if x == 0 { -1 } else { x.trailing_zeros().cast_signed() };
        let abs = x.wrapping_abs();
        let clamped = abs.clamp(y.min(z), y.max(z));
        let position = first_trailing_bit(y).max(first_trailing_bit(x).abs());
        [abs.max(y.min(0)), clamped, abs.max(y).min(z), position]
    });
    check("fuzz/max_of_abs.wgsl", &expected);
}

#[test]
fn negating_int_min_wraps() {
    let expected: [[i32; 8]; 4] = std::array::from_fn(|i| {
        let [x, y, z] = [0, 1, 2].map(|at| WORDS[(i + at) % 4].cast_signed());
        let x16 = (x >> 16) as i16;
        let packed = [x, y, z, -4].map(|x| x.wrapping_abs().clamp(-128, 127) as u8);
        let position = if x == 0 { -1 } else { x.trailing_zeros().cast_signed() };
        [
            x.wrapping_abs().clamp(y.min(0), y.max(0)),
            i32::from_le_bytes(packed),
            y.max(z.wrapping_mul(-4).wrapping_abs()),
            position.abs().clamp(z.min(i32::MAX - 1), i32::MAX - 1),
            x16.wrapping_neg().min(0).into(),
            x16.wrapping_neg().max(0).into(),
            x16.wrapping_neg().signum().into(),
            (x16 ^ 1).wrapping_neg().into(),
        ]
    });
    check_where_supported("fuzz/abs_of_int_min.wgsl", &expected, "no 16-bit or no 64-bit integers");
}

#[test]
fn zero_minus_x_is_negation() {
    let expected: [[i32; 4]; 4] = std::array::from_fn(|i| {
        let [x, y] = [0, 1].map(|at| WORDS[(i + at) % 4].cast_signed());
        let negated = x.wrapping_neg();
        let negated16 = ((x >> 16) as i16).wrapping_neg();
        let max = i32::from(y != 1).max(negated).max(negated.signum());
        [max, (negated16 % 20).into(), i32::from(negated16) >> 3, (negated16 / 3).into()]
    });
    check_where_supported(
        "fuzz/negation_by_subtraction.wgsl",
        &expected,
        "no 16-bit or no 64-bit integers",
    );
}

#[test]
fn divides_by_clamped_16_bit_integers() {
    let expected: [[i32; 4]; 4] = std::array::from_fn(|i| {
        let [x, y] = [WORDS[i] >> 16, WORDS[i]].map(|half| (half as u16).cast_signed());
        let z = WORDS[(i + 1) % 4] as u16;
        let quotient = 77i16.checked_div(x.min(0)).unwrap_or(77);
        let rem = 77i16.checked_rem(y.max(0)).unwrap_or(0);
        let divisor = if y.min(0) == 0 { 1 } else { y };
        [quotient, rem, 77u16.checked_div(z).unwrap_or(77).cast_signed(), divisor].map(i32::from)
    });
    check_where_supported("fuzz/i16_min_max_zero.wgsl", &expected, "no 16-bit integers");
}

#[test]
fn loads_precede_component_stores() {
    let expected = [5.0f32, 6.0, 7.0, 8.0].map(|w| [0.0, w, 0.0, 2.0]);
    check("fuzz/load_before_component_store.wgsl", &expected);
}

#[test]
fn bytes_are_packed_and_unpacked() {
    let expected: [[i32; 4]; 4] = std::array::from_fn(|i| {
        let word = WORDS[i];
        let packed = i32::from(word as u8 ^ u8::try_from(word).unwrap_or(u8::MAX));
        let clamped = (i as i32 - 130).max(-128);
        [0, 1, 2, 3].map(|at| i32::from(at == 0 && word & 1 == 1) + packed * 4 + clamped)
    });
    check("fuzz/unpack4x8_of_packed.wgsl", &expected);
}

#[test]
fn bool_unpacks_to_one_byte() -> Result<(), GpuError> {
    let path = root().join("corpus/fuzz/unpack4x8_beside_determinant.wgsl");
    let source = std::fs::read_to_string(&path).expect("a file of the corpus");
    let columns = [[[0.75f32, -7.0, 1.0, 0.0]; 4]];
    for gpu in devices() {
        for word in [48u32, 49] {
            let buffers = (gpu.upload(&[word; 8])?, gpu.upload(&columns)?);
            let results = gpu.upload(&[[9i32; 4]; 2])?;
            gpu.dispatch(&source, &[&buffers.0, &buffers.1, &results], 1)?;
            let expected = [[9; 4], [(word & 1).cast_signed(), 0, 0, 0]];
            assert_eq!(results.download()?, expected, "{gpu:?}");
        }
    }
    Ok(())
}

#[test]
fn float_sign_beside_i64_rem() {
    let expected: [[i32; 4]; 4] = std::array::from_fn(|i| {
        let x = (WORDS[i] % 8).cast_signed() - 4;
        let divisor = i64::from(WORDS[i].cast_signed()) * i64::from(WORDS[(i + 1) % 4]);
        let rem = 77i64.checked_rem(divisor).unwrap_or(0);
        [x.signum(), (i as i32 - 2).signum(), -1, rem as i32]
    });
    check_where_supported("fuzz/float_sign_beside_i64_rem.wgsl", &expected, "no 64-bit integers");
}

#[test]
fn loops_from_their_bound_wrap_around() {
    let expected = WORDS.map(|bound| {
        let at_least = bound.wrapping_neg().wrapping_sub(1).min(199) + 1;
        let at_most = bound.min(199) + 1;
        let above = (u32::MAX - bound).min(200);
        [at_least, at_most, above, at_least + at_most + above]
    });
    check("fuzz/loop_from_its_bound.wgsl", &expected);
}

#[test]
fn counters_may_wrap_to_a_constant_bound() {
    check("fuzz/wrap_to_constant_bound.wgsl", &[[200_u32, 200, 200, 1]; 4]);
}

/// NVIDIA's compiler (driver 580) once turned this kernel into one that never ended. The cause was
/// not found, so it is not minimised: all devices must compute the same.
#[test]
fn kernel_with_nested_switches_ends() {
    let read = |path: &str| std::fs::read(root().join(path)).expect("a file of the corpus");
    let mut data = read("corpus/fuzz/nonterminating.bin");
    let buffers = [72, 144, 1728, 48, 1728].map(|size| data.drain(..size).collect());
    let constant = [-1.25f32, 6.25];
    let case = Case {
        seed: 901_303,
        source: String::from_utf8(read("corpus/fuzz/nonterminating.wgsl")).expect("WGSL"),
        buffers: buffers.into(),
        immediates: Some(constant.iter().flat_map(|x| x.to_le_bytes()).collect()),
        groups: [3, 1, 1],
    };
    let reference = Device::open("cpu").expect("the CPU is a device");
    for gpu in devices() {
        match find_problem(&case, &reference, &gpu) {
            None => {}
            Some(Problem::Failure(GpuError::Unsupported(error))) => {
                eprintln!("skipped {gpu:?}: {error}");
            }
            Some(problem) => panic!("{gpu:?}: {problem}"),
        }
    }
}

/// Some drivers reject this valid kernel. Where it compiles its results must be right, and the CPU
/// backend must compile it.
#[test]
fn transposed_products_are_right_or_rejected() {
    let expected: [[u32; 4]; 4] = std::array::from_fn(|i| {
        let (word, n) = (WORDS[i], i as u32);
        let (a, b) = ([word % 8, n, 1], [word % 4, 2]);
        // The columns of the kernel's first matrix are the rows of its transpose.
        let rows = [a, a.map(|x| 2 * x), [1; 3]];
        let columns = [[b[0], b[1], 3 * b[0]], [b[1], b[0], 3 * b[1]]];
        let dot = |r: [u32; 3], c: [u32; 3]| r[0] * c[0] + r[1] * c[1] + r[2] * c[2];
        let first = rows.map(|row| dot(row, columns[0]));
        [first[0], first[1], first[2], dot(rows[1], columns[1])]
    });
    // A driver's rejection is reported to the validation layer, where any message fails the test.
    let validation_on = std::env::var("SCRY_VALIDATE").is_ok_and(|set| !["", "0"].contains(&&*set));
    for gpu in devices() {
        if validation_on && gpu.backend_kind() != BackendKind::Cpu {
            eprintln!("skipped {gpu:?}: validation messages of its driver would fail the test");
            continue;
        }
        match run::<[u32; 4]>(&gpu, "drivers/product_of_transposes.wgsl") {
            Ok(results) => assert_eq!(results, expected, "{gpu:?}"),
            Err(error) => {
                assert_ne!(gpu.backend_kind(), BackendKind::Cpu, "{error}");
                eprintln!("skipped {gpu:?}, whose driver does not compile the kernel: {error}");
            }
        }
    }
}

/// A driver bug returns zero for the high component of `unpack2x16float` of a constant; any other
/// wrong result fails the test.
#[test]
fn unpacks_constant_f16_pair() {
    for gpu in devices() {
        let results = run::<[f32; 4]>(&gpu, "drivers/unpack_constant_f16.wgsl");
        let results = results.unwrap_or_else(|error| panic!("{error}"));
        let expected = WORDS.map(|word| {
            let ulp = (word & 1) as f32 / 1024.0;
            [1.0, 2.0, 1.0 + ulp, 2.0]
        });
        if gpu.backend_kind() != BackendKind::Cpu && results[0][1] == 0.0 {
            eprintln!("{gpu:?} has a driver with the bug");
            assert_eq!(results, expected.map(|[a, _, c, d]| [a, 0.0, c, d]), "{gpu:?}");
            continue;
        }
        assert_eq!(results, expected, "{gpu:?}");
    }
}
