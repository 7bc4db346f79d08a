//! What the toy networks ask of a number: they run in `f32`, and in `f64` where tests compare
//! with a reference or with finite differences.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use overtone_kernels::math;

/// `f32` or `f64`.
pub trait Number:
    Copy
    + Debug
    + Send
    + Sync
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// The nearest number.
    fn of(value: f64) -> Self;
    /// In double precision.
    fn wide(self) -> f64;
    /// `eˣ`; in a loop over `f32`, vectorised.
    fn exp(self) -> Self;
    /// `√x`.
    fn sqrt(self) -> Self;
    /// `self · factor + sum`, rounded once: one instruction where the processor has it, the same
    /// bits by a slow function where it has not.
    fn fused(self, factor: Self, sum: Self) -> Self;

    /// The larger of two.
    #[inline(always)]
    fn or_more(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
}

macro_rules! number {
    ($float:ident, $exp:path) => {
        impl Number for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn of(value: f64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn wide(self) -> f64 {
                self.into()
            }

            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                $float::sqrt(self)
            }

            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                self.mul_add(factor, sum)
            }
        }
    };
}

number!(f32, math::exp);
number!(f64, f64::exp);
