// The operation of unary.cu: GELU.
#define PARAMETERS
#define ARGUMENTS

// The tanh form: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
static __device__ __forceinline__ float apply(float x)
{
    const float inner = 0.7978845608f * fmaf(0.044715f * x * x, x, x);
    return 0.5f * x * (1.0f + tanhf(inner));
}
