//! The page about what was found.

use overtone_eval::table::Table;

use super::target::Shape;
use super::{Finding, Findings, WIDTHS};
use crate::page::Page;
use crate::power_law::PowerLaw;
use overtone_plot::{Line, LinePlot, Scale, Stroke};

/// The seen exponent of `1/N`: the slope, turned positive.
fn seen(law: Option<PowerLaw>) -> String {
    let turned = law.map(|law| PowerLaw { exponent: -law.exponent, ..law });
    PowerLaw::show(turned).replace('-', "−")
}

impl Findings {
    fn range(&self) -> [usize; 2] {
        [self.settings.from, self.settings.to]
    }

    /// Exponents and limits of the smoothness of truncations.
    pub fn smoothness_table(&self) -> Table {
        let mut table = Table::new(&[
            "target",
            "t",
            "theorem: 2t−1",
            "derived",
            "seen",
            "C₁ of the proof",
            "s of the target",
            "C₁ by the theorem's exponent",
            "C₁ by the derived one",
        ]);
        for finding in &self.targets {
            let shape = finding.target.shape;
            let limit = |exponent: f64| format!("{:.4e}", finding.limit(self.range(), exponent));
            let derived = shape.derived_exponent();
            table.row(vec![
                shape.name(),
                shape.decay().to_string(),
                match shape.decay() >= 2.0 {
                    true => format!("{}", shape.theorems_exponent()),
                    false => format!("({})", shape.theorems_exponent()),
                },
                derived.map_or("-".into(), |exponent| exponent.to_string()),
                seen(finding.law(self.range(), |cut| cut.lacking)),
                format!("{:.4e}", finding.proofs_limit),
                format!("{:.4e}", finding.smoothness),
                limit(shape.theorems_exponent()),
                derived.map_or("-".into(), limit),
            ]);
        }
        table
    }

    /// Exponents of single blurs.
    pub fn width_table(&self) -> Table {
        let mut header = vec!["target".to_owned(), "2t−5".into(), "2t−1".into()];
        header.extend(WIDTHS.map(|sigma| format!("seen, σ = {sigma}")));
        let mut table = Table::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
        for finding in &self.targets {
            let t = finding.target.shape.decay();
            let mut row = vec![
                finding.target.shape.name(),
                if t > 2.5 { (2.0 * t - 5.0).to_string() } else { "-".into() },
                (2.0 * t - 1.0).to_string(),
            ];
            row.extend(
                (0..WIDTHS.len())
                    .map(|width| seen(finding.law(self.range(), |cut| cut.lacking_at[width]))),
            );
            table.row(row);
        }
        table
    }

    /// Exponents of how well truncations and the best heads fit.
    pub fn fit_table(&self) -> Table {
        let range = self.settings.fitted_range();
        let mut table = Table::new(&[
            "target",
            "2t−1",
            "∫(f − f_N)², truncated",
            "divergence, best head",
            "C₁ − s, derived",
            "C₁ − s, truncated",
            "C₁ − s, best head",
        ]);
        for finding in &self.targets {
            let shape = finding.target.shape;
            table.row(vec![
                shape.name(),
                shape.theorems_exponent().to_string(),
                seen(finding.law(range, |cut| cut.error)),
                seen(finding.fitted_law(range, |fit| fit.divergence)),
                shape.derived_exponent().map_or("-".into(), |exponent| exponent.to_string()),
                seen(finding.law(range, |cut| cut.lacking)),
                seen(finding.fitted_law(range, |fit| fit.lacking)),
            ]);
        }
        table
    }

    /// What the exponents say of the theorem, in sentences.
    pub fn verdict(&self) -> String {
        let mut near = Vec::new();
        let (mut far, mut least) = (Vec::new(), f64::INFINITY);
        let mut off_derived: f64 = 0.0;
        for finding in self.targets.iter().filter(|finding| finding.target.shape.decay() >= 2.0) {
            let shape = finding.target.shape;
            let Some(law) = finding.law(self.range(), |cut| cut.lacking) else { continue };
            let below = shape.theorems_exponent() + law.exponent;
            if below.abs() <= law.standard_error.max(0.1) {
                near.push(shape.name());
            } else {
                far.push(shape.name());
                least = least.min(below);
            }
            if let Some(derived) = shape.derived_exponent() {
                off_derived = off_derived.max((derived + law.exponent).abs());
            }
        }
        let smaller = format!("smaller by {least:.2} or more ({})", far.join("; "));
        let verdict = match (near.is_empty(), far.is_empty()) {
            (true, _) => format!(
                "For no target with t ≥ 2 does the exponent agree with the theorem's 2t − 1 to \
                 0.1 or one standard error; it is {smaller}."
            ),
            (false, true) => "For every target with t ≥ 2 the theorem's 2t − 1 is seen.".into(),
            (false, false) => format!(
                "The theorem's 2t − 1 is seen for {}; for the others with t ≥ 2 the exponent is \
                 {smaller}.",
                near.join("; ")
            ),
        };
        format!("{verdict}\nThe derived exponent is met to {off_derived:.2} at the worst.")
    }

