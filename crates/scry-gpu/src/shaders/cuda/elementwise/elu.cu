// The operation of unary.cu: x if it is not negative, else alpha * (exp(x) - 1).
#define PARAMETERS , float alpha
#define ARGUMENTS , alpha

static __device__ __forceinline__ float apply(float x, float alpha)
{
    return x < 0.0f ? alpha * expm1f(x) : x;
}
