//! Common parts of loops that are compiled for several vector widths. The widest one of the
//! processor is selected at run time (`#[multiversion(targets = "simd")]`).
//!
//! Such a loop, and the `#[inline(always)]` functions that it calls, are plain Rust that the
//! compiler can vectorise. Products and sums are contracted only in explicit calls of `mul_add`, so
//! all versions give the same bits. (`mul_add` is slow on x86 processors without FMA, older than
//! 2013.)

/// Whether this processor has vectors of 16 numbers in `f32`.
#[inline]
pub(crate) fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Independent accumulators of a sum: the numbers of one AVX-512 register.
pub(crate) const LANES: usize = 16;

/// `Σᵢ f(first[i], second[i], …)` over slices of equal length, in an order that vectorises and
/// depends only on the length.
#[inline(always)]
pub(crate) fn sum<const N: usize>(slices: [&[f32]; N], f: impl Fn([f32; N]) -> f32) -> f32 {
    let n = slices[0].len();
    let parts = slices.map(|slice| slice[..n].as_chunks::<LANES>());
    let mut lanes = [0.0f32; LANES];
    for i in 0..n / LANES {
        let chunks = parts.map(|(whole, _)| &whole[i]);
        for (lane, total) in lanes.iter_mut().enumerate() {
            let mut values = [0.0; N];
            for (value, chunk) in values.iter_mut().zip(chunks) {
                *value = chunk[lane];
            }
            *total += f(values);
        }
    }
    for (i, total) in lanes[..n % LANES].iter_mut().enumerate() {
        *total += f(parts.map(|(_, rest)| rest[i]));
    }
    fold(lanes, |a, b| a + b)
}

/// The result of combining all lanes.
#[inline(always)]
pub(crate) fn fold(mut lanes: [f32; LANES], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use multiversion::multiversion;

    use super::*;

    #[multiversion(targets = "simd")]
    fn total(values: &[f32]) -> f32 {
        sum([values], |[x]| x)
    }

    #[test]
    fn sums_are_exact_on_small_integers() {
        for n in [0usize, 1, 15, 16, 17, 47, 128] {
            let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
            assert_eq!(total(&values), (n * n.saturating_sub(1) / 2) as f32, "{n}");
        }
    }
}
