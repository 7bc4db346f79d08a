// The encoder's convolutions, their gradients and the orders of its weights against f64.
#pragma once
#include "check.h"

typedef std::vector<double> Doubles;

// The kernels for one type of factors. `bands` are the blocks of a stack in `conv1`.
#define ENCODER_KERNELS(Kernels, type, suffix, n_bands) \
  struct Kernels { \
    typedef type Factor; \
    static constexpr int bands = n_bands; \
    static constexpr const char* end = #suffix; \
    KERNEL_OF(weights, encoder_weights##suffix) \
    KERNEL_OF(conv1, conv1##suffix) \
    KERNEL_OF(conv2, conv2##suffix) \
    KERNEL_OF(conv3, conv3##suffix) \
    KERNEL_OF(tanh, product_bias_tanh##suffix) \
    KERNEL_OF(tanh_slope, tanh_slope##suffix) \
    KERNEL_OF(outer, outer##suffix) \
    KERNEL_OF(transposed_relu, transposed_relu##suffix) \
    KERNEL_OF(conv3_input, conv3_input##suffix) \
    KERNEL_OF(conv2_input, conv2_input##suffix) \
    KERNEL_OF(conv3_outer, conv3_outer##suffix) \
    KERNEL_OF(conv2_outer, conv2_outer##suffix) \
    KERNEL_OF(conv1_outer, conv1_outer##suffix) \
  };
#define KERNEL_OF(name, source) static constexpr auto name = source::source;
ENCODER_KERNELS(OfBf16, u16, , 1)
ENCODER_KERNELS(OfF32, float, _tf32, 2)

// A convolution with stride over [n, side, side, in], and weights at `weight(out, in, row, column)`.
struct Convolution {
  int n, side, in, size, stride, out;
  int places() const { return (side - size) / stride + 1; }
  // Calls f(input's index, output's index, in, out, row, column) for every product.
  template <class F> void each(F f) const {
    int p = places();
    for (int i = 0; i < n; i++)
      for (int y = 0; y < p; y++)
        for (int x = 0; x < p; x++)
          for (int r = 0; r < size; r++)
            for (int c = 0; c < size; c++)
              for (int k = 0; k < in; k++) {
                size_t from = (((size_t)i * side + y * stride + r) * side + x * stride + c) * in + k;
                size_t to = (((size_t)i * p + y) * p + x) * out;
                for (int o = 0; o < out; o++) f(from, to + o, k, o, r, c);
              }
  }
};

// The place in blocks of 2 x 2 of an element of [n, side, side, channels].
static size_t blocked(size_t i, int side, int channels) {
  int c = i % channels, x = i / channels % side, y = i / channels / side % side;
  size_t n = i / channels / side / side;
  return (((n * (side / 2) + y / 2) * (side / 2) + x / 2) * 4 + y % 2 * 2 + x % 2) * channels + c;
}

static std::string at;
static const float one = 1.0f, of_pixels = 1.0f / 255.0f;
static u64 bits(float x) { u32 b; memcpy(&b, &x, 4); return b; }

template <class K> static void first(int sequences, int steps, int blocks) {
  typedef typename K::Factor Factor;
  const std::string name = std::string("conv1") + K::end;
  const int n = sequences * steps, frame = 84 * 84;
  std::vector<u8> windows((size_t)sequences * (steps + 3) * frame);
  for (u8& x : windows) x = (u8)(drawn() * 128 + 128);
  auto w = factors<Factor>(32 * 256, 0.1f / 255);
  auto bias = floats(32);
  auto by = factors<Factor>((size_t)n * 400 * 32);
  Doubles expected(by.size()), by_w(257 * 32);
  Convolution conv = {n, 84, 4, 8, 4, 32};
  std::vector<u8> stacks((size_t)n * frame * 4);
  for (int i = 0; i < n; i++)
    for (int f = 0; f < 4; f++)
      for (int p = 0; p < frame; p++)
        stacks[((size_t)i * frame + p) * 4 + f] = windows[((size_t)(i / steps) * (steps + 3) + i % steps + f) * frame + p];
  for (size_t i = 0; i < expected.size(); i++) { expected[blocked(i, 20, 32)] = bias[i % 32]; by_w[256 * 32 + i % 32] += value(by[i]); }
  conv.each([&](size_t from, size_t to, int k, int o, int r, int c) {
    int column = k * 64 + r * 8 + c;
    size_t place = blocked(to, 20, 32);
    expected[place] += stacks[from] * value(w[o * 256 + column]);
    by_w[column * 32 + o] += stacks[from] * value(by[place]);
  });
  for (double& x : expected) x = std::fmax(x, 0.0);
  Output<Factor> out(expected.size());
  run({n, K::bands, 1}, 256, [&] { K::conv1(windows.data(), w.data(), bias.data(), out.data(), {(u64)steps}); }, out);
  out.check(name + at, expected, ROUNDING<Factor>);
  Output<float> parts((size_t)blocks * 257 * 32), weight(32 * 256), by_bias(32);
  run({blocks, 1, 1}, 256, [&] { K::conv1_outer(windows.data(), by.data(), parts.data(), {(u64)n, (u64)steps}); }, parts);
  run({(257 * 32 + 255) / 256, 1, 1}, 256, [&] { conv1_sums::conv1_sums(parts.data(), weight.data(), by_bias.data(), {(u64)blocks, 256 * 32, 257 * 32, bits(of_pixels)}); }, weight, by_bias);
  Doubles by_bias_expected(by_w.begin() + 256 * 32, by_w.end()), by_parameter(256 * 32);
  for (int i = 0; i < 256 * 32; i++) by_parameter[i % 32 * 256 + i / 32] = by_w[i] / 255;
  weight.check(name + ", weight" + at, by_parameter, F32);
  by_bias.check(name + ", bias" + at, by_bias_expected, F32);
}

// The second and third convolution: `block` is 2 where places are stored in blocks of 2 x 2.
template <class Factor, class Forward, class Input, class Outer, class Sums>
static void later(std::string name, Convolution conv, bool blocks, int rows, Forward forward, Input input, Outer outer, Sums sums) {
  const int p = conv.places(), M = conv.n * p * p, K = conv.size * conv.size * conv.in;
  const size_t of_x = (size_t)conv.n * conv.side * conv.side * conv.in;
  auto x = factors<Factor>(of_x);
  for (Factor& v : x) if (value(v) < 0) v = 0;
  auto w = factors<Factor>((size_t)K * 64, 3 / std::sqrt((float)K)), by = factors<Factor>((size_t)M * 64);
  auto bias = floats(64);
  Doubles y((size_t)M * 64), by_x(of_x), by_w((size_t)K * 64), by_b(64);
  for (size_t i = 0; i < y.size(); i++) { y[i] = bias[i % 64]; by_b[i % 64] += value(by[i]); }
  // [out, in, row, column] as the parameter, the matrix in the order of the kernel.
  auto row_of = [&](int k, int r, int c) {
    if (!blocks) return (r * conv.size + c) * conv.in + k;
    return ((r / 2 * 2 + c / 2) * 4 + r % 2 * 2 + c % 2) * conv.in + k;
  };
  conv.each([&](size_t from, size_t to, int k, int o, int r, int c) {
    size_t i = blocks ? blocked(from, conv.side, conv.in) : from, j = (size_t)row_of(k, r, c) * 64 + o;
    y[to] += value(x[i]) * value(w[j]);
    by_x[i] += value(by[to]) * value(w[j]);
    by_w[((o * conv.in + k) * conv.size + r) * conv.size + c] += value(x[i]) * value(by[to]);
  });
  for (double& v : y) v = std::fmax(v, 0.0);
  for (size_t i = 0; i < of_x; i++) if (!x[i]) by_x[i] = 0;
  Output<Factor> out(y.size()), to_x(of_x);
  run({1, (M + 127) / 128, 1}, 256, [&] { forward(x.data(), w.data(), bias.data(), out.data(), {(u64)M, 64, (u64)K}); }, out);
  out.check(name + at, y, ROUNDING<Factor>);
  int N = blocks ? 4 * conv.in : conv.in, M_in = (int)(of_x / N), taps = K / N;
  run({N / 64, (M_in + 127) / 128, 1}, 256, [&] { input(by.data(), w.data(), x.data(), to_x.data(), {(u64)M_in, (u64)N, (u64)taps * 64}); }, to_x);
  to_x.check(name + ", input" + at, by_x, ROUNDING<Factor>);
  int splits = (M + rows - 1) / rows, size = (K + 1) * 64;
  Output<float> parts((size_t)splits * size), weight((size_t)K * 64), by_bias(64);
  run({1, (K + 127) / 128, splits}, 256, [&] { outer(x.data(), by.data(), parts.data(), {(u64)M, 64, (u64)K, (u64)rows}); }, parts);
  run({(size + 255) / 256, 1, 1}, 256, [&] { sums(parts.data(), weight.data(), by_bias.data(), {(u64)splits, (u64)K * 64, (u64)size, bits(one)}); }, weight, by_bias);
  weight.check(name + ", weight" + at, by_w, F32);
  by_bias.check(name + ", bias" + at, by_b, F32);
}

template <class K> static void weights(int d) {
  typedef typename K::Factor Factor;
  const std::string name = std::string("encoder_weights") + K::end;
  auto w1 = floats(32 * 256), w2 = floats(512 * 64), w3 = floats(576 * 64), w4 = floats((size_t)3136 * d);
  Doubles e1(w1.size()), e2(w2.size()), e3(w3.size()), e4(w4.size());
  for (size_t i = 0; i < w1.size(); i++) e1[i] = w1[i] / 255.0;
  for (int o = 0; o < 64; o++)
    for (int k = 0; k < 32; k++)
      for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++)
          e2[(size_t)(((r / 2 * 2 + c / 2) * 4 + r % 2 * 2 + c % 2) * 32 + k) * 64 + o] = w2[((o * 32 + k) * 4 + r) * 4 + c];
  for (int o = 0; o < 64; o++)
    for (int k = 0; k < 64; k++)
      for (int t = 0; t < 9; t++) e3[(size_t)(t * 64 + k) * 64 + o] = w3[(o * 64 + k) * 9 + t];
  for (int k = 0; k < 64; k++)
    for (int p = 0; p < 49; p++)
      for (int o = 0; o < d; o++) e4[(size_t)(p * 64 + k) * d + o] = w4[(size_t)(k * 49 + p) * d + o];
  Output<Factor> o1(w1.size()), o2(w2.size()), o3(w3.size()), o4(w4.size());
  int blocks = (int)(w1.size() + w2.size() + w3.size() + w4.size() + 255) / 256;
  run({blocks, 1, 1}, 256, [&] { K::weights(w1.data(), w2.data(), w3.data(), w4.data(), o1.data(), o2.data(), o3.data(), o4.data(), {(u64)w4.size()}); }, o1, o2, o3, o4);
  o1.check(name + ", conv1" + at, e1, ROUNDING<Factor>);
  o2.check(name + ", conv2" + at, e2, ROUNDING<Factor>);
  o3.check(name + ", conv3" + at, e3, ROUNDING<Factor>);
  o4.check(name + ", linear" + at, e4, ROUNDING<Factor>);
  // The gradient takes the way back.
  Doubles e5(e4.size());
  std::vector<float> parts = floats(e4.size() + d);
  for (int k = 0; k < 64; k++)
    for (int p = 0; p < 49; p++)
      for (int o = 0; o < d; o++) e5[(size_t)(k * 49 + p) * d + o] = parts[(size_t)(p * 64 + k) * d + o];
  Output<float> weight(e5.size()), by_bias(d);
  run({(int)(parts.size() + 255) / 256, 1, 1}, 256, [&] { linear_sums::linear_sums(parts.data(), weight.data(), by_bias.data(), {1, (u64)e5.size(), (u64)parts.size(), bits(one)}); }, weight, by_bias);
  weight.check("linear_sums" + at, e5, F32);
  auto y = floats(2 * d), g = floats(2 * d);
  Doubles by_in(2 * d);
  for (int i = 0; i < 2 * d; i++) by_in[i] = g[i] * (1.0 - (double)y[i] * y[i]);
  Output<Factor> by(2 * d);
  run({(d + 255) / 256, 1, 1}, 256, [&] { K::tanh_slope(y.data(), g.data(), by.data(), {(u64)d}); }, by);
  by.check(std::string("tanh_slope") + K::end + at, by_in, ROUNDING<Factor>);
}

template <class K> static void encoder() {
  typedef typename K::Factor Factor;
  // [windows, steps, blocks of the gradient]
  const int firsts[][3] = {{1, 1, 1}, {2, 3, 2}, {3, 1, 2}, {1, 2, 2}};
  for (const int* sizes : firsts) {
    at = " " + std::to_string(sizes[0]) + " " + std::to_string(sizes[1]);
    first<K>(sizes[0], sizes[1], sizes[2]);
  }
  for (int n : {1, 2, 3, 5}) {
    at = K::end + (" " + std::to_string(n));
    later<Factor>("conv2", {n, 20, 32, 4, 2, 64}, true, 96, K::conv2, K::conv2_input, K::conv2_outer, conv2_sums::conv2_sums);
    later<Factor>("conv3", {n, 9, 64, 3, 1, 64}, false, 64, K::conv3, K::conv3_input, K::conv3_outer, conv3_sums::conv3_sums);
  }
  for (int d : {8, 24, 128, 136}) {
    at = " " + std::to_string(d);
    weights<K>(d);
  }
}
