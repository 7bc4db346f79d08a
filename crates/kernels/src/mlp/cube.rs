//! The perceptron block on a GPU: one operation forward, one backward.
//!
//! With `n = layer_norm(x)`, `u = n W₁ + b₁`, `a = activation(u)` and the result
//! `x + mask ⊙ (a W₂ + b₂)`. **Backward**, given `g`:
//!
//! - `g' = mask ⊙ g`, `dW₂ = aᵀ g'`, `db₂ = Σ g'`
//! - `du = g' W₂ᵀ ⊙ activation'(u)`, `dW₁ = nᵀ du`, `db₁ = Σ du`
//! - `dn = du W₁ᵀ`, then [layer norm](crate::layer_norm) and `dx += g`
//!
//! `n`, `u` and `a` are kept, and the weights in the type of products.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{
    Autodiff, Backend, DType, Dispatch, ExtensionType, TensorMetadata, backend_extension,
};
use burn::tensor::{Shape, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;

use super::MlpWeights;
use crate::activation::Activation;
use crate::gpu::epilogues::{Masked, cast, masked};
use crate::gpu::{affine, tape};
use crate::mask::Place;
use crate::{Dropout, Form, Queries, norm};

/// Whether the operation can compute this block: in `f32` on a GPU, and rows that fit the layer
/// norm.
pub(super) fn is_possible(x: &Tensor<3>, weights: &MlpWeights, form: Form) -> bool {
    let MlpWeights { norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias } = weights;
    let vectors = [norm_weight, norm_bias, up_bias, down_bias];
    form != Form::Reference
        && norm::cube::is_possible(x)
        && vectors.iter().all(|vector| vector.dtype() == DType::F32)
        && [up_weight, down_weight].iter().all(|matrix| matrix.dtype() == DType::F32)
}

/// The block, for which [`is_possible`] holds.
pub(super) fn mlp(
    x: Tensor<3>,
    weights: MlpWeights,
    activation: Activation,
    dropout: Option<Dropout>,
    form: Form,
) -> Tensor<3> {
    let (step_seed, mask) = Masked::of(dropout.as_ref(), Place::Residual, &x.device());
    let [x, norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias] = weights.inputs(x);
    let parts = MlpParts { x, norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias };
    let plan = Plan { activation, mask, dtype: form.product_dtype() };
    Tensor::from_dispatch(Dispatch::cube_mlp(parts, step_seed.into_dispatch(), plan))
}

/// The options of a block.
#[derive(Clone, Copy, Debug)]
struct Plan {
    activation: Activation,
    mask: Option<Masked>,
    /// Type of the factors of products.
    dtype: DType,
}

/// The float inputs of a block, or their gradients.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct MlpParts<B: Backend> {
    x: FloatTensor<B>,
    norm_weight: FloatTensor<B>,
    norm_bias: FloatTensor<B>,
    up_weight: FloatTensor<B>,
    up_bias: FloatTensor<B>,
    down_weight: FloatTensor<B>,
    down_bias: FloatTensor<B>,
}

impl<B: Backend> MlpParts<B> {
    fn of(
        [x, norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias]: [FloatTensor<B>;
            7],
    ) -> Self {
        Self { x, norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias }
    }

    fn into_array(self) -> [FloatTensor<B>; 7] {
        let Self { x, norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias } = self;
        [x, norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias]
    }
}

/// The result of a block, and the values that its backward pass needs.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct MlpValues<B: Backend> {
    out: FloatTensor<B>,
    normal: FloatTensor<B>,
    stats: FloatTensor<B>,
    before: FloatTensor<B>,
    active: FloatTensor<B>,
    up_weight: FloatTensor<B>,
    down_weight: FloatTensor<B>,
}

/// The extension of burn: the block, with support for autodiff.
#[backend_extension(Cube, Autodiff, Fusion)]
trait CubeMlp: Backend {
    #[fusion(meta = |parts, _step_seed, _plan| parts.x.clone())]
    fn cube_mlp(
        #[extension_type] parts: MlpParts<Self>,
        step_seed: IntTensor<Self>,
        plan: Plan,
    ) -> FloatTensor<Self>;
}

/// The passes of the block.
#[backend_extension(Cube, Fusion)]
trait CubeMlpPasses: Backend {
    #[fusion(meta = values_of)]
    fn cube_mlp_forward(
        #[extension_type] parts: MlpParts<Self>,
        step_seed: IntTensor<Self>,
        plan: Plan,
    ) -> MlpValues<Self>;

