// The operation of unary.cu: max(x, 0).
#define PARAMETERS
#define ARGUMENTS

static __device__ __forceinline__ float apply(float x)
{
    return x < 0.0f ? 0.0f : x;
}
