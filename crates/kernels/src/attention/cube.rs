//! The attention block on a GPU: one operation forward, one backward.
//!
//! With `n = layer_norm(x)`, `[q k v] = n W + b`, the heads' output `o` (see [`kernels`]) and the
//! result `x + mask ⊙ (o W' + b')`. **Backward**, given `g`:
//!
//! - `g' = mask ⊙ g`, `dW' = oᵀ g'`, `db' = Σ g'`, `do = g' W'ᵀ`
//! - `d[q k v]` and `dR` from `do`: see [`kernels`]
//! - `dW = nᵀ d[q k v]`, `db = Σ d[q k v]`, `dn = d[q k v] Wᵀ`, then
//!   [layer norm](crate::layer_norm) and `dx += g`
//!
//! `n`, `[q k v]`, `o` and two numbers for each query and head are kept, and the weights in the type
//! of products; probabilities are not.

mod kernels;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{
    Autodiff, Backend, DType, Dispatch, ExtensionType, TensorMetadata, backend_extension,
};
use burn::tensor::{Shape, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::{AttentionOptions, AttentionWeights, Score};
use crate::Queries;
use crate::gpu::epilogues::{Masked, cast, masked};
use crate::gpu::{address_type, affine, empty_like, sums, tape};
use crate::mask::Place;
use crate::norm;
use kernels::backward::{by_keys_kernel, by_queries_kernel};
use kernels::forward::forward_kernel;
use kernels::{NumbersLaunch, Sizes, UNITS};

/// Heads of all sequences: cubes along one axis of a grid, which any GPU allows.
const MOST_HEADS: usize = 65_535;

/// Whether the operation can compute this block: in `f32` on a GPU, with rows that fit the layer
/// norm and heads that fit the kernels.
pub(super) fn is_possible(
    x: &Tensor<3>,
    weights: &AttentionWeights,
    options: &AttentionOptions<'_>,
) -> bool {
    let [batch, _, d] = x.dims();
    let AttentionWeights { norm_weight, norm_bias, qkv_weight, qkv_bias, .. } = weights;
    let AttentionWeights { projection_weight, projection_bias, score_parameter, .. } = weights;
    let vectors = [norm_weight, norm_bias, qkv_bias, projection_bias];
    let mut matrices = [qkv_weight, projection_weight].into_iter().chain(score_parameter);
    options.form != crate::Form::Reference
        && !matches!(options.score, Score::Tensors(_))
        && norm::cube::is_possible(x)
        && vectors.iter().all(|vector| vector.dtype() == DType::F32)
        && matrices.all(|matrix| matrix.dtype() == DType::F32)
        && batch * options.n_heads <= MOST_HEADS
        && sizes(d, options).are_possible()
}

fn sizes(d: usize, options: &AttentionOptions<'_>) -> Sizes {
    Sizes {
        heads: options.n_heads,
        d_head: d / options.n_heads,
        power: match options.score {
            Score::Fourier { power, .. } => power,
            _ => 0,
        },
        has_padding: options.first_token.is_some(),
        has_dropout: options.dropout.as_ref().is_some_and(|dropout| dropout.probability > 0.0),
    }
}

/// The block, for which [`is_possible`] holds.
pub(super) fn attention(
    x: Tensor<3>,
    weights: AttentionWeights,
    options: AttentionOptions<'_>,
) -> Tensor<3> {
    let [_, tokens, d] = x.dims();
    let device = x.device();
    let (step_seed, mask) = Masked::of(options.dropout.as_ref(), Place::Residual, &device);
    let first_token = options.first_token.clone().unwrap_or_else(|| step_seed.clone());
    let plan = Plan {
        sizes: sizes(d, &options),
        tokens,
        queries: options.queries,
        scale: match options.score {
            Score::Fourier { power, .. } => 0.5 * power as f32,
            _ => ((d / options.n_heads) as f32).sqrt().recip(),
        },
        ln_epsilon: match options.score {
            Score::Fourier { epsilon, .. } => epsilon.ln() as f32,
            _ => f32::NEG_INFINITY,
        },
        mask,
        dtype: options.form.product_dtype(),
    };
    let [x, norm_weight, norm_bias, qkv_weight, qkv_bias, weight, bias, r] = weights.inputs(x);
    let parts = AttentionParts { x, norm_weight, norm_bias, qkv_weight, qkv_bias, weight, bias, r };
    let given =
        Given { step_seed: step_seed.into_dispatch(), first_token: first_token.into_dispatch() };
    Tensor::from_dispatch(Dispatch::cube_attention(parts, given, plan))
}

/// The options of a block.
#[derive(Clone, Copy, Debug)]
struct Plan {
    sizes: Sizes,
    tokens: usize,
    queries: Queries,
    scale: f32,
    ln_epsilon: f32,
    /// The mask of the residual; attention's has another place.
    mask: Option<Masked>,
    /// Type of the factors of products.
    dtype: DType,
}

impl Plan {
    fn n_queries(self) -> usize {
        self.queries.count(self.tokens)
    }

    fn numbers(self) -> NumbersLaunch {
        let Masked { nth, threshold, scale, .. } = self.mask.unwrap_or_default();
        let Queries { first, step } = self.queries;
        let [tokens, first, step] = [self.tokens, first, step].map(|n| n as u32);
        NumbersLaunch::new(
            tokens,
            first,
            step,
            self.scale,
            self.ln_epsilon.max(f32::MIN),
            nth,
            threshold,
            scale,
        )
    }
}

/// The integer inputs of a block.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct Given<B: Backend> {
    step_seed: IntTensor<B>,
    first_token: IntTensor<B>,
}

