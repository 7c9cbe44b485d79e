#define TILE 64
#define PER 4
#define TILE_K 16
