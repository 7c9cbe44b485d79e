// The operation of unary.cu: x clamped to [low, high].
#define PARAMETERS , float low, float high
#define ARGUMENTS , low, high

static __device__ __forceinline__ float apply(float x, float low, float high)
{
    return fminf(fmaxf(x, low), high);
}
