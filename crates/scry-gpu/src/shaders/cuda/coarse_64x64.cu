// The sizes of coarse.cu for tiles of 64×64.
#define TILE 64
#define PER 4
#define TILE_K 16
