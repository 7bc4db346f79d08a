// conv1.cuh forward with bias and ReLU. Weights are [channel, frame, row, column], divided by 255.
//
// A block is a stack: 28,224 B of frames and 16,384 B of weights. A warp computes tiles of 16 places.
struct Scalars {
  u64 steps;
};

// Column c of product j is channel 8 (c / 2) + 2 j + c % 2, so that a lane has eight successive
// channels, which it stores at once. The chunks of channels that are loaded together are exchanged
// differently, so that they lie in different banks.
DEV int in_weights(int channel, int q) {
  return channel * WEIGHTS + ((q ^ (channel >> 3 << 1 | (channel & 1))) << 3);
}

extern "C" __global__ void __launch_bounds__(256, 3) KERNEL(
    const u8* __restrict__ windows, const u16* __restrict__ weights,
    const float* __restrict__ bias, u16* __restrict__ out, Scalars s) {
  __shared__ __align__(16) u8 frames[4 * FRAME];
  __shared__ __align__(16) u16 w[CHANNELS * WEIGHTS];
  const int n = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int g = lane >> 2, q = lane & 3;
  copy_stack(frames, stack_of(windows, n, s.steps));
  for (int i = threadIdx.x; i < CHANNELS * WEIGHTS / 8; i += 256)
    copy16(&w[in_weights(i >> 5, i & 31)], weights + i * 8);
  copy_commit();
  copy_wait<0>();
  __syncthreads();
  for (int tile = warp; tile < PLACES / 16; tile += 8) {
    const int places[2] = {tile * 16 + g, tile * 16 + g + 8};
    const u8* at[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
      at[h] = frames + places[h] / OUT * 4 * SIDE + places[h] % OUT * 4 + 2 * q;
    float sums[4][4] = {};
#pragma unroll 4
    for (int step = 0; step < WEIGHTS / 16; step++) {
      // Two rows of one frame's 8 x 8.
      int o = (step >> 2) * FRAME + (step & 3) * 2 * SIDE;
      u32 a[4], b[2][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        u32 pair = *(const u16*)(at[i & 1] + o + (i >> 1) * SIDE);
        a[i] = pack_bf16(pixel(pair, 0), pixel(pair, 1));
      }
#pragma unroll
      for (int j = 0; j < 2; j++) {
        int channel = (lane & 6) << 2 | (2 * j + (lane >> 4)) << 1 | (lane & 1);
        load_matrices(b[j], &w[in_weights(channel, 2 * step + (lane >> 3 & 1))]);
      }
#pragma unroll
      for (int j = 0; j < 4; j++) multiply(sums[j], a, &b[j >> 1][(j & 1) * 2]);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      u32 r[4];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const float* to_add = bias + 8 * q + 2 * j;
        r[j] = pack_bf16(relu(sums[j][2 * h] + to_add[0]), relu(sums[j][2 * h + 1] + to_add[1]));
      }
      *(uint4*)(out + in_blocks(n, places[h]) + 8 * q) = make_uint4(r[0], r[1], r[2], r[3]);
    }
  }
}
