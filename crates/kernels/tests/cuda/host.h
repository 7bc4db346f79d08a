// CUDA on the CPU, for tests: the threads of a block are fibers of one thread, which run in a fixed
// order from one collective instruction to the next.
//
// The other order, `early`, runs each warp as far as it gets before the next one, the last thread
// and block first, and performs asynchronous copies at once. Else threads take turns, and copies are
// performed where a thread waits for them. A kernel that lacks a barrier or a wait gives other bits
// in one order than in the other.
#pragma once
#include <csetjmp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <ucontext.h>
#include <vector>

#define DEV static inline
#define __global__
#define __shared__ static
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned long long u64;
struct uint4 { u32 x, y, z, w; };
struct float2 { float x, y; };
static inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
struct Dim { int x, y, z; };
static Dim threadIdx, blockIdx, gridDim;

namespace fiber {
struct Copy { void* to; const void* from; bool inside; };
struct Fiber {
  ucontext_t start;
  jmp_buf at;
  bool begun, done, at_barrier;
  std::vector<char> stack;
  std::deque<std::vector<Copy>> groups;  // the last one is open
};
// What a lane shows to its warp.
struct Lane { u32 a[4], b[2]; const void* row; };

static bool early;
static std::vector<Fiber> fibers;
static std::vector<Lane> lanes;
static std::vector<int> warp_arrived, warp_phase;
static int block_arrived, block_phase, threads, current;
static ucontext_t main_start;
static jmp_buf main_at;
static std::function<void()> body;

static void yield() {
  int me = current;
  if (!_setjmp(fibers[me].at)) _longjmp(main_at, 1);
}
static void entry() {
  body();
  fibers[current].done = true;
  _longjmp(main_at, 1);
}
static void resume(int t) {
  Fiber& f = fibers[t];
  current = t;
  threadIdx = {t, 0, 0};
  if (_setjmp(main_at)) return;
  if (f.begun) _longjmp(f.at, 1);
  f.begun = true;
  swapcontext(&main_start, &f.start);
}
static void run_block() {
  block_arrived = block_phase = 0;
  warp_arrived.assign(threads / 32, 0);
  warp_phase.assign(threads / 32, 0);
  for (Fiber& f : fibers) {
    f.begun = f.done = f.at_barrier = false;
    f.groups.assign(1, {});
    getcontext(&f.start);
    f.start.uc_stack.ss_sp = f.stack.data();
    f.start.uc_stack.ss_size = f.stack.size();
    f.start.uc_link = nullptr;
    makecontext(&f.start, entry, 0);
  }
  for (bool alive = true; alive;) {
    alive = false;
    for (int warp = 0; warp < threads / 32; warp++) {
      int first = early ? threads - 32 - warp * 32 : warp * 32;
      bool goes_on = true;
      while (goes_on) {
        goes_on = false;
        for (int i = 0; i < 32; i++) {
          Fiber& f = fibers[first + (early ? 31 - i : i)];
          if (f.done) continue;
          resume(&f - fibers.data());
          alive = true;
          goes_on |= early && !f.done && !f.at_barrier;
        }
      }
    }
  }
}
// Runs a kernel: threads are a multiple of 32, and all reach every barrier.
static void launch(Dim grid, int n_threads, std::function<void()> kernel) {
  gridDim = grid;
  threads = n_threads;
  body = kernel;
  fibers.resize(threads);
  lanes.resize(threads);
  for (Fiber& f : fibers) f.stack.resize(1 << 16);
  int blocks = grid.x * grid.y * grid.z;
  for (int i = 0; i < blocks; i++) {
    int b = early ? blocks - 1 - i : i;
    blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
    run_block();
  }
}
static void arrive(int& arrived, int& phase, int expected) {
  int before = phase;
  if (++arrived == expected) { arrived = 0; phase++; }
  while (phase == before) yield();
}
static void warp_barrier() { arrive(warp_arrived[current / 32], warp_phase[current / 32], 32); }
static Lane* warp() { return &lanes[current / 32 * 32]; }
static float of_pair(u32 pair, int nth) {
  u32 bits = nth ? pair & 0xffff0000u : pair << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
}  // namespace fiber

static inline void __syncthreads() {
  fiber::Fiber& own = fiber::fibers[fiber::current];
  own.at_barrier = true;
  fiber::arrive(fiber::block_arrived, fiber::block_phase, fiber::threads);
  own.at_barrier = false;
}

DEV float as_float(u32 x) { float f; memcpy(&f, &x, 4); return f; }
DEV u16 round_bf16(float f) {
  u32 x;
  memcpy(&x, &f, 4);
  return (x + 0x7fff + ((x >> 16) & 1)) >> 16;
}
DEV u32 pack_bf16(float low, float high) { return round_bf16(low) | (u32)round_bf16(high) << 16; }
// Bytes of x (0 to 3) and y (4 to 7), selected by the four lowest nibbles of s.
DEV u32 __byte_perm(u32 x, u32 y, u32 s) {
  u64 bytes = (u64)y << 32 | x;
  u32 r = 0;
  for (int i = 0; i < 4; i++) r |= (u32)(bytes >> (s >> 4 * i & 7) * 8 & 255) << 8 * i;
  return r;
}

// Columns of b and rows of a are decoded once a lane.
DEV void multiply(float c[4], const u32 a[4], const u32 b[2]) {
  fiber::Lane& own = fiber::lanes[fiber::current];
  memcpy(own.a, a, 16);
  memcpy(own.b, b, 8);
  fiber::warp_barrier();
  const fiber::Lane* warp = fiber::warp();
  int lane = fiber::current % 32, g = lane / 4, q = lane % 4;
  float rows[2][16], columns[2][16];
  for (int h = 0; h < 2; h++)
    for (int k = 0; k < 16; k++) {
      rows[h][k] = fiber::of_pair(warp[g * 4 + k % 8 / 2].a[h + k / 8 * 2], k % 2);
      columns[h][k] = fiber::of_pair(warp[(2 * q + h) * 4 + k % 8 / 2].b[k / 8], k % 2);
    }
  for (int e = 0; e < 4; e++)
    for (int k = 0; k < 16; k++) c[e] += rows[e / 2][k] * columns[e % 2][k];
  fiber::warp_barrier();
}
static void load_four(u32 r[4], const void* row, bool transposed) {
  fiber::lanes[fiber::current].row = row;
  fiber::warp_barrier();
  const fiber::Lane* warp = fiber::warp();
  int lane = fiber::current % 32, g = lane / 4, q = lane % 4;
  for (int i = 0; i < 4; i++) {
    u16 pair[2];
    for (int e = 0; e < 2; e++)
      pair[e] = transposed ? ((const u16*)warp[8 * i + 2 * q + e].row)[g]
                           : ((const u16*)warp[8 * i + g].row)[2 * q + e];
    r[i] = pair[0] | (u32)pair[1] << 16;
  }
  fiber::warp_barrier();
}
DEV void load_matrices(u32 r[4], const void* row) { load_four(r, row, false); }
DEV void load_transposed(u32 r[4], const void* row) { load_four(r, row, true); }

static void perform(const fiber::Copy& copy) {
  if (copy.inside) memcpy(copy.to, copy.from, 16);
  else memset(copy.to, 0, 16);
}
DEV void copy16(void* to, const void* from, bool inside = true) {
  if ((u64)to % 16 || (inside && (u64)from % 16)) { puts("unaligned copy"); exit(1); }
  fiber::Copy copy = {to, from, inside};
  if (fiber::early) perform(copy);
  else fiber::fibers[fiber::current].groups.back().push_back(copy);
}
DEV void copy_commit() { fiber::fibers[fiber::current].groups.push_back({}); }
template <int N> static void copy_wait() {
  auto& groups = fiber::fibers[fiber::current].groups;
  for (; (int)groups.size() > N + 1; groups.pop_front())
    for (const fiber::Copy& copy : groups.front()) perform(copy);
}
