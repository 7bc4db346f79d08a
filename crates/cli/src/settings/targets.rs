//! Target returns as they are written: numbers, or percentiles of the data's returns.

use anyhow::{Context, Result};

/// Target returns: numbers, or percentiles (`p90`) of `returns`, which are ascending. What comes
/// to the same number as one before it is left out.
///
/// # Errors
/// When a part is neither.
pub fn targets(text: &str, returns: &[f32]) -> Result<Vec<f32>> {
    let mut targets = Vec::new();
    for part in text.split(',') {
        let target = target(part.trim(), returns)?;
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    Ok(targets)
}

fn target(part: &str, returns: &[f32]) -> Result<f32> {
    if let Some(percent) = part.strip_prefix('p') {
        let percent: f64 =
            percent.parse().ok().filter(|p| (0.0..=100.0).contains(p)).with_context(|| {
                format!("target={part}: a percentile is written p0 to p100, such as p90")
            })?;
        return percentile(returns, percent)
            .context("the data holds no finished episode to take a percentile of");
    }
    let number: Option<f32> = part.parse().ok().filter(|x: &f32| x.is_finite());
    number.with_context(|| {
        format!("target={part}: expected numbers or percentiles, such as 32 or p90,p99")
    })
}

/// The smallest of the ascending `values` that at least `percent` % of them do not exceed.
fn percentile(values: &[f32], percent: f64) -> Option<f32> {
    let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_numbers_or_percentiles() {
        let returns = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        assert_eq!(
            targets("p90, 32,p0,p100,-1.5", &returns).unwrap(),
            [9.0, 32.0, 1.0, 10.0, -1.5]
        );
        // Both are the highest of five; and what is the same number later is left out.
        assert_eq!(targets("p90,p92", &returns[..5]).unwrap(), [5.0]);
        assert_eq!(targets("p85,p90,3,9,0,-0,p30", &returns).unwrap(), [9.0, 3.0, 0.0]);
        assert!(targets("p101", &returns).is_err());
        assert!(targets("high", &returns).is_err());
        assert!(targets("p50", &[]).is_err());
    }
}
