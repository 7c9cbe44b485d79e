// The operation of unary.cu: 1 / (1 + exp(-x)).
#define PARAMETERS
#define ARGUMENTS

// The exponent is never positive, so the exponential cannot overflow.
static __device__ __forceinline__ float apply(float x)
{
    const float e = expf(-fabsf(x));
    return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}
