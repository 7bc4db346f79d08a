//! The tables: our numbers next to the paper's.

use overtone_eval::{Pooled, table::Table};

use super::kernel::POWERS;
use super::rates::Exponents;
use super::synthetic::Finding;
use super::{Found, FourierIntegral};
use crate::power_law::PowerLaw;
use crate::report::{Report, table};

/// The name of `φ(z) = z^p`.
pub(super) fn phi(power: u32) -> String {
    match power {
        1 => "φ = z".into(),
        p => format!("φ = z{}", ["", "", "²", "³", "⁴", "⁵", "⁶"][p as usize]),
    }
}

fn spread(pooled: &Pooled) -> String {
    match pooled.sd() {
        Some(sd) => format!("{:.2e} ± {sd:.0e}", pooled.mean),
        None => format!("{:.2e}", pooled.mean),
    }
}

/// The place of the least of several means.
fn least<'a>(numbers: impl Iterator<Item = &'a Pooled>) -> usize {
    let least = numbers.enumerate().min_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    least.map_or(0, |(place, _)| place)
}

/// Adds all tables.
pub(super) fn add(study: &FourierIntegral, found: &Found, report: &mut Report) {
    report.table("examples", examples(study, found));
    report.table("rates", rates(found));
    report.csv("examples-by-radius", all_examples(study, found));
    report.csv("rates-best", best(found));
}

/// The first and the last radius at which a power's mean error is at most the paper's.
fn reaches(finding: &Finding, p: usize, radii: &[f64]) -> String {
    let within = radii.iter().zip(&finding.errors);
    let mut within = within.filter(|(_, errors)| errors[p].mean <= finding.paper);
    match (within.next(), within.next_back()) {
        (None, _) => "none".into(),
        (Some((first, _)), last) => {
            format!("{first:.2} to {:.2}", last.map_or(first, |(last, _)| last))
        }
    }
}

/// The least error of every example and kernel, next to the paper's.
fn examples(study: &FourierIntegral, found: &Found) -> Table {
    let (radii, bandwidths) = (study.radii(), study.bandwidths());
    let mut table = table(
        "example | paper's MSE | kernel | least MSE | at R | at most the paper's for R | \
         Gaussian kernel: least MSE | at bandwidth | with Silverman's",
    );
    for finding in &found.examples {
        let b = least(finding.gaussian.iter());
        for (p, &power) in POWERS.iter().enumerate() {
            let r = least(finding.errors.iter().map(|errors| &errors[p]));
            table.row(vec![
                finding.name.into(),
                format!("{:.2e}", finding.paper),
                phi(power),
                spread(&finding.errors[r][p]),
                format!("{:.2}", radii[r]),
                reaches(finding, p, &radii),
                spread(&finding.gaussian[b]),
                format!("{:.3}", bandwidths[b]),
                spread(&finding.silverman),
            ]);
        }
    }
    table
}

/// The exponents of every target and kernel: the paper's bound (in brackets where its conditions
/// do not hold), equation 26's for large R, and those that are seen. `exp` stands for a bias that
/// falls like exp(−R²).
fn rates(found: &Found) -> Table {
    let mut table = table(
        "target | D | kernel | bias² in R: paper | eq. 26 | seen | variance in R: paper | \
         seen | best R in N: paper | eq. 26 | seen | MISE in N: paper | eq. 26 | seen",
    );
    let exponent = |x: f64| if x.is_infinite() { "exp".to_owned() } else { format!("{x:.2}") };
    for rate in &found.rates {
        let (paper, sharp) = (rate.paper(), rate.sharp());
        let mut row = vec![rate.target.name().into(), rate.dimensions.to_string(), phi(rate.power)];
        let mut add = |of: fn(Exponents) -> f64, seen: String| {
            let stated = exponent(of(paper));
            row.push(if rate.paper_applies() { stated } else { format!("({stated})") });
            row.extend([exponent(of(sharp)), seen]);
        };
        add(|e| -e.bias, rate.bias.map_or("exp".into(), |law| PowerLaw::show(Some(law))));
        add(Exponents::radius, PowerLaw::show(rate.radius()));
        add(Exponents::error, PowerLaw::show(rate.error()));
        let variance = [rate.dimensions.to_string(), PowerLaw::show(rate.variance)];
        row.splice(6..6, variance);
        table.row(row.into_iter().map(|cell| cell.replace('-', "−")).collect());
    }
    table
}

fn all_examples(study: &FourierIntegral, found: &Found) -> Table {
    let mut table = table("example | kernel | width | mse | sd");
    for finding in &found.examples {
        let mut row = |kernel: String, width: f64, error: &Pooled| {
            let sd = error.sd().map_or(String::new(), |sd| sd.to_string());
            let name = finding.name.replace(',', "");
            table.row(vec![name, kernel, width.to_string(), error.mean.to_string(), sd]);
        };
        for (radius, errors) in study.radii().into_iter().zip(&finding.errors) {
            for (power, error) in POWERS.iter().zip(errors) {
                row(format!("z^{power} by R"), radius, error);
            }
        }
        for (bandwidth, error) in study.bandwidths().into_iter().zip(&finding.gaussian) {
            row("gaussian by bandwidth".into(), bandwidth, error);
        }
    }
    table
}

fn best(found: &Found) -> Table {
    let mut table = table("target | dimensions | power | n | radius | mise");
    for rate in &found.rates {
        for best in &rate.best {
            let counts = [rate.dimensions.to_string(), rate.power.to_string()];
            let names = [rate.target.name().to_owned()].into_iter().chain(counts);
            table.row(names.chain(best.map(|x| x.to_string())).collect());
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::{tiny, tiny_found};
    use super::*;

    #[test]
    fn every_case_has_its_row() {
        let (study, found) = (tiny(), tiny_found());
        let rows = |table: Table| table.rows().len() - 1;
        assert_eq!(rows(examples(&study, found)), 6 * 4);
        assert_eq!(rows(all_examples(&study, found)), 6 * (4 + 1) * 3);
        assert_eq!(rows(rates(found)), 2 * 2 * 4);
        assert_eq!(rows(best(found)), 16 * 11);
        let markdown = rates(found).to_markdown();
        assert!(markdown.contains("| Laplace | 1 | φ = z² | (−2.00) | −2.00 |"), "{markdown}");
    }

    #[test]
    fn radii_within_the_papers_error_are_named() {
        let pooled = |mean: f64| Pooled { n: 2, mean, squares: 0.0 };
        let mut finding = tiny_found().examples[0].clone();
        finding.errors = vec![[pooled(9e-5); 4], [pooled(4e-6); 4], [pooled(5e-6); 4]];
        assert_eq!(reaches(&finding, 0, &[1.0, 2.0, 4.0]), "2.00 to 4.00");
        finding.errors.truncate(1);
        assert_eq!(reaches(&finding, 0, &[1.0]), "none");
    }
}
