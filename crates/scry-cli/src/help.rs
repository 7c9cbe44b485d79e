//! Longer texts of `--help`.

/// `scry --help`.
pub const SCRY_HELP: &str = "\
Environment:
  SCRY_DEVICE           device of commands without --device: a selector such as cpu or vulkan:1
  SCRY_CACHE_DIR        folder of the cache of compiled kernels, or `off`
  SCRY_VALIDATE         1 turns on Vulkan's validation layer
  CUDA_VISIBLE_DEVICES  which GPUs NVIDIA's driver shows
  RUST_LOG              what is logged to standard error, such as scry=debug
  NO_COLOR              turns colours off if it is not empty; CLICOLOR_FORCE=1 turns them on, also
                        where the output is not a terminal

Exit codes: 0 done, 1 the work failed, 2 bad usage.";

/// `scry completions --help`.
pub const COMPLETIONS_HELP: &str = "\
Examples:
  scry completions bash > ~/.local/share/bash-completion/completions/scry
  scry completions zsh > \"${fpath[1]}/_scry\"
  scry completions fish > ~/.config/fish/completions/scry.fish
  scry completions powershell >> $PROFILE

Open a new shell afterwards.";

/// `scry man --help`.
pub const MAN_HELP: &str = "\
Examples:
  scry man run | man -l -
  scry man -o ~/.local/share/man/man1";

/// `scry run --help`.
pub const RUN_HELP: &str = "\
A SOURCE is one of
  FILE.npy            array of numbers or bools, in either order
  FILE.npz:ARRAY      array of an archive; without ARRAY the one called NAME, or the only one
  FILE.png            for array<u32>: RGBA, 8 bits each, R in the low byte;
                      for array<f32>: grey, 0 to 1; for array<vec4<f32>>: RGBA, 0 to 1
  FILE.bin            the bytes as they are
  -                   standard input, a .npy file
  zeros:TYPE:SHAPE    zeros, such as zeros:u32:1000x10
  ones:TYPE:SHAPE     ones
  arange:TYPE:SHAPE   0, 1, 2 and so on, in row-major order
  rand:TYPE:SHAPE     floats from [0, 1), integers from their whole range; see --seed
TYPE is one of f16, f32, f64, i32, u32, i64 and u64. A format before the name of a file, or
before -, replaces the extension: npy:data, bin:-.

Values are converted to the kernel's element type where each is kept exactly: bool, u8 and u16 to
u32 or f32, i8 and i16 to i32, f16 to f32. Other conversions have to be asked for, such as
--cast x=f32 for an f64 array: values are rounded or truncated as by NumPy's astype, and refused if
they are out of range.

An output is one of these files too, - being standard output. Arrays in one .npz are written
together. The type is the kernel's or that of --cast; with --cast NAME=u16 a .png has 16 bits for
each sample. The shape is --shape, or that of the kernel's type if fixed, or that of the first
input. A .png input NAME sets the overrides NAME_width and NAME_height where the kernel declares
them. Without -n there is one invocation for each element of the output; where the workgroup is 2-D,
(width, height) of the output.

Examples:
  scry run edges.wgsl --in src=photo.png --out dst=edges.png --set RADIUS=1 --time
  scry run saxpy.wgsl --in x=x.npy --inout y=y.npy --push a=2.0 -n 1000000 --out y=out.npy
  scry run saxpy.wgsl --in x=data.npz:x --cast x=f32 --inout y=ones:f32:1000 --push a=2.0 --out y=-

Exit codes: 0 done, 1 the work failed, 2 bad usage.";
