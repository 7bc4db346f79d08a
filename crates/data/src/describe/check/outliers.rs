//! Findings about numbers whose deviation does not describe their spread.

use super::figures::Sums;
use super::range::Range;
use super::sample::Unusual;
use crate::describe::findings::Findings;

/// Numbers from 0 to 1 that make rare ones among them categories, as of one-hot observations.
const CATEGORIES: usize = 3;

/// Reports numbers whose deviation does not describe their spread, by array: observations,
/// continuous actions, rewards.
pub(super) fn tell(arrays: [Vec<&Sums>; 3], findings: &mut Findings<'_>) {
    for (array, all) in ["observations", "actions", "rewards"].into_iter().zip(arrays) {
        let is_from_0_to_1 = |sums: &&&Sums| {
            let Range { min, max, .. } = sums.range();
            (min, max) == (0.0, 1.0)
        };
        let has_categories = all.iter().filter(is_from_0_to_1).count() >= CATEGORIES;
        for (place, sums) in all.iter().enumerate() {
            let at = if array == "rewards" { "".into() } else { format!("at place {place} ") };
            // Only observations: a reward that is paid once is usual.
            let is_seen = array == "observations";
            if is_seen && sums.is_negligible() {
                let Range { mean, std, .. } = sums.range();
                let found = format!("{at}a deviation of {std:.1e} around {mean}");
                findings.tell("negligible-spread", array, found);
            }
            match sums.unusual() {
                Some(Unusual::Outlier { farthest, usual: [low, high] }) => findings.tell(
                    "outlier",
                    array,
                    format!("{at}{farthest}, where 99 % are between {low} and {high}"),
                ),
                // A reward that ends an episode is usual, too.
                Some(Unusual::Sentinel { value, share, others: [low, high] })
                    if array != "rewards" =>
                {
                    let percent = (100.0 * share).max(0.1);
                    let found = format!(
                        "{at}{value} in {percent:.1} % of the steps, where all others are between \
                         {low} and {high}"
                    );
                    findings.tell("frequent-outlier", array, found);
                }
                // A rare category.
                Some(Unusual::NearlyConstant { usual: 0.0, farthest: 1.0, .. })
                    if has_categories => {}
                Some(Unusual::NearlyConstant { usual, farthest, steps }) if is_seen => {
                    let plural = if steps == 1 { "" } else { "s" };
                    let found = format!(
                        "{at}{usual} in all but about {steps} step{plural}, and {farthest} there"
                    );
                    findings.tell("nearly-constant", array, found);
                }
                _ => {}
            }
        }
    }
}
