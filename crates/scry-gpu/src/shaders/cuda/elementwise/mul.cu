// The operation of binary.cu: a * b.
static __device__ __forceinline__ float apply(float a, float b)
{
    return a * b;
}
