// The encoder's weights as products read them: in bf16, as [in, out], the first convolution's as
// [out, in] and divided by 255.
struct Scalars {
  u64 of_linear;
};

extern "C" __global__ void __launch_bounds__(256) KERNEL(
    const float* __restrict__ conv1, const float* __restrict__ conv2,
    const float* __restrict__ conv3, const float* __restrict__ linear, u16* __restrict__ to_conv1,
    u16* __restrict__ to_conv2, u16* __restrict__ to_conv3, u16* __restrict__ to_linear,
    Scalars s) {
  const u32 OF_CONV1 = 32 * 256, OF_CONV2 = 512 * 64, OF_CONV3 = 576 * 64;
  u32 i = blockIdx.x * 256 + threadIdx.x, of_linear = (u32)s.of_linear;
  if (i < OF_CONV1) {
    to_conv1[i] = (u16)pack_bf16(conv1[i] * (1.0f / 255.0f), 0.0f);
    return;
  }
  i -= OF_CONV1;
  if (i < OF_CONV2) {
    to_conv2[i] = (u16)pack_bf16(conv2[conv2_order(i, 0)], 0.0f);
    return;
  }
  i -= OF_CONV2;
  if (i < OF_CONV3) {
    to_conv3[i] = (u16)pack_bf16(conv3[conv3_order(i, 0)], 0.0f);
    return;
  }
  i -= OF_CONV3;
  if (i < of_linear) to_linear[i] = (u16)pack_bf16(linear[linear_order(i, of_linear)], 0.0f);
}
