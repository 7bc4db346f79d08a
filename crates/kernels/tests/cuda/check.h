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
static double value(float x) { return x; }
static double value(u16 x) { return as_float((u32)x << 16); }

// Factors of products: u16 are bf16, floats have the precision of TF32.
static void round_to(u16& to, float x) { to = round_bf16(x); }
static void round_to(float& to, float x) { to = round_tf32(x); }
template <class Factor> static std::vector<Factor> factors(size_t n, float scale = 1.0f) {
  std::vector<Factor> v(n);
  for (Factor& x : v) round_to(x, drawn() * scale);
  return v;
}

// The error of rounding to a type, relative to a value: half of its last bit. F32's is in SUMS.
static const double BF16 = 1.0 / 256, TF32 = 1.0 / 2048, F32 = 0;
template <class Factor> static const double ROUNDING = sizeof(Factor) == 2 ? BF16 : TF32;
// The error of an f32 sum, relative to the largest value.
static const double SUMS = 1e-5;

// An output, poisoned with NaN, that a kernel must fill.
template <class T> struct Output {
  std::vector<T> now, other;
  explicit Output(size_t n) : now(n), other(n) { poison(); }
  void poison() { memset(now.data(), 0xff, now.size() * sizeof(T)); }
  T* data() { return now.data(); }
  // Whether both orders of threads gave the same bits.
  bool is_same() const { return !memcmp(now.data(), other.data(), now.size() * sizeof(T)); }
  // Compares with f64. Prints the largest difference beyond that of rounding.
  void check(const std::string& name, const std::vector<double>& expected, double rounding) {
    if (expected.size() != now.size()) { printf("%s: %zu expected\n", name.c_str(), expected.size()); exit(1); }
    double largest = 0, worst = 0;
    for (double x : expected) largest = std::fmax(largest, std::fabs(x));
    for (size_t i = 0; i < now.size(); i++) {
      double difference = std::fabs(value(now[i]) - expected[i]) - rounding * std::fabs(expected[i]);
      if (!(difference <= worst)) worst = difference;  // NaN stays
      if (std::isnan(worst)) break;
    }
    printf("%-32s %.1e of %.3g\n", name.c_str(), worst / largest, largest);
    if (!(worst <= SUMS * largest) || largest == 0) { puts("failed"); exit(1); }
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
