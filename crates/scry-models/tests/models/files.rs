//! Files of weights that tests write.

use std::path::Path;

/// A tensor to be written: its name, its shape with the outermost axis first, and its elements.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) numbers: Vec<f32>,
}

/// Writes a safetensors file of `f32`.
pub(crate) fn write_safetensors(path: &Path, tensors: &[Named]) {
    let mut header = serde_json::Map::new();
    let mut data: Vec<u8> = Vec::new();
    for Named { name, shape, numbers } in tensors {
        let start = data.len();
        data.extend(numbers.iter().flat_map(|it| it.to_le_bytes()));
        let entry = serde_json::json!({
            "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()],
        });
        header.insert(name.clone(), entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend(data);
    std::fs::write(path, file).expect("the folder is writable");
}

/// The types of tensors in GGUF files that tests write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    F32 = 0,
    F16 = 1,
    BF16 = 30,
    Q4_1 = 3,
    Q8_0 = 8,
}

impl Stored {
    /// Returns the bytes of numbers, and the numbers that they are read as.
    pub(crate) fn encode(self, numbers: &[f32]) -> (Vec<u8>, Vec<f32>) {
        match self {
            Self::F32 => {
                (numbers.iter().flat_map(|it| it.to_le_bytes()).collect(), numbers.to_vec())
            }
            Self::F16 => {
                let numbers = numbers.iter().map(|it| half::f16::from_f32(*it));
                numbers.map(|it| (it.to_le_bytes(), it.to_f32())).unzip_bytes()
            }
            Self::BF16 => {
                let numbers = numbers.iter().map(|it| half::bf16::from_f32(*it));
                numbers.map(|it| (it.to_le_bytes(), it.to_f32())).unzip_bytes()
            }
            Self::Q8_0 => each_block(numbers, |block| {
                let most = block.iter().fold(0f32, |most, it| most.max(it.abs()));
                let d = half::f16::from_f32(most / 127.0);
                let q = |x: &f32| (x / d.to_f32()).round().clamp(-127.0, 127.0) as i8;
                let q: Vec<i8> = block.iter().map(q).collect();
                let bytes = d.to_le_bytes().into_iter().chain(q.iter().map(|q| *q as u8));
                (bytes.collect(), q.iter().map(|q| d.to_f32() * f32::from(*q)).collect())
            }),
            Self::Q4_1 => each_block(numbers, |block| {
                let least = block.iter().copied().fold(f32::INFINITY, f32::min);
                let most = block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let (d, m) =
                    (half::f16::from_f32((most - least) / 15.0), half::f16::from_f32(least));
                let q = |x: &f32| ((x - m.to_f32()) / d.to_f32()).round().clamp(0.0, 15.0) as u8;
                let q: Vec<u8> = block.iter().map(q).collect();
                let mut bytes = [d.to_le_bytes(), m.to_le_bytes()].concat();
                bytes.extend((0..16).map(|n| q[n] | q[n + 16] << 4));
                let read = |q: &u8| d.to_f32() * f32::from(*q) + m.to_f32();
                (bytes, q.iter().map(read).collect())
            }),
        }
    }
}

trait UnzipBytes {
    fn unzip_bytes(self) -> (Vec<u8>, Vec<f32>);
}

impl<I: Iterator<Item = ([u8; 2], f32)>> UnzipBytes for I {
    fn unzip_bytes(self) -> (Vec<u8>, Vec<f32>) {
        let (bytes, read): (Vec<_>, Vec<_>) = self.unzip();
        (bytes.concat(), read)
    }
}

fn each_block(
    numbers: &[f32],
    encode: impl Fn(&[f32]) -> (Vec<u8>, Vec<f32>),
) -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut read) = (Vec::new(), Vec::new());
    for block in numbers.chunks_exact(32) {
        let (block, numbers) = encode(block);
        bytes.extend(block);
        read.extend(numbers);
    }
    (bytes, read)
}

/// A GGUF file that is written piece by piece.
#[derive(Default)]
pub(crate) struct Gguf {
    metadata: Vec<u8>,
    keys: u64,
    infos: Vec<u8>,
    data: Vec<u8>,
    tensors: u64,
}

impl Gguf {
    fn key(&mut self, key: &str, kind: u32) {
        put_text(&mut self.metadata, key);
        self.metadata.extend(kind.to_le_bytes());
        self.keys += 1;
    }

    pub(crate) fn number(&mut self, key: &str, value: u32) {
        self.key(key, 4);
        self.metadata.extend(value.to_le_bytes());
    }

    pub(crate) fn float(&mut self, key: &str, value: f32) {
        self.key(key, 6);
        self.metadata.extend(value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.key(key, 8);
        put_text(&mut self.metadata, value);
    }

    pub(crate) fn texts(&mut self, key: &str, values: &[String]) {
        self.key(key, 9);
        self.metadata.extend(8u32.to_le_bytes());
        self.metadata.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| put_text(&mut self.metadata, value));
    }

    pub(crate) fn numbers(&mut self, key: &str, values: &[i32]) {
        self.key(key, 9);
        self.metadata.extend(5u32.to_le_bytes());
        self.metadata.extend((values.len() as u64).to_le_bytes());
        self.metadata.extend(values.iter().flat_map(|it| it.to_le_bytes()));
    }

    /// Adds a tensor, and returns the numbers that it is read as.
    pub(crate) fn tensor(&mut self, stored: Stored, tensor: &Named) -> Vec<f32> {
        let (bytes, read) = stored.encode(&tensor.numbers);
        put_text(&mut self.infos, &tensor.name);
        self.infos.extend((tensor.shape.len() as u32).to_le_bytes());
        // The innermost axis first.
        self.infos.extend(tensor.shape.iter().rev().flat_map(|it| (*it as u64).to_le_bytes()));
        self.infos.extend((stored as u32).to_le_bytes());
        self.infos.extend((self.data.len() as u64).to_le_bytes());
        self.data.extend(bytes);
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        self.tensors += 1;
        read
    }

    pub(crate) fn write(self, path: &Path) {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend(self.tensors.to_le_bytes());
        file.extend(self.keys.to_le_bytes());
        file.extend(self.metadata);
        file.extend(self.infos);
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(self.data);
        std::fs::write(path, file).expect("the folder is writable");
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.bytes());
}
