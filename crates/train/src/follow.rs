//! [`follow`]: parameters that follow other parameters by Polyak averaging, and [`Target`]: a network
//! whose parameters do.

use std::collections::VecDeque;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::Tensor,
};
use overtone_kernels::{
    Form, polyak,
    stored::{ALIGNED, Packing, copy_into, part},
};

/// A network that follows another one; it does not track gradients.
#[derive(Clone, Debug)]
pub struct Target<M> {
    /// The network.
    pub network: M,
    /// Its parameters, if they keep their memory for steps that are recorded.
    memory: Option<Tensor<1>>,
}

impl<M: Module> Target<M> {
    /// A target with the parameters of `network`.
    pub fn of(network: &M) -> Self {
        Self::with(network.valid())
    }

    /// A target that is `network`, which does not track gradients.
    pub fn with(network: M) -> Self {
        Self { network, memory: None }
    }

    /// Moves it by the fraction `rate` of the distance to `online`; 1 copies it.
    pub fn follow(&mut self, online: &M, rate: f64) {
        *self = Self::with(match rate {
            // In memory of its own, because a later step may write over the followed network's.
            1.0 => copied(online.valid()),
            rate => follow(self.network.clone(), online, rate),
        });
    }

    /// The same in a step that is recorded, in memory that [stays](Self::keep_memory). `joined` has the
    /// parameters of the followed network, in the order of their [`Packing`], and may have others after
    /// them.
    pub fn follow_joined(&mut self, joined: &Tensor<1>, rate: f64) {
        let (packing, memory) = self.kept();
        let followed = part(joined, 0, packing.size());
        let moved = match rate {
            1.0 => followed,
            rate => polyak(memory.clone(), followed, rate, Form::Auto),
        };
        self.keep(&packing, copy_into(memory, moved));
    }

    /// On a GPU, the parameters keep their memory from now on, until an ordinary step.
    pub fn keep_memory(&mut self) {
        if self.memory.is_none() {
            let (packing, memory) = self.kept();
            self.keep(&packing, memory);
        }
    }

    /// The memory that a recorded step changes, from the first one on.
    pub fn memory(&mut self) -> Option<&mut Tensor<1>> {
        self.memory.as_mut()
    }

    /// The places of the parameters, and their memory.
    fn kept(&self) -> (Packing, Tensor<1>) {
        let mut parameters = Source::default();
        self.network.visit(&mut parameters);
        let lengths = parameters.0.iter().map(|parameter| parameter.dims()[0]).collect();
        let packing = Packing::new(lengths);
        let memory = self.memory.clone().unwrap_or_else(|| {
            let like = &parameters.0[0];
            let zeros = Tensor::zeros([ALIGNED], (&like.device(), like.dtype()));
            packing.join(parameters.0.clone(), &zeros)
        });
        (packing, memory)
    }

    fn keep(&mut self, packing: &Packing, memory: Tensor<1>) {
        let parameters = packing.parts(&memory).into();
        self.network = self.network.clone().map(&mut Replace(parameters));
        self.memory = Some(memory);
    }
}

/// `target + rate · (online − target)` for every parameter of two modules of one shape. `target`
/// does not track gradients.
pub(crate) fn follow<M: Module>(target: M, online: &M, rate: f64) -> M {
    let mut source = Source::default();
    online.visit(&mut source);
    target.map(&mut Follow { source: source.0, rate })
}

/// The same parameters in memory of their own. `module` does not track gradients.
pub(crate) fn copied<M: Module>(module: M) -> M {
    struct Copy;
    impl ModuleMapper for Copy {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|value| value * 1.0)
        }
    }
    module.map(&mut Copy)
}

/// Mapper that replaces all parameters, in their visiting order.
struct Replace(VecDeque<Tensor<1>>);

impl ModuleMapper for Replace {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(replaced) = self.0.pop_front() else { return param };
        param.map(|value| replaced.reshape(value.dims()))
    }
}

/// Parameters, flat, in the visiting order of a module.
#[derive(Default)]
struct Source(VecDeque<Tensor<1>>);

impl ModuleVisitor for Source {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let value = if value.is_autodiff() { value.inner() } else { value };
        let n = value.shape().num_elements();
        self.0.push_back(value.reshape([n]));
    }
}

struct Follow {
    source: VecDeque<Tensor<1>>,
    rate: f64,
}

impl ModuleMapper for Follow {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(source) = self.source.pop_front() else { return param };
        param.map(|target| {
            let (shape, n) = (target.dims(), target.shape().num_elements());
            polyak(target.reshape([n]), source, self.rate, Form::Auto).reshape(shape)
        })
    }
}
