// The operation of unary.cu: the hyperbolic tangent.
#define PARAMETERS
#define ARGUMENTS

static __device__ __forceinline__ float apply(float x)
{
    return tanhf(x);
}
