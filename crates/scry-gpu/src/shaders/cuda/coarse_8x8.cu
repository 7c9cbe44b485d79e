#define TILE 128
#define PER 8
#define TILE_K 8
