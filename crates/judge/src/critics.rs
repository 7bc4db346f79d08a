//! [`Critics`]: fits of critics of the same policies, for every purpose of a judgement.

use crate::{
    behavior_clone::FOLDS,
    checks::DISCOUNTS,
    error::{JudgeError, Progress},
    fit::{Fit, FitOptions, Fitted, fit},
    recorded_steps::{folds, time_limit},
};

/// Fits of critics with the same policies.
pub(crate) struct Critics<'a> {
    pub(crate) fit: Fit<'a>,
    pub(crate) options: FitOptions,
}

impl Critics<'_> {
    /// Critics of all episodes.
    pub(crate) fn all(&self, progress: &mut Progress<'_>) -> Result<Fitted, JudgeError> {
        let of_one = self.options.updates.div_ceil(self.options.estimate_every);
        let (mut done, all) = (0, self.options.critics * of_one);
        fit(&self.fit, &self.options, &mut || {
            done += 1;
            progress("fitting critics", done, all)
        })
    }

    /// `Q` and `V` at every row, `[rows · policies]`, from critics that did not learn from the
    /// row's fold.
    pub(crate) fn by_folds(
        &self,
        progress: &mut Progress<'_>,
    ) -> Result<[Vec<f64>; 2], JudgeError> {
        let (data, n_policies) = (self.fit.data, self.fit.policies.len());
        let episodes = data.episodes().as_slice();
        let n = data.n_transitions() * n_policies;
        let mut all = [vec![0.0; n], vec![0.0; n]];
        let options = FitOptions { critics: 1, ..self.options.clone() };
        for (fold, left_out) in folds(episodes.len(), FOLDS, options.seed).iter().enumerate() {
            let others: Vec<usize> = (0..episodes.len())
                .filter(|episode| left_out.binary_search(episode).is_err())
                .collect();
            let of_fold = Fit { episodes: Some(&others), ..self.fit };
            let mut go_on = || progress("fitting critics without a fold", fold, FOLDS);
            let fitted = fit(&of_fold, &options, &mut go_on)?;
            let rows: Vec<usize> =
                left_out.iter().flat_map(|&episode| episodes[episode].range()).collect();
            for (all, values) in all.iter_mut().zip(fitted.values(&rows)) {
                for (&row, values) in rows.iter().zip(values.chunks_exact(n_policies)) {
                    all[row * n_policies..][..n_policies].copy_from_slice(values);
                }
            }
            let _ = progress("fitting critics without a fold", fold + 1, FOLDS);
        }
        Ok(all)
    }

    /// The differences of the policies from the last one at the other [`DISCOUNTS`], by one critic
    /// each: `[discounts][policies]`.
    pub(crate) fn at_other_discounts(
        &self,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<Vec<f64>>, JudgeError> {
        let others = DISCOUNTS.map(|gamma| (gamma != self.options.gamma).then_some(gamma));
        let others: Vec<f64> = others.into_iter().flatten().collect();
        let mut all = Vec::new();
        for &gamma in &others {
            let options = FitOptions { gamma, critics: 1, ..self.options.clone() };
            let of_discount = Fit { limit: time_limit(self.fit.data, gamma), ..self.fit };
            let what = "fitting critics at other discounts";
            let mut go_on = || progress(what, all.len(), others.len());
            let fitted = fit(&of_discount, &options, &mut go_on)?;
            let last = self.fit.policies.len() - 1;
            all.push((0..last).map(|policy| fitted.difference(policy, last).value).collect());
            let _ = progress(what, all.len(), others.len());
        }
        Ok(all)
    }
}
