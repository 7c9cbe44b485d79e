// Squared distances in tiles of 64×64: 256 threads, each with 4×4 distances in registers.
// Coordinates are staged in shared memory, 16 at a time, coordinate-major. Differences are squared
// directly: close points suffer no cancellation, and no distance is negative.

#define TILE 64
#define TILE_K 16
#define PER 4
#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS) kernel(
    const float *__restrict__ queries, const float *__restrict__ points,
    float *__restrict__ distances, unsigned query_count, unsigned point_count, unsigned dimensions)
{
    // One column of padding avoids bank conflicts of the stores of a point.
    __shared__ float tile_q[TILE_K][TILE + 1];
    __shared__ float tile_p[TILE_K][TILE + 1];
    const unsigned lane = threadIdx.y * 16 + threadIdx.x;
    const unsigned top = blockIdx.y * TILE;
    const unsigned left = blockIdx.x * TILE;
    float sum[PER][PER] = {};

    for (unsigned long long first = 0; first < dimensions; first += TILE_K) {
        for (unsigned at = lane; at < TILE * TILE_K; at += THREADS) {
            const unsigned long long column = first + at % TILE_K;
            const unsigned long long q = top + at / TILE_K;
            const unsigned long long p = left + at / TILE_K;
            const bool inside = column < dimensions;
            tile_q[at % TILE_K][at / TILE_K] =
                inside && q < query_count ? queries[q * dimensions + column] : 0.0f;
            tile_p[at % TILE_K][at / TILE_K] =
                inside && p < point_count ? points[p * dimensions + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE_K; i++) {
#pragma unroll
            for (int row = 0; row < PER; row++) {
#pragma unroll
                for (int column = 0; column < PER; column++) {
                    const float difference = tile_q[i][4 * threadIdx.y + row] -
                                             tile_p[i][16 * column + threadIdx.x];
                    sum[row][column] = fmaf(difference, difference, sum[row][column]);
                }
            }
        }
        __syncthreads();
    }

    for (int i = 0; i < PER; i++) {
        const unsigned q = top + 4 * threadIdx.y + i;
        for (int j = 0; j < PER; j++) {
            const unsigned p = left + 16 * j + threadIdx.x;
            if (q < query_count && p < point_count)
                distances[q * (unsigned long long)point_count + p] = sum[i][j];
        }
    }
}
