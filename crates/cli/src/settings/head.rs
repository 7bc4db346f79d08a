//! The head that settings describe, and its name.

use anyhow::{Result, bail};
use overtone_core::ActionSpace;
use overtone_model::head::{
    ActionOrder, BinnedConfig, BinsHeadConfig, FourierHeadConfig, FourierLikelihoodConfig,
    GaussianConfig, GmmHeadConfig, GmmLikelihoodConfig, HeadConfig, InitialCoefficients,
    LinearConfig, TanhConfig,
};

use super::{HeadKind, HeadSettings, InitialKind, OrderKind};

impl HeadSettings {
    /// The head for such actions.
    ///
    /// # Errors
    /// When the keys describe none.
    pub fn config(&self, actions: &ActionSpace) -> Result<HeadConfig> {
        match actions {
            ActionSpace::Discrete { names } => self.of_a_list(names),
            ActionSpace::Continuous { .. } => self.of_numbers(),
        }
    }

    fn of_a_list(&self, names: &[String]) -> Result<HeadConfig> {
        let order = || match self.action_order {
            OrderKind::Environment => Ok(None),
            OrderKind::Compass => match ActionOrder::compass(names) {
                Some(order) => Ok(Some(order)),
                None => bail!(
                    "head.action_order=compass: these actions have no directions; use \
                     head.action_order=environment"
                ),
            },
        };
        Ok(match self.kind {
            HeadKind::Linear => HeadConfig::Linear(LinearConfig {}),
            HeadKind::Fourier => HeadConfig::Fourier(self.fourier_on_bins(order()?)),
            HeadKind::Gmm => HeadConfig::Gmm(self.gmm_on_bins(order()?)),
            HeadKind::Tanh | HeadKind::Gaussian => bail!(
                "head={}: it gives real numbers, and this task's actions are a list; use \
                 head=linear, fourier or gmm",
                self.kind_name()
            ),
        })
    }

    fn of_numbers(&self) -> Result<HeadConfig> {
        let binned = |head| HeadConfig::Binned(BinnedConfig { bins: self.bins, head });
        Ok(match (self.kind, self.bins) {
            (HeadKind::Tanh, 0) => HeadConfig::Tanh(TanhConfig {}),
            (HeadKind::Gaussian, 0) => HeadConfig::Gaussian(GaussianConfig {}),
            (HeadKind::Fourier, 0) => HeadConfig::FourierLikelihood(FourierLikelihoodConfig {
                frequencies: self.frequencies,
                gamma: self.gamma,
                domain: self.domain,
                initial: self.initial_coefficients(),
            }),
            (HeadKind::Gmm, 0) => {
                HeadConfig::GmmLikelihood(GmmLikelihoodConfig { components: self.components })
            }
            (HeadKind::Linear, 0) => {
                bail!("head=linear needs bins: say how many, such as head.bins=50")
            }
            (HeadKind::Tanh | HeadKind::Gaussian, bins) => bail!(
                "head.bins={bins}: bins are for head=linear, fourier and gmm; the others take \
                 head.bins=0"
            ),
            (HeadKind::Linear, _) => binned(BinsHeadConfig::Linear(LinearConfig {})),
            (HeadKind::Fourier, _) => binned(BinsHeadConfig::Fourier(self.fourier_on_bins(None))),
            (HeadKind::Gmm, _) => binned(BinsHeadConfig::Gmm(self.gmm_on_bins(None))),
        })
    }

    fn fourier_on_bins(&self, action_order: Option<ActionOrder>) -> FourierHeadConfig {
        FourierHeadConfig {
            frequencies: self.frequencies,
            gamma: self.gamma,
            regularizer: self.regularizer,
            action_order,
            domain: self.domain,
            initial: self.initial_coefficients(),
        }
    }

    fn gmm_on_bins(&self, action_order: Option<ActionOrder>) -> GmmHeadConfig {
        GmmHeadConfig { components: self.components, action_order }
    }

    fn initial_coefficients(&self) -> InitialCoefficients {
        match self.initial {
            InitialKind::Normal => InitialCoefficients::Normal { std: self.initial_std },
            InitialKind::Uniform => InitialCoefficients::UniformDensity,
        }
    }

    fn kind_name(&self) -> &'static str {
        match self.kind {
            HeadKind::Linear => "linear",
            HeadKind::Fourier => "fourier",
            HeadKind::Gmm => "gmm",
            HeadKind::Tanh => "tanh",
            HeadKind::Gaussian => "gaussian",
        }
    }

    /// In a word: `linear`, `fourier14`, `gmm2-bins50`.
    pub fn name(&self) -> String {
        let name = match self.kind {
            HeadKind::Fourier => format!("fourier{}", self.frequencies),
            HeadKind::Gmm => format!("gmm{}", self.components),
            HeadKind::Linear | HeadKind::Tanh | HeadKind::Gaussian => self.kind_name().to_owned(),
        };
        match self.bins {
            0 => name,
            bins => format!("{name}-bins{bins}"),
        }
    }
}