    #[fusion(meta = |parts, _values, _by_out, _step_seed, _plan| parts.clone())]
    fn cube_mlp_backward(
        #[extension_type] parts: MlpParts<Self>,
        #[extension_type] values: MlpValues<Self>,
        by_out: FloatTensor<Self>,
        step_seed: IntTensor<Self>,
        plan: Plan,
    ) -> MlpParts<Self>;
}

fn values_of(parts: &MlpPartsMetadata, _step_seed: &TensorSpec, plan: &Plan) -> MlpValuesMetadata {
    let [batch, tokens, d] = parts.x.shape.dims();
    let [_, h] = parts.up_weight.shape.dims();
    let of = |shape: [usize; 2], dtype| TensorSpec::new(Shape::new(shape), dtype);
    let rows = batch * tokens;
    MlpValuesMetadata {
        out: parts.x.clone(),
        normal: of([rows, d], plan.dtype),
        stats: of([rows, 2], DType::F32),
        before: of([rows, h], plan.dtype),
        active: of([rows, h], plan.dtype),
        up_weight: of([d, h], plan.dtype),
        down_weight: of([h, d], plan.dtype),
    }
}

impl CubeMlp for CubeBackend {
    fn cube_mlp(
        parts: MlpParts<Self>,
        step_seed: IntTensor<Self>,
        plan: Plan,
    ) -> FloatTensor<Self> {
        Self::cube_mlp_forward(parts, step_seed, plan).out
    }
}

impl CubeMlpPasses for CubeBackend {
    fn cube_mlp_forward(
        parts: MlpParts<Self>,
        step_seed: IntTensor<Self>,
        plan: Plan,
    ) -> MlpValues<Self> {
        let Plan { activation, mask, dtype } = plan;
        let x = into_contiguous(parts.x);
        let [norm_weight, norm_bias, up_bias, down_bias] =
            [parts.norm_weight, parts.norm_bias, parts.up_bias, parts.down_bias]
                .map(into_contiguous);
        let [up_weight, down_weight] = cast([parts.up_weight, parts.down_weight], dtype);
        let [normal, stats] = norm::cube::forward(&x, norm_weight, norm_bias, dtype);
        let [before, active] = affine::affine_active(&normal, &up_weight, up_bias, activation);
        let out = affine::affine_residual(
            &active,
            &down_weight,
            down_bias,
            &x,
            Queries::ALL,
            step_seed,
            mask,
        );
        let out = burn_cubecl::ops::reshape(out, x.shape());
        MlpValues { out, normal, stats, before, active, up_weight, down_weight }
    }

    fn cube_mlp_backward(
        parts: MlpParts<Self>,
        values: MlpValues<Self>,
        by_out: FloatTensor<Self>,
        step_seed: IntTensor<Self>,
        plan: Plan,
    ) -> MlpParts<Self> {
        let Plan { activation, mask, dtype } = plan;
        let (x, by_out) = (into_contiguous(parts.x), into_contiguous(by_out));
        let MlpValues { normal, stats, before, active, up_weight, down_weight, .. } = values;
        let [rows, d] = normal.shape().dims();
        let by_down = masked(by_out.clone(), d, step_seed, mask, dtype);
        let by_down = burn_cubecl::ops::reshape(by_down, Shape::new([rows, d]));
        let by_up = affine::by_rows_active(&by_down, &down_weight, before, activation);
        let layers = [[&active, &by_down], [&normal, &by_up]];
        let [[by_down_weight, by_down_bias], [by_up_weight, by_up_bias]] =
            affine::by_parameters(layers);
        let by_normal = affine::by_rows(&by_up, &up_weight);
        let norm_weight = into_contiguous(parts.norm_weight);
        let [by_x, by_norm_weight, by_norm_bias] =
            norm::cube::backward(&x, stats, norm_weight, by_normal, by_out, Queries::ALL);
        MlpParts {
            x: by_x,
            norm_weight: by_norm_weight,
            norm_bias: by_norm_bias,
            up_weight: by_up_weight,
            up_bias: by_up_bias,
            down_weight: by_down_weight,
            down_bias: by_down_bias,
        }
    }
}

impl<B: CubeMlpPasses, C: CheckpointStrategy> CubeMlp for Autodiff<B, C> {
    fn cube_mlp(
        parts: MlpParts<Self>,
        step_seed: IntTensor<Self>,
        plan: Plan,
    ) -> FloatTensor<Self> {
        let forward = |parts| {
            let parts = MlpParts::of(parts);
            let values = B::cube_mlp_forward(parts.clone(), step_seed.clone(), plan);
            (values.out.clone(), (parts, values, step_seed, plan))
        };
        let backward = |(parts, values, step_seed, plan), by_out| {
            B::cube_mlp_backward(parts, values, by_out, step_seed, plan).into_array()
        };
        tape::apply::<B, C, _, 7>(parts.into_array(), forward, backward)
    }
}
