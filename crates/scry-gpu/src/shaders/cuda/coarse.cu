// C = A × B in tiles of TILE×TILE: 16×16 threads, each with PER×PER elements of C in registers.
// Both operands are staged in shared memory, TILE_K of K at a time, double-buffered: the next stage
// is loaded while one is multiplied, so one barrier per step is enough. The rows and columns of a
// thread are float4s 64 apart: adjacent threads read adjacent words.

#define THREADS 256
#define QUADS (PER / 4)
#define LOADS (TILE * TILE_K / THREADS)

static __device__ __forceinline__ float element(
    const float *__restrict__ x, unsigned row, unsigned column, unsigned rows, unsigned columns)
{
    return row < rows && column < columns ? x[row * (unsigned long long)columns + column] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(
    const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
    unsigned m, unsigned n, unsigned k)
{
    // A is stored column by column; a float4 of padding leaves at most two-way bank conflicts.
    __shared__ float4 tile_a[2][TILE_K][TILE / 4 + 1];
    __shared__ float4 tile_b[2][TILE_K][TILE / 4];
    const unsigned lane = threadIdx.y * 16 + threadIdx.x;
    const unsigned top = blockIdx.y * TILE;
    const unsigned left = blockIdx.x * TILE;
    const unsigned steps = k / TILE_K + (k % TILE_K != 0);
    float next_a[LOADS], next_b[LOADS];
    float sum[PER][PER] = {};

    for (unsigned step = 0; step <= steps; step++) {
        const unsigned stage = step & 1;
        // The last step loads elements beyond K, which are zero and unused.
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const unsigned at = lane + i * THREADS;
            next_a[i] = element(a, top + at / TILE_K, step * TILE_K + at % TILE_K, m, k);
            next_b[i] = element(b, step * TILE_K + at / TILE, left + at % TILE, k, n);
        }
        if (step > 0) {
#pragma unroll
            for (int i = 0; i < TILE_K; i++) {
                float of_a[PER], of_b[PER];
#pragma unroll
                for (int quad = 0; quad < QUADS; quad++) {
                    *(float4 *)&of_a[4 * quad] = tile_a[stage ^ 1][i][16 * quad + threadIdx.y];
                    *(float4 *)&of_b[4 * quad] = tile_b[stage ^ 1][i][16 * quad + threadIdx.x];
                }
#pragma unroll
                for (int row = 0; row < PER; row++)
#pragma unroll
                    for (int column = 0; column < PER; column++)
                        sum[row][column] = fmaf(of_a[row], of_b[column], sum[row][column]);
            }
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const unsigned at = lane + i * THREADS;
            ((float *)tile_a[stage][at % TILE_K])[at / TILE_K] = next_a[i];
            ((float *)tile_b[stage][at / TILE])[at % TILE] = next_b[i];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < PER; i++) {
        const unsigned row = top + 64 * (i / 4) + 4 * threadIdx.y + i % 4;
#pragma unroll
        for (int j = 0; j < PER; j++) {
            const unsigned column = left + 64 * (j / 4) + 4 * threadIdx.x + j % 4;
            if (row < m && column < n)
                c[row * (unsigned long long)n + column] = sum[i][j];
        }
    }
}
