// conv1.cuh forward with bias and ReLU. Weights are [channel, frame, row, column], divided by 255.
//
// With bf16, a block is a stack: 28,224 B of frames and 16,384 B of weights. With f32, weights are
// 32,768 B, so a block is a band of a stack: 48 of 84 rows of each frame are 16,128 B. The first band
// is 13 tiles of 16 places, which read rows 0 to 47; the second is the other 12, which read rows 40
// to 83. A warp computes whole tiles.
#if TF32
static const int BANDS = 2, BAND_TILES = 13, BAND_ROWS = 48;
#else
static const int BANDS = 1, BAND_TILES = PLACES / 16, BAND_ROWS = SIDE;
#endif

struct Scalars {
  u64 steps;
};

// Column c of product j is channel 8 (c / 2) + 2 j + c % 2, so that a lane has eight successive
// channels, which it stores at once.
DEV int channel_of(int j, int c) { return (c >> 1) << 3 | j << 1 | (c & 1); }
// The chunks of channels that are loaded together are exchanged differently, so that they lie in
// different banks: eight channels of `load_matrices`, or two of which four lanes read 64 bytes each.
DEV int in_weights(int channel, int k) {
#if TF32
  return channel * WEIGHTS + (k ^ (channel & 1) << 4);
#else
  return channel * WEIGHTS + (k ^ (channel >> 3 << 1 | (channel & 1)) << 3);
#endif
}

extern "C" __global__ void __launch_bounds__(256, 3) KERNEL(
    const u8* __restrict__ windows, const Factor* __restrict__ weights,
    const float* __restrict__ bias, Factor* __restrict__ out, Scalars s) {
  __shared__ __align__(16) u8 frames[4 * BAND_ROWS * SIDE];
  __shared__ __align__(16) Factor w[CHANNELS * WEIGHTS];
  const int n = blockIdx.x, band = blockIdx.y, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int g = lane >> 2, q = lane & 3;
  const int first_row = band * (SIDE - BAND_ROWS), first_tile = band * BAND_TILES;
  const int end_tile = band == BANDS - 1 ? PLACES / 16 : BAND_TILES;
  copy_rows(frames, stack_of(windows, n, s.steps) + first_row * SIDE, BAND_ROWS);
  for (int i = threadIdx.x; i < CHANNELS * WEIGHTS / CHUNK; i += 256)
    copy16(&w[in_weights(i / (WEIGHTS / CHUNK), i % (WEIGHTS / CHUNK) * CHUNK)],
           weights + i * CHUNK);
  copy_commit();
  copy_wait<0>();
  __syncthreads();
  for (int tile = first_tile + warp; tile < end_tile; tile += 8) {
    const int places[2] = {tile * 16 + g, tile * 16 + g + 8};
    const u8* at[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
      at[h] = frames + (places[h] / OUT * 4 - first_row) * SIDE + places[h] % OUT * 4;
    float sums[4][4] = {};
#pragma unroll 4
    for (int step = 0; step < WEIGHTS / 16; step++) {
      // Two rows of one frame's 8 x 8.
      int o = (step >> 2) * BAND_ROWS * SIDE + (step & 3) * 2 * SIDE;
#if TF32
      // Lane q takes four successive columns of one row, both of the pixels and of the weights: the
      // first two in one product, the others in the next.
      u32 words[2];
      uint4 b[4];
#pragma unroll
      for (int h = 0; h < 2; h++)
        words[h] = *(const u32*)(at[h] + o + (q >> 1) * SIDE + (q & 1) * 4);
#pragma unroll
      for (int j = 0; j < 4; j++)
        b[j] = *(const uint4*)&w[in_weights(channel_of(j, g), 16 * step + 4 * q)];
#pragma unroll
      for (int c = 0; c < 4; c += 2) {
        u32 a[4];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = bits_of(pixel(words[i & 1], c + (i >> 1)));
#pragma unroll
        for (int j = 0; j < 4; j++) {
          u32 column[2] = {c ? b[j].z : b[j].x, c ? b[j].w : b[j].y};
          multiply(sums[j], a, column);
        }
      }
#else
      u32 a[4], b[2][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        u32 pair = *(const u16*)(at[i & 1] + o + 2 * q + (i >> 1) * SIDE);
        a[i] = pack(pixel(pair, 0), pixel(pair, 1));
      }
#pragma unroll
      for (int j = 0; j < 2; j++) {
        int channel = channel_of(2 * j + (lane >> 4), lane & 7);
        load_matrices(b[j], &w[in_weights(channel, 16 * step + (lane >> 3 & 1) * 8)]);
      }
#pragma unroll
      for (int j = 0; j < 4; j++) multiply(sums[j], a, &b[j >> 1][(j & 1) * 2]);
#endif
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      struct __align__(16) {
        Pair of[4];
      } channels;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const float* to_add = bias + 8 * q + 2 * j;
        channels.of[j] = pack(relu(sums[j][2 * h] + to_add[0]), relu(sums[j][2 * h + 1] + to_add[1]));
      }
      *(decltype(channels)*)(out + in_blocks(n, places[h]) + 8 * q) = channels;
    }
  }
}
