//! Tests of the interpreter: it must detect each kind of undefined behaviour, in a few lines of
//! PTX.

use super::grid::{End, Fault, Launch, TICKS};
use super::memory::{Region, Regions, read_le};
use super::parse::parse;

const BUFFER_ADDRESS: u64 = 0x5000_0010;
const STOP_ADDRESS: u64 = 0x6000_0010;

/// Returns the PTX of a kernel with this body, for a block of 40 threads: a whole warp and part of
/// another.
fn text(body: &str) -> String {
    let lines: String = body.split(';').map(str::trim).filter(|line| !line.is_empty()).fold(
        String::new(),
        |text, line| match line.strip_prefix('$') {
            Some(label) if label.ends_with(':') => text + line + "\n",
            _ => text + "\t" + line + ";\n",
        },
    );
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n\n.visible .entry test(\n\
         \t.param .u64 .ptr .global .align 16 buffer0,\n\t.param .u32 length0_0_4\n)\n\
         .reqntid 40, 1, 1\n{{\n\t.reg .pred %p<4>;\n\t.reg .b16 %h<2>;\n\t.reg .b32 %r<8>;\n\
         \t.reg .b64 %d<4>;\n\t.local .align 16 .b8 local0[16];\n\
         \t.shared .align 16 .b8 shared0[160];\n\
         \tld.param.b64 %d0, [buffer0];\n\tmov.u32 %r0, %tid.x;\n\
         \tmad.wide.u32 %d1, %r0, 4, %d0;\n{lines}\tret;\n}}\n"
    )
}

/// Executes the kernel with this body; returns the words of its buffer.
fn run(body: &str) -> Result<(End, Vec<u64>), Fault> {
    let text = text(body);
    let module = parse(&text, 0).unwrap_or_else(|what| panic!("{what}\n{text}"));
    let params = [(0, BUFFER_ADDRESS.to_le_bytes().to_vec()), (1, 40u32.to_le_bytes().to_vec())];
    let params = params
        .map(|(nth, bytes)| Region::new("param", module.variables[nth].address, bytes, false));
    let launch = Launch {
        module: &module,
        text: &text,
        grid: [1, 1, 1],
        params: Regions(params.to_vec()),
        budget: [100_000, 100_000],
        stop: (STOP_ADDRESS, 1),
        ticks: TICKS,
    };
    let buffer = Region::new("buffer0", BUFFER_ADDRESS, vec![0; 160], true);
    let stop = Region::new("stop", STOP_ADDRESS, vec![0; 8], true);
    let mut global = Regions(vec![buffer, stop]);
    let (ended, _) = launch.run(&mut global)?;
    Ok((ended, global.0[0].bytes.chunks(4).map(read_le).collect()))
}

#[track_caller]
fn assert_results(body: &str, expected: impl Fn(u64) -> u64) {
    let (ended, words) = run(body).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(ended, End::Normal);
    assert_eq!(words, (0..40).map(expected).collect::<Vec<_>>());
}

#[track_caller]
fn assert_fault(body: &str, because: &str) {
    let fault = run(body).expect_err("undefined behaviour").to_string();
    assert!(fault.contains(because), "{fault}");
}

#[test]
fn out_of_bounds_accesses_are_detected() {
    assert_results("st.global.b32 [%d1], %r0", |n| n);
    assert_fault(
        "st.global.b32 [%d1+4], 1",
        "block [0, 0, 0], thread [39, 0, 0], line 20: `st.global.b32 [%d1+4], 1;`: \
         Write of 4 bytes at buffer0[160] is out of bounds: it has 160 bytes",
    );
    assert_fault("ld.global.b32 %r1, [%d0+-4]", "buffer0[-4] is out of bounds");
    assert_fault("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d1]", "is misaligned");
    assert_fault("ld.global.nc.b32 %r1, [%d1]", "marked as constant");
    assert_fault("red.relaxed.gpu.global.add.u32 [%d1+8], 1", "out of bounds");
    assert_fault("st.shared.b32 [shared0+160], 1", "shared0[160] is out of bounds");
    assert_fault("st.local.b32 [local0+16], 1", "local0[16] is out of bounds");
    assert_fault("ld.param.b64 %d2, [length0_0_4]", "Read of 8 bytes");
}

#[test]
fn undefined_values_are_detected() {
    assert_fault("add.u32 %r1, %r2, 1", "the register is read before it is written");
    assert_fault(
        "setp.lt.u32 %p0, %r0, 9; @%p0 mov.b32 %r1, 5; add.u32 %r2, %r1, 1",
        "thread [9, 0, 0]",
    );
    assert_fault("ld.local.b32 %r1, [local0]", "not initialised");
    assert_fault("ld.shared.b32 %r1, [shared0]", "not initialised");
    assert_fault("mov.b32 %r1, 0; div.u32 %r2, %r0, %r1", "division by zero");
    assert_fault("mov.b32 %r1, -2147483648; div.s32 %r2, %r1, -1", "minimum integer");
}

#[test]
fn divergent_threads_reconverge() {
    assert_results(
        "setp.ge.u32 %p0, %r0, 7; @%p0 bra $L0; mov.b32 %r1, 1; bra $L1; $L0:; mov.b32 %r1, 2;
         $L1:; activemask.b32 %r2; popc.b32 %r2, %r2; mad.lo.u32 %r1, %r2, 100, %r1;
         st.global.b32 [%d1], %r1",
        |n| if n < 32 { 3200 + if n < 7 { 1 } else { 2 } } else { 802 },
    );
    assert_results(
        "mov.b32 %r1, 0; $L0:; add.u32 %r1, %r1, 2; setp.gt.u32 %p0, %r1, %r0; @%p0 bra $L1;
         bra $L0; $L1:; st.global.b32 [%d1], %r1",
        |n| n / 2 * 2 + 2,
    );
}

