// Transposes a row-major matrix in tiles of 32×32, so that both loads and stores are
// coalesced. The tile's row stride of 33 avoids bank conflicts.

extern "C" __global__ void __launch_bounds__(256) kernel(
    const float *__restrict__ x, float *__restrict__ y, unsigned rows, unsigned columns)
{
    __shared__ float tile[32][33];
    const unsigned x_column = blockIdx.x * 32 + threadIdx.x;
    for (unsigned i = threadIdx.y; i < 32; i += 8) {
        const unsigned x_row = blockIdx.y * 32 + i;
        if (x_row < rows && x_column < columns)
            tile[i][threadIdx.x] = x[x_row * (unsigned long long)columns + x_column];
    }
    __syncthreads();
    const unsigned y_column = blockIdx.y * 32 + threadIdx.x;
    for (unsigned i = threadIdx.y; i < 32; i += 8) {
        const unsigned y_row = blockIdx.x * 32 + i;
        if (y_row < columns && y_column < rows)
            y[y_row * (unsigned long long)rows + y_column] = tile[threadIdx.x][i];
    }
}
