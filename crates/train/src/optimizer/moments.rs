//! Both moments of parameters, and their names in checkpoints.

use std::collections::BTreeMap;

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::Tensor,
};
use overtone_model::{
    ModelError, follows_path,
    weights::{self, FieldPath, NamedTensors},
};

/// Both moments of one parameter, flat.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    pub(super) first: Tensor<1>,
    pub(super) second: Tensor<1>,
}

impl Moments {
    pub(super) fn zeros(like: &Tensor<1>) -> Self {
        Self { first: like.zeros_like(), second: like.zeros_like() }
    }
}

/// Moments by parameter name, as tensors named `first.<parameter>` and `second.<parameter>`.
pub(super) fn export(moments: &BTreeMap<String, Moments>) -> NamedTensors {
    moments
        .iter()
        .flat_map(|(name, moments)| {
            [("first", &moments.first), ("second", &moments.second)]
                .map(|(which, tensor)| (format!("{which}.{name}"), tensor.to_data()))
        })
        .collect()
}

/// The moments of `module`, on its device and in its types, from the result of [`export`].
///
/// # Errors
/// When a parameter's moment is missing or has another length.
pub(super) fn import<M: Module>(
    module: &M,
    tensors: &NamedTensors,
) -> Result<BTreeMap<String, Moments>, ModelError> {
    let mut restore =
        Restore { path: FieldPath::default(), tensors, moments: BTreeMap::new(), error: None };
    module.visit(&mut restore);
    match restore.error {
        Some(error) => Err(error),
        None => Ok(restore.moments),
    }
}

/// Visitor that finds the moments of every parameter, and keeps the first error.
struct Restore<'a> {
    path: FieldPath,
    tensors: &'a NamedTensors,
    moments: BTreeMap<String, Moments>,
    error: Option<ModelError>,
}

impl Restore<'_> {
    fn moment<const D: usize>(
        &self,
        which: &str,
        name: &str,
        value: &Tensor<D>,
    ) -> Result<Tensor<1>, ModelError> {
        let n = value.shape().num_elements();
        let data = weights::checked(self.tensors, &format!("{which}.{name}"), &[n])?;
        let device = value.device().without_autodiff();
        Ok(Tensor::from_data(data.clone(), (&device, value.dtype())))
    }
}

impl ModuleVisitor for Restore<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = self.path.name();
        let value = param.val();
        let moments = self
            .moment("first", &name, &value)
            .and_then(|first| Ok(Moments { first, second: self.moment("second", &name, &value)? }));
        match moments {
            Ok(moments) => {
                self.moments.insert(name, moments);
            }
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }
    follows_path!();
}