#[test]
fn barriers_synchronise_warps() {
    assert_results(
        "shl.b32 %r1, %r0, 2; mov.u32 %r2, shared0; add.u32 %r1, %r1, %r2;
         st.shared.b32 [%r1], %r0; barrier.sync 0; sub.u32 %r3, 39, %r0; shl.b32 %r3, %r3, 2;
         add.u32 %r3, %r3, %r2; ld.shared.b32 %r4, [%r3]; st.global.b32 [%d1], %r4",
        |n| 39 - n,
    );
    assert_fault(
        "setp.lt.u32 %p0, %r0, 32; @%p0 bra $L0; barrier.sync 0; bra $L1; $L0:; barrier.sync 0;
         $L1:",
        "the thread waits at a barrier while others wait at line",
    );
    assert_results(
        "setp.lt.u32 %p0, %r0, 32; @%p0 ret; barrier.sync 0; st.global.b32 [%d1], 1",
        |n| u64::from(n >= 32),
    );
}

#[test]
fn warp_barriers_wait_for_named_lanes() {
    assert_results(
        "shfl.sync.down.b32 %r1|%p0, %r0, 1, 31, 4294967295; selp.b32 %r1, %r1, 99, %p0;
         st.global.b32 [%d1], %r1",
        |n| match n {
            31 => 99,
            // There is no thread 40: the interpreter's marker of undefined results.
            39 => 0xdead_beef,
            _ => n + 1,
        },
    );
    // The lower lanes arrive later, by a branch backwards.
    assert_results(
        "setp.lt.u32 %p0, %r0, 3; @%p0 bra $L1; $L0:; redux.sync.add.u32 %r1, %r0, 4294967295;
         st.global.b32 [%d1], %r1; ret; $L1:; bra $L0",
        |n| if n < 32 { 496 } else { 284 },
    );
    assert_fault(
        "setp.lt.u32 %p0, %r0, 3; @%p0 bra $L1; bar.warp.sync 4294967295; $L1:; barrier.sync 0",
        "the thread waits for threads that do not arrive",
    );
    assert_fault("vote.sync.ballot.b32 %r1, %p0, 4294967295", "before it is written");
    assert_fault("bar.warp.sync 1", "is not in its own mask");
}

#[test]
fn whole_warps_load_matrices() {
    const FIRST_WARP: &str = "setp.lt.u32 %p0, %r0, 32; @!%p0 ret;";
    let load = |first: &str, qualifiers: &str, offset: u32| {
        format!(
            "{first} mov.u32 %r2, shared0; mad.lo.u32 %r3, %r0, 4, %r2;
             st.shared.b32 [%r3], %r0; bar.warp.sync 4294967295; and.b32 %r4, %r0, 7;
             mad.lo.u32 %r4, %r4, 16, %r2;
             ldmatrix.sync.aligned.m8n8.{qualifiers}shared.b16 {{%r5}}, [%r4+{offset}];
             st.global.b32 [%d1], %r5"
        )
    };
    assert_results(&load(FIRST_WARP, "x1.", 0), |n| if n < 32 { n } else { 0 });
    // Elements of odd columns are zero: the high halves of the words.
    assert_results(&load(FIRST_WARP, "x1.trans.", 0), |n| {
        let (column, row) = (n / 4, n % 4 * 2);
        let element = |row: u64| 4 * row + column / 2;
        let is_zero = n >= 32 || column % 2 == 1;
        if is_zero { 0 } else { element(row) | element(row + 1) << 16 }
    });
    assert_fault(&load(FIRST_WARP, "x1.", 4), "misaligned");
    assert_fault(&load("", "x1.", 0), "`ldmatrix` needs all threads of the warp");
}

#[test]
fn endless_kernels_are_cancelled() {
    // 1610612752 is the address of the stop word.
    let polls = "mov.u64 %d2, 1610612752; $L0:; ld.volatile.global.u64 %d3, [%d2];
         setp.eq.u64 %p0, %d3, 1; @%p0 ret; bra $L0";
    assert_eq!(run(polls).expect("it polls").0, End::Cancelled);
    let fault = run("$L0:; bra $L0").expect_err("it does not poll");
    assert!(fault.not_terminating, "{fault}");
}

#[test]
fn unsupported_text_is_rejected() {
    let assert_rejected = |line: &str, because: &str| {
        let error = parse(&text(line), 0).expect_err("unsupported text");
        assert!(error.contains(because), "{error}");
    };
    assert_rejected("prmt.b32.rc8 %r1, %r0, %r0, 4", "unsupported opcode `prmt.b32.rc8`");
    assert_rejected("add.sat.s32 %r1, %r0, 1", "unsupported opcode `add.sat.s32`");
    assert_rejected("ld.global.acquire.b32 %r1, [%d1]", "unsupported opcode");
    assert_rejected("cvt.rz.f32.u32 %r1, %r0", "unsupported opcode");
    assert_rejected("setp.ltu.s32 %p0, %r0, 1", "unsupported opcode");
    assert_rejected("bra $L7", "no such label");
    assert_rejected("mov.b32 %r1, %ntid.x", "`%ntid.x` is not a register");
    assert_rejected("add.u32 %r1, %r99, 1", "`%r99` is not a register");
    assert_rejected("ld.shared.b32 %r1, [local0]", "another space");
    assert_rejected(".pragma \"nounroll\"", "unsupported opcode `.pragma`");
}
