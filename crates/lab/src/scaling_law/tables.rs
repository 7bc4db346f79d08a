//! The tables and plots.

use overtone_eval::table::Table;
use overtone_plot::{Line, LinePlot, Stroke};

use super::target::Shape;
use super::{Finding, ScalingLaw, WIDTHS};
use crate::power_law::PowerLaw;
use crate::report::{LOG, Report, plot, table};

/// The exponent of `1/N`: the slope, turned positive.
fn seen(law: Option<PowerLaw>) -> String {
    let turned = law.map(|law| PowerLaw { exponent: -law.exponent, ..law });
    PowerLaw::show(turned)
}

fn or_none(exponent: Option<f64>) -> String {
    exponent.map_or("-".into(), |exponent| exponent.to_string())
}

/// Everything that is shown.
pub(super) fn report(study: &ScalingLaw, findings: &[Finding]) -> Report {
    let mut report = Report::default();
    report.table("exponents", exponents(study, findings));
    report.csv("widths", widths(study, findings));
    report.csv("truncations", truncations(findings));
    report.csv("best-heads", best_heads(findings));
    report.plot("lacking-by-n", lacking_plot(study, findings));
    report.plot("fit-by-n", fit_plot(study, findings));
    report
}

/// Exponents of what smoothness lacks to its limit, and of how well truncations and the best heads
/// fit. In brackets: `t` is less than the theorem asks for.
fn exponents(study: &ScalingLaw, findings: &[Finding]) -> Table {
    let mut table = table(
        "target | t | 2t−1 | derived | C₁ − s | C₁ − s, best head | ∫(f − f_N)² \
         | divergence, best head",
    );
    let range = study.fitted_range();
    for finding in findings {
        let shape = finding.target.shape;
        let theorem = shape.theorems_exponent();
        table.row(vec![
            shape.name(),
            shape.decay().to_string(),
            if shape.decay() >= 2.0 { theorem.to_string() } else { format!("({theorem})") },
            or_none(shape.derived_exponent()),
            seen(finding.law(study.range(), |cut| cut.lacking)),
            seen(finding.fitted_law(range, |fit| fit.lacking)),
            seen(finding.law(range, |cut| cut.error)),
            seen(finding.fitted_law(range, |fit| fit.divergence)),
        ]);
    }
    table
}

/// Exponents of single blurs.
fn widths(study: &ScalingLaw, findings: &[Finding]) -> Table {
    let mut header = vec!["target".to_owned(), "2t−5".into(), "2t−1".into()];
    header.extend(WIDTHS.map(|sigma| format!("seen, σ = {sigma}")));
    let mut table = Table::new(header);
    for finding in findings {
        let shape = finding.target.shape;
        let t = shape.decay();
        let narrow = or_none((t > 2.5).then_some(2.0 * t - 5.0));
        let mut row = vec![shape.name(), narrow, shape.theorems_exponent().to_string()];
        let law = |width: usize| finding.law(study.range(), |cut| cut.lacking_at[width]);
        row.extend((0..WIDTHS.len()).map(|width| seen(law(width))));
        table.row(row);
    }
    table
}

/// The first cells of a target's rows.
fn names(finding: &Finding, n: usize) -> Vec<String> {
    let shape = finding.target.shape;
    vec![shape.name().replace(',', ""), shape.decay().to_string(), n.to_string()]
}

fn truncations(findings: &[Finding]) -> Table {
    let mut header: Vec<String> =
        ["target", "t", "n", "smoothness", "lacking", "squared_error"].map(str::to_owned).to_vec();
    header.extend(WIDTHS.map(|sigma| format!("lacking_{sigma}")));
    let mut table = Table::new(header);
    for finding in findings {
        for cut in &finding.truncations {
            let numbers = [cut.smoothness, cut.lacking, cut.error];
            let numbers = numbers.iter().chain(&cut.lacking_at).map(f64::to_string);
            table.row(names(finding, cut.n).into_iter().chain(numbers).collect());
        }
    }
    table
}

fn best_heads(findings: &[Finding]) -> Table {
    let mut table = table("target | t | n | divergence | excess | smoothness | lacking");
    for finding in findings {
        for fit in &finding.fitted {
            let numbers = [fit.divergence, fit.excess, fit.smoothness, fit.lacking];
            let numbers = numbers.map(|x| x.to_string());
            table.row(names(finding, fit.n).into_iter().chain(numbers).collect());
        }
    }
    table
}

/// A plot against the number of frequencies.
fn by_n(title: &str, y_label: &str, lines: Vec<Line>) -> LinePlot {
    plot(title, ["frequencies N", y_label], LOG, lines)
}

fn powers(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| matches!(finding.target.shape, Shape::Power(_)))
}

/// `C₁ − s` of the powers, and the theorem's slope through where the exponent is read off.
fn lacking_plot(study: &ScalingLaw, findings: &[Finding]) -> LinePlot {
    let mut lines = Vec::new();
    let [from, to] = study.range().map(|n| n as f64);
    for (colour, finding) in powers(findings).enumerate() {
        let cuts = finding.truncations.iter();
        let points: Vec<[f64; 2]> =
            cuts.map(|cut| [cut.n as f64, cut.lacking / finding.smoothness]).collect();
        let anchor = points.iter().copied().find(|point| point[0] >= from);
        let shape = finding.target.shape;
        lines.push(Line::new(shape.name(), points).stroke(Stroke::Marked).colour(colour));
        if let Some([n, y]) = anchor {
            let at = |x: f64| [x, y * (x / n).powf(-shape.theorems_exponent())];
            let name = if colour == 0 { "theorem's slopes" } else { "" };
            let line = Line::new(name, vec![at(n), at(to)]);
            lines.push(line.stroke(Stroke::Dashed).colour(colour));
        }
    }
    by_n("What smoothness lacks to its limit", "(C₁ − s(y^(N))) / C₁", lines)
}

fn fit_plot(study: &ScalingLaw, findings: &[Finding]) -> LinePlot {
    let mut lines = Vec::new();
    for (colour, finding) in powers(findings).enumerate() {
        let name = finding.target.shape.name();
        let cuts = finding.truncations.iter().filter(|cut| cut.n <= study.most_fitted);
        let error = cuts.map(|cut| [cut.n as f64, cut.error]).collect();
        lines.push(Line::new(format!("{name}: truncated"), error).colour(colour));
        let heads = finding.fitted.iter().map(|fit| [fit.n as f64, fit.divergence]).collect();
        let heads = Line::new(format!("{name}: best head"), heads);
        lines.push(heads.stroke(Stroke::Dots).colour(colour));
    }
    by_n("How well N frequencies fit", "∫(f − f_N)², or divergence in nats", lines)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::{tiny, tiny_findings};
    use super::*;

    #[test]
    fn every_target_has_its_rows() {
        for table in [exponents, widths].map(|table| table(&tiny(), tiny_findings())) {
            assert_eq!(table.rows().len(), 1 + Shape::ALL.len(), "{table}");
        }
        assert_eq!(truncations(tiny_findings()).rows().len(), 1 + 7 * tiny().frequencies().len());
        assert_eq!(best_heads(tiny_findings()).rows().len(), 1 + 7 * tiny().fitted().len());
    }
}
