//! Tests that the verifier never panics, with kernels whose fields or texts are randomly changed,
//! and that valid kernels stay valid when they are printed, parsed and optimised.

use crate::kir::{
    AddressSpace, Const, Definition, Inst, Kir, Label, Place, Stmt, Type, Value, Var, optimise,
    random, verify,
};

/// Default number of changed kernels. `SCRY_FUZZ_SEEDS` overrides that of changed texts.
const TEXTS: u64 = 10_000;

/// A generator of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A number that is often valid, and otherwise often an extreme.
    fn number(&mut self) -> u32 {
        match self.below(4) {
            0 => self.one_of(&[0, 1, 2, u32::MAX, u32::MAX - 1, 1 << 31, 1200, 1 << 22]),
            _ => self.below(24) as u32,
        }
    }
}

/// Every form of statement, nearly every form of instruction and declaration. (The random kernels
/// have constants.)
const EVERY: &str = include_str!("../../parse/every.kir");

fn texts() -> Vec<String> {
    let random = (0..40).map(|seed| random::kernel(seed, true).to_string());
    random.chain(std::iter::repeat_n(EVERY.to_owned(), 40)).collect()
}

/// Splits a line into words, numbers, and what is between them.
fn tokens(line: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_same_kind = |c: char| match () {
            () if first.is_ascii_digit() => c.is_ascii_digit(),
            () if is_word(first) => is_word(c),
            () => !c.is_ascii_digit() && !is_word(c),
        };
        let (token, after) = rest.split_at(rest.find(|c| !is_same_kind(c)).unwrap_or(rest.len()));
        all.push(token);
        rest = after;
    }
    all
}

/// Replaces a token by a random number, or by a token of the same kind from another line.
fn change_token(random: &mut Random, lines: &mut [String]) {
    let (at, from) = (random.below(lines.len()), random.below(lines.len()));
    let other = lines[from].clone();
    let line = lines[at].clone();
    let (mut parts, others) = (tokens(&line), tokens(&other));
    if parts.is_empty() {
        return;
    }
    let index = random.below(parts.len());
    let number = random.number().to_string();
    let is_number = parts[index].starts_with(|c: char| c.is_ascii_digit());
    let alike: Vec<_> = others
        .into_iter()
        .filter(|token| token.starts_with(|c: char| c.is_ascii_digit()) == is_number)
        .collect();
    parts[index] = if is_number && random.below(2) == 0 || alike.is_empty() {
        &number
    } else {
        random.one_of(&alike)
    };
    lines[at] = parts.concat();
}

/// Returns a text with random changes to tokens, lines or characters.
fn change_text(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(3) {
        let (at, to) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(10) {
            0 => lines.swap(at, to),
            1 => drop(lines.remove(at)),
            2 => lines.insert(to, lines[at].clone()),
            3 => {
                let length = random.below(lines[at].len() + 1);
                let prefix: String = lines[at].chars().take(length).collect();
                lines[at] = prefix + random.one_of(&["%", "{", "}", "é", " ", ""]);
            }
            _ => change_token(random, &mut lines),
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

/// Returns whether a kernel is valid. Asserts that a valid one stays valid when it is printed,
/// parsed and optimised.
fn check_kernel(kir: &Kir) -> bool {
    if let Err(error) = verify(kir) {
        assert!(!error.to_string().contains('\n'), "{error}");
        return false;
    }
    let text = kir.to_string();
    let mut kir: Kir = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&kir), Ok(()), "{text}");
    optimise(&mut kir);
    assert_eq!(verify(&kir), Ok(()), "{text}\noptimised:\n{kir}");
    true
}

#[test]
fn changed_texts_never_panic() {
    let texts = texts();
    let seeds = std::env::var("SCRY_FUZZ_SEEDS").ok().and_then(|text| text.parse().ok());
    let (mut parsed, mut valid) = (0, 0);
    for seed in 0..seeds.unwrap_or(TEXTS) {
        let random = &mut Random(seed);
        let nth = random.below(texts.len());
        let text = change_text(random, &texts[nth]);
        if let Ok(kir) = text.parse::<Kir>() {
            parsed += 1;
            let is_valid = std::panic::catch_unwind(|| check_kernel(&kir));
            valid += u64::from(is_valid.unwrap_or_else(|_| panic!("seed {seed}:\n{text}")));
        }
    }
    // The changes are neither all harmless nor all rejected by the parser.
    assert!(valid > 100 && parsed > valid + 100, "{parsed} parsed, {valid} valid");
}

/// Changes a field, a declaration or a statement of a kernel at random.
fn change_field(random: &mut Random, kir: &mut Kir) {
    let (number, other) = (random.number(), random.number());
    match random.below(9) {
        0 => kir.labels = number,
        1 => kir.workgroup_size[random.below(3)] = number,
        2 => drop(kir.values.pop()),
        3 => drop(kir.vars.pop()),
        4 => kir.buffers.clear(),
        5 => {
            let place = Place {
                space: random.one_of(&[
                    AddressSpace::Binding(other),
                    AddressSpace::Immediate,
                    AddressSpace::Workgroup(other),
                    AddressSpace::Local(other),
                ]),
                index: random.one_of(&[None, Some(Value(number))]),
                stride: random.number(),
                offset: random.number(),
            };
            kir.body.push(Stmt::Store {
                place,
                values: vec![Value(number); random.below(6)],
                at: None,
            });
        }
        6 => {
            let at = random.below(kir.body.len() + 1);
            let stmt = match random.below(4) {
                0 => Stmt::Let(Value(number)),
                1 => Stmt::Set(Var(number), Value(other)),
                2 => Stmt::Break(Label(number)),
                _ => Stmt::Loop { label: Label(number), body: Vec::new(), finite: true },
            };
            kir.body.insert(at, stmt);
        }
        _ => {
            let at = random.below(kir.values.len());
            let Some(definition) = kir.values.get_mut(at) else { return };
            *definition = any_definition(random, *definition, number, other);
        }
    }
}

/// Returns a definition with a random change.
fn any_definition(random: &mut Random, old: Definition, number: u32, other: u32) -> Definition {
    let Definition { mut ty, mut inst } = old;
    match random.below(5) {
        0 => ty = random.one_of(&Type::ALL),
        1 => inst = Inst::Extra(Value(number), other as u8),
        2 => {
            let bits = random.next();
            inst = Inst::Const(Const { ty: random.one_of(&[ty, Type::U32]), bits });
        }
        3 => {
            let space = AddressSpace::Binding(0);
            let place = Place::new(space, Some(Value(number)), other, u32::MAX);
            inst = Inst::Load { place, count: other as u8 };
        }
        _ => inst.for_each_operand_mut(|operand| *operand = Value(number)),
    }
    Definition { ty, inst }
}

#[test]
fn changed_fields_never_panic() {
    let texts = texts();
    let mut valid = 0;
    for seed in 0..TEXTS {
        let random = &mut Random(seed);
        let nth = random.below(texts.len());
        let mut kir: Kir = texts[nth].parse().expect("the text is a kernel");
        for _ in 0..=random.below(2) {
            change_field(random, &mut kir);
        }
        let is_valid = std::panic::catch_unwind(|| check_kernel(&kir));
        valid += u64::from(is_valid.unwrap_or_else(|_| panic!("seed {seed}:\n{kir:?}")));
    }
    assert!((100..TEXTS - 1000).contains(&valid), "{valid} valid");
}
