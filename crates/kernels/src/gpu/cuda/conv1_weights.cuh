// The gradients by the weights and the bias of conv1.cuh, not yet divided by 255: f32 sums of the
// stacks of a block, parts[blocks, 256 * 32 + 32]. sums.cuh adds them.
//
// With rows of the weight as rows of the product, the left factor is pixels by places. A warp
// computes 32 of 256 rows: four successive columns of the kernel are one word of a place, and the
// word behind it is the next place's. The gradient comes in parts of 5,120 bytes, three at a time: 80
// places of bf16, 40 of f32.
static const int PART = 10 * CHUNK, PARTS = PLACES / PART, STAGES = 3;

struct Scalars {
  u64 stacks, steps;
};

// Eight channels are exchanged, so that those of four successive places of f32, or of eight of bf16,
// are in different banks.
DEV int in_part(int place, int channel) {
  return place * CHANNELS + (channel ^ (place * (int)sizeof(Factor) / 4 & 3) << 3);
}

extern "C" __global__ void __launch_bounds__(256, 2) KERNEL(
    const u8* __restrict__ windows, const Factor* __restrict__ by_out, float* __restrict__ parts,
    Scalars s) {
  __shared__ __align__(16) u8 frames[4 * FRAME];
  __shared__ __align__(16) Factor stages[STAGES][PART * CHANNELS];
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, g = lane >> 2, q = lane & 3;
  const int frame = warp >> 1, row = (warp & 1) * 4 + (g >> 1), column = (g & 1) * 4;
  const u8* pixels = frames + frame * FRAME + row * SIDE + column;
  float sums[2][4][4] = {}, channel_sum = 0.0f;

  for (u64 n = blockIdx.x; n < s.stacks; n += gridDim.x) {
    auto load = [&](int part) {
      for (int i = tid; i < PART * CHANNELS / CHUNK; i += 256) {
        int place = i / (CHANNELS / CHUNK), channel = i % (CHANNELS / CHUNK) * CHUNK;
        copy16(&stages[part % STAGES][in_part(place, channel)],
               by_out + in_blocks(n, part * PART + place) + channel);
      }
      copy_commit();
    };
    __syncthreads();
    copy_rows(frames, stack_of(windows, n, s.steps), SIDE);
    load(0);
    load(1);
    for (int part = 0; part < PARTS; part++) {
      copy_wait<1>();
      __syncthreads();
      if (part + 2 < PARTS) load(part + 2);
      else copy_commit();
      const Factor* gradient = stages[part % STAGES];
#pragma unroll
      for (int step = 0; step < PART / DEPTH; step++) {
        u32 words[2][2], b[2][4];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          int place = part * PART + step * DEPTH + h * CHUNK + q * CHUNK / 4;
          const u8* at = pixels + place / OUT * 4 * SIDE + place % OUT * 4;
          words[h][0] = *(const u32*)at;
#if !TF32
          words[h][1] = *(const u32*)(at + 4);
#endif
        }
#pragma unroll
        for (int j = 0; j < 2; j++)
          load_columns(b[j], [&](int nth, int row) {
            return &gradient[in_part(step * DEPTH + (nth & 1) * CHUNK + row, j * 16 + (nth >> 1) * 8)];
          });
#pragma unroll
        for (int i = 0; i < 2; i++) {
          u32 a[4];
#pragma unroll
          for (int e = 0; e < 4; e++) {
            float first = pixel(words[e >> 1][0], 2 * i + (e & 1));
#if TF32
            a[e] = bits_of(first);
#else
            a[e] = pack(first, pixel(words[e >> 1][1], 2 * i + (e & 1)));
#endif
          }
#pragma unroll
          for (int j = 0; j < 4; j++) multiply(sums[i][j], a, &b[j >> 1][(j & 1) * 2]);
        }
      }
#pragma unroll
      for (int r = 0; r < PART / 8; r++)  // channel `lane` of an eighth of the places
        channel_sum += value_of(gradient[in_part(warp * (PART / 8) + r, lane)]);
    }
  }

  float* to = parts + (size_t)blockIdx.x * (WEIGHTS + 1) * CHANNELS;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int k = frame * 64 + row * 8 + column + 2 * i + h;
        *(float2*)(to + k * CHANNELS + j * 8 + 2 * q) =
            make_float2(sums[i][j][2 * h], sums[i][j][2 * h + 1]);
      }
  __syncthreads();
  float* eighths = (float*)stages[0];
  eighths[tid] = channel_sum;
  __syncthreads();
  if (tid < CHANNELS) {
    float sum = 0.0f;
    for (int i = 0; i < 8; i++) sum += eighths[i * CHANNELS + tid];
    to[WEIGHTS * CHANNELS + tid] = sum;
  }
}
