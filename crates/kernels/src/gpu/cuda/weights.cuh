// The encoder's weights as products read them: as factors, [in, out], the first convolution's as
// [out, in] and divided by 255.
struct Scalars {
  u64 of_linear;
};

extern "C" __global__ void __launch_bounds__(256) KERNEL(
    const float* __restrict__ conv1, const float* __restrict__ conv2,
    const float* __restrict__ conv3, const float* __restrict__ linear, Factor* __restrict__ to_conv1,
    Factor* __restrict__ to_conv2, Factor* __restrict__ to_conv3, Factor* __restrict__ to_linear,
    Scalars s) {
  const u32 OF_CONV1 = 32 * 256, OF_CONV2 = 512 * 64, OF_CONV3 = 576 * 64;
  u32 i = blockIdx.x * 256 + threadIdx.x, of_linear = (u32)s.of_linear;
  if (i < OF_CONV1) {
    to_conv1[i] = factor_of(conv1[i] * (1.0f / 255.0f));
    return;
  }
  i -= OF_CONV1;
  if (i < OF_CONV2) {
    to_conv2[i] = factor_of(conv2[conv2_order(i, 0)]);
    return;
  }
  i -= OF_CONV2;
  if (i < OF_CONV3) {
    to_conv3[i] = factor_of(conv3[conv3_order(i, 0)]);
    return;
  }
  i -= OF_CONV3;
  if (i < of_linear) to_linear[i] = factor_of(linear[linear_order(i, of_linear)]);
}
