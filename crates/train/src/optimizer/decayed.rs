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
    use overtone_core::ActionSpace;
    use overtone_model::{
        HeadConfig, Init,
        head::{
            FourierHeadConfig, FourierLikelihoodConfig, GaussianConfig, GmmHeadConfig,
            GmmLikelihoodConfig, LinearConfig, PointwiseConfig, TanhConfig,
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
        let init = &mut Init::shapes(&Device::flex());
        let (list, numbers) = (ActionSpace::numbered(5), ActionSpace::unit(5));
        let gmm = GmmHeadConfig { components: 2, action_order: None };
        let likelihood = GmmLikelihoodConfig { components: 2 };
        for (config, actions, expected) in [
            (HeadConfig::Linear(LinearConfig {}), &list, 1),
            (HeadConfig::Fourier(FourierHeadConfig::new(3)), &list, 2),
            (HeadConfig::Gmm(gmm), &list, 3),
            (HeadConfig::Tanh(TanhConfig {}), &numbers, 2),
            (HeadConfig::Pointwise(PointwiseConfig {}), &numbers, 2),
            (HeadConfig::Gaussian(GaussianConfig {}), &numbers, 3),
            (HeadConfig::FourierLikelihood(FourierLikelihoodConfig::new(3)), &numbers, 2),
            (HeadConfig::GmmLikelihood(likelihood), &numbers, 3),
        ] {
            let mut matrices = Matrices { path: FieldPath::default(), n_seen: 0 };
            config.init(4, actions, init).visit(&mut matrices);
            assert_eq!(matrices.n_seen, expected, "{config:?}");
        }
    }

    #[test]
    fn decay_groups() {
        for name in [
            "transformer.blocks.0.qkv_weight",
            "head.weight",
            "encoder.conv_1_weight",
            "returns.weight",
        ] {
            assert!(Decayed::Matrices.includes(name), "{name}");
        }
        for name in [
            "transformer.blocks.0.norm_1_weight",
            "transformer.final_norm_weight",
            "action.table",
            "positions.local",
            "head.bias",
            "head.raw_std",
            "head.log_std",
            "transformer.blocks.0.fourier_r",
            "positions.table",
            "positions.norm_weight",
        ] {
            assert!(!Decayed::Matrices.includes(name), "{name}");
            assert!(Decayed::Everything.includes(name), "{name}");
        }
    }
}
