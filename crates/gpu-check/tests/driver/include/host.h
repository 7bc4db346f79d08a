// The instructions of `warp.cuh` for kernels that the emulated NVRTC compiles.
#pragma once
#define DEV static inline
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned long long u64;

DEV float as_float(u32 x) { return __uint_as_float(x); }
DEV u16 round_bf16(float f) { return __nv_bfloat16(f).bits; }
DEV u32 pack_bf16(float low, float high) { return round_bf16(low) | (u32)round_bf16(high) << 16; }
DEV float of_pair(u32 pair, int nth) { return as_float(nth ? pair & 0xffff0000u : pair << 16); }
// Bytes of x (0 to 3) and y (4 to 7), selected by the four lowest nibbles of s.
DEV u32 __byte_perm(u32 x, u32 y, u32 s) {
    u64 bytes = (u64)y << 32 | x;
    u32 r = 0;
    for (int i = 0; i < 4; i++) r |= (u32)(bytes >> (s >> 4 * i & 7) * 8 & 255) << 8 * i;
    return r;
}

// mma.sync.m16n8k16: see `warp.cuh` for the places of the elements.
DEV void multiply(float c[4], const u32 a[4], const u32 b[2]) {
    struct Shown { u32 a[4], b[2]; } own;
    memcpy(own.a, a, 16);
    memcpy(own.b, b, 8);
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
// cp.async, performed at once.
DEV void copy16(void* to, const void* from, bool inside = true) {
    if (inside) memcpy(to, from, 16);
    else memset(to, 0, 16);
}
DEV void copy_commit() {}
template <int N> static void copy_wait() {}
