// The operation of unary.cu: x / (1 + exp(-x)).
#define PARAMETERS
#define ARGUMENTS

static __device__ __forceinline__ float apply(float x)
{
    const float e = expf(-fabsf(x));
    return x * (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}
