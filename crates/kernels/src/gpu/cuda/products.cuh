// C[M,N] = epilogue(A[M,K] B[K,N]), or of B[N,K] transposed if TRANSPOSED. A and B are factors, sums
// are f32. K and N are multiples of 8.
//
// A block computes 128 x 64 in steps of 64 bytes of K: 32 of bf16, 16 of f32. Its eight warps compute
// 32 x 32 each. Four stages of 12 KiB let three steps be under way while one is computed. Three
// blocks fit into a multiprocessor, with at most 80 registers a thread. 64 columns, because 3,136 and
// 64 are not multiples of 128, and because 11,520 x 128 would be too few blocks otherwise.
//
// Parts of a row are stored at exchanged places, so that rows that a warp reads together are in
// different banks: chunks for the eight rows of `load_matrices`, eight columns for `load_columns`.
#define PLAIN 0       // factors
#define BIAS 1        // factors
#define BIAS_GELU 2   // both what GELU got and its result, factors
#define BIAS_RELU 3   // factors
#define BIAS_TANH 4   // f32
#define RESIDUAL 5    // f32: x + mask (A B + bias), at each `step`th row of x
#define GELU_SLOPE 6  // times GELU's slope at what it got, factors
#define RELU_SLOPE 7  // zero where ReLU's result is zero, factors
static const int TM = 128, TN = 64, TK = 4 * CHUNK, STAGES = 4;

struct Scalars {
  u64 m, n, k;
  // Row r of the residual is added to row `step` r + `first` of x.
  u64 step, first;
  // Dropout: whether there is any, its index in the step, threshold and factor.
  u64 dropout, nth, threshold, scale;
};

DEV float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
// Φ(x) + x φ(x)
DEV float gelu_slope(float x) {
  return 0.5f * (1.0f + erff(x * 0.70710678f)) + x * 0.39894228f * expf(-0.5f * x * x);
}

// The place of a column of a row in A's tile, and in B's, of which a row is one of N if TRANSPOSED.
DEV int in_a(int row, int k) { return row * TK + (k ^ (row >> 1 & 3) * CHUNK); }
DEV int in_b(int row, int column) {
#if TRANSPOSED
  return in_a(row, column);
#else
  return row * TN + (column ^ (row & (CHUNK - 1)) * 8);
#endif
}

extern "C" __global__ void __launch_bounds__(256, 3) KERNEL(
    const Factor* __restrict__ A, const Factor* __restrict__ B,
#if EPILOGUE == BIAS || EPILOGUE == BIAS_GELU || EPILOGUE == BIAS_RELU || EPILOGUE == BIAS_TANH
    const float* __restrict__ bias,
#elif EPILOGUE == RESIDUAL
    const float* __restrict__ bias, const float* __restrict__ x, const u32* __restrict__ seed,
#elif EPILOGUE == GELU_SLOPE || EPILOGUE == RELU_SLOPE
    const Factor* __restrict__ kept,
#endif
#if EPILOGUE == BIAS_TANH || EPILOGUE == RESIDUAL
    float* __restrict__ C,
#else
    Factor* __restrict__ C,
#endif
#if EPILOGUE == BIAS_GELU
    Factor* __restrict__ before,
#endif
    Scalars s) {
  __shared__ __align__(128) Factor stages_a[STAGES][TM * TK];
  __shared__ __align__(128) Factor stages_b[STAGES][TK * TN];
  const int M = (int)s.m, N = (int)s.n, K = (int)s.k;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int wm = (warp & 3) * 32, wn = (warp >> 2) * 32;
  const int m0 = blockIdx.y * TM, n0 = blockIdx.x * TN;

  // A thread copies chunk `tid & 3` of two rows of A, and one chunk of B.
  Place places[2];
  bool is_row[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int row = m0 + (tid >> 2) + 64 * i;
    is_row[i] = row < M;
    places[i] = place_of(A, is_row[i] ? row : 0, K);
  }
  auto load = [&](int step) {
    int of_step = (tid & 3) * CHUNK, k = step * TK + of_step;
    Factor *to_a = stages_a[step % STAGES], *to_b = stages_b[step % STAGES];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      bool inside = is_row[i] && k < K;
      const Factor* from = column_of(places[i], k, inside);
      copy16(&to_a[in_a((tid >> 2) + 64 * i, of_step)], from, inside);
    }
#if TRANSPOSED
    int row = tid >> 2, column = n0 + row;
#if GATHER
    // [taps, N, channels]
    const Factor* from = B + (size_t)(k / CHANNELS * N + column) * CHANNELS + k % CHANNELS;
#else
    const Factor* from = B + (size_t)column * K + k;
#endif
    copy16(&to_b[in_b(row, of_step)], from, column < N && k < K);
#else
    int row = tid / (TN / CHUNK), column = tid % (TN / CHUNK) * CHUNK, of_b = step * TK + row;
    const Factor* from = B + (size_t)of_b * N + n0 + column;
    copy16(&to_b[in_b(row, column)], from, of_b < K && n0 + column < N);
#endif
  };

  float sums[2][4][4] = {};
  int steps = (K + TK - 1) / TK;
  for (int i = 0; i < STAGES - 1; i++) {
    if (i < steps) load(i);
    copy_commit();
  }
  for (int step = 0; step < steps; step++) {
    copy_wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < steps) load(step + STAGES - 1);
    copy_commit();
    const Factor *tile_a = stages_a[step % STAGES], *tile_b = stages_b[step % STAGES];
