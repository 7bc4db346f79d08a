//! The matrices among a module's parameters, to which weight decay applies.
//!
//! The module lists them itself. Neither a parameter's name nor its shape is sufficient: the table
//! of an embedding and the `R` of Fourier attention also have two axes.

use std::collections::BTreeSet;

use burn::{
    module::{Module, ModuleVisitor, Param, ParamId},
    nn::{Embedding, LayerNorm, Linear, conv::Conv2d},
    tensor::Tensor,
};

use crate::{follows_path, weights::FieldPath};

/// A module that lists the matrices among its parameters.
///
/// ```
/// use overtone_model::{Matrices, burn};
/// # use burn::{module::{Module, ParamId}, nn::{Embedding, Linear}};
///
/// #[derive(Module, Debug)]
/// struct Network {
///     symbols: Embedding,
///     layers: Vec<Linear>,
/// }
///
/// impl Matrices for Network {
///     fn matrices(&self) -> Vec<ParamId> {
///         [self.symbols.matrices(), self.layers.matrices()].concat()
///     }
/// }
/// ```
pub trait Matrices {
    /// The weights that multiply the data in the module: weights of linear layers and convolutions.
    /// Biases, norms, standard deviations, embeddings, position tables and the `R` of Fourier
    /// attention are not matrices.
    fn matrices(&self) -> Vec<ParamId>;
}

/// The names of a module's matrices, as in its [weights](crate::weights).
pub fn names<M: Module + Matrices>(module: &M) -> BTreeSet<String> {
    struct Names {
        path: FieldPath,
        ids: Vec<ParamId>,
        found: BTreeSet<String>,
    }
    impl ModuleVisitor for Names {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if self.ids.contains(&param.id) {
                self.found.insert(self.path.name());
            }
        }
        follows_path!();
    }
    let (path, ids, found) = (FieldPath::default(), module.matrices(), BTreeSet::new());
    let mut visitor = Names { path, ids, found };
    module.visit(&mut visitor);
    visitor.found
}

impl<M: Matrices> Matrices for Option<M> {
    fn matrices(&self) -> Vec<ParamId> {
        self.iter().flat_map(M::matrices).collect()
    }
}

impl<M: Matrices> Matrices for Vec<M> {
    fn matrices(&self) -> Vec<ParamId> {
        self.iter().flat_map(M::matrices).collect()
    }
}

impl Matrices for Linear {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl Matrices for Conv2d {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl Matrices for Embedding {
    fn matrices(&self) -> Vec<ParamId> {
        Vec::new()
    }
}

impl Matrices for LayerNorm {
    fn matrices(&self) -> Vec<ParamId> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::{
        nn::{EmbeddingConfig, LayerNormConfig, LinearConfig, PaddingConfig2d, conv::Conv2dConfig},
        tensor::Device,
    };

    #[derive(Module, Debug)]
    struct Network {
        table: Embedding,
        norm: LayerNorm,
        convolution: Conv2d,
        layers: Vec<Linear>,
        last: Option<Linear>,
    }

    impl Matrices for Network {
        fn matrices(&self) -> Vec<ParamId> {
            let tables = [self.table.matrices(), self.norm.matrices()].concat();
            let layers = [self.layers.matrices(), self.last.matrices()].concat();
            [tables, self.convolution.matrices(), layers].concat()
        }
    }

    /// The table's parameter is called `weight` as well.
    #[test]
    fn layers_of_burn_list_their_matrices() {
        let device = Device::flex();
        let linear = LinearConfig::new(3, 5);
        let convolution = Conv2dConfig::new([2, 3], [1, 1]).with_padding(PaddingConfig2d::Valid);
        let network = Network {
            table: EmbeddingConfig::new(7, 3).init(&device),
            norm: LayerNormConfig::new(3).init(&device),
            convolution: convolution.init(&device),
            layers: vec![linear.init(&device), linear.init(&device)],
            last: None,
        };
        let expected = ["convolution.weight", "layers.0.weight", "layers.1.weight"];
        assert_eq!(names(&network), expected.map(String::from).into());
        let network = Network { last: Some(linear.init(&device)), ..network };
        assert_eq!(names(&network).last().map(String::as_str), Some("layers.1.weight"));
        assert!(names(&network).contains("last.weight"));
    }
}
