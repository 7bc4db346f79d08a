// Partial sums of gradients by weights and biases against f64.
#pragma once
#include "check.h"

template <class Factor, class Kernel>
static void outer_product(const char* name, Kernel kernel, int M, int N, int K, int rows) {
  auto a = factors<Factor>((size_t)M * K), g = factors<Factor>((size_t)M * N);
  int splits = (M + rows - 1) / rows;
  std::vector<double> parts((size_t)splits * (K + 1) * N);
  for (int m = 0; m < M; m++) {
    double* part = &parts[(size_t)(m / rows) * (K + 1) * N];
    for (int n = 0; n < N; n++) {
      double by = value(g[(size_t)m * N + n]);
      part[(size_t)K * N + n] += by;
      for (int k = 0; k < K; k++) part[(size_t)k * N + n] += value(a[(size_t)m * K + k]) * by;
    }
  }
  std::string at = " " + std::to_string(M) + " " + std::to_string(N) + " " + std::to_string(K) + " " + std::to_string(rows);
  Output<float> split(parts.size());
  Dim grid = {(N + 63) / 64, (K + 127) / 128, splits};
  run(grid, 256, [&] { kernel(a.data(), g.data(), split.data(), {(u64)M, (u64)N, (u64)K, (u64)rows}); }, split);
  split.check(name + at, parts, F32);
}

static void outer_products() {
  const int sizes[][4] = {{300, 64, 32, 96}, {1, 128, 96, 32}, {129, 192, 160, 64}, {1000, 72, 264, 320}, {31, 8, 8, 32}};
  for (auto [M, N, K, rows] : sizes) {
    outer_product<u16>("outer", outer::outer, M, N, K, rows);
    outer_product<float>("outer_tf32", outer_tf32::outer_tf32, M, N, K, rows);
  }
}
