//! Parsing of target returns: numbers, or percentiles of the dataset's returns.

use anyhow::{Context, Result};
use overtone_data::EpisodeReturns;

/// The target returns in `text`: numbers, or percentiles (`p90`) of `returns`, weighted by episode
/// length. Repeated numbers are left out.
///
/// # Errors
/// When a part is neither a number nor a percentile.
pub fn targets(text: &str, returns: &EpisodeReturns) -> Result<Vec<f32>> {
    let mut targets = Vec::new();
    for part in text.split(',') {
        let target = target(part.trim(), returns)?;
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    Ok(targets)
}

fn target(part: &str, returns: &EpisodeReturns) -> Result<f32> {
    if let Some(percent) = part.strip_prefix('p') {
        let percent: f64 =
            percent.parse().ok().filter(|p| (0.0..=100.0).contains(p)).with_context(|| {
                format!("target={part}: expected a percentile from p0 to p100, such as p90")
            })?;
        return returns.percentile(percent).context(
            "the data does not contain a finished episode for a percentile. Use a number",
        );
    }
    let number: Option<f32> = part.parse().ok().filter(|x: &f32| x.is_finite());
    number.with_context(|| {
        format!("target={part}: expected numbers or percentiles, such as 32 or p90,p99")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_numbers_or_percentiles() {
        let up_to = |n: usize| EpisodeReturns::new((1..=n).map(|earned| (earned as f32, 7)));
        let returns = up_to(10);
        assert_eq!(
            targets("p90, 32,p0,p100,-1.5", &returns).unwrap(),
            [9.0, 32.0, 1.0, 10.0, -1.5]
        );
        // Both are the highest of five; the repeated number is left out.
        assert_eq!(targets("p90,p92", &up_to(5)).unwrap(), [5.0]);
        assert_eq!(targets("p85,p90,3,9,0,-0,p30", &returns).unwrap(), [9.0, 3.0, 0.0]);
        assert!(targets("p101", &returns).is_err());
        assert!(targets("high", &returns).is_err());
        assert!(targets("p50", &up_to(0)).is_err());
    }
}
