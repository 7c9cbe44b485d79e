//! The secret that the ranks of a group share, and proofs of having it.
//!
//! Neither side sends the token. Each proves that it has it by a message authentication code,
//! SipHash-2-4 with 128 bits, of what both sides have sent, under a key derived from the token. Who
//! observes a connection can test guesses, so a token must be random.

use std::fmt;
use std::hash::{BuildHasher, Hasher as _, RandomState};

use siphasher::sip128::SipHasher24;

/// The least number of bytes of a token.
pub(super) const MIN_TOKEN: usize = 16;

/// Bytes of a nonce, and of a proof.
pub(super) const PROOF_SIZE: usize = 16;

/// A shared secret.
#[derive(Clone)]
// Equality takes a time that depends on the secret: tests may compare tokens, others not.
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(super) struct Token(String);

/// Which side of a connection proves that it has the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

impl Token {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the proof of one side for what was sent.
    pub(super) fn proof(&self, side: Side, sent: &[&[u8]]) -> [u8; PROOF_SIZE] {
        let key = SipHasher24::new_with_key(b"scry group token").hash(self.0.as_bytes());
        let mut message = vec![side as u8];
        for part in sent {
            message.extend_from_slice(&(part.len() as u64).to_le_bytes());
            message.extend_from_slice(part);
        }
        SipHasher24::new_with_key(&key.as_bytes()).hash(&message).as_bytes()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Returns whether two proofs are equal, in a time that does not depend on where they differ.
pub(super) fn are_equal(a: &[u8; PROOF_SIZE], b: &[u8; PROOF_SIZE]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// Returns bytes that differ from all earlier ones: a proof for them is never valid again.
///
/// The standard library seeds the keys of each thread's hash maps from the system's random numbers.
pub(super) fn nonce() -> [u8; PROOF_SIZE] {
    let mut nonce = [0; PROOF_SIZE];
    for half in nonce.chunks_exact_mut(8) {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        half.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_depend_on_everything() {
        let token = Token::new("0123456789abcdef".to_owned());
        let proof = token.proof(Side::Client, &[b"ab", b"c"]);
        assert!(are_equal(&proof, &token.proof(Side::Client, &[b"ab", b"c"])));
        let other = Token::new("0123456789abcdee".to_owned());
        for different in [
            other.proof(Side::Client, &[b"ab", b"c"]),
            token.proof(Side::Server, &[b"ab", b"c"]),
            token.proof(Side::Client, &[b"a", b"bc"]),
            token.proof(Side::Client, &[b"ab", b"d"]),
        ] {
            assert!(!are_equal(&proof, &different));
        }
    }

    #[test]
    fn every_bit_is_compared() {
        let proof = [0x5a; PROOF_SIZE];
        for bit in 0..8 * PROOF_SIZE {
            let mut other = proof;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!are_equal(&proof, &other), "bit {bit}");
        }
    }

    #[test]
    fn nonces_differ() {
        let mut nonces: Vec<_> = (0..1000).map(|_| nonce()).collect();
        nonces.sort_unstable();
        nonces.dedup();
        assert_eq!(nonces.len(), 1000);
    }

    #[test]
    fn tokens_are_not_printed() {
        assert_eq!(format!("{:?}", Token::new("secret".to_owned())), "Token(…)");
    }
}
