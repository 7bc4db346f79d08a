// The instructions of `warp.cuh` on the CPU: collective operations over fibers (threads.cpp).
#pragma once
#include "block.h"

extern "C" { emulated::Block* emulated_block; }
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __grid_constant__
#define __shared__ static
#define __constant__ static
#define __align__(n) __attribute__((aligned(n)))
#define threadIdx (emulated_block->thread)
#define blockIdx (emulated_block->at)
#define blockDim (emulated_block->size)
#define gridDim (emulated_block->grid)
#define __launch_bounds__(...)
#define DEV static inline
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned long long u64;
struct uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }

static inline void __syncthreads() { emulated_block->wait(true); }
static inline void __syncwarp(unsigned = ~0u) { emulated_block->wait(false); }
namespace emulated {
static inline unsigned lane_of_thread() { return emulated_block->rank % 32; }
static inline Block::Warp& warp_of_thread() { return emulated_block->warps[emulated_block->rank / 32]; }

// Shows a value to the warp; returns what all lanes showed, until the next exchange but one.
template <class T> static inline char (*show(const T& value))[64] {
    static_assert(sizeof(T) <= 64, "too large to exchange");
    Block::Warp& warp = warp_of_thread();
    char(*slots)[64] = warp.slots[warp.turn % 2];
    __builtin_memcpy(slots[lane_of_thread()], &value, sizeof value);
    emulated_block->wait(false);
    return slots;
}
}

DEV float as_float(u32 x) { float f; __builtin_memcpy(&f, &x, 4); return f; }
DEV u32 bits_of(float f) { u32 x; __builtin_memcpy(&x, &f, 4); return x; }
// To nearest even.
DEV u16 round_bf16(float f) {
    u32 x = bits_of(f);
    return (x & 0x7fffffff) > 0x7f800000 ? 0x7fff : (x + 0x7fff + (x >> 16 & 1)) >> 16;
}
DEV u32 pack_bf16(float low, float high) { return round_bf16(low) | (u32)round_bf16(high) << 16; }
DEV float of_pair(u32 pair, int nth) { return as_float(nth ? pair & 0xffff0000u : pair << 16); }
// Bytes of x (0 to 3) and y (4 to 7), selected by the four lowest nibbles of s.
DEV u32 __byte_perm(u32 x, u32 y, u32 s) {
    u64 bytes = (u64)y << 32 | x;
    u32 r = 0;
    for (int i = 0; i < 4; i++) r |= (u32)(bytes >> (s >> 4 * i & 7) * 8 & 255) << 8 * i;
    return r;
}

// To nearest, ties away from zero, as `cvt.rna.tf32.f32`: 10 bits of mantissa. NaN is 0x7fffffff,
// which loses its 13 lowest bits.
DEV float round_tf32(float f) {
    u32 x = bits_of(f), magnitude = x & 0x7fffffff;
    if (magnitude > 0x7f800000) return as_float(0x7fffe000);
    return as_float((x & 0x80000000) | ((magnitude + 0x1000) & 0xffffe000));
}

