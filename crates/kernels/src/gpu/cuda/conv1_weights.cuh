// The gradients by the weights and the bias of conv1.cuh, not yet divided by 255: f32 sums of the
// stacks of a block, parts[blocks, 256 * 32 + 32]. sums.cuh adds them.
//
// With rows of the weight as rows of the product, the left factor is pixels by places. A warp
// computes 32 of 256 rows: four successive columns of the kernel are one word of a place, and the
// word behind it is the next place's. The gradient comes 80 places at a time, in three stages.
static const int CHUNK = 80, CHUNKS = PLACES / CHUNK, STAGES = 3;

struct Scalars {
  u64 stacks, steps;
};

DEV int in_chunk(int place, int q) { return place * CHANNELS + ((q ^ (place >> 1 & 3)) << 3); }

extern "C" __global__ void __launch_bounds__(256, 2) KERNEL(
    const u8* __restrict__ windows, const u16* __restrict__ by_out, float* __restrict__ parts,
    Scalars s) {
  __shared__ __align__(16) u8 frames[4 * FRAME];
  __shared__ __align__(16) u16 chunks[STAGES][CHUNK * CHANNELS];
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, g = lane >> 2, q = lane & 3;
  const int frame = warp >> 1, row = (warp & 1) * 4 + (g >> 1), column = (g & 1) * 4;
  const u8* pixels = frames + frame * FRAME + row * SIDE + column;
  float sums[2][4][4] = {}, channel_sum = 0.0f;

  for (u64 n = blockIdx.x; n < s.stacks; n += gridDim.x) {
    auto load = [&](int chunk) {
      for (int i = tid; i < CHUNK * 4; i += 256)
        copy16(&chunks[chunk % STAGES][in_chunk(i >> 2, i & 3)],
               by_out + in_blocks(n, chunk * CHUNK + (i >> 2)) + (i & 3) * 8);
      copy_commit();
    };
    __syncthreads();
    copy_stack(frames, stack_of(windows, n, s.steps));
    load(0);
    load(1);
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
      copy_wait<1>();
      __syncthreads();
      if (chunk + 2 < CHUNKS) load(chunk + 2);
      else copy_commit();
      const u16* gradient = chunks[chunk % STAGES];
#pragma unroll
      for (int step = 0; step < CHUNK / 16; step++) {
        u32 words[2][2], b[2][4];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          int place = chunk * CHUNK + step * 16 + h * 8 + 2 * q;
          const u8* at = pixels + place / OUT * 4 * SIDE + place % OUT * 4;
          words[h][0] = *(const u32*)at;
          words[h][1] = *(const u32*)(at + 4);
        }
#pragma unroll
        for (int j = 0; j < 2; j++)
          load_transposed(b[j], &gradient[in_chunk(step * 16 + (lane & 15), 2 * j + (lane >> 4))]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
          u32 a[4];
#pragma unroll
          for (int e = 0; e < 4; e++)
            a[e] = pack_bf16(pixel(words[e >> 1][0], 2 * i + (e & 1)),
                             pixel(words[e >> 1][1], 2 * i + (e & 1)));
#pragma unroll
          for (int j = 0; j < 4; j++) multiply(sums[i][j], a, &b[j >> 1][(j & 1) * 2]);
        }
      }
#pragma unroll
      for (int r = 0; r < CHUNK / 8; r++) {  // channel `lane` of an eighth of the places
        int at = in_chunk(warp * (CHUNK / 8) + r, lane >> 3) + (lane & 7);
        channel_sum += as_float((u32)gradient[at] << 16);
      }
    }
  }

  float* part = parts + (size_t)blockIdx.x * (WEIGHTS + 1) * CHANNELS;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int k = frame * 64 + row * 8 + column + 2 * i + h;
        *(float2*)(part + k * CHANNELS + j * 8 + 2 * q) =
            make_float2(sums[i][j][2 * h], sums[i][j][2 * h + 1]);
      }
  __syncthreads();
  float* eighths = (float*)chunks[0];
  eighths[tid] = channel_sum;
  __syncthreads();
  if (tid < CHANNELS) {
    float sum = 0.0f;
    for (int i = 0; i < 8; i++) sum += eighths[i * CHANNELS + tid];
    part[WEIGHTS * CHANNELS + tid] = sum;
  }
}
