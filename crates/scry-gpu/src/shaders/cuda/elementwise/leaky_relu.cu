// The operation of unary.cu: x if it is not negative, else slope * x.
#define PARAMETERS , float slope
#define ARGUMENTS , slope

static __device__ __forceinline__ float apply(float x, float slope)
{
    return x < 0.0f ? slope * x : x;
}
