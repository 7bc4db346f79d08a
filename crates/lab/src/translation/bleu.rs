//! BLEU of a corpus (Papineni et al. 2002).

use std::collections::HashMap;

/// The longest n-grams that are compared.
const LONGEST: usize = 4;

/// How often each n-gram of a sentence is there.
fn n_grams(sentence: &[i32], n: usize) -> HashMap<&[i32], usize> {
    let mut counts = HashMap::new();
    for gram in sentence.windows(n) {
        *counts.entry(gram).or_insert(0) += 1;
    }
    counts
}

/// In percent: the geometric mean of the corpus's clipped precisions of 1- to 4-grams, times
/// `exp(1 − r/c)` where the translations' `c` tokens are fewer than the references' `r`. One
/// reference each, no smoothing. Where no reference has so many words, longer n-grams are left out.
///
/// # Panics
/// When there is not one reference for each translation.
pub fn bleu(translations: &[Vec<i32>], references: &[Vec<i32>]) -> f64 {
    assert_eq!(translations.len(), references.len(), "one reference each");
    let length = |sentences: &[Vec<i32>]| sentences.iter().map(Vec::len).sum::<usize>() as f64;
    let longest = references.iter().map(Vec::len).max().unwrap_or(0).min(LONGEST);
    if longest == 0 {
        return 0.0;
    }
    let mut logs = 0.0;
    for n in 1..=longest {
        let (mut right, mut all) = (0, 0);
        for (translation, reference) in translations.iter().zip(references) {
            let there = n_grams(reference, n);
            for (gram, count) in n_grams(translation, n) {
                right += count.min(there.get(gram).copied().unwrap_or(0));
                all += count;
            }
        }
        if right == 0 {
            return 0.0;
        }
        logs += (right as f64 / all as f64).ln() / longest as f64;
    }
    let brevity = (1.0 - length(references) / length(translations)).min(0.0);
    100.0 * (logs + brevity).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bleu_by_hand() {
        let reference = vec![vec![1, 2, 3, 4, 5, 6]];
        assert!((bleu(&reference, &reference) - 100.0).abs() < 1e-9);
        // 1 2 3 4 9 6: 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 quadruples.
        let expected: f64 = 5.0 / 6.0 * (3.0 / 5.0) * (2.0 / 4.0) * (1.0 / 3.0);
        let got = bleu(&[vec![1, 2, 3, 4, 9, 6]], &reference);
        assert!((got - 100.0 * expected.powf(0.25)).abs() < 1e-9, "{got}");
        // The first five words alone are all right, and 5 of 6: exp(1 − 6/5).
        let got = bleu(&[vec![1, 2, 3, 4, 5]], &reference);
        assert!((got - 100.0 * (-0.2f64).exp()).abs() < 1e-9, "{got}");
        // A word said twice is right once; no pair is.
        assert_eq!(bleu(&[vec![1, 1]], &reference), 0.0);
        assert_eq!(bleu(&[vec![]], &reference), 0.0);
        // Of two words there are no longer n-grams: 3 of 4 words, 1 of 2 pairs.
        let short = vec![vec![1, 2], vec![3, 4]];
        assert!((bleu(&short, &short) - 100.0).abs() < 1e-9);
        let got = bleu(&[vec![1, 2], vec![3, 5]], &short);
        assert!((got - 100.0 * (0.75f64 * 0.5).sqrt()).abs() < 1e-9, "{got}");
        assert_eq!(bleu(&[vec![]], &[vec![]]), 0.0);
    }

    #[test]
    fn counts_are_of_the_corpus() {
        // 4-grams: one of one, none of one; each shorter one: all of the first, the second's none.
        let got =
            bleu(&[vec![1, 2, 3, 4], vec![9, 9, 9, 9]], &[vec![1, 2, 3, 4], vec![5, 6, 7, 8]]);
        assert!((got - 50.0).abs() < 1e-9, "{got}");
    }
}
