// C = A × B, one element of C for each thread, operands staged in 16×16 tiles.

#define TILE 16

extern "C" __global__ void __launch_bounds__(256) kernel(
    const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
    unsigned m, unsigned n, unsigned k)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    const unsigned long long row = blockIdx.y * TILE + threadIdx.y;
    const unsigned long long column = blockIdx.x * (unsigned long long)TILE + threadIdx.x;
    float sum = 0.0f;
    for (unsigned long long first = 0; first < k; first += TILE) {
        const unsigned long long a_column = first + threadIdx.x;
        const unsigned long long b_row = first + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < m && a_column < k ? a[row * k + a_column] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = b_row < k && column < n ? b[b_row * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum = fmaf(tile_a[threadIdx.y][i], tile_b[i][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}
