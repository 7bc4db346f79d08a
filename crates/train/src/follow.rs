//! [`follow`]: parameters that follow other parameters by Polyak averaging, for target networks and
//! averaged weights.

use std::collections::VecDeque;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::Tensor,
};
use overtone_kernels::{Form, polyak};

/// `target + rate · (online − target)` for every parameter of two modules of one shape. `target`
/// does not track gradients.
pub fn follow<M: Module>(target: M, online: &M, rate: f64) -> M {
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