// mma.sync.m16n8k16: see `warp.cuh` for the places of the elements.
DEV void multiply_bf16(float c[4], const u32 a[4], const u32 b[2]) {
    struct Shown { u32 a[4], b[2]; } own;
    __builtin_memcpy(own.a, a, 16);
    __builtin_memcpy(own.b, b, 8);
    char(*shown)[64] = emulated::show(own);
    int lane = emulated::lane_of_thread(), g = lane / 4, q = lane % 4;
    float rows[2][16], columns[2][16];
    for (int h = 0; h < 2; h++)
        for (int k = 0; k < 16; k++) {
            rows[h][k] = of_pair(((Shown*)shown[g * 4 + k % 8 / 2])->a[h + k / 8 * 2], k % 2);
            columns[h][k] = of_pair(((Shown*)shown[(2 * q + h) * 4 + k % 8 / 2])->b[k / 8], k % 2);
        }
    for (int e = 0; e < 4; e++)
        for (int k = 0; k < 16; k++) c[e] += rows[e / 2][k] * columns[e % 2][k];
}
// mma.sync.m16n8k8 of TF32. PTX's tables of fragments give the row and the column of each register:
// of a, `groupID` + 8 in a1 and a3, `threadID_in_group` + 4 in a2 and a3; of b, row
// `threadID_in_group` + 4 in b1, column `groupID`; of c as above.
//
// A tensor core ignores the 13 lowest bits. A kernel that has not rounded a factor is wrong.
DEV void multiply_tf32(float c[4], const u32 a[4], const u32 b[2]) {
    struct Shown { u32 a[4], b[2]; } own;
    __builtin_memcpy(own.a, a, 16);
    __builtin_memcpy(own.b, b, 8);
    for (u32 x : own.a) if (x & 0x1fff) { __builtin_printf("a factor is not rounded\n"); __builtin_trap(); }
    for (u32 x : own.b) if (x & 0x1fff) { __builtin_printf("a factor is not rounded\n"); __builtin_trap(); }
    char(*shown)[64] = emulated::show(own);
    float full_a[16][8], full_b[8][8];
    for (int lane = 0; lane < 32; lane++) {
        const Shown& held = *(Shown*)shown[lane];
        int group = lane >> 2, thread = lane % 4;
        for (int i = 0; i < 4; i++)
            full_a[i == 0 || i == 2 ? group : group + 8][i < 2 ? thread : thread + 4] = as_float(held.a[i]);
        for (int i = 0; i < 2; i++) full_b[i == 0 ? thread : thread + 4][group] = as_float(held.b[i]);
    }
    int lane = emulated::lane_of_thread();
    for (int i = 0; i < 4; i++) {
        int row = i < 2 ? lane >> 2 : (lane >> 2) + 8, column = lane % 4 * 2 + (i & 1);
        for (int k = 0; k < 8; k++) c[i] += full_a[row][k] * full_b[k][column];
    }
}
// ldmatrix
static void load_four(u32 r[4], const void* row, bool transposed) {
    char(*shown)[64] = emulated::show(row);
    int lane = emulated::lane_of_thread(), g = lane / 4, q = lane % 4;
    auto number = [&](int row, int column) { return (*(const u16**)shown[row])[column]; };
    for (int i = 0; i < 4; i++) {
        u16 low = transposed ? number(8 * i + 2 * q, g) : number(8 * i + g, 2 * q);
        u16 high = transposed ? number(8 * i + 2 * q + 1, g) : number(8 * i + g, 2 * q + 1);
        r[i] = low | (u32)high << 16;
    }
    __syncwarp();
}
DEV void load_matrices(u32 r[4], const void* row) { load_four(r, row, false); }
DEV void load_transposed(u32 r[4], const void* row) { load_four(r, row, true); }
// cp.async: at once in the early order, else where `copy_wait` waits for it.
DEV void perform(const emulated::Block::Copies::Copy& copy) {
    if (copy.inside) __builtin_memcpy(copy.to, copy.from, 16);
    else __builtin_memset(copy.to, 0, 16);
}
DEV emulated::Block::Copies& copies_of_thread() { return emulated_block->copies[emulated_block->rank]; }
DEV void copy16(void* to, const void* from, bool inside = true) {
    auto& copies = copies_of_thread();
    bool is_aligned = (u64)to % 16 == 0 && (!inside || (u64)from % 16 == 0);
    if (!is_aligned || copies.last - copies.first == 64) {
        __builtin_printf(is_aligned ? "too many copies\n" : "unaligned copy\n");
        __builtin_trap();
    }
    if (emulated_block->early) perform({to, from, inside, 0});
    else copies.ring[copies.last++ % 64] = {to, from, inside, copies.group};
}
DEV void copy_commit() { copies_of_thread().group++; }
template <int N> static void copy_wait() {
    auto& copies = copies_of_thread();
    for (; copies.first != copies.last && copies.ring[copies.first % 64].group + N < copies.group; copies.first++)
        perform(copies.ring[copies.first % 64]);
}
