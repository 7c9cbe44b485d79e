
// y[i] = apply(a[i], b[i]); appended to a file that defines `apply`.
extern "C" __global__ void kernel(
    const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ y,
    unsigned long long a_count, unsigned long long b_count, unsigned long long y_count)
{
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i < a_count && i < b_count && i < y_count)
        y[i] = apply(a[i], b[i]);
}
