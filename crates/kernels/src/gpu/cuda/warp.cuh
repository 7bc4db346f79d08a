// Instructions of a warp: PTX on a GPU, collectives over fibers in a test on the CPU (host.h).
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned long long u64;

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
#define DEV __device__ __forceinline__

DEV u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// c += a b: a is 16 x 16 by rows, b is 16 x 8 by columns. With g = lane / 4 and q = lane % 4, a lane
// holds of a: rows g, g + 8, g, g + 8 at columns 2q, 2q, 2q + 8, 2q + 8, and the next column each;
// of b: rows 2q and 2q + 8, and the next row each, of column g; of c: rows g, g, g + 8, g + 8 at
// columns 2q, 2q + 1, 2q, 2q + 1.
DEV void multiply_bf16(float c[4], const u32 a[4], const u32 b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same of f32 as TF32: a is 16 x 8, b is 8 x 8. A lane holds of a: rows g, g + 8, g, g + 8 at
// columns q, q, q + 4, q + 4; of b: rows q and q + 4 of column g; of c as above.
DEV void multiply_tf32(float c[4], const u32 a[4], const u32 b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four matrices of 8 x 8: lane l gives the address of row l % 8 of matrix l / 8, and receives
// columns 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of each.
DEV void load_matrices(u32 r[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

// The same of the transposed matrices.
DEV void load_transposed(u32 r[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

// Starts a copy of 16 bytes to shared memory, or writes zeros there without reading.
DEV void copy16(void* to, const void* from, bool inside = true) {
  asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(shared_address(to)), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}
// Ends a group of copies.
DEV void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most N of the newest groups are under way.
template <int N> DEV void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

DEV u32 pack_bf16(float low, float high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
// To TF32, ties away from zero. PTX does not specify the 13 lowest bits, which f32 has in addition.
DEV float round_tf32(float x) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0,%1;" : "=r"(r) : "f"(x));
  return __uint_as_float(r & 0xffffe000u);
}
DEV float as_float(u32 x) { return __uint_as_float(x); }
DEV u32 bits_of(float x) { return __float_as_uint(x); }
#else
#include "host.h"
#endif

// The factors of products: bf16, or with TF32 f32 that have TF32's 10 bits of mantissa. A kernel that
// stores factors rounds them, so that a product reads them as they are: rounding them there would be
// two conversions for each `multiply`.
//
// `multiply` reads 32 bytes of a row of a and of a column of b: DEPTH factors. A lane holds the same
// bytes of them in both types.
#if TF32
typedef float Factor;
typedef float2 Pair;
DEV Pair pack(float first, float second) { return make_float2(round_tf32(first), round_tf32(second)); }
DEV float2 unpack(Pair x) { return x; }
DEV Factor factor_of(float x) { return round_tf32(x); }
DEV float value_of(Factor x) { return x; }
DEV void multiply(float c[4], const u32 a[4], const u32 b[2]) { multiply_tf32(c, a, b); }
#else
typedef u16 Factor;
typedef u32 Pair;
DEV Pair pack(float first, float second) { return pack_bf16(first, second); }
DEV float2 unpack(Pair x) { return make_float2(as_float(x << 16), as_float(x & 0xffff0000u)); }
DEV Factor factor_of(float x) { return (u16)pack_bf16(x, 0.0f); }
DEV float value_of(Factor x) { return as_float((u32)x << 16); }
DEV void multiply(float c[4], const u32 a[4], const u32 b[2]) { multiply_bf16(c, a, b); }
#endif
// Factors in 16 bytes, a chunk, and in the rows that `multiply` reads.
static const int CHUNK = 16 / sizeof(Factor), DEPTH = 2 * CHUNK;

// Four matrices of CHUNK x 8 whose rows are DEPTH's direction: `row(i, j)` is the address of row j
// of matrix i. A lane receives the part of column g that `multiply` expects: rows 2q and 2q + 1 of
// bf16, row q of f32. `ldmatrix` transposes only elements of 16 bits, so f32 are read one by one.
template <class Row> DEV void load_columns(u32 r[4], Row row) {
  const int lane = threadIdx.x & 31;
#if TF32
#pragma unroll
  for (int i = 0; i < 4; i++) r[i] = bits_of(row(i, lane & 3)[lane >> 2]);
#else
  load_transposed(r, row(lane >> 3, lane & 7));
#endif
}

// A NaN stays NaN.
DEV float relu(float x) { return x < 0.0f ? 0.0f : x; }