/// The float inputs of a block, or their gradients.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct AttentionParts<B: Backend> {
    x: FloatTensor<B>,
    norm_weight: FloatTensor<B>,
    norm_bias: FloatTensor<B>,
    qkv_weight: FloatTensor<B>,
    qkv_bias: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    r: FloatTensor<B>,
}

impl<B: Backend> AttentionParts<B> {
    fn of(
        [x, norm_weight, norm_bias, qkv_weight, qkv_bias, weight, bias, r]: [FloatTensor<B>; 8],
    ) -> Self {
        Self { x, norm_weight, norm_bias, qkv_weight, qkv_bias, weight, bias, r }
    }

    fn into_array(self) -> [FloatTensor<B>; 8] {
        let Self { x, norm_weight, norm_bias, qkv_weight, qkv_bias, weight, bias, r } = self;
        [x, norm_weight, norm_bias, qkv_weight, qkv_bias, weight, bias, r]
    }
}

/// The result of a block, and the values that its backward pass needs.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct AttentionValues<B: Backend> {
    out: FloatTensor<B>,
    normal: FloatTensor<B>,
    stats: FloatTensor<B>,
    qkv: FloatTensor<B>,
    mixed: FloatTensor<B>,
    norms: FloatTensor<B>,
    qkv_weight: FloatTensor<B>,
    weight: FloatTensor<B>,
}

/// The extension of burn: the block, with support for autodiff.
#[backend_extension(Cube, Autodiff, Fusion)]
trait CubeAttention: Backend {
    #[fusion(meta = |parts, _given, plan| out_of(parts, plan))]
    fn cube_attention(
        #[extension_type] parts: AttentionParts<Self>,
        #[extension_type] given: Given<Self>,
        plan: Plan,
    ) -> FloatTensor<Self>;
}

/// The passes of the block.
#[backend_extension(Cube, Fusion)]
trait CubeAttentionPasses: Backend {
    #[fusion(meta = values_of)]
    fn cube_attention_forward(
        #[extension_type] parts: AttentionParts<Self>,
        #[extension_type] given: Given<Self>,
        plan: Plan,
    ) -> AttentionValues<Self>;

    #[fusion(meta = |parts, _values, _by_out, _given, _plan| parts.clone())]
    fn cube_attention_backward(
        #[extension_type] parts: AttentionParts<Self>,
        #[extension_type] values: AttentionValues<Self>,
        by_out: FloatTensor<Self>,
        #[extension_type] given: Given<Self>,
        plan: Plan,
    ) -> AttentionParts<Self>;
}

fn out_of(parts: &AttentionPartsMetadata, plan: &Plan) -> TensorSpec {
    let [batch, _, d] = parts.x.shape.dims();
    TensorSpec::new(Shape::new([batch, plan.n_queries(), d]), DType::F32)
}

