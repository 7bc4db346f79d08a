//! Returns-to-go, which condition the Decision Transformer.

/// `R̂ₜ = rₜ + γ R̂ₜ₊₁`; `rewards[t]` belongs to `R̂ₜ`.
///
/// `rewards` are one episode's, in order; the result has as many entries. Summed in `f64`.
///
/// ```
/// use overtone_core::returns_to_go;
/// assert_eq!(returns_to_go(&[1.0, 0.0, 2.0], 1.0), [3.0, 2.0, 2.0]);
/// assert_eq!(returns_to_go(&[1.0, 0.0, 2.0], 0.5), [1.5, 1.0, 2.0]);
/// ```
pub fn returns_to_go(rewards: &[f32], gamma: f32) -> Vec<f32> {
    let mut to_go = vec![0.0; rewards.len()];
    let mut tail = 0.0f64;
    for (out, &reward) in to_go.iter_mut().zip(rewards).rev() {
        tail = f64::from(reward) + f64::from(gamma) * tail;
        *out = tail as f32;
    }
    to_go
}

#[cfg(test)]
mod tests {
    use super::returns_to_go;

    #[test]
    fn gamma_zero_gives_the_rewards_and_empty_gives_empty() {
        assert_eq!(returns_to_go(&[1.0, -2.0, 4.0], 0.0), [1.0, -2.0, 4.0]);
        assert!(returns_to_go(&[], 1.0).is_empty());
    }

    #[test]
    fn differences_of_returns_to_go_are_the_rewards() {
        let rewards = [0.5, -1.0, 0.25, 3.0, 0.0, 1.5, -0.75];
        let gamma = 0.5;
        let to_go = returns_to_go(&rewards, gamma);
        for t in 0..rewards.len() {
            let next = to_go.get(t + 1).copied().unwrap_or(0.0);
            assert_eq!(to_go[t] - gamma * next, rewards[t]);
        }
    }
}
