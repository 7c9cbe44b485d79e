#define TILE 128
#define PER 8
#define DEPTH 8
