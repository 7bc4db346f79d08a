//! Which parameters weight decay applies to, by their names.

use serde::{Deserialize, Serialize};

/// Which parameters weight decay applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decayed {
    /// Matrices of linear layers and convolutions: biases, norms, embeddings, position tables
    /// and the `R` of Fourier attention are not decayed. The Atari reference does this.
    #[default]
    Matrices,
    /// Every parameter, as the reference on Gym.
    Everything,
}

impl Decayed {
    /// Whether the parameter of this name decays.
    pub fn includes(self, name: &str) -> bool {
        match self {
            Self::Matrices => {
                let field = name.rsplit('.').next().unwrap_or(name);
                field.ends_with("weight") && !field.contains("norm")
            }
            Self::Everything => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::{
        module::{Module, ModuleVisitor, Param},
        tensor::{Device, Tensor},
    };
    use overtone_model::{
        HeadConfig,
        head::{
            ContinuousHeadConfig, FourierHeadConfig, FourierLikelihoodConfig, GmmHeadConfig,
            GmmLikelihoodConfig,
        },
        weights::FieldPath,
    };

    /// Of every head the matrices decay, and biases and standard deviations do not.
    #[test]
    fn heads_decay_their_matrices() {
        struct Matrices {
            path: FieldPath,
            n_seen: usize,
        }
        impl ModuleVisitor for Matrices {
            fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
                let name = format!("head.{}", self.path.name());
                assert_eq!(Decayed::Matrices.includes(&name), D == 2, "{name} has {D} axes");
                self.n_seen += 1;
            }
            fn enter_module(&mut self, name: &str, container: &str) {
                self.path.enter(name, container);
            }
            fn exit_module(&mut self, _name: &str, container: &str) {
                self.path.exit(container);
            }
        }
        let device = Device::flex();
        let generator = &mut overtone_core::seed::generator(1, "init");
        let parameters = |head: &dyn Fn(&mut Matrices)| {
            let mut matrices = Matrices { path: FieldPath::default(), n_seen: 0 };
            head(&mut matrices);
            matrices.n_seen
        };
        for (config, expected) in [
            (HeadConfig::Linear, 1),
            (HeadConfig::Fourier(FourierHeadConfig::new(3)), 2),
            (HeadConfig::Gmm(GmmHeadConfig { components: 2, action_order: None }), 3),
        ] {
            let head = config.init(4, 5, &device, generator);
            assert_eq!(parameters(&|visitor| head.visit(visitor)), expected, "{config:?}");
        }
        for (config, expected) in [
            (ContinuousHeadConfig::Tanh, 2),
            (ContinuousHeadConfig::Pointwise, 2),
            (ContinuousHeadConfig::Gaussian, 3),
            (ContinuousHeadConfig::Fourier(FourierLikelihoodConfig::new(3)), 2),
            (ContinuousHeadConfig::Gmm(GmmLikelihoodConfig { components: 2 }), 3),
        ] {
            let head = config.init(4, 5, &device, generator);
            assert_eq!(parameters(&|visitor| head.visit(visitor)), expected, "{config:?}");
        }
    }

    #[test]
    fn decay_groups() {
        for name in ["blocks.0.qkv_weight", "head.weight", "conv_1_weight", "return_weight"] {
            assert!(Decayed::Matrices.includes(name), "{name}");
        }
        for name in [
            "blocks.0.norm_1_weight",
            "final_norm_weight",
            "action_embedding",
            "position_embedding",
            "head.bias",
            "head.raw_std",
            "head.log_std",
            "blocks.0.fourier_r",
            "timestep_embedding",
            "embedding_norm_weight",
        ] {
            assert!(!Decayed::Matrices.includes(name), "{name}");
            assert!(Decayed::Everything.includes(name), "{name}");
        }
    }
}
