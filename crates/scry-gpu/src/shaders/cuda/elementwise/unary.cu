
// y[i] = apply(x[i]); appended to a file that defines `apply` and its further parameters.
extern "C" __global__ void kernel(
    const float *__restrict__ x, float *__restrict__ y, unsigned long long x_count,
    unsigned long long y_count PARAMETERS)
{
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i < x_count && i < y_count)
        y[i] = apply(x[i] ARGUMENTS);
}
