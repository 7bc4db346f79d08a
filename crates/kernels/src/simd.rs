//! Loops compiled once for any machine and once for wide vectors, chosen when they run.

/// Defines a function whose body is compiled also for AVX2 with FMA and for AVX-512; the
/// widest version that the processor has is taken. The body and the `#[inline(always)]`
/// functions it calls are plain Rust written so that the compiler can vectorise it; on other
/// architectures, whose baseline has vectors, there is the one version.
///
/// Products and sums are contracted only where the body says `mul_add`, so all versions give
/// the same bits. (`mul_add` is slow on an x86 processor without FMA, older than 2013.)
/// A function may have one type parameter with one bound.
#[macro_export]
macro_rules! vectorised {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $(<$T:ident: $bound:path>)?
            ($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block
    )*) => {$(
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name $(<$T: $bound>)? ($($argument: $type),*) $(-> $output)? {
            #[inline(always)]
            fn body $(<$T: $bound>)? ($($argument: $type),*) $(-> $output)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi2,fma")]
                fn wide $(<$T: $bound>)? ($($argument: $type),*) $(-> $output)? {
                    body($($argument),*)
                }
                #[target_feature(enable = "avx2,bmi2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
                fn widest $(<$T: $bound>)? ($($argument: $type),*) $(-> $output)? {
                    body($($argument),*)
                }
                match $crate::Vectors::detect() {
                    // SAFETY: the processor has the features that `widest` is compiled for.
                    $crate::Vectors::Avx512 => return unsafe { widest($($argument),*) },
                    // SAFETY: the processor has the features that `wide` is compiled for.
                    $crate::Vectors::Avx2 => return unsafe { wide($($argument),*) },
                    $crate::Vectors::Baseline => {}
                }
            }
            body($($argument),*)
        }
    )*};
}

pub(crate) use crate::vectorised;

/// The vector instructions that [`vectorised!`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// What every processor of the architecture has.
    Baseline,
    /// 8 numbers in `f32`, with fused multiplication and addition.
    Avx2,
    /// 16 numbers in `f32`.
    Avx512,
}

impl Vectors {
    /// The widest that this processor has.
    #[inline]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            match (avx2, avx512) {
                (true, true) => return Self::Avx512,
                (true, false) => return Self::Avx2,
                _ => {}
            }
        }
        Self::Baseline
    }
}

/// Independent accumulators of a sum: one AVX-512 register's worth.
const LANES: usize = 16;

/// `Σᵢ f(first[i], second[i], …)` over slices of one length, in an order that vectorises and
/// depends on the length alone.
#[inline(always)]
pub(crate) fn sum<const N: usize>(slices: [&[f32]; N], f: impl Fn([f32; N]) -> f32) -> f32 {
    let n = slices[0].len();
    let parts = slices.map(|slice| slice[..n].as_chunks::<LANES>());
    let mut lanes = [0.0f32; LANES];
    for i in 0..n / LANES {
        let chunks = parts.map(|(whole, _)| &whole[i]);
        for (lane, total) in lanes.iter_mut().enumerate() {
            *total += f(chunks.map(|chunk| chunk[lane]));
        }
    }
    for (i, total) in lanes[..n % LANES].iter_mut().enumerate() {
        *total += f(parts.map(|(_, rest)| rest[i]));
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    vectorised! {
        fn total(values: &[f32]) -> f32 {
            sum([values], |[x]| x)
        }
    }

    #[test]
    fn sums_are_exact_on_small_integers() {
        for n in [0usize, 1, 15, 16, 17, 47, 128] {
            let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
            assert_eq!(total(&values), (n * n.saturating_sub(1) / 2) as f32, "{n}");
        }
    }
}