fn values_of(
    parts: &AttentionPartsMetadata,
    _given: &GivenMetadata,
    plan: &Plan,
) -> AttentionValuesMetadata {
    let [batch, tokens, d] = parts.x.shape.dims();
    let of = |shape: [usize; 2], dtype| TensorSpec::new(Shape::new(shape), dtype);
    let (rows, queries) = (batch * tokens, plan.n_queries());
    AttentionValuesMetadata {
        out: out_of(parts, plan),
        normal: of([rows, d], plan.dtype),
        stats: of([rows, 2], DType::F32),
        qkv: of([rows, 3 * d], plan.dtype),
        mixed: of([batch * queries, d], plan.dtype),
        norms: of([batch * plan.sizes.heads * queries, 2], DType::F32),
        qkv_weight: of([d, 3 * d], plan.dtype),
        weight: of([d, d], plan.dtype),
    }
}

impl CubeAttention for CubeBackend {
    fn cube_attention(
        parts: AttentionParts<Self>,
        given: Given<Self>,
        plan: Plan,
    ) -> FloatTensor<Self> {
        Self::cube_attention_forward(parts, given, plan).out
    }
}

impl CubeAttentionPasses for CubeBackend {
    fn cube_attention_forward(
        parts: AttentionParts<Self>,
        given: Given<Self>,
        plan: Plan,
    ) -> AttentionValues<Self> {
        let dtype = plan.dtype;
        let x = into_contiguous(parts.x);
        let [batch, _, d] = x.shape().dims();
        let [norm_weight, norm_bias, qkv_bias, bias, r] =
            [parts.norm_weight, parts.norm_bias, parts.qkv_bias, parts.bias, parts.r]
                .map(into_contiguous);
        let [qkv_weight, weight] = cast([parts.qkv_weight, parts.weight], dtype);
        let [normal, stats] = norm::cube::forward(&x, norm_weight, norm_bias, dtype);
        let qkv = affine::affine(&normal, &qkv_weight, qkv_bias);
        let [mixed, norms] = heads(&qkv, r, &given, batch, plan);
        let (queries, step_seed) = (plan.queries, given.step_seed);
        let out = affine::affine_residual(&mixed, &weight, bias, &x, queries, step_seed, plan.mask);
        let out = reshape(out, Shape::new([batch, plan.n_queries(), d]));
        AttentionValues { out, normal, stats, qkv, mixed, norms, qkv_weight, weight }
    }

    fn cube_attention_backward(
        parts: AttentionParts<Self>,
        values: AttentionValues<Self>,
        by_out: FloatTensor<Self>,
        given: Given<Self>,
        plan: Plan,
    ) -> AttentionParts<Self> {
        let (x, by_out) = (into_contiguous(parts.x), into_contiguous(by_out));
        let [batch, _, d] = x.shape().dims();
        let AttentionValues { normal, stats, qkv, mixed, norms, qkv_weight, weight, .. } = values;
        let by = masked(by_out.clone(), d, given.step_seed.clone(), plan.mask, plan.dtype);
        let by = reshape(by, Shape::new([batch * plan.n_queries(), d]));
        let by_mixed = affine::by_rows(&by, &weight);
        let r = into_contiguous(parts.r);
        let (by_qkv, by_r) = by_heads(&qkv, r, &given, [&mixed, &norms, &by_mixed], batch, plan);
        let layers = [[&mixed, &by], [&normal, &by_qkv]];
        let [[by_weight, by_bias], [by_qkv_weight, by_qkv_bias]] = affine::by_parameters(layers);
        let by_normal = affine::by_rows(&by_qkv, &qkv_weight);
        let norm_weight = into_contiguous(parts.norm_weight);
        let [by_x, by_norm_weight, by_norm_bias] =
            norm::cube::backward(&x, stats, norm_weight, by_normal, by_out, plan.queries);
        AttentionParts {
            x: by_x,
            norm_weight: by_norm_weight,
            norm_bias: by_norm_bias,
            qkv_weight: by_qkv_weight,
            qkv_bias: by_qkv_bias,
            weight: by_weight,
            bias: by_bias,
            r: by_r,
        }
    }
}

/// The output of the heads, and two numbers that normalize each query's weights.
fn heads(
    qkv: &CubeTensor,
    r: CubeTensor,
    given: &Given<CubeBackend>,
    batch: usize,
    plan: Plan,
) -> [CubeTensor; 2] {
    let sizes = plan.sizes;
    let queries = plan.n_queries();
    let mixed =
        empty_like(qkv, Shape::new([batch * queries, sizes.heads * sizes.d_head]), qkv.dtype);
    let norms = empty_like(qkv, Shape::new([batch * sizes.heads * queries, 2]), DType::F32);
    let (count, dim) = grid(batch, sizes, queries);
    // SAFETY: the kernel reads and writes only tokens, heads and dimensions of its tensors, whose
    // shapes the block has checked.
    unsafe {
        forward_kernel::launch_unchecked(
            &qkv.client,
            count,
            dim,
            address_type(&[qkv, &mixed]),
            qkv.clone().into_tensor_arg(),
            r.into_tensor_arg(),
            given.first_token.clone().into_tensor_arg(),
            given.step_seed.clone().into_tensor_arg(),
            mixed.clone().into_tensor_arg(),
            norms.clone().into_tensor_arg(),
            plan.numbers(),
            sizes,
            dtype_to_storage_type(qkv.dtype),
        );
    }
    [mixed, norms]
}

