// Both passes of the encoder, launched as `encoder/cuda/passes.rs` does, from parameters and a gradient
// that are no factors, against f64.
#pragma once
#include "encoder.h"

// Largest error of a result, relative to its norm: a few roundings, of a different sign each.
template <class K> static const double OF_PASSES = 2 * ROUNDING<typename K::Factor>;

template <class T> static void check_norm(const std::string& name, const std::vector<T>& now, const Doubles& expected, double tolerance) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    double difference = value(now[i]) - expected[i];
    error += difference * difference;
    norm += expected[i] * expected[i];
  }
  printf("%-32s %.1e of norm %.3g\n", name.c_str(), std::sqrt(error / norm), std::sqrt(norm));
  if (!(std::sqrt(error) <= tolerance * std::sqrt(norm)) || now.size() != expected.size()) { puts("failed"); exit(1); }
}

template <class K> static void passes() {
  typedef typename K::Factor Factor;
  const u64 sequences = 1, steps = 3, n = sequences * steps, d = 24, flat = 3136, frame = 84 * 84;
  const int rows = 64;
  std::vector<u8> windows(sequences * (steps + 3) * frame);
  for (u8& x : windows) x = (u8)(drawn() * 128 + 128);
  auto scaled = [](size_t n, float scale) { auto v = floats(n); for (float& x : v) x *= scale; return v; };
  auto w1 = scaled(32 * 256, 0.1f), w2 = scaled(64 * 512, 0.1f), w3 = scaled(64 * 576, 0.1f), w4 = scaled(flat * d, 0.02f);
  auto b1 = scaled(32, 0.1f), b2 = scaled(64, 0.1f), b3 = scaled(64, 0.1f), b4 = scaled(d, 0.1f), by_y = floats(n * d);

  // Forward
  Output<Factor> m1(w1.size()), m2(w2.size()), m3(w3.size()), m4(w4.size());
  Output<Factor> a1(n * 400 * 32), a2(n * 81 * 64), a3(n * flat);
  Output<float> y(n * d);
  auto rows_of = [](u64 m) { return (int)(m + 127) / 128; };
  int blocks = (int)(w1.size() + w2.size() + w3.size() + w4.size() + 255) / 256;
  run({blocks, 1, 1}, 256, [&] { K::weights(w1.data(), w2.data(), w3.data(), w4.data(), m1.data(), m2.data(), m3.data(), m4.data(), {w4.size()}); }, m1, m2, m3, m4);
  run({(int)n, K::bands, 1}, 256, [&] { K::conv1(windows.data(), m1.data(), b1.data(), a1.data(), {steps}); }, a1);
  run({1, rows_of(n * 81), 1}, 256, [&] { K::conv2(a1.data(), m2.data(), b2.data(), a2.data(), {n * 81, 64, 512}); }, a2);
  run({1, rows_of(n * 49), 1}, 256, [&] { K::conv3(a2.data(), m3.data(), b3.data(), a3.data(), {n * 49, 64, 576}); }, a3);
  run({1, 1, 1}, 256, [&] { K::tanh(a3.data(), m4.data(), b4.data(), y.data(), {n, d, flat}); }, y);

  // Backward
  Output<Factor> g4(n * d), g3(a3.now.size()), g2(a2.now.size()), g1(a1.now.size());
  run({1, 1, 1}, 256, [&] { K::tanh_slope(y.data(), by_y.data(), g4.data(), {n * d / 2}); }, g4);
  run({(int)flat / 64, 1, 1}, 256, [&] { K::transposed_relu(g4.data(), m4.data(), a3.data(), g3.data(), {n, flat, d}); }, g3);
  run({1, rows_of(n * 81), 1}, 256, [&] { K::conv3_input(g3.data(), m3.data(), a2.data(), g2.data(), {n * 81, 64, 576}); }, g2);
  run({2, rows_of(n * 100), 1}, 256, [&] { K::conv2_input(g2.data(), m2.data(), a1.data(), g1.data(), {n * 100, 128, 256}); }, g1);
  std::vector<std::vector<float>> by_w, by_b;
  auto outer = [&](auto kernel, auto sums, Output<Factor>& x, Output<Factor>& by, u64 m, u64 width, u64 k) {
    u64 splits = (m + rows - 1) / rows, size = (k + 1) * width;
    Output<float> parts(splits * size), weight(k * width), bias(width);
    run({1, (int)(k + 127) / 128, (int)splits}, 256, [&] { kernel(x.data(), by.data(), parts.data(), {m, width, k, (u64)rows}); }, parts);
    run({(int)(size + 255) / 256, 1, 1}, 256, [&] { sums(parts.data(), weight.data(), bias.data(), {splits, k * width, size, bits(one)}); }, weight, bias);
    by_w.push_back(weight.now);
    by_b.push_back(bias.now);
  };
  Output<float> parts(2 * 257 * 32), weight(256 * 32), bias(32);
  run({2, 1, 1}, 256, [&] { K::conv1_outer(windows.data(), g1.data(), parts.data(), {n, steps}); }, parts);
  run({257 * 32 / 256 + 1, 1, 1}, 256, [&] { conv1_sums::conv1_sums(parts.data(), weight.data(), bias.data(), {2, 256 * 32, 257 * 32, bits(of_pixels)}); }, weight, bias);
  by_w.push_back(weight.now);
  by_b.push_back(bias.now);
  outer(K::conv2_outer, conv2_sums::conv2_sums, a1, g2, n * 81, 64, 512);
  outer(K::conv3_outer, conv3_sums::conv3_sums, a2, g3, n * 49, 64, 576);
  outer(K::outer, linear_sums::linear_sums, a3, g4, n, d, flat);

  // The same in f64. ReLU's slope is that of the kernels, because rounding decides it near zero.
  Doubles pixels(n * frame * 4);
  for (u64 i = 0; i < n; i++)
    for (u64 f = 0; f < 4; f++)
      for (u64 p = 0; p < frame; p++)
        pixels[(i * frame + p) * 4 + f] = windows[(i / steps * (steps + 3) + i % steps + f) * frame + p] / 255.0;
  Convolution convs[3] = {{(int)n, 84, 4, 8, 4, 32}, {(int)n, 20, 32, 4, 2, 64}, {(int)n, 9, 64, 3, 1, 64}};
  const std::vector<float>*weights[3] = {&w1, &w2, &w3}, *biases[3] = {&b1, &b2, &b3};
  auto in_weight = [](const Convolution& c, int k, int o, int r, int s) { return ((o * c.in + k) * c.size + r) * c.size + s; };
  Doubles e[4] = {pixels, Doubles(a1.now.size()), Doubles(a2.now.size()), Doubles(a3.now.size())};
  for (int l = 0; l < 3; l++) {
    for (size_t i = 0; i < e[l + 1].size(); i++) e[l + 1][i] = (*biases[l])[i % convs[l].out];
    convs[l].each([&](size_t from, size_t to, int k, int o, int r, int s) { e[l + 1][to] += e[l][from] * (*weights[l])[in_weight(convs[l], k, o, r, s)]; });
    for (double& x : e[l + 1]) x = std::fmax(x, 0.0);
  }
  auto in_linear = [&](u64 k, u64 o) { return (k % 64 * 49 + k / 64) * d + o; };
  Doubles ey(n * d), eg4(n * d), ew4(flat * d), eb4(d);
  Doubles eg[4] = {Doubles(pixels.size()), Doubles(e[1].size()), Doubles(e[2].size()), Doubles(e[3].size())};
  for (u64 i = 0; i < n; i++)
    for (u64 o = 0; o < d; o++) {
      double sum = b4[o];
      for (u64 k = 0; k < flat; k++) sum += e[3][i * flat + k] * w4[in_linear(k, o)];
      double out = ey[i * d + o] = std::tanh(sum), by = eg4[i * d + o] = by_y[i * d + o] * (1 - out * out);
      eb4[o] += by;
      for (u64 k = 0; k < flat; k++) {
        ew4[in_linear(k, o)] += e[3][i * flat + k] * by;
        eg[3][i * flat + k] += by * w4[in_linear(k, o)];
      }
    }
  const double tolerance = OF_PASSES<K>;
  at = K::end;
  check_norm("passes, embedding" + at, y.now, ey, tolerance);
  check_norm("passes, linear weight" + at, by_w[3], ew4, tolerance);
  check_norm("passes, linear bias" + at, by_b[3], eb4, tolerance);
  Output<Factor>* active[3] = {&a1, &a2, &a3};
  for (int l = 2; l >= 0; l--) {
    const Convolution& conv = convs[l];
    Doubles ew(weights[l]->size()), eb(conv.out);
    for (size_t i = 0; i < eg[l + 1].size(); i++) {
      if (!(value(active[l]->now[l == 0 ? blocked(i, 20, 32) : i]) > 0)) eg[l + 1][i] = 0;
      eb[i % conv.out] += eg[l + 1][i];
    }
    conv.each([&](size_t from, size_t to, int k, int o, int r, int s) {
      int in = in_weight(conv, k, o, r, s);
      ew[in] += e[l][from] * eg[l + 1][to];
      eg[l][from] += eg[l + 1][to] * (*weights[l])[in];
    });
    std::string name = "passes, conv" + std::to_string(l + 1);
    check_norm(name + " weight" + at, by_w[l], ew, tolerance);
    check_norm(name + " bias" + at, by_b[l], eb, tolerance);
  }
}
