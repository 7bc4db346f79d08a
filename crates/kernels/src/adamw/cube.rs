//! The step on a GPU: few launches for any number of parameters, and sums in a fixed order.

mod kernels;

use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType, TensorMetadata, backend_extension};
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::AdamW;
use crate::gpu::{address_type, empty_like, is_on_gpu};
use kernels::{CUBES, PART, UNITS, gather_kernel, squares_kernel, step_kernel};

/// Gradients of one operation.
const GROUP: usize = 64;
/// Gradients of a quarter of it.
const QUARTER: usize = 16;
/// Arguments of a launch that are not gradients.
const OTHERS: usize = 2;

/// Whether the kernels can take steps of flat values like these.
pub(super) fn is_possible(flat: &Tensor<1>) -> bool {
    let [n] = flat.dims();
    is_on_gpu(flat) && flat.dtype() == DType::F32 && n < u32::MAX as usize
}

/// `flat` with each gradient at its start, in the same memory.
pub(super) fn gather(flat: Tensor<1>, gradients: Vec<Tensor<1>>, starts: &[usize]) -> Tensor<1> {
    let mut flat = flat.into_dispatch();
    for (gradients, starts) in gradients.chunks(GROUP).zip(starts.chunks(GROUP)) {
        // The last group repeats its first gradient, which then has no start.
        let mut given = gradients.iter().chain(std::iter::repeat(&gradients[0]));
        let mut next =
            || given.next().cloned().map(Tensor::into_dispatch).expect("an endless list");
        let mut quarter = || Quarter::of(std::array::from_fn(|_| next()));
        let group = Group(quarter(), quarter(), quarter(), quarter());
        flat = Dispatch::cube_gather(flat, group, starts.to_vec());
    }
    Tensor::from_dispatch(flat)
}

/// Parameters, first and second moments after a step, and the norm of the gradient, `[1]`. The
/// first three are in their old memory if `in_place`.
pub(super) fn step(
    optimizer: AdamW,
    clip_norm: Option<f64>,
    [gradient, decay, factors]: [Tensor<1>; 3],
    [parameters, first, second]: [Tensor<1>; 3],
    in_place: bool,
) -> [Tensor<1>; 4] {
    let AdamW { betas, epsilon, .. } = optimizer;
    let plan = Plan {
        betas: betas.map(|beta| beta as f32),
        rests: betas.map(|beta| (1.0 - beta) as f32),
        epsilon: epsilon as f32,
        clip_norm: clip_norm.map(|norm| norm as f32),
        in_place,
    };
    let [gradient, decay, factors, parameters, first, second] =
        [gradient, decay, factors, parameters, first, second].map(Tensor::into_dispatch);
    let constant = Constant { gradient, decay, factors };
    let (a, b, c, norm) = Dispatch::cube_adamw(constant, parameters, first, second, plan);
    [a, b, c, norm].map(Tensor::from_dispatch)
}

/// The optimizer's constants.
#[derive(Clone, Copy, Debug)]
struct Plan {
    betas: [f32; 2],
    /// `1 − β`
    rests: [f32; 2],
    epsilon: f32,
    clip_norm: Option<f32>,
    in_place: bool,
}

/// Gradients of one operation.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct Group<B: Backend>(
    #[extension_type] Quarter<B>,
    #[extension_type] Quarter<B>,
    #[extension_type] Quarter<B>,
    #[extension_type] Quarter<B>,
);

/// A quarter of them. (An extension's operation takes no list of tensors.)
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct Quarter<B: Backend>(
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
);

impl<B: Backend> Quarter<B> {
    fn of([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]: [FloatTensor<B>; QUARTER]) -> Self {
        Self(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
    }

    fn list(self) -> [FloatTensor<B>; QUARTER] {
        let Self(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) = self;
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }
}

/// The flat tensors that a step only reads.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct Constant<B: Backend> {
    gradient: FloatTensor<B>,
    decay: FloatTensor<B>,
    factors: FloatTensor<B>,
}

/// The extension of burn; without autodiff, because nothing here is differentiated.
#[backend_extension(Cube, Fusion)]
trait CubeAdamW: Backend {
    #[fusion(meta = |flat, _group, _starts| flat.clone())]
    fn cube_gather(
        flat: FloatTensor<Self>,
        #[extension_type] group: Group<Self>,
        starts: Vec<usize>,
    ) -> FloatTensor<Self>;