#pragma unroll
    for (int kk = 0; kk < TK; kk += DEPTH) {
      u32 a[2][4], b[4][2];
#pragma unroll
      for (int i = 0; i < 2; i++)
        load_matrices(a[i], &tile_a[in_a(wm + i * 16 + (lane & 15), kk + (lane >> 4) * CHUNK)]);
#pragma unroll
      for (int j = 0; j < 2; j++) {
        u32 r[4];
#if TRANSPOSED
        int row = wn + j * 16 + (lane & 7) + (lane >> 4 << 3);
        load_matrices(r, &tile_b[in_b(row, kk + (lane >> 3 & 1) * CHUNK)]);
#else
        load_columns(r, [&](int nth, int row) {
          return &tile_b[in_b(kk + (nth & 1) * CHUNK + row, wn + j * 16 + (nth >> 1) * 8)];
        });
#endif
        b[2 * j][0] = r[0];
        b[2 * j][1] = r[1];
        b[2 * j + 1][0] = r[2];
        b[2 * j + 1][1] = r[3];
      }
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) multiply(sums[i][j], a[i], b[j]);
    }
  }

#if EPILOGUE == RESIDUAL
  const u64 mask = s.dropout ? residual_seed(seed, s.nth) : 0;
  const float scale = as_float((u32)s.scale);
#endif
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int row = m0 + wm + i * 16 + h * 8 + (lane >> 2);
      if (row >= M) continue;
#if EPILOGUE == RESIDUAL
      const u64 key = row_key(mask, row);
#endif
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int column = n0 + wn + j * 8 + (lane & 3) * 2;
        if (column >= N) continue;
        size_t at = (size_t)row * N + column;
        float u = sums[i][j][2 * h], v = sums[i][j][2 * h + 1];
#if EPILOGUE == BIAS || EPILOGUE == BIAS_GELU || EPILOGUE == BIAS_RELU || EPILOGUE == BIAS_TANH || \
    EPILOGUE == RESIDUAL
        u += bias[column];
        v += bias[column + 1];
#endif
#if EPILOGUE == BIAS_GELU
        // The backward pass computes the slope at what was stored, so GELU gets the same.
        Pair pair = pack(u, v);
        *(Pair*)(before + at) = pair;
        u = gelu(unpack(pair).x);
        v = gelu(unpack(pair).y);
#elif EPILOGUE == BIAS_RELU
        u = relu(u);
        v = relu(v);
#elif EPILOGUE == BIAS_TANH
        u = tanhf(u);
        v = tanhf(v);
#elif EPILOGUE == GELU_SLOPE
        float2 kept_pair = unpack(*(const Pair*)(kept + at));
        u *= gelu_slope(kept_pair.x);
        v *= gelu_slope(kept_pair.y);
#elif EPILOGUE == RELU_SLOPE
        float2 kept_pair = unpack(*(const Pair*)(kept + at));
        u = kept_pair.x > 0.0f ? u : 0.0f;
        v = kept_pair.y > 0.0f ? v : 0.0f;
#elif EPILOGUE == RESIDUAL
        if (s.dropout) {
          u = is_kept(key, column, (u32)s.threshold) ? u * scale : 0.0f;
          v = is_kept(key, column + 1, (u32)s.threshold) ? v * scale : 0.0f;
        }
        float2 old = *(const float2*)(x + ((size_t)row * s.step + s.first) * N + column);
        u += old.x;
        v += old.y;
#endif
#if EPILOGUE == BIAS_TANH || EPILOGUE == RESIDUAL
        *(float2*)(C + at) = make_float2(u, v);
#else
        *(Pair*)(C + at) = pack(u, v);
#endif
      }
    }
}
