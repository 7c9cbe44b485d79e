// The operation of unary.cu: factor * x.
#define PARAMETERS , float factor
#define ARGUMENTS , factor

static __device__ __forceinline__ float apply(float x, float factor)
{
    return factor * x;
}
