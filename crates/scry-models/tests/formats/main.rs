//! Files of weights: reading, damaged files, loading by path, and the files of real models.

mod support;
mod real_files;
