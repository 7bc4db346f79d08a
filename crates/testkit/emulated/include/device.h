// CUDA C++ for the compiler of the host: what kernels that cubecl generates use, in one thread at a
// time. No header of the system is included, because the kernels define `uint32_t` and its kin.
//
// - Threads meet in `wait` (threads.cpp). Values are exchanged between lanes in two sets of slots.
// - A fragment of `nvcuda::wmma` is a whole tile, which lane 0 alone loads, multiplies and stores.
// - 16-bit types compute in f32 and round to nearest even.
#pragma once
#include "host.h"

typedef decltype(sizeof 0) size_t;
extern "C" {
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
int printf(const char*, ...);
}
#define warpSize 32

// ---- entry points

namespace emulated {
template <unsigned... I> struct Indices {};
template <class... A, unsigned... I>
static inline void run_one(void (*kernel)(A...), void** parameters, Indices<I...>) { kernel(*(A*)parameters[I]...); }
template <class... A> static inline void run_one(void (*kernel)(A...), void** parameters) {
    run_one(kernel, parameters, Indices<__integer_pack(sizeof...(A))...>());
}
template <unsigned N> struct Sizes { unsigned bytes[N]; };
template <class... A> constexpr Sizes<sizeof...(A) + 1> sizes_of(void (*)(A...)) { return {{sizeof(A)..., 0}}; }
}
#define EMULATED_ENTRY(kernel) EMULATED_ENTRY_OF(kernel) // the name may be a macro
#define EMULATED_ENTRY_OF(kernel)                                                                        \
    extern "C" void emulated_run_##kernel(void** parameters) { emulated::run_one(kernel, parameters); }  \
    extern "C" { extern const decltype(emulated::sizes_of(kernel)) emulated_sizes_##kernel; }            \
    const decltype(emulated::sizes_of(kernel)) emulated_sizes_##kernel = emulated::sizes_of(kernel);
#define EMULATED_WAITS(waits) extern "C" { extern const bool emulated_waits; } const bool emulated_waits = waits;

// ---- warps and blocks

static inline void __threadfence() {}
static inline unsigned __activemask() { return ~0u; }
namespace emulated {
static inline bool is_present(unsigned lane) { return lane < 32 && warp_of_thread().present >> lane & 1; }
template <class T> static inline T from_lane(T value, unsigned lane) {
    char(*slots)[64] = show(value);
    if (is_present(lane)) memcpy(&value, slots[lane], sizeof value);
    return value;
}
}
template <class T> static inline T __shfl_sync(unsigned, T value, int lane, int width = 32) {
    unsigned own = emulated::lane_of_thread();
    return emulated::from_lane(value, own / width * width + lane % width);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T value, int mask, int = 32) { return emulated::from_lane(value, emulated::lane_of_thread() ^ mask); }
template <class T> static inline T __shfl_up_sync(unsigned, T value, unsigned delta, int width = 32) {
    unsigned own = emulated::lane_of_thread();
    return emulated::from_lane(value, own % width >= delta ? own - delta : own);
}
template <class T> static inline T __shfl_down_sync(unsigned, T value, unsigned delta, int width = 32) {
    unsigned own = emulated::lane_of_thread();
    return emulated::from_lane(value, own % width + delta < (unsigned)width ? own + delta : own);
}
static inline unsigned __ballot_sync(unsigned, int predicate) {
    char(*slots)[64] = emulated::show(predicate != 0);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < 32; lane++) if (emulated::is_present(lane) && slots[lane][0]) votes |= 1u << lane;
    return votes;
}
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

// ---- numbers

