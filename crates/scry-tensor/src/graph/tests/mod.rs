//! Tests of plans that need their memory, or their kernels as data.

mod canaries;
mod epilogues;
mod portable;
mod prologues;
mod recordings;
mod row_forms;
mod size_classes;
