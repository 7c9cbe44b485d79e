//! Tests of parsing: printed kernels, and texts that are not kernels.

use crate::kir::{Const, Kir, Type, optimise, random};

/// Constants of every type, among them all with a special printed form.
fn constants() -> Vec<Const> {
    let mut all = vec![Const::bool(true), Const::bool(false)];
    for ty in [Type::I16, Type::U16, Type::I32, Type::U32, Type::I64] {
        all.extend([0, 1, -1, i64::MIN, i64::MAX].map(|value| Const::int(ty, value)));
    }
    all.push(Const { ty: Type::U64, bits: u64::MAX });
    let f16 = [0, 0x8000, 1, 0x3c00, 0xc100, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0xfe01];
    all.extend(f16.map(|bits| Const { ty: Type::F16, bits }));
    let f32 = [0.0, -0.0, 1.0, -2.5e-40, 3.4e38, f32::INFINITY, f32::NEG_INFINITY, 1e-7];
    all.extend(f32.map(Const::f32));
    all.extend([0x7fc0_0001, 0xff80_0001].map(|bits| Const { ty: Type::F32, bits }));
    all.extend([0.1, -1e300, f64::INFINITY, f64::NAN].map(Const::f64));
    all
}

#[test]
fn constants_round_trip() {
    for constant in constants() {
        let text = format!("kernel k [1, 1, 1]\n%0: {} = {constant}", constant.ty);
        let kir: Kir = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(kir.values[0].inst, crate::kir::Inst::Const(constant), "{text}");
    }
}

/// Asserts that a kernel survives printing and parsing. Two differences are allowed: labels that
/// are not used are not counted, and an address without an index has stride 0.
fn assert_round_trip(kir: &Kir) {
    let text = kir.to_string();
    let parsed: Kir = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(parsed.to_string(), text);
    assert!(parsed.labels <= kir.labels);
    let without_values = |kir: &Kir| Kir { values: Vec::new(), labels: 0, ..kir.clone() };
    assert_eq!(without_values(&parsed), without_values(kir));
    let definitions = |kir: &Kir| {
        format!("{:?}", kir.values).replace("index: None, stride: 4", "index: None, stride: 0")
    };
    assert_eq!(definitions(&parsed), definitions(kir));
}

#[test]
fn random_kernels_round_trip() {
    for seed in 0..300 {
        let mut kir = random::kernel(seed, true);
        assert_round_trip(&kir);
        optimise(&mut kir);
        assert_round_trip(&kir);
    }
}

#[test]
fn every_instruction_round_trips() {
    let text = include_str!("every.kir");
    let kir: Kir = text.parse().unwrap();
    assert_eq!(kir.to_string(), text);
    assert_eq!((kir.labels, kir.buffers[0].min_size), (4, 64));
}

#[test]
fn names_of_sources_round_trip() {
    for name in [r"C:\new\it's.wgsl", "a \"b\".wgsl", "größe.wgsl"] {
        let mut kir: Kir = "kernel k [1, 1, 1]".parse().unwrap();
        kir.source.name = Some(name.to_owned());
        let parsed: Kir = kir.with_positions().to_string().parse().unwrap();
        assert_eq!(parsed.source.name.as_deref(), Some(name));
    }
    let mut kir: Kir = "kernel k [1, 1, 1]".parse().unwrap();
    kir.source.name = Some("a\nb".to_owned());
    assert!(kir.with_positions().to_string().contains("source a?b\n"));
}

#[test]
fn errors_name_line_and_cause() {
    let errors = [
        ("", "line 1: there is no kernel"),
        ("kernel k [1, 1]", "line 1: expected `,`, found `]`"),
        ("kernel k [1, 1, 1]\nvar v1: u32", "line 2: expected `v0`, found `v1: u32`"),
        ("kernel k [1, 1, 1]\n\n%0: u33 = 1", "line 3: `u33` is not a type"),
        ("kernel k [1, 1, 1]\n%0: u32 = -1", "line 2: `-1` is not a constant of u32"),
        ("kernel k [1, 1, 1]\n%0: u32 = frob %1", "line 2: `frob %1` is not an instruction"),
        (
            "kernel k [1, 1, 1]\n%1: u32 = 1",
            "line 2: values are numbered without gaps, but %0 is missing",
        ),
        ("kernel k [1, 1, 1]\n%0: u32 = 1\n%0: u32 = 1", "line 3: %0 is defined twice"),
        ("kernel k [1, 1, 1]\n%0, %2: u32 = load binding0[0]", "line 2: %2 does not follow %0"),
        ("kernel k [1, 1, 1]\n%0, %1: u32 = v0", "line 2: 1 results, not 2"),
        ("kernel k [1, 1, 1]\nL1: loop {", "line 2: 1 blocks are not closed"),
        ("kernel k [1, 1, 1]\n}", "line 2: no block is open"),
        ("kernel k [1, 1, 1]\n} else {", "line 2: there is no `if` for this `else`"),
        ("kernel k [1, 1, 1]\nbreak L4294967295", "line 2: L4294967295 is out of range"),
        ("kernel k [1, 1, 1]\nv0 = %0 %1", "line 2: expected the end of the line, found ` %1`"),
        ("kernel k [1, 1, 1]\n%0: f32 = nan 0x1", "line 2: 0x1 is not the bits of a NaN of f32"),
    ];
    for (text, expected) in errors {
        let error = text.parse::<Kir>().expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

/// Prefixes of a text, copies with one byte changed, and deeply nested blocks.
#[test]
fn damaged_texts_never_panic() {
    let text = random::kernel(7, true).to_string();
    for end in (0..text.len()).step_by(5) {
        let _ = text[..end].parse::<Kir>();
    }
    for at in (0..text.len()).step_by(11) {
        for byte in ["%", "9", " ", "}", "L"] {
            let damaged = format!("{}{byte}{}", &text[..at], &text[at + 1..]);
            if let Ok(kir) = damaged.parse::<Kir>() {
                let _ = crate::kir::verify(&kir);
            }
        }
    }
    let deep = format!("kernel k [1, 1, 1]\n{}", "L1: loop {\n".repeat(100_000));
    let error = deep.parse::<Kir>().unwrap_err();
    assert_eq!(error.to_string(), "line 1202: blocks are nested more than 1200 deep");
    let closed = format!("{deep}{}", "}\n".repeat(100_000));
    assert_eq!(closed.parse::<Kir>().unwrap_err(), error);
}
