// `value` is the input or the output: their signs agree.
static __device__ __forceinline__ float apply(float value, float gradient)
{
    return value > 0.0f ? gradient : 0.0f;
}