    #[fusion(meta = |_constant, parameters, first, second, _plan| {
        let norm = TensorSpec::new(Shape::from([1]), parameters.dtype);
        (parameters.clone(), first.clone(), second.clone(), norm)
    })]
    fn cube_adamw(
        #[extension_type] constant: Constant<Self>,
        parameters: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl CubeAdamW for CubeBackend {
    fn cube_gather(
        flat: FloatTensor<Self>,
        group: Group<Self>,
        starts: Vec<usize>,
    ) -> FloatTensor<Self> {
        let Group(a, b, c, d) = group;
        let gradients = [a.list(), b.list(), c.list(), d.list()].concat();
        let gradients: Vec<CubeTensor> =
            gradients.into_iter().take(starts.len()).map(into_contiguous).collect();
        let most = flat.client.properties().hardware.max_bindings as usize - OTHERS;
        for (gradients, starts) in gradients.chunks(most).zip(starts.chunks(most)) {
            gather_some(&flat, gradients, starts);
        }
        flat
    }

    fn cube_adamw(
        constant: Constant<Self>,
        parameters: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        plan: Plan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let Constant { gradient, decay, factors } = constant;
        let [gradient, decay, factors] = [gradient, decay, factors].map(into_contiguous);
        let [n] = gradient.shape().dims();
        let cubes = n.div_ceil(PART);
        let squares = empty_like(&gradient, Shape::from([cubes]), DType::F32);
        let norm = empty_like(&gradient, Shape::from([1]), DType::F32);
        let old = [parameters, first, second];
        let new = old.each_ref().map(|old| {
            if plan.in_place { old.clone() } else { empty_like(old, old.shape(), old.dtype) }
        });
        let [into_parameters, into_first, into_second] = new.each_ref().map(|new| {
            let new = (!plan.in_place).then(|| new.clone().into_tensor_arg());
            ComptimeOptionArgs::from(new)
        });
        let [parameters, first, second] = old;
        let dim = CubeDim::new_1d(UNITS as u32);
        // SAFETY: the kernels read and write only elements below `n`, and one for each cube.
        unsafe {
            squares_kernel::launch_unchecked(
                &gradient.client,
                CubeCount::Static(cubes as u32, 1, 1),
                dim,
                address_type(&[&gradient]),
                gradient.clone().into_tensor_arg(),
                squares.clone().into_tensor_arg(),
                n as u32,
            );
            step_kernel::launch_unchecked(
                &gradient.client,
                CubeCount::Static(cubes as u32, 1, 1),
                dim,
                address_type(&[&gradient]),
                gradient.clone().into_tensor_arg(),
                squares.into_tensor_arg(),
                decay.into_tensor_arg(),
                factors.into_tensor_arg(),
                parameters.into_tensor_arg(),
                first.into_tensor_arg(),
                second.into_tensor_arg(),
                into_parameters,
                into_first,
                into_second,
                norm.clone().into_tensor_arg(),
                n as u32,
                cubes as u32,
                plan.betas[0],
                plan.betas[1],
                plan.rests[0],
                plan.rests[1],
                plan.epsilon,
                plan.clip_norm.unwrap_or_default(),
                plan.clip_norm.is_some(),
            );
        }
        let [parameters, first, second] = new;
        (parameters, first, second, norm)
    }
}

/// Copies gradients to their starts in one launch.
fn gather_some(flat: &CubeTensor, gradients: &[CubeTensor], starts: &[usize]) {
    let lengths: Vec<usize> = gradients.iter().map(|one| one.shape().num_elements()).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let cubes = longest.div_ceil(UNITS).clamp(1, CUBES);
    let numbers = |numbers: &[usize]| {
        let mut sequence = SequenceArg::new();
        for &number in numbers {
            sequence.push(number as u32);
        }
        sequence
    };
    let mut arguments = SequenceArg::new();
    for gradient in gradients {
        arguments.push(gradient.clone().into_tensor_arg());
    }
    // SAFETY: the kernel reads each gradient up to its length, and writes as many elements of
    // `flat` from its start, which have been reserved for it.
    unsafe {
        gather_kernel::launch_unchecked(
            &flat.client,
            CubeCount::Static(cubes as u32, starts.len() as u32, 1),
            CubeDim::new_1d(UNITS as u32),
            address_type(&[flat]),
            arguments,
            numbers(starts),
            numbers(&lengths),
            flat.clone().into_tensor_arg(),
        );
    }
}