    /// Whether smoothness and fit change with `N` in the direction the theorem says.
    pub fn directions(&self) -> String {
        let rises = |finding: &Finding| finding.truncations.is_sorted_by_key(|cut| cut.smoothness);
        let fits = |finding: &Finding| {
            finding.truncations.windows(2).all(|pair| pair[1].error <= pair[0].error)
                && finding.fitted.windows(2).all(|pair| pair[1].divergence < pair[0].divergence)
        };
        let say = |what: &str, holds: &dyn Fn(&Finding) -> bool| {
            let not: Vec<String> = self
                .targets
                .iter()
                .filter(|finding| !holds(finding))
                .map(|finding| finding.target.shape.name())
                .collect();
            match not.is_empty() {
                true => format!("{what} at every step of N, for every target."),
                false => format!("{what} at every step of N, but not for {}.", not.join("; ")),
            }
        };
        say("s(y^(N)) rises or stays", &rises) + "\n" + &say("The fit stays or gets better", &fits)
    }

    /// What becomes of the claim that a truncated density is not negative.
    pub fn negative(&self) -> String {
        let mut worst = (String::new(), 0, 0.0);
        let mut any = 0;
        for finding in self.targets.iter().filter(|finding| finding.target.shape.decay() >= 2.0) {
            let below = finding.truncations.iter().filter(|cut| cut.least < -1e-12);
            any += usize::from(below.clone().count() > 0);
            for cut in below {
                if cut.least < worst.2 {
                    worst = (finding.target.shape.name(), cut.n, cut.least);
                }
            }
        }
        format!(
            "Appendix A.1 says that truncated densities are not negative. On the ground (floor \
             0), {any} of {} targets with t ≥ 2 have truncations with negative bins, the lowest \
             {} with N = {}: {:.4} where the mean density is 0.5. A head cannot learn those.",
            self.targets.iter().filter(|finding| finding.target.shape.decay() >= 2.0).count(),
            worst.0,
            worst.1,
            worst.2
        )
        .replace(": -", ": −")
    }

    /// A page about all of it; `command` is what was run.
    pub fn page(&self, command: &str) -> Page {
        let title = "The Fourier head's scaling law";
        let mut page = Page::new("scaling-law", title, command);
        let s = &self.settings;
        page.text(&format!(
            "Theorem 3.3 of the Fourier head's paper: with coefficients that decay like 1/k^t, \
             t ≥ 2, more frequencies fit better, and the smoothness of the truncated density \
             over m bins is s(y^(N)) = C₁ − C₂/N^(2t−1) + O(1/N^2t) for 1 ≪ N < m/2.\n\
             Here m = {}; the targets are symmetric densities with known coefficients, their \
             least value {}, cut off below m/2; s is the metric of \
             `crates/eval/src/smoothness.rs`, on a ring of bins as in the proof. Nothing is \
             random. Exponents are least-squares slopes of logarithms, ± their standard error \
             as straight lines.",
            s.bins, s.floor
        ));
        self.smoothness_section(&mut page);
        self.fit_section(&mut page);
        page.csv("truncations", &self.all_truncations());
        page.csv("best-heads", &self.all_fitted());
        page
    }

