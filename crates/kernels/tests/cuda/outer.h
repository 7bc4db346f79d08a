// Partial sums of gradients by weights and biases against f64.
#pragma once
#include "check.h"

static void outer_product(int M, int N, int K, int rows) {
  auto a = halves((size_t)M * K), g = halves((size_t)M * N);
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
  run(grid, 256, [&] { outer::outer(a.data(), g.data(), split.data(), {(u64)M, (u64)N, (u64)K, (u64)rows}); }, split);
  split.check("outer" + at, parts, F32);
}

static void outer_products() {
  outer_product(300, 64, 32, 96);
  outer_product(1, 128, 96, 32);
  outer_product(129, 192, 160, 64);
  outer_product(1000, 72, 264, 320);
  outer_product(31, 8, 8, 32);
}
