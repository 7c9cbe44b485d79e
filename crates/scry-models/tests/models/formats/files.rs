//! Builders of small files.

/// A GGUF file in the making.
#[derive(Clone, Default)]
pub(crate) struct Gguf {
    pairs: Vec<Vec<u8>>,
    tensors: Vec<(Vec<u8>, Vec<u8>)>,
    /// The number of bytes of the data so far.
    data: usize,
}

/// Returns a string of GGUF: its length, then its bytes.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [(text.len() as u64).to_le_bytes().as_slice(), text.as_bytes()].concat()
}

impl Gguf {
    /// Adds a key with a value of a type.
    pub(crate) fn pair(mut self, key: &str, ty: u32, value: &[u8]) -> Self {
        self.pairs.push([&text(key), ty.to_le_bytes().as_slice(), value].concat());
        self
    }

    /// Adds a key with a string.
    pub(crate) fn string(self, key: &str, value: &str) -> Self {
        self.pair(key, 8, &text(value))
    }

    /// Adds a key with an array of strings.
    pub(crate) fn strings(self, key: &str, values: &[&str]) -> Self {
        let head = [8u32.to_le_bytes().as_slice(), &(values.len() as u64).to_le_bytes()].concat();
        let values: Vec<u8> = values.iter().flat_map(|it| text(it)).collect();
        self.pair(key, 9, &[head, values].concat())
    }

    /// Adds a tensor of a shape, the outermost size first.
    pub(crate) fn tensor(self, name: &str, shape: &[u64], ty: u32, data: &[u8]) -> Self {
        let offset = self.data as u64;
        self.tensor_at(name, shape, ty, data, offset)
    }

    /// Adds a tensor that claims that its data is at an offset.
    pub(crate) fn tensor_at(
        mut self,
        name: &str,
        shape: &[u64],
        ty: u32,
        data: &[u8],
        offset: u64,
    ) -> Self {
        let sizes: Vec<u8> = shape.iter().rev().flat_map(|it| it.to_le_bytes()).collect();
        let axes = (shape.len() as u32).to_le_bytes();
        let info = [&text(name), axes.as_slice(), &sizes, &ty.to_le_bytes(), &offset.to_le_bytes()];
        let mut padded = data.to_vec();
        padded.resize(data.len().next_multiple_of(32), 0);
        self.data += padded.len();
        self.tensors.push((info.concat(), padded));
        self
    }

    /// Returns the bytes of the file.
    pub(crate) fn build(&self) -> Vec<u8> {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.pairs.len() as u64).to_le_bytes());
        file.extend(self.pairs.concat());
        self.tensors.iter().for_each(|(info, _)| file.extend(info));
        file.resize(file.len().next_multiple_of(32), 0);
        self.tensors.iter().for_each(|(_, data)| file.extend(data));
        file
    }
}

/// Returns a safetensors file of a header and data.
pub(crate) fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [text(header).as_slice(), data].concat()
}

/// Returns floats as bytes.
pub(crate) fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Returns a small file with metadata of many types and tensors of several.
pub(crate) fn small_gguf() -> Gguf {
    let nested = [9u32.to_le_bytes().as_slice(), &1u64.to_le_bytes(), &4u32.to_le_bytes()].concat();
    let nested = [nested.as_slice(), &2u64.to_le_bytes(), &7u32.to_le_bytes(), &8u32.to_le_bytes()];
    Gguf::default()
        .string("general.architecture", "test")
        .pair("test.layers", 4, &3u32.to_le_bytes())
        .pair("test.scale", 6, &0.5f32.to_le_bytes())
        .pair("test.is_causal", 7, &[1])
        .pair("test.big", 10, &u64::MAX.to_le_bytes())
        .pair("test.small", 3, &(-7i16).to_le_bytes())
        .pair("test.nested", 9, &nested.concat())
        .strings("test.words", &["a", "", "日本"])
        .tensor("x", &[2, 3], 0, &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
        .tensor("h", &[3], 1, &[0x00, 0x3c, 0x00, 0x40, 0x00, 0xc2])
        .tensor("b", &[1], 30, &[0xc0, 0x3f])
        .tensor("q", &[1, 32], 8, &[[0x00, 0x38].as_slice(), &[4; 32]].concat())
}