    fn smoothness_section(&self, page: &mut Page) {
        let [from, to] = self.range();
        page.heading("Smoothness against N");
        page.text(&format!(
            "The exponent of C₁ − s(y^(N)) for N from {from} to {to}; C₁ is the smoothness of \
             the whole target, and beside it what least squares make of it with an exponent \
             given. In brackets: t is less than the theorem asks for."
        ));
        page.table("smoothness", &self.smoothness_table());
        page.text(&(self.verdict() + "\n" + &self.directions()));
        page.text(
            "Why: the proof drops the blur's own Fourier coefficients (A.59: h decays faster \
             than any power of k). But they decay only from k ≈ m/(πσ√2) on, and below it the \
             factor 1 − h is about 2(πσk/m)², not 1: for σ = 1 that is all k up to about \
             m/4. It drops the constant's factor 1 − h₀ = 0 too, and so takes ‖y‖ Σα_σ for C₁. \
             With the blur kept, the wide blurs do show 2t − 1, but those wider than m/N have a \
             weight of about N/m only; the sum over all widths gives the larger of t − 3/2 and \
             2t − 4 while 1 ≪ N ≪ m, as the doc of `Shape::derived_exponent` shows. In (A.73) \
             the division of the second term by B₂ is lost as well, which changes C₂ alone. \
             The weights end at σ = 100 and sum to 0.993951; that is a constant factor of what \
             is summed, and bends the law where N is less than m/100, for which no blur is wide \
             enough to remove everything.",
        );
        page.plot("smoothness-by-n", &self.rise_plot());
        page.plot("lacking-by-n", &self.lacking_plot());
        page.text(&format!(
            "Each blur alone, N from {from} to {to}: σN/m ≪ 1 gives 2t − 5 (for t > 5/2), \
             σN/m ≫ 1 the theorem's 2t − 1."
        ));
        page.table("widths", &self.width_table());
        page.plot("lacking-by-width", &self.width_plot());
        page.text(&self.negative());
    }

    fn fit_section(&self, page: &mut Page) {
        let [from, to] = self.settings.fitted_range();
        page.heading("Fit against N");
        page.text(&format!(
            "The theorem's first part has no rate. Parseval's gives 2t − 1 for the squared error \
             of truncations; the best head is the one with the least cross-entropy to the \
             target's distribution, found by optimizing the parameters of Algorithm 1 \
             (`crates/lab/src/scaling_law/best_fit.rs`). Exponents of 1/N for N from {from} to \
             {to}."
        ));
        page.table("fits", &self.fit_table());
        let heads = self.targets.iter().flat_map(|finding| &finding.fitted);
        let excess = heads.clone().map(|fit| fit.excess).fold(0.0, f64::max);
        page.text(&format!(
            "Each of the {} best heads is proven to have a divergence within {excess:.0e} of the \
             least possible; those whose divergence is not ten times larger than their proof's \
             bound are left out of the exponents.",
            heads.count()
        ));
        page.plot("fit-by-n", &self.fit_plot());
    }

    fn all_truncations(&self) -> Table {
        let mut header: Vec<String> =
            ["target", "t", "n", "smoothness", "lacking", "squared_error", "least_on_the_ground"]
                .map(str::to_owned)
                .to_vec();
        header.extend(WIDTHS.map(|sigma| format!("lacking_{sigma}")));
        let mut table = Table::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
        for finding in &self.targets {
            let shape = finding.target.shape;
            for cut in &finding.truncations {
                let mut row = vec![shape.name().replace(',', "")];
                row.extend([shape.decay().to_string(), cut.n.to_string()]);
                let numbers = [cut.smoothness, cut.lacking, cut.error, cut.least];
                row.extend(numbers.iter().chain(&cut.lacking_at).map(f64::to_string));
                table.row(row);
            }
        }
        table
    }

    fn all_fitted(&self) -> Table {
        let mut table =
            Table::new(&["target", "t", "n", "divergence", "excess", "smoothness", "lacking"]);
        for finding in &self.targets {
            let shape = finding.target.shape;
            for fit in &finding.fitted {
                let mut row = vec![shape.name().replace(',', "")];
                row.extend([shape.decay().to_string(), fit.n.to_string()]);
                let numbers = [fit.divergence, fit.excess, fit.smoothness, fit.lacking];
                row.extend(numbers.map(|x| x.to_string()));
                table.row(row);
            }
        }
        table
    }

    fn plot(&self, title: &str, y_label: &str, lines: Vec<Line>) -> LinePlot {
        LinePlot {
            title: title.into(),
            x_label: "frequencies N".into(),
            y_label: y_label.into(),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            lines,
        }
    }

    fn rise_plot(&self) -> LinePlot {
        let line = |finding: &Finding| {
            let cuts = finding.truncations.iter();
            let points = cuts.map(|cut| [cut.n as f64, cut.smoothness / finding.smoothness]);
            Line::new(finding.target.shape.name(), points.collect())
        };
        let lines = self.targets.iter().map(line).collect();
        let mut plot = self.plot("Smoothness of truncated densities", "s(y^(N)) / s(y)", lines);
        plot.y_scale = Scale::Linear;
        plot
    }

