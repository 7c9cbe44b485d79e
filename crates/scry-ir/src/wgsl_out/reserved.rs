//! Words that no declaration of the emitted text may have as its name.

/// Keywords and reserved words of WGSL.
const KEYWORDS: &str = "\
    NULL Self abstract active alias alignas alignof as asm asm_fragment async attribute auto \
    await become break case cast catch class co_await co_return co_yield coherent column_major \
    common compile compile_fragment concept const const_assert const_cast consteval constexpr \
    constinit continue continuing crate debugger decltype default delete demote \
    demote_to_helper diagnostic discard do dynamic_cast else enable enum explicit export \
    extends extern external fallthrough false filter final finally fn for friend from fxgroup \
    get goto groupshared highp if impl implements import inline instanceof interface layout \
    let loop lowp macro macro_rules match mediump meta mod module move mut mutable namespace \
    new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null \
    nullptr of operator override package packoffset partition pass patch pixelfragment precise \
    precision premerge priv protected pub public readonly ref regardless register \
    reinterpret_cast require requires resource restrict return self set shared sizeof smooth \
    snorm static static_assert static_cast std struct subroutine super switch target template \
    this thread_local throw trait true try type typedef typeid typename typeof union unless \
    unorm unsafe unsized use using var varying virtual volatile wgsl where while with \
    writeonly yield";

/// Types and functions that the emitted text uses, and that a declaration would shadow.
const USED: &str = "\
    f16 f32 i32 u32 bool vec2 vec3 vec4 array atomic bitcast select abs sign floor ceil round \
    trunc fract sqrt inverseSqrt exp exp2 log log2 sin cos tan asin acos atan sinh cosh tanh \
    asinh acosh atanh frexp quantizeToF16 countOneBits countLeadingZeros countTrailingZeros \
    reverseBits firstLeadingBit firstTrailingBit min max pow atan2 ldexp dot4I8Packed \
    dot4U8Packed fma arrayLength pack2x16float unpack2x16float atomicLoad atomicStore \
    atomicAdd atomicSub atomicMin atomicMax atomicAnd atomicOr atomicXor atomicExchange \
    atomicCompareExchangeWeak workgroupBarrier storageBarrier workgroupUniformLoad subgroupAdd \
    subgroupMul subgroupMin subgroupMax subgroupAnd subgroupOr subgroupXor subgroupAll \
    subgroupAny subgroupInclusiveAdd subgroupExclusiveAdd subgroupInclusiveMul \
    subgroupExclusiveMul subgroupBallot subgroupBroadcastFirst subgroupShuffle \
    subgroupShuffleXor subgroupShuffleUp subgroupShuffleDown quadBroadcast quadSwapX quadSwapY \
    quadSwapDiagonal";

/// Returns whether a word is reserved, or would shadow what the emitted text uses.
pub(super) fn is_reserved(word: &str) -> bool {
    KEYWORDS.split(' ').chain(USED.split(' ')).any(|reserved| reserved == word)
}
