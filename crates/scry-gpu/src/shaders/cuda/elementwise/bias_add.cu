// y = x + bias, for every row of a row-major matrix; the bias has one element per column.

extern "C" __global__ void kernel(
    const float *__restrict__ x, const float *__restrict__ bias, float *__restrict__ y,
    unsigned long long x_count, unsigned long long bias_count, unsigned long long y_count)
{
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i < x_count && i < y_count)
        y[i] = x[i] + bias[i % bias_count];
}