    /// `C₁ − s` of the powers, and the theorem's slope through where the exponent is read off.
    fn lacking_plot(&self) -> LinePlot {
        let mut lines = Vec::new();
        for (colour, finding) in self.powers().enumerate() {
            let points: Vec<[f64; 2]> = finding
                .truncations
                .iter()
                .map(|cut| [cut.n as f64, cut.lacking / finding.smoothness])
                .collect();
            let anchor = points.iter().copied().find(|point| point[0] >= self.settings.from as f64);
            let name = finding.target.shape.name();
            lines.push(Line::new(name, points).stroke(Stroke::Marked).colour(colour));
            if let Some([n, y]) = anchor {
                let exponent = finding.target.shape.theorems_exponent();
                let to = self.settings.to as f64;
                let slope = [n, to].map(|x| [x, y * (x / n).powf(-exponent)]).to_vec();
                let name = if colour == 0 { "theorem's slopes" } else { "" };
                lines.push(Line::new(name, slope).stroke(Stroke::Dashed).colour(colour));
            }
        }
        self.plot("What smoothness lacks to its limit", "(C₁ − s(y^(N))) / C₁", lines)
    }

    fn powers(&self) -> impl Iterator<Item = &Finding> {
        self.targets.iter().filter(|finding| matches!(finding.target.shape, Shape::Power(_)))
    }

    /// Every blur of the target with `t` = 3.
    fn width_plot(&self) -> LinePlot {
        let finding = self.powers().find(|finding| finding.target.shape == Shape::Power(3.0));
        let mut lines = Vec::new();
        for (width, sigma) in WIDTHS.into_iter().enumerate() {
            let cuts = finding.into_iter().flat_map(|finding| &finding.truncations);
            let points = cuts.map(|cut| [cut.n as f64, cut.lacking_at[width]]).collect();
            lines.push(Line::new(format!("σ = {sigma}"), points).stroke(Stroke::Marked));
        }
        self.plot("What each blur's norm lacks, t = 3", "norm of y less that of y^(N)", lines)
    }

    fn fit_plot(&self) -> LinePlot {
        let mut lines = Vec::new();
        for (colour, finding) in self.powers().enumerate() {
            let name = finding.target.shape.name();
            let to = self.settings.most_fitted;
            let cuts = finding.truncations.iter().filter(|cut| cut.n <= to);
            let error = cuts.map(|cut| [cut.n as f64, cut.error]).collect();
            lines.push(Line::new(format!("{name}: truncated"), error).colour(colour));
            let heads = finding.fitted.iter().map(|fit| [fit.n as f64, fit.divergence]).collect();
            let heads = Line::new(format!("{name}: best head"), heads);
            lines.push(heads.stroke(Stroke::Dots).colour(colour));
        }
        self.plot("How well N frequencies fit", "∫(f − f_N)², or divergence in nats", lines)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{tiny, tiny_findings};
    use super::*;

    #[test]
    fn the_page_says_what_was_seen() {
        let mut found = tiny_findings().clone();
        let page = found.page("just lab scaling-law bins=1024");
        for part in [
            "bins=1024",
            "m = 1024",
            "power, t = 2.5",
            "For no target with t ≥ 2 does the exponent agree",
            "s(y^(N)) rises or stays at every step of N, for every target.",
            "have truncations with negative bins",
            "lacking-by-width.svg",
        ] {
            assert!(page.markdown().contains(part), "no {part:?} in {}", page.markdown());
        }
        let folder = tempfile::tempdir().unwrap();
        page.write(folder.path()).unwrap();
        let lines =
            |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap().lines().count();
        let cuts = tiny().frequencies().len();
        assert_eq!(lines("truncations.csv"), 1 + Shape::ALL.len() * cuts);
        assert_eq!(lines("best-heads.csv"), 1 + Shape::ALL.len() * tiny().fitted().len());

        // Made to follow the theorem, the findings say so.
        for finding in &mut found.targets {
            let exponent = finding.target.shape.theorems_exponent();
            for cut in &mut finding.truncations {
                cut.lacking = (cut.n as f64).powf(-exponent);
            }
        }
        assert!(found.verdict().starts_with("For every target with t ≥ 2 the theorem's"));
        for cut in &mut found.targets[1].truncations {
            cut.lacking = 1.0 / cut.n as f64;
        }
        let expected = "with t ≥ 2 the exponent is smaller by 2.00 or more (triangle).";
        assert!(found.verdict().contains(expected), "{}", found.verdict());
        found.targets[1].truncations.swap(0, 5);
        assert!(found.directions().contains("at every step of N, but not for triangle."));
    }
}
