//! Conversion of a module to named parameters with their gradients, and back.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Gradients, Tensor},
};
use overtone_model::{follows_path, weights::FieldPath};

use crate::gradient::Gradient;

/// A parameter that has a gradient, flat.
pub(super) struct FlatParameter {
    pub(super) name: String,
    pub(super) parameter: Tensor<1>,
    pub(super) gradient: Tensor<1>,
}

/// Every parameter of `module` with a gradient; the gradients are removed from `gradients`.
pub(super) fn with_gradients<M: Module>(
    module: &M,
    gradients: &mut Gradients,
) -> Vec<FlatParameter> {
    let mut collect = Collect { path: FieldPath::default(), gradients, parameters: Vec::new() };
    module.visit(&mut collect);
    collect.parameters
}

impl Gradient {
    /// The gradient with respect to every parameter of `module`.
    pub fn of<M: Module>(module: &M, mut gradients: Gradients) -> Self {
        let mut flatten =
            Flatten { gradients: &mut gradients, values: Vec::new(), present: Vec::new() };
        module.visit(&mut flatten);
        let Flatten { values, present, .. } = flatten;
        Self { values: Tensor::cat(values, 0), present }
    }
}

/// Every parameter of `module` that has a gradient, with its slice of `gradient`.
pub(super) fn with_slices<M: Module>(module: &M, gradient: Gradient) -> Vec<FlatParameter> {
    let path = FieldPath::default();
    let mut slice = Slice { path, gradient, n_parameters: 0, n_values: 0, parameters: Vec::new() };
    module.visit(&mut slice);
    slice.parameters
}

/// `module` with the parameters in `moved` replaced.
pub(super) fn replace<M: Module>(module: M, moved: BTreeMap<String, Tensor<1>>) -> M {
    module.map(&mut Replace { path: FieldPath::default(), moved })
}

/// Visitor that collects every parameter with a gradient.
struct Collect<'a> {
    path: FieldPath,
    gradients: &'a mut Gradients,
    parameters: Vec<FlatParameter>,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let Some(gradient) = value.grad_remove(self.gradients) else { return };
        let n = gradient.shape().num_elements();
        self.parameters.push(FlatParameter {
            name: self.path.name(),
            parameter: value.inner().reshape([n]),
            gradient: gradient.reshape([n]),
        });
    }
    follows_path!();
}

/// Visitor that collects the gradients of all parameters, zeros if there are none.
struct Flatten<'a> {
    gradients: &'a mut Gradients,
    values: Vec<Tensor<1>>,
    present: Vec<bool>,
}

impl ModuleVisitor for Flatten<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let gradient = value.grad_remove(self.gradients);
        self.present.push(gradient.is_some());
        let gradient = gradient.unwrap_or_else(|| value.inner().zeros_like());
        let n = gradient.shape().num_elements();
        self.values.push(gradient.reshape([n]));
    }
}

/// Visitor that cuts a flat gradient into the gradients of the parameters.
struct Slice {
    path: FieldPath,
    gradient: Gradient,
    /// Visited so far, and their sizes.
    n_parameters: usize,
    n_values: usize,
    parameters: Vec<FlatParameter>,
}

impl ModuleVisitor for Slice {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let parameter = param.val().inner();
        let n = parameter.shape().num_elements();
        let range = self.n_values..self.n_values + n;
        let is_present = self.gradient.present[self.n_parameters];
        self.n_parameters += 1;
        self.n_values += n;
        if is_present {
            self.parameters.push(FlatParameter {
                name: self.path.name(),
                parameter: parameter.reshape([n]),
                gradient: self.gradient.values.clone().slice([range]),
            });
        }
    }
    follows_path!();
}

/// Mapper that replaces parameters by updated ones.
struct Replace {
    path: FieldPath,
    moved: BTreeMap<String, Tensor<1>>,
}

impl ModuleMapper for Replace {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(moved) = self.moved.remove(&self.path.name()) else { return param };
        param.map(|value| {
            let tracked = value.is_autodiff();
            let moved = moved.reshape(value.dims());
            if tracked { moved.autodiff().require_grad() } else { moved }
        })
    }
    follows_path!();
}
