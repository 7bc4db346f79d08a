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
DEV void multiply(float c[4], const u32 a[4], const u32 b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
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
DEV float as_float(u32 x) { return __uint_as_float(x); }
#else
#include "host.h"
#endif

// A NaN stays NaN.
DEV float relu(float x) { return x < 0.0f ? 0.0f : x; }

// The two numbers of a pair.
DEV float low_bf16(u32 x) { return as_float(x << 16); }
DEV float high_bf16(u32 x) { return as_float(x & 0xffff0000u); }
