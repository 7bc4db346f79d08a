// Inputs, poisoned outputs and comparisons of the tests of kernels.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include "host.h"
#include "sources.inc"

struct Dim { int x, y, z; };

static u64 state = 1;
// Uniform in [-1, 1).
static float drawn() {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (float)((double)(state >> 11) / (1ull << 52) - 1.0);
}
static std::vector<float> floats(size_t n) {
  std::vector<float> v(n);
  for (float& x : v) x = drawn();
  return v;
}
static std::vector<u16> halves(size_t n, float factor = 1.0f) {
  std::vector<u16> v(n);
  for (u16& x : v) x = round_bf16(drawn() * factor);
  return v;
}
static double value(float x) { return x; }
static double value(u16 x) { return as_float((u32)x << 16); }

static const float BF16 = 5e-3f, F32 = 1e-5f;

// An output, poisoned with NaN, that a kernel must fill.
template <class T> struct Output {
  std::vector<T> now, other;
  explicit Output(size_t n) : now(n), other(n) { poison(); }
  void poison() { memset(now.data(), 0xff, now.size() * sizeof(T)); }
  T* data() { return now.data(); }
  // Whether both orders of threads gave the same bits.
  bool is_same() const { return !memcmp(now.data(), other.data(), now.size() * sizeof(T)); }
  // Compares with f64, relative to the largest value.
  void check(const std::string& name, const std::vector<double>& expected, double tolerance) {
    if (expected.size() != now.size()) { printf("%s: %zu expected\n", name.c_str(), expected.size()); exit(1); }
    double largest = 0, worst = 0;
    for (double x : expected) largest = std::fmax(largest, std::fabs(x));
    for (size_t i = 0; i < now.size(); i++) {
      double difference = std::fabs(value(now[i]) - expected[i]);
      if (!(difference <= worst)) worst = difference;  // NaN stays
      if (std::isnan(worst)) break;
    }
    printf("%-28s %.1e of %.3g\n", name.c_str(), worst / largest, largest);
    if (!(worst <= tolerance * largest) || largest == 0) { puts("failed"); exit(1); }
  }
};

// Runs a kernel in both orders of threads, which must give the same bits.
template <class F, class... T> static void run(Dim grid, int threads, F kernel, Output<T>&... outputs) {
  static emulated::Block block;
  emulated_block = &block;
  block.grid = {(unsigned)grid.x, (unsigned)grid.y, (unsigned)grid.z};
  block.size = {(unsigned)threads, 1, 1};
  for (bool early : {true, false}) {
    block.early = early;
    (outputs.poison(), ...);
    void* parameters[] = {&kernel};
    emulated::run_blocks(block, [](void** parameters) { (*(F*)parameters[0])(); }, parameters);
    if (early) ((outputs.other = outputs.now), ...);
  }
  if (!(outputs.is_same() && ...)) { puts("failed: bits depend on the order of threads"); exit(1); }
}