#define UNARY(name)                                                                                      \
    static inline float name(float x) { return __builtin_##name##f(x); }                                 \
    static inline double name(double x) { return __builtin_##name(x); }                                  \
    static inline float name##f(float x) { return __builtin_##name##f(x); }
UNARY(log) UNARY(log1p) UNARY(sin) UNARY(cos) UNARY(tan) UNARY(tanh) UNARY(sinh) UNARY(cosh) UNARY(acos) UNARY(asin)
UNARY(atan) UNARY(asinh) UNARY(acosh) UNARY(atanh) UNARY(sqrt) UNARY(exp) UNARY(exp2) UNARY(expm1) UNARY(ceil)
UNARY(trunc) UNARY(floor) UNARY(rint) UNARY(erf) UNARY(fabs) UNARY(log2)
#define BINARY(name)                                                                                     \
    static inline float name(float x, float y) { return __builtin_##name##f(x, y); }                     \
    static inline double name(double x, double y) { return __builtin_##name(x, y); }                     \
    static inline float name##f(float x, float y) { return __builtin_##name##f(x, y); }
BINARY(pow) BINARY(fmod) BINARY(hypot) BINARY(atan2) BINARY(fmin) BINARY(fmax) BINARY(copysign)
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float rsqrt(float x) { return 1.0f / sqrt(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrtf(float x) { return rsqrt(x); }
static inline float rhypotf(float x, float y) { return 1.0f / hypot(x, y); }
static inline float __expf(float x) { return exp(x); }
static inline float __logf(float x) { return log(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float min(float x, float y) { return fmin(x, y); }
static inline float max(float x, float y) { return fmax(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }
template <class A, class B> static inline auto min(A x, B y) -> decltype(x + y) { return y < x ? y : x; }
template <class A, class B> static inline auto max(A x, B y) -> decltype(x + y) { return x < y ? y : x; }
template <class T> static inline T abs(T x) { return x < 0 ? -x : x; }
static inline bool isnan(float x) { return __builtin_isnan(x); }
static inline bool isnan(double x) { return __builtin_isnan(x); }
static inline bool isinf(float x) { return __builtin_isinf(x); }
static inline bool isinf(double x) { return __builtin_isinf(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __mulhi(int x, int y) { return (long long)x * y >> 32; }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned long long)x * y >> 32; }
static inline long long __mul64hi(long long x, long long y) { return (__int128)x * y >> 64; }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) { return (unsigned __int128)x * y >> 64; }
static inline float __uint_as_float(unsigned x) { return as_float(x); }
static inline unsigned __float_as_uint(float f) { return bits_of(f); }
// cubecl passes pointers to constant numbers.
template <class T> static inline T add_atomically(const T* at, T value) { T before = *at; *const_cast<T*>(at) = before + value; return before; }
template <class T> static inline T atomicAdd(T* at, T value) { return add_atomically(at, value); }

struct uint2 { unsigned x, y; };
struct float4 { float x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// ---- 16-bit numbers, and pairs of them

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    template <class T> __nv_bfloat16(T value) : bits(round_bf16((float)value)) {}
    operator float() const { return __uint_as_float((unsigned)bits << 16); }
    __nv_bfloat16& operator+=(float x) { return *this = float(*this) + x; }
};
struct __half {
    _Float16 value;
    __half() = default;
    template <class T> __half(T from) : value((_Float16)(float)from) {}
    operator float() const { return (float)value; }
    __half& operator+=(float x) { return *this = float(*this) + x; }
};
namespace emulated { template <class H> struct Pair { H x, y; }; }
using emulated::Pair;
typedef Pair<__half> __half2;
typedef Pair<__nv_bfloat16> __nv_bfloat162;
#define PAIRWISE(op) template <class H> static inline Pair<H> operator op(Pair<H> a, Pair<H> b) { return {H(float(a.x) op float(b.x)), H(float(a.y) op float(b.y))}; }
PAIRWISE(+) PAIRWISE(-) PAIRWISE(*) PAIRWISE(/)
template <class H> static inline Pair<H> operator-(Pair<H> a) { return {H(-float(a.x)), H(-float(a.y))}; }
#define OF_HALVES(name, function)                                                                        \
    static inline __half name(__half x) { return function(float(x)); }                                   \
    static inline __nv_bfloat16 name(__nv_bfloat16 x) { return function(float(x)); }
#define HALVES(name)                                                                                     \
    OF_HALVES(h##name, name)                                                                             \
    template <class H> static inline Pair<H> h2##name(Pair<H> v) { return {h##name(v.x), h##name(v.y)}; }
HALVES(log) HALVES(sin) HALVES(cos) HALVES(tanh) HALVES(sqrt) HALVES(rsqrt) HALVES(exp) HALVES(ceil) HALVES(trunc)
HALVES(floor) HALVES(rint)
OF_HALVES(__habs, fabs)
template <class H> static inline Pair<H> __habs2(Pair<H> v) { return {__habs(v.x), __habs(v.y)}; }
template <class H> static inline bool __hisnan(H x) { return isnan(float(x)); }
template <class H> static inline bool __hisinf(H x) { return isinf(float(x)) != 0; }
template <class H> static inline H __hmin(H x, H y) { return fmin(float(x), float(y)); }
template <class H> static inline H __hmax(H x, H y) { return fmax(float(x), float(y)); }
template <class H> static inline Pair<H> __hmin2(Pair<H> a, Pair<H> b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
template <class H> static inline Pair<H> __hmax2(Pair<H> a, Pair<H> b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
template <class H> static inline H __hfma(H a, H b, H c) { return fma(float(a), float(b), float(c)); }
template <class H> static inline Pair<H> __hfma2(Pair<H> a, Pair<H> b, Pair<H> c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }

// ---- tensor cores

namespace nvcuda { namespace wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
namespace precision { struct tf32; }
enum layout_t { mem_row_major, mem_col_major };
// Rounds to 11 bits of mantissa, ties away from zero.
static inline float __float_to_tf32(float x) { return __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu); }
template <class T> struct Stored { typedef T type; };
template <> struct Stored<precision::tf32> { typedef float type; };
template <class Use, int M, int N, int K> struct Shape { enum { rows = M, columns = N }; };
template <int M, int N, int K> struct Shape<matrix_a, M, N, K> { enum { rows = M, columns = K }; };
template <int M, int N, int K> struct Shape<matrix_b, M, N, K> { enum { rows = K, columns = N }; };
template <class Layout> struct IsByColumns { enum { value = false }; };
template <> struct IsByColumns<col_major> { enum { value = true }; };
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment : Shape<Use, M, N, K> {
    typedef typename Stored<T>::type element;
    enum { num_elements = Shape<Use, M, N, K>::rows * Shape<Use, M, N, K>::columns, by_columns = IsByColumns<Layout>::value };
    element x[num_elements];
};
template <class F, class V> static inline void fill_fragment(F& f, V value) {
    for (int i = 0; i < F::num_elements; i++) f.x[i] = value;
}
template <class F, class T> static inline void load(F& f, const T* from, unsigned stride, bool by_columns) {
    __syncwarp();
    if (emulated::lane_of_thread() == 0)
        for (int r = 0; r < F::rows; r++)
            for (int c = 0; c < F::columns; c++) f.x[r * F::columns + c] = by_columns ? from[c * stride + r] : from[r * stride + c];
    __syncwarp();
}
template <class F, class T> static inline void load_matrix_sync(F& f, const T* from, unsigned stride) { load(f, from, stride, F::by_columns); }
template <class F, class T> static inline void load_matrix_sync(F& f, const T* from, unsigned stride, layout_t layout) { load(f, from, stride, layout == mem_col_major); }
template <class F, class T> static inline void store_matrix_sync(T* to, const F& f, unsigned stride, layout_t layout = mem_row_major) {
    __syncwarp();
    if (emulated::lane_of_thread() == 0)
        for (int r = 0; r < F::rows; r++)
            for (int c = 0; c < F::columns; c++) (layout == mem_col_major ? to[c * stride + r] : to[r * stride + c]) = f.x[r * F::columns + c];
    __syncwarp();
}
template <class D, class A, class B, class C> static inline void mma_sync(D& d, const A& a, const B& b, const C& c) {
    if (emulated::lane_of_thread() != 0) return;
    for (int row = 0; row < D::rows; row++) {
        float sums[D::columns];
        for (int j = 0; j < D::columns; j++) sums[j] = c.x[row * D::columns + j];
        for (int k = 0; k < A::columns; k++) {
            float factor = a.x[row * A::columns + k];
            for (int j = 0; j < D::columns; j++) sums[j] += factor * float(b.x[k * B::columns + j]);
        }
        for (int j = 0; j < D::columns; j++) d.x[row * D::columns + j] = sums[j];
    }
}
} }
#undef UNARY
#undef BINARY
#undef PAIRWISE
#undef HALVES
#undef OF_HALVES