/// The gradients of queries, keys and values, and of `R`.
fn by_heads(
    qkv: &CubeTensor,
    r: CubeTensor,
    given: &Given<CubeBackend>,
    [mixed, norms, by_mixed]: [&CubeTensor; 3],
    batch: usize,
    plan: Plan,
) -> (CubeTensor, CubeTensor) {
    let sizes = plan.sizes;
    let by_qkv = empty_like(qkv, qkv.shape(), qkv.dtype);
    let dots = empty_like(qkv, Shape::new([batch * sizes.heads, plan.n_queries()]), DType::F32);
    let groups = plan.tokens.div_ceil(sizes.own());
    let width = sizes.heads * sizes.d_head;
    let has_r = sizes.power > 0;
    let parts_shape = if has_r { [batch * groups, width] } else { [1, 1] };
    let r_parts = empty_like(qkv, Shape::new(parts_shape), DType::F32);
    let (count, dim) = grid(batch, sizes, plan.tokens);
    let addresses = address_type(&[qkv, mixed, &by_qkv]);
    // SAFETY: as in `heads`.
    unsafe {
        by_queries_kernel::launch_unchecked(
            &qkv.client,
            count.clone(),
            dim,
            addresses,
            qkv.clone().into_tensor_arg(),
            r.clone().into_tensor_arg(),
            given.first_token.clone().into_tensor_arg(),
            given.step_seed.clone().into_tensor_arg(),
            mixed.clone().into_tensor_arg(),
            norms.clone().into_tensor_arg(),
            by_mixed.clone().into_tensor_arg(),
            by_qkv.clone().into_tensor_arg(),
            dots.clone().into_tensor_arg(),
            r_parts.clone().into_tensor_arg(),
            plan.numbers(),
            sizes,
            dtype_to_storage_type(qkv.dtype),
        );
        by_keys_kernel::launch_unchecked(
            &qkv.client,
            count,
            dim,
            addresses,
            qkv.clone().into_tensor_arg(),
            r.clone().into_tensor_arg(),
            given.first_token.clone().into_tensor_arg(),
            given.step_seed.clone().into_tensor_arg(),
            norms.clone().into_tensor_arg(),
            by_mixed.clone().into_tensor_arg(),
            dots.into_tensor_arg(),
            by_qkv.clone().into_tensor_arg(),
            plan.numbers(),
            sizes,
            dtype_to_storage_type(qkv.dtype),
        );
    }
    let by_r = if has_r {
        let [sum, _] = sums::sum_parts(r_parts, width, 0);
        reshape(sum, Shape::new([sizes.heads, sizes.d_head]))
    } else {
        // Nothing takes this gradient.
        r
    };
    (by_qkv, by_r)
}

fn grid(batch: usize, sizes: Sizes, n: usize) -> (CubeCount, CubeDim) {
    let groups = n.div_ceil(sizes.own());
    let count = CubeCount::Static((batch * sizes.heads) as u32, groups as u32, 1);
    (count, CubeDim::new_1d(UNITS as u32))
}

impl<B: CubeAttentionPasses, C: CheckpointStrategy> CubeAttention for Autodiff<B, C> {
    fn cube_attention(
        parts: AttentionParts<Self>,
        given: Given<Self>,
        plan: Plan,
    ) -> FloatTensor<Self> {
        let given = Given { step_seed: given.step_seed, first_token: given.first_token };
        let forward = |parts| {
            let parts = AttentionParts::of(parts);
            let values = B::cube_attention_forward(parts.clone(), given.clone(), plan);
            (values.out.clone(), (parts, values, given, plan))
        };
        let backward = |(parts, values, given, plan), by_out| {
            B::cube_attention_backward(parts, values, by_out, given, plan).into_array()
        };
        tape::apply::<B, C, _, 8>(parts.into_array(), forward, backward)
    }
}
