// The gradients by a weight and its bias: the sums of the splits of outer.cuh, in their order. The
// weight's elements go to the places that ORDER gives, times `factor`.
struct Scalars {
  u64 splits;
  // Elements of the weight, and of both.
  u64 of_weight, size;
  u64 factor;
};

extern "C" __global__ void __launch_bounds__(256) KERNEL(
    const float* __restrict__ parts, float* __restrict__ weight, float* __restrict__ bias,
    Scalars s) {
  const u32 i = blockIdx.x * 256 + threadIdx.x, size = (u32)s.size, of_weight = (u32)s.of_weight;
  if (i >= size) return;
  const float* part = parts + i;
  float sum = 0.0f;
#pragma unroll 8
  for (int split = 0; split < (int)s.splits; split++) sum += part[(size_t)split * size];
  if (i < of_weight) weight[ORDER(i, of_weight)] = sum * as_float((u32)s.factor);
  else bias[i - of_weight] = sum;
}
