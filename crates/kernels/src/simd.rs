//! Loops compiled once for any machine and once for wide vectors, chosen when they run.

/// Defines a function whose body is compiled a second time for AVX2, which is taken where
/// the processor has it. The body and the `#[inline(always)]` functions it calls are plain
/// Rust written so that the compiler can vectorise it; on other architectures, whose
/// baseline has vectors, there is the one version.
///
/// Products and sums are not contracted, so both versions give the same bits.
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
                #[target_feature(enable = "avx2,bmi2")]
                fn wide $(<$T: $bound>)? ($($argument: $type),*) $(-> $output)? {
                    body($($argument),*)
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
                    // SAFETY: the processor has the features that `wide` is compiled for.
                    return unsafe { wide($($argument),*) };
                }
            }
            body($($argument),*)
        }
    )*};
}

pub(crate) use crate::vectorised;

/// Independent accumulators of a sum: two AVX registers' worth.
const LANES: usize = 16;

/// `Σ f(i)` for `i < n`, in an order that vectorises and depends on `n` alone.
#[inline(always)]
pub(crate) fn sum(n: usize, f: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let whole = n / LANES * LANES;
    let mut start = 0;
    while start < whole {
        for (lane, total) in lanes.iter_mut().enumerate() {
            *total += f(start + lane);
        }
        start += LANES;
    }
    for (lane, i) in (whole..n).enumerate() {
        lanes[lane] += f(i);
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
            sum(values.len(), |i| values[i])
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
