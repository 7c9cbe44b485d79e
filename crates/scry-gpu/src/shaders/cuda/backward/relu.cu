// The operation of binary.cu: the gradient times the derivative of max(x, 0).
// `value` is the input or the output: their signs agree.
static __device__ __forceinline__ float apply(float value, float gradient)
{
    return value > 0.0f ? gradient : 0.0f;
}
