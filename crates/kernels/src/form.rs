//! Which form of an operation runs, and in what precision its matrix products are.

use burn::tensor::{DType, Tensor};

/// The choice between the fastest and the reference form of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The fused form (CPU, `f32`) or the kernels (GPU) where there are any, the reference
    /// elsewhere.
    #[default]
    Auto,
    /// The reference form, everywhere.
    Reference,
    /// Mixed precision: the factors of matrix products and convolutions are rounded to a half
    /// type, forward and backward. Weights, what is between the products, and what is added
    /// over many elements stay as they are; but what is between the encoder's convolutions is
    /// in the half type, and there their biases are added in it. On a GPU the kernels run, on the
    /// CPU the reference form.
    Mixed(Half),
}

/// A float type of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The range of `f32`, 8 bits of precision: what GPUs train in.
    Bf16,
    /// 11 bits of precision, numbers up to 65,504. Small gradients vanish in it.
    F16,
}

impl Half {
    fn dtype(self) -> DType {
        match self {
            Self::Bf16 => DType::BF16,
            Self::F16 => DType::F16,
        }
    }
}

impl Form {
    /// A factor of a product, as it enters it.
    pub(crate) fn factor<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Mixed(half) => x.cast(half.dtype()),
            Self::Auto | Self::Reference => x,
        }
    }

    /// `x y`, in the type of `x`.
    pub(crate) fn product<const D: usize>(self, x: Tensor<D>, y: Tensor<D>) -> Tensor<D> {
        let dtype = x.dtype();
        let product = self.factor(x).matmul(self.factor(y));
        match self {
            Self::Mixed(_) => product.cast(dtype),
            Self::Auto | Self::Reference => product,
        }
    }
}
