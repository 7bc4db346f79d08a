// Products and their epilogues against f64.
#pragma once
#include "check.h"

static const double INVERSE_ROOT = 0.70710678118654752, DENSITY = 0.39894228040143268;
static double gelu(double x) { return 0.5 * x * (1 + std::erf(x * INVERSE_ROOT)); }
static double gelu_slope(double x) {
  return 0.5 * (1 + std::erf(x * INVERSE_ROOT)) + x * DENSITY * std::exp(-0.5 * x * x);
}
static u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}
// The factor of dropout as mask.rs defines it.
static double factor(u64 seed, u64 row, u32 column, u32 threshold, float scale) {
  u64 key = mix(seed + row * 0x9e3779b97f4a7c15ull);
  u32 x = column * 0x9e3779b9u ^ (u32)key;
  x = (x ^ x >> 16) * 0x7feb352du ^ (u32)(key >> 32);
  x = (x ^ x >> 15) * 0x846ca68bu;
  return (x ^ x >> 16) >> 8 >= threshold ? scale : 0;
}

template <class Factor> static void product(int M, int N, int K) {
  auto a = factors<Factor>((size_t)M * K), b = factors<Factor>((size_t)K * N, 2 / std::sqrt((float)K));
  const u64 step = 3, first = 1;
  auto bias = floats(N), x = floats((size_t)M * N * step);
  auto kept = factors<Factor>((size_t)M * N, 2);
  std::vector<Factor> bt((size_t)K * N);
  for (int k = 0; k < K; k++) for (int n = 0; n < N; n++) bt[(size_t)n * K + k] = b[(size_t)k * N + n];
  std::vector<double> exact((size_t)M * N), e(exact.size());
  for (int m = 0; m < M; m++)
    for (int k = 0; k < K; k++)
      for (int n = 0; n < N; n++) exact[(size_t)m * N + n] += value(a[(size_t)m * K + k]) * value(b[(size_t)k * N + n]);
  auto expect = [&](auto f) {
    for (int m = 0; m < M; m++) for (int n = 0; n < N; n++) { size_t i = (size_t)m * N + n; e[i] = f(exact[i], i, m, n); }
    return e;
  };
  Dim grid = {(N + 63) / 64, (M + 127) / 128, 1};
  std::string at = " " + std::to_string(M) + " " + std::to_string(N) + " " + std::to_string(K);
  Output<Factor> half((size_t)M * N), before((size_t)M * N);
  Output<float> full((size_t)M * N);
  u32 scale_bits;
  const float scale = 1 / 0.75f;
  memcpy(&scale_bits, &scale, 4);
  const u32 seed[2] = {0x12345678u, 0x9abcdef0u}, threshold = 1 << 22;
  const u64 nth = 5;
  const u64 mask = mix(mix(mix(0x9abcdef012345678ull) ^ mix(nth)) ^ (0x5bf03635ull + 1));
#define SCALARS {(u64)M, (u64)N, (u64)K, 1, 0, 0, 0, 0, 0}
#define RUN(name, output, ...) run(grid, 256, [&] { name::name(__VA_ARGS__, SCALARS); }, output)
  auto of_tanh = expect([&](double y, size_t, int, int n) { return std::tanh(y + bias[n]); });
  auto relu_slope = expect([&](double y, size_t i, int, int) { return value(kept[i]) > 0 ? y : 0; });
  if constexpr (sizeof(Factor) == 4) {
    RUN(product_bias_tanh_tf32, full, a.data(), b.data(), bias.data(), full.data());
    full.check("product_bias_tanh_tf32" + at, of_tanh, F32);
    RUN(transposed_relu_tf32, half, a.data(), bt.data(), kept.data(), half.data());
    half.check("transposed_relu_tf32" + at, relu_slope, TF32);
  } else {
    auto plain = expect([](double y, size_t, int, int) { return y; });
    RUN(transposed, half, a.data(), bt.data(), half.data());
    half.check("transposed" + at, plain, BF16);
    auto biased = expect([&](double y, size_t, int, int n) { return y + bias[n]; });
    RUN(product_bias, half, a.data(), b.data(), bias.data(), half.data());
    half.check("product_bias" + at, biased, BF16);
    run(grid, 256, [&] { product_bias_gelu::product_bias_gelu(a.data(), b.data(), bias.data(), half.data(), before.data(), SCALARS); }, half, before);
    before.check("product_bias_gelu, before" + at, biased, BF16);
    half.check("product_bias_gelu" + at, expect([&](double, size_t i, int, int) { return gelu(value(before.now[i])); }), BF16);
    RUN(product_bias_relu, half, a.data(), b.data(), bias.data(), half.data());
    half.check("product_bias_relu" + at, expect([&](double y, size_t, int, int n) { return std::fmax(y + bias[n], 0.0); }), BF16);
    RUN(product_bias_tanh, full, a.data(), b.data(), bias.data(), full.data());
    full.check("product_bias_tanh" + at, of_tanh, F32);
    RUN(product_residual, full, a.data(), b.data(), bias.data(), x.data(), seed, full.data());
    full.check("product_residual" + at, expect([&](double y, size_t i, int, int n) { return x[i] + y + bias[n]; }), F32);
    run(grid, 256, [&] { product_residual::product_residual(a.data(), b.data(), bias.data(), x.data(), seed, full.data(), {(u64)M, (u64)N, (u64)K, step, first, 1, nth, threshold, scale_bits}); }, full);
    full.check("product_residual, dropout" + at, expect([&](double y, size_t, int m, int n) { return x[((size_t)m * step + first) * N + n] + factor(mask, m, n, threshold, scale) * (y + bias[n]); }), F32);
    RUN(transposed_gelu, half, a.data(), bt.data(), kept.data(), half.data());
    half.check("transposed_gelu" + at, expect([&](double y, size_t i, int, int) { return y * gelu_slope(value(kept[i])); }), BF16);
    RUN(transposed_relu, half, a.data(), bt.data(), kept.data(), half.data());
    half.check("transposed_relu" + at, relu_slope, BF16);
  }
}

template <class Factor> static void products_of() {
  product<Factor>(300, 128, 96);
  product<Factor>(1, 64, 32);
  product<Factor>(129, 192, 160);
  product<Factor>(40, 72, 8);
  product<Factor>(128, 64, 264);
}
static void products() {
  products_of<u16>();
  products_of<float>();
}
