#define TILE 64
#define PER 4
#define DEPTH 16
