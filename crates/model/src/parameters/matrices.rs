//! The matrices among a module's parameters, to which weight decay applies: the weights that multiply
//! the data, of linear layers and convolutions.
//!
//! A parameter is a matrix if its field's name ends with `weight`, it has two axes or more, and it is
//! not the table of an [`Embedding`](burn::nn::Embedding). So biases, norms, standard deviations,
//! embeddings, position tables and the `R` of Fourier attention are not matrices.

use std::collections::BTreeSet;

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::Tensor,
};

use crate::parameters::weights::FieldPath;

/// The names of a module's matrices, as in its [weights](crate::weights).
///
/// ```
/// use overtone_model::{burn, matrices};
/// # use burn::{module::Module, nn::{Embedding, EmbeddingConfig, Linear, LinearConfig}};
/// # use burn::tensor::Device;
///
/// #[derive(Module, Debug)]
/// struct Network {
///     symbols: Embedding,
///     layers: Vec<Linear>,
/// }
/// # let device = Device::flex();
/// # let symbols = EmbeddingConfig::new(7, 3).init(&device);
/// # let network = Network { symbols, layers: vec![LinearConfig::new(3, 5).init(&device)] };
/// assert!(matrices::names(&network).iter().eq(["layers.0.weight"]));
/// ```
pub fn names<M: Module>(module: &M) -> BTreeSet<String> {
    let mut visitor = Names::default();
    module.visit(&mut visitor);
    visitor.names
}

#[derive(Default)]
struct Names {
    path: FieldPath,
    /// Whether the visited field is one of an embedding.
    of_embedding: bool,
    names: BTreeSet<String>,
}

impl ModuleVisitor for Names {
    fn visit_float<const D: usize>(&mut self, _: &Param<Tensor<D>>) {
        let name = self.path.name();
        if D >= 2 && name.ends_with("weight") && !self.of_embedding {
            self.names.insert(name);
        }
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
        self.of_embedding = container == "Struct:Embedding";
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::{
        nn::{
            Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig,
            PaddingConfig2d,
            conv::{Conv2d, Conv2dConfig},
        },
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

    /// The table's parameter is called `weight` as well.
    #[test]
    fn matrices_of_layers_of_burn() {
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
