//! The tables: our numbers next to the paper's.

use overtone_eval::{Pooled, table::Table};

use super::kernel::POWERS;
use super::rates::{Exponents, Rate};
use super::{FourierIntegral, Results};
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

/// The least of several means.
fn least<'a>(numbers: impl Iterator<Item = &'a Pooled>) -> String {
    numbers.min_by(|a, b| a.mean.total_cmp(&b.mean)).map_or(String::new(), spread)
}

/// A bound of the paper, in brackets where its conditions do not hold.
fn bound(rate: &Rate, of: fn(Exponents) -> f64) -> String {
    let stated = exponent(of(rate.paper()));
    if rate.paper_applies() { stated } else { format!("({stated})") }
}

/// `exp` stands for a bias that falls like exp(−R²).
fn exponent(x: f64) -> String {
    if x.is_infinite() { "exp".into() } else { format!("{x:.2}") }
}

/// Adds all tables.
pub(super) fn add(study: &FourierIntegral, results: &Results, report: &mut Report) {
    report.table("examples", examples(results));
    report.table("mise", mise(results));
    report.csv("rates", rates(results));
    report.csv("examples-by-radius", all_examples(study, results));
    report.csv("rates-best", best(results));
}

/// The least error of every example and kernel, next to the paper's.
fn examples(results: &Results) -> Table {
    let mut table = table(
        "example | paper | φ = z | φ = z² | φ = z⁴ | φ = z⁶ | Gaussian kernel | Gaussian kernel, \
         Silverman's bandwidth",
    );
    for finding in &results.examples {
        let mut row = vec![finding.name.into(), format!("{:.2e}", finding.paper)];
        let fourier = |p: usize| least(finding.errors.iter().map(|errors| &errors[p]));
        row.extend((0..POWERS.len()).map(fourier));
        row.extend([least(finding.gaussian.iter()), spread(&finding.silverman)]);
        table.row(row);
    }
    table
}

/// How the least MISE falls with N: the paper's bounds, and the exponents that are seen.
fn mise(results: &Results) -> Table {
    let mut table = table(
        "target | D | φ = z: bound | seen | φ = z²: bound | seen | φ = z⁴: bound | seen \
         | φ = z⁶: bound | seen",
    );
    for rates in results.rates.chunks(POWERS.len()) {
        let mut row = vec![rates[0].target.name().into(), rates[0].dimensions.to_string()];
        let cells = |rate: &Rate| [bound(rate, Exponents::error), PowerLaw::show(rate.error())];
        row.extend(rates.iter().flat_map(cells));
        table.row(row);
    }
    table
}

/// The exponents of every target and kernel: the paper's bound, equation 26's for large R, and
/// those that are seen.
fn rates(results: &Results) -> Table {
    let mut table = table(
        "target | D | kernel | bias² in R: paper | eq. 26 | seen | variance in R: paper | \
         seen | best R in N: paper | eq. 26 | seen | MISE in N: paper | eq. 26 | seen",
    );
    for rate in &results.rates {
        let mut row = vec![rate.target.name().into(), rate.dimensions.to_string(), phi(rate.power)];
        let mut add = |of: fn(Exponents) -> f64, seen: String| {
            row.extend([bound(rate, of), exponent(of(rate.sharp())), seen]);
        };
        add(|e| -e.bias, rate.bias.map_or("exp".into(), |law| PowerLaw::show(Some(law))));
        add(Exponents::radius, PowerLaw::show(rate.radius()));
        add(Exponents::error, PowerLaw::show(rate.error()));
        let variance = [rate.dimensions.to_string(), PowerLaw::show(rate.variance)];
        row.splice(6..6, variance);
        table.row(row);
    }
    table
}

fn all_examples(study: &FourierIntegral, results: &Results) -> Table {
    let mut table = table("example | kernel | width | mse | sd");
    for finding in &results.examples {
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

fn best(results: &Results) -> Table {
    let mut table = table("target | dimensions | power | n | radius | mise");
    for rate in &results.rates {
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
    use super::super::{tiny, tiny_results};
    use super::*;

    #[test]
    fn every_case_has_its_row() {
        let (study, results) = (tiny(), tiny_results());
        let rows = |table: Table| table.rows().len() - 1;
        assert_eq!(rows(examples(results)), 6);
        assert_eq!(rows(mise(results)), 2 * 2);
        assert_eq!(rows(all_examples(&study, results)), 6 * (4 + 1) * 3);
        assert_eq!(rows(rates(results)), 2 * 2 * 4);
        assert_eq!(rows(best(results)), 16 * 11);
        let markdown = rates(results).to_markdown();
        assert!(markdown.contains("| Laplace | 1 | φ = z² | (-2.00) | -2.00 |"), "{markdown}");
    }
}
