// The sizes of coarse.cu for tiles of 128×128.
#define TILE 128
#define PER 8
#define TILE_K 8
