// The operation of binary.cu: the gradient times the derivative of the hyperbolic tangent.
// `value` is the output of the hyperbolic tangent.
static __device__ __forceinline__ float apply(float value, float gradient)
{
    return gradient * (1.0f - value) * (1.0f + value);
}
