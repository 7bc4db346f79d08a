// Convolutions as products: the left matrix is the channels under a kernel of SIZE x SIZE at every
// place, which are read from the images themselves. Channels are last, the stride is 1; a row of a
// kernel is consecutive in memory.
//
// With GATHER == 1, images are IN x IN, places OUT x OUT, and column k of the matrix is (row of the
// kernel, column, channel). With GATHER == 2, rows are the places of the input, IN x IN, and the
// images are the gradient by the output, OUT x OUT: place (y, x) receives from (y - row, x - column)
// for each element of the kernel, from outside nothing.
#if GATHER
struct Place {
  const Factor* at;
  int y, x;
};
#if GATHER == 1
static const int PLACES = OUT, SIDE = IN, SIZE = IN - OUT + 1;
#else
static const int PLACES = IN, SIDE = OUT, SIZE = IN - OUT + 1;
#endif

DEV Place place_of(const Factor* images, int row, int) {
  int image = row / (PLACES * PLACES), p = row % (PLACES * PLACES), y = p / PLACES, x = p % PLACES;
  return {images + ((long long)image * SIDE * SIDE + y * SIDE + x) * CHANNELS, y, x};
}
// Address of a chunk from column k on, and whether they are inside of the image.
DEV const Factor* column_of(const Place& place, int k, bool& inside) {
#if GATHER == 1
  const int RUN = SIZE * CHANNELS;
  return place.at + k / RUN * (SIDE * CHANNELS) + k % RUN;
#else
  int tap = k / CHANNELS, row = tap / SIZE, column = tap % SIZE;
  inside = inside && (u32)(place.y - row) < SIDE && (u32)(place.x - column) < SIDE;
  return place.at - (row * SIDE + column) * CHANNELS + k % CHANNELS;
#endif
}
#else
struct Place {
  const Factor* at;
};
DEV Place place_of(const Factor* matrix, int row, int columns) {
  return {matrix + (size_t)row * columns};
}
DEV const Factor* column_of(const Place& place, int k, bool&) { return place.at + k; }
#endif
