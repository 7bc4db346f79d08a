//! The form of an operation, and the precision of its matrix products.

use burn::tensor::{DType, Tensor};

/// The choice between the fastest and the reference form of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The fused form (CPU, `f32`) or the kernels (GPU) if available, otherwise the reference.
    /// On an NVIDIA GPU, products of `f32` are computed in TF32, with 10 bits of mantissa.
    #[default]
    Auto,
    /// The reference form, everywhere.
    Reference,
    /// Mixed precision: the factors of matrix products and convolutions are rounded to a half type,
    /// forward and backward. Weights, values between the products, and sums over many elements keep
    /// their type. Exception: values between the encoder's convolutions have the half type, and
    /// their biases are added in it. On a GPU the kernels run, on the CPU the reference form.
    Mixed(Half),
}

/// A float type of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The range of `f32` with 8 bits of precision: the usual training type of GPUs.
    Bf16,
    /// 11 bits of precision, numbers up to 65,504. Small gradients underflow in it.
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
    /// A factor of a product in the type of the product.
    pub(crate) fn factor<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Mixed(half) => x.cast(half.dtype()),
            Self::Auto | Self::Reference => x,
        }
    }

    /// The type of the factors of products of `f32` matrices.
    #[cfg(feature = "cube")]
    pub(crate) fn product_dtype(self) -> DType {
        match self {
            Self::Mixed(half) => half.dtype(),
            Self::Auto | Self::Reference => DType::F32,
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
