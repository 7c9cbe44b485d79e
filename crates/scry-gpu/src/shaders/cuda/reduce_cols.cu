// Sums every column of a row-major matrix. A block sums 32 adjacent columns over every
// gridDim.y-th run of 8 rows, with coalesced reads, and writes one row of partial sums.

extern "C" __global__ void __launch_bounds__(256) kernel(
    const float *__restrict__ x, float *__restrict__ sums, unsigned rows, unsigned columns)
{
    __shared__ float partial[8][32];
    const unsigned column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (column < columns) {
        const unsigned long long stride = gridDim.y * 8ull;
        for (unsigned long long row = blockIdx.y * 8ull + threadIdx.y; row < rows; row += stride)
            sum += x[row * columns + column];
    }
    partial[threadIdx.y][threadIdx.x] = sum;
    for (unsigned half = 4; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            partial[threadIdx.y][threadIdx.x] += partial[threadIdx.y + half][threadIdx.x];
    }
    if (threadIdx.y == 0 && column < columns)
        sums[blockIdx.y * (unsigned long long)columns + column] = partial[0][threadIdx.x];
}
