//! Files of weights: reading, damaged files, loading by path, and the files of real models.

mod real_files;
mod support;
mod tokenizers;
