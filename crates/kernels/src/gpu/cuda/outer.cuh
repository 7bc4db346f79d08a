// W[K,N] = A[M,K]ᵀ G[M,N], the gradient by weights, and the sums of G's columns, the gradient by the
// bias. bf16 in; the rows are split over blocks, and each split writes f32 sums of its own, weights
// before bias: parts[splits, K N + N]. sums.cuh adds them. K and N are multiples of 8.
//
// A block computes 128 x 64 of W in steps of 32 rows, as in products.cuh. Both tiles are stored by
// rows, so both factors are loaded transposed: A's rows are the columns of Aᵀ.
static const int TK = 128, TN = 64, TM = 32, STAGES = 4;

struct Scalars {
  u64 m, n, k;
  // Rows of a split, a multiple of 32.
  u64 rows;
};

DEV int in_a(int row, int q) { return row * TK + ((q ^ (row & 7)) << 3); }
DEV int in_g(int row, int q) { return row * TN + ((q ^ (row & 7)) << 3); }

extern "C" __global__ void __launch_bounds__(256, 3) KERNEL(
    const u16* __restrict__ A, const u16* __restrict__ G, float* __restrict__ parts, Scalars s) {
  __shared__ __align__(128) u16 stages_a[STAGES][TM * TK];
  __shared__ __align__(128) u16 stages_g[STAGES][TM * TN];
  const int N = (int)s.n, K = (int)s.k;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int wk = (warp & 3) * 32, wn = (warp >> 2) * 32;
  const int n0 = blockIdx.x * TN, k0 = blockIdx.y * TK;
  const int begin = (int)(blockIdx.z * s.rows);
  const int end = (int)(begin + s.rows < s.m ? begin + s.rows : s.m);

  // A thread copies two chunks of A and one of G.
  auto load = [&](int step) {
    int m0 = begin + step * TM;
    u16 *to_a = stages_a[step % STAGES], *to_g = stages_g[step % STAGES];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int row = (tid >> 4) + 16 * i, q = tid & 15, k = k0 + q * 8;
      bool inside = m0 + row < end && k < K;
      const u16* from = column_of(place_of(A, inside ? m0 + row : 0, K), k, inside);
      copy16(&to_a[in_a(row, q)], from, inside);
    }
    int row = tid >> 3, q = tid & 7, column = n0 + q * 8;
    bool inside = m0 + row < end && column < N;
    copy16(&to_g[in_g(row, q)], G + (size_t)(m0 + row) * N + column, inside);
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
    const u16 *tile_a = stages_a[step % STAGES], *tile_g = stages_g[step % STAGES];
#pragma unroll
    for (int mm = 0; mm < TM; mm += 16) {
      u32 a[2][4], g[4][2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        int row = mm + (lane & 7) + (lane >> 4 << 3), q = (wk >> 3) + 2 * i + (lane >> 3 & 1);
        load_transposed(a[i], &tile_a[in_a(row, q)]);
      }
#pragma unroll
      for (int j = 0; j < 2; j++) {
        u32 r[4];
        load_transposed(r, &tile_g[in_g(mm + (lane & 15), (wn >> 3) + 2 * j + (lane >> 4))]);
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
        column_sum += as_float((u32)tile_g[in_g(row, tid >> 3 & 7) + (tid & 7)] << 16);
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
