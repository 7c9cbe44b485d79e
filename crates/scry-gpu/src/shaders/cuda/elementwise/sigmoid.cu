#define PARAMETERS
#define ARGUMENTS

// The exponent is never positive, so that it never overflows.
static __device__ __forceinline__ float apply(float x)
{
    const float e = expf(-fabsf(x));
    return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}
