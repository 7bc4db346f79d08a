// W[K,N] = A[M,K]ᵀ G[M,N], the gradient by weights, and the sums of G's columns, the gradient by the
// bias. A and G are factors; the rows are split over blocks, and each split writes f32 sums of its
// own, weights before bias: parts[splits, K N + N]. sums.cuh adds them. K and N are multiples of 8.
//
// A block computes 128 x 64 of W in steps of 32 rows of bf16 or 16 of f32, as in products.cuh. Both
// tiles are stored by rows, so both factors are loaded transposed: A's rows are the columns of Aᵀ.
static const int TK = 128, TN = 64, TM = 4 * CHUNK, STAGES = 4;

struct Scalars {
  u64 m, n, k;
  // Rows of a split, a multiple of 32.
  u64 rows;
};

DEV int in_a(int row, int k) { return row * TK + (k ^ (row & (CHUNK - 1)) * 8); }
DEV int in_g(int row, int column) { return row * TN + (column ^ (row & (CHUNK - 1)) * 8); }

extern "C" __global__ void __launch_bounds__(256, 3) KERNEL(
    const Factor* __restrict__ A, const Factor* __restrict__ G, float* __restrict__ parts,
    Scalars s) {
  __shared__ __align__(128) Factor stages_a[STAGES][TM * TK];
  __shared__ __align__(128) Factor stages_g[STAGES][TM * TN];
  const int N = (int)s.n, K = (int)s.k;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int wk = (warp & 3) * 32, wn = (warp >> 2) * 32;
  const int n0 = blockIdx.x * TN, k0 = blockIdx.y * TK;
  const int begin = (int)(blockIdx.z * s.rows);
  const int end = (int)(begin + s.rows < s.m ? begin + s.rows : s.m);

  // A thread copies two chunks of A and one of G.
  auto load = [&](int step) {
    int m0 = begin + step * TM;
    Factor *to_a = stages_a[step % STAGES], *to_g = stages_g[step % STAGES];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int row = tid / (TK / CHUNK) + TM / 2 * i, k = tid % (TK / CHUNK) * CHUNK;
      bool inside = m0 + row < end && k0 + k < K;
      const Factor* from = column_of(place_of(A, inside ? m0 + row : 0, K), k0 + k, inside);
      copy16(&to_a[in_a(row, k)], from, inside);
    }
    int row = tid / (TN / CHUNK), column = tid % (TN / CHUNK) * CHUNK;
    bool inside = m0 + row < end && n0 + column < N;
    copy16(&to_g[in_g(row, column)], G + (size_t)(m0 + row) * N + n0 + column, inside);
  };

  float sums[2][4][4] = {}, column_sum = 0.0f;
  int steps = (end - begin + TM - 1) / TM;
  for (int i = 0; i < STAGES - 1; i++) {
    if (i < steps) load(i);
    copy_commit();
  }
  for (int step = 0; step < steps; step++) {
    copy_wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < steps) load(step + STAGES - 1);
    copy_commit();
    const Factor *tile_a = stages_a[step % STAGES], *tile_g = stages_g[step % STAGES];
#pragma unroll
    for (int mm = 0; mm < TM; mm += DEPTH) {
      u32 a[2][4], g[4][2];
#pragma unroll
      for (int i = 0; i < 2; i++)
        load_columns(a[i], [&](int nth, int row) {
          return &tile_a[in_a(mm + (nth >> 1) * CHUNK + row, wk + i * 16 + (nth & 1) * 8)];
        });
#pragma unroll
      for (int j = 0; j < 2; j++) {
        u32 r[4];
        load_columns(r, [&](int nth, int row) {
          return &tile_g[in_g(mm + (nth & 1) * CHUNK + row, wn + j * 16 + (nth >> 1) * 8)];
        });
        g[2 * j][0] = r[0];
        g[2 * j][1] = r[1];
        g[2 * j + 1][0] = r[2];
        g[2 * j + 1][1] = r[3];
      }
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) multiply(sums[i][j], a[i], g[j]);
    }
    if (k0 == 0) {  // column tid % 64 of a quarter of the rows
#pragma unroll
      for (int r = 0; r < TM / 4; r++) {
        int row = (tid >> 6) * (TM / 4) + r;
        column_sum += value_of(tile_g[in_g(row, tid & 63)]);
      }
    }
  }

  float* part = parts + (size_t)blockIdx.z * (K + 1) * N;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int k = k0 + wk + i * 16 + h * 8 + (lane >> 2), column = n0 + wn + j * 8 + (lane & 3) * 2;
        if (k < K && column < N)
          *(float2*)(part + (size_t)k * N + column) =
              make_float2(sums[i][j][2 * h], sums[i][j][2 * h + 1]);
      }
  if (k0 != 0) return;
  __syncthreads();
  float* quarters = (float*)stages_a;
  quarters[tid] = column_sum;
  __syncthreads();
  if (tid < TN && n0 + tid < N)
    part[(size_t)K * N + n0 + tid] =
        quarters[tid] + quarters[TN + tid] + (quarters[2 * TN + tid] + quarters[3 * TN + tid]);
}
