// The operation of binary.cu: the gradient times the derivative of the sigmoid.
// `value` is the output of the sigmoid.
static __device__ __forceinline__ float apply(float value, float gradient)
{
    return gradient * value * (1.0f - value);
}
