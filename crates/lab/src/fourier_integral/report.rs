//! The page about what was found.

mod plots;

use overtone_eval::Pooled;
use overtone_eval::table::Table;

use super::Findings;
use super::kernel::{Kernel, POWERS, integral_in_words, normal_density};
use super::mise::{Target, expectation, expected_error};
use super::rates::{
    ASYMPTOTIC_RADII, DIMENSIONS, Drawn, Exponents, Rate, SOUGHT, silvermans_error,
};
use super::synthetic::Finding;
use crate::page::Page;
use crate::power_law::PowerLaw;

/// The name of `φ(z) = z^p`.
fn phi(power: u32) -> String {
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

/// The place of the least of several numbers.
fn least(numbers: impl Iterator<Item = f64>) -> usize {
    let least = numbers.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    least.map_or(0, |(place, _)| place)
}

impl Finding {
    /// The radius with the least mean error of one power, as an index.
    fn best(&self, p: usize) -> usize {
        least(self.errors.iter().map(|errors| errors[p].mean))
    }

    /// The bandwidth with the least mean error of the Gaussian kernel, as an index.
    fn best_bandwidth(&self) -> usize {
        least(self.gaussian.iter().map(|error| error.mean))
    }

    /// The first and the last radius at which a power's mean error is at most the paper's.
    fn reaches(&self, p: usize, radii: &[f64]) -> Option<[f64; 2]> {
        let mut within = (0..radii.len())
            .filter(|&r| self.errors[r][p].mean <= self.example.paper())
            .map(|r| radii[r]);
        let first = within.next()?;
        Some([first, within.next_back().unwrap_or(first)])
    }

    /// The power with the least error at its best radius, as an index.
    fn best_power(&self) -> usize {
        least((0..POWERS.len()).map(|p| self.errors[self.best(p)][p].mean))
    }

    /// How the best kernel stands to the Gaussian, both at their best width.
    fn beside_gaussian(&self) -> String {
        let p = self.best_power();
        let (own, gaussian) =
            (&self.errors[self.best(p)][p], &self.gaussian[self.best_bandwidth()]);
        let differs = (own.mean - gaussian.mean).abs();
        let sd = own.sd().unwrap_or(0.0).max(gaussian.sd().unwrap_or(0.0));
        let how = match (differs <= sd, own.mean < gaussian.mean) {
            (true, _) => "within one standard deviation of".to_owned(),
            (_, true) => format!("{:.1} times below", gaussian.mean / own.mean),
            (_, false) => format!("{:.1} times above", own.mean / gaussian.mean),
        };
        format!("{} ({}): {how} it", self.example.name(), phi(POWERS[p]))
    }

    /// What its errors say about the paper's number.
    fn sentence(&self, radii: &[f64]) -> String {
        let p = self.best_power();
        let r = self.best(p);
        let (least, paper) = (&self.errors[r][p], self.example.paper());
        let sd = least.sd().unwrap_or(0.0);
        let (times, side) = match least.mean < paper {
            true => (paper / least.mean, "below"),
            false => (least.mean / paper, "above"),
        };
        let lies = match (least.mean - paper).abs() <= sd {
            true => "within one standard deviation of the paper's".into(),
            false => format!("{times:.1} times {side} the paper's"),
        };
        format!(
            "{}: the least of {} errors (chosen on the test points themselves), {} with {} at R = \
             {:.2}, lies {lies}.",
            self.example.name(),
            POWERS.len() * self.errors.len(),
            spread(least),
            phi(POWERS[p]),
            radii[r]
        )
    }
}

impl Findings {
    /// The least error of every example and kernel, beside the paper's.
    pub fn example_table(&self) -> Table {
        let (radii, bandwidths) = (self.settings.radii(), self.settings.bandwidths());
        let mut table = Table::new(&[
            "example",
            "paper's MSE",
            "kernel",
            "least MSE",
            "at R",
            "at most the paper's for R",
            "Gaussian kernel: least MSE",
            "at bandwidth",
            "with Silverman's",
        ]);
        for finding in &self.examples {
            let b = finding.best_bandwidth();
            for (p, &power) in POWERS.iter().enumerate() {
                let r = finding.best(p);
                let reaches = finding.reaches(p, &radii);
                table.row(vec![
                    finding.example.name(),
                    format!("{:.2e}", finding.example.paper()),
                    phi(power),
                    spread(&finding.errors[r][p]),
                    format!("{:.2}", radii[r]),
                    reaches.map_or("none".into(), |[a, b]| format!("{a:.2} to {b:.2}")),
                    spread(&finding.gaussian[b]),
                    format!("{:.3}", bandwidths[b]),
                    spread(&finding.silverman),
                ]);
            }
        }
        table
    }

    /// The exponents of every target and kernel.
    pub fn rate_table(&self) -> Table {
        let mut table = Table::new(&[
            "target",
            "D",
            "kernel",
            "bias² in R: paper",
            "eq. 26",
            "seen",
            "variance in R: paper",
            "seen",
            "best R in N: paper",
            "eq. 26",
            "seen",
            "MISE in N: paper",
            "eq. 26",
            "seen",
        ]);
        for rate in &self.rates.rates {
            let (paper, sharp) = (rate.paper(), rate.sharp());
            let stated = |number: fn(Exponents) -> f64| match number(paper) {
                x if x.is_infinite() => "exp".into(),
                x if rate.paper_applies() => format!("{x:.2}"),
                x => format!("({x:.2})"),
            };
            let derived = |number: fn(Exponents) -> f64| match number(sharp) {
                x if x.is_infinite() => "exp".to_owned(),
                x => format!("{x:.2}"),
            };
            let seen_bias = rate.bias.map_or("exp".into(), |law| PowerLaw::show(Some(law)));
            table.row(vec![
                rate.target.name().into(),
                rate.dimensions.to_string(),
                phi(rate.power),
                stated(|e| -e.bias).replace('-', "−"),
                derived(|e| -e.bias).replace('-', "−"),
                seen_bias.replace('-', "−"),
                rate.dimensions.to_string(),
                PowerLaw::show(rate.variance),
                stated(Exponents::radius),
                derived(Exponents::radius),
                PowerLaw::show(rate.radius()),
                stated(Exponents::error).replace('-', "−"),
                derived(Exponents::error).replace('-', "−"),
                PowerLaw::show(rate.error()).replace('-', "−"),
            ]);
        }
        table
    }

    /// Where the paper's exponents are not those that are seen, in sentences.
    pub fn rate_text(&self) -> String {
        let mut steeper = Vec::new();
        let mut broken = Vec::new();
        for rate in self.rates.rates.iter().filter(|rate| rate.paper_applies()) {
            let Some(seen) = rate.error() else { continue };
            let paper = rate.paper().error();
            let name = format!(
                "{} in {}-D with {} (N^{:.2}, the bound N^{paper:.2})",
                rate.target.name(),
                rate.dimensions,
                phi(rate.power),
                seen.exponent
            )
            .replace('-', "−")
            .replace("−D", "-D");
            // The logarithm in the supersmooth case bends its line by less than this.
            if seen.exponent > paper + 0.1 {
                broken.push(name);
            } else if seen.exponent < paper - 0.1 {
                steeper.push(name);
            }
        }
        let mut text = match broken.is_empty() {
            true => "No error falls more slowly than the paper's bound allows.".to_owned(),
            false => format!("Slower than the paper's bound: {}.", broken.join("; ")),
        };
        if !steeper.is_empty() {
            text += &format!("\nFaster by more than 0.1 in the exponent: {}.", steeper.join("; "));
        }
        text
    }

    /// How the drawn errors stand to equation 26, in a sentence.
    pub fn drawn_text(&self) -> String {
        let deviations: Vec<f64> =
            self.rates.drawn.iter().filter_map(Drawn::deviation).map(f64::abs).collect();
        let within = deviations.iter().filter(|&&deviation| deviation <= 2.0).count();
        let farthest = deviations.iter().copied().fold(0.0, f64::max);
        format!(
            "{within} of {} drawn means lie within two standard errors of the exact expectation \
             on the same grid; the farthest lies {farthest:.1} away.",
            deviations.len()
        )
    }

    /// What is said about the paper's three numbers.
    pub fn example_text(&self) -> Vec<String> {
        let radii = self.settings.radii();
        self.examples.iter().map(|finding| finding.sentence(&radii)).collect()
    }

    /// A page about all of it; `command` is what was run.
    pub fn page(&self, command: &str) -> Page {
        let title = "The generalized Fourier integral estimators";
        let mut page = Page::new("fourier-integral", title, command);
        page.text(
            "Equations 12 (densities) and 14 (regression) of FourierFormer, with \
             `φ(z) = z^p`: `crates/lab/src/fourier_integral/`.",
        );
        self.example_section(&mut page);
        self.rate_section(&mut page);
        page
    }

    fn example_section(&self, page: &mut Page) {
        let s = &self.settings;
        page.heading("The synthetic examples (appendix E.4)");
        page.text(&format!(
            "{} points of a Gaussian in one and in two dimensions, {} points for the regression \
             on a polynomial of degree 3 of two correlated normal inputs, {} test points; {} \
             draws with seed {}, ± is the sample standard deviation over them.\n\
             The paper states the numbers of points and these words, and no more. Assumed here: \
             variance 1 in each dimension, correlation {}; test points uniform on \
             [−{h}, {h}]^D for the densities; MSE means the mean over the test points, not an \
             integral; the polynomial x³ − xy + y², noise of standard deviation {} or none on \
             the training values, test inputs drawn like the training inputs or uniform on \
             [−{u}, {u}]², and errors against the polynomial without noise.\n\
             Neither φ nor R is stated, so every R from 1 to 32 is shown and none is chosen for \
             being near the paper's number.\n\
             *Gaussian kernel* is the same estimator with a Gaussian: at the best of as many \
             bandwidths as there are R, chosen in the same way, each as wide near 0 as φ = z⁴ at \
             one R; and with Silverman's in each dimension, a rule for densities, which is far \
             too wide for the regression.",
            s.density_points,
            s.regression_points,
            s.test_points,
            s.draws,
            s.seed,
            s.correlation,
            s.noise,
            h = s.half_width,
            u = s.regression_half_width,
        ));
        page.table("examples", &self.example_table());
        page.text(&(String::from("- ") + &self.example_text().join("\n- ")));
        let beside: Vec<String> = self.examples.iter().map(Finding::beside_gaussian).collect();
        page.text(&format!(
            "The best Fourier kernel beside the Gaussian at its best bandwidth: {}.",
            beside.join("; ")
        ));
        page.text(&self.expectation_text());
        page.csv("examples-by-radius", &self.all_examples());
        for (name, index) in [
            ("density-1d", 0),
            ("density-2d", 1),
            ("regression-drawn", 2),
            ("regression-uniform", 4),
        ] {
            page.plot(name, &self.example_plot(&self.examples[index]));
        }
    }

    /// The exact error at the best radius in one dimension, to compare the drawn one with.
    fn expectation_text(&self) -> String {
        let (finding, radii) = (&self.examples[0], self.settings.radii());
        let p = finding.best_power();
        let (kernel, radius) = (Kernel::new(POWERS[p]), radii[finding.best(p)]);
        let n = self.settings.density_points as f64;
        let places = 1000;
        let error = |i: usize| {
            let share = (i as f64 + 0.5) / f64::from(places);
            let x = self.settings.half_width * (2.0 * share - 1.0);
            let expectations = [kernel, Kernel::new(2 * kernel.power())]
                .map(|kernel| expectation(kernel, radius, x));
            expected_error([expectations], normal_density(x), kernel, radius, n)
        };
        let mse = (0..places as usize).map(error).sum::<f64>() / f64::from(places);
        let variance = |example: usize| self.examples[example].variance.mean;
        format!(
            "The exact expectation of the 1-D error over the test interval is {mse:.2e} for {} \
             at R = {radius:.2}; a draw has few independent errors there, so that single ones \
             lie far from it.\n\
             The polynomial's variance over the test inputs is {:.1} where they are drawn and \
             {:.1} where they are uniform: an error of 0.06 means something else for a \
             polynomial of another scale.",
            phi(POWERS[p]),
            variance(2),
            variance(4),
        )
    }

    fn all_examples(&self) -> Table {
        let mut table = Table::new(&["example", "kernel", "width", "mse", "sd"]);
        for finding in &self.examples {
            let mut row = |kernel: String, width: f64, error: &Pooled| {
                table.row(vec![
                    finding.example.name().replace(',', ""),
                    kernel,
                    width.to_string(),
                    error.mean.to_string(),
                    error.sd().map_or(String::new(), |sd| sd.to_string()),
                ]);
            };
            for (radius, errors) in self.settings.radii().into_iter().zip(&finding.errors) {
                for (power, error) in POWERS.iter().zip(errors) {
                    row(format!("z^{power} by R"), radius, error);
                }
            }
            for (bandwidth, error) in self.settings.bandwidths().into_iter().zip(&finding.gaussian)
            {
                row("gaussian by bandwidth".into(), bandwidth, error);
            }
        }
        table
    }

    fn rate_section(&self, page: &mut Page) {
        page.heading("Rates (Theorems 1 and 3)");
        let constants = POWERS.map(|power| {
            format!(
                "{} for {} (∫φ²/A² = {:.4})",
                integral_in_words(power),
                phi(power),
                Kernel::new(power).roughness()
            )
        });
        let ([from, to], (few, many, _)) = (ASYMPTOTIC_RADII, SOUGHT);
        page.text(&format!(
            "Exact errors by equation 26, without drawing points: bias² and variance for R from \
             {from} to {to}, the best R and its MISE for N from {few:.0e} to {many:.0e}; exponents are \
             least-squares slopes of logarithms, ± their standard error as straight lines.\n\
             The constant A is {}.\n\
             *paper* is the exponent of the paper's bound, in brackets where its conditions do \
             not hold; *eq. 26* is what that equation gives for large R; *exp* is a bias that \
             falls like exp(−R²).",
            constants.join(", ")
        ));
        page.table("rates", &self.rate_table());
        page.text(&self.rate_text());
        page.text(
            "Theorem 1 bounds the MISE by R^−(m+1), although its proof bounds the bias at each \
             place by R^−(m+1), whose square is R^−2(m+1) = R⁻⁴ for φ = z⁴ and z⁶; its best R \
             and rate follow from the weaker bound. In Theorem 3 (a) the ordinary smooth bound \
             R^(1−β) has one power of |p̂| where the error has p̂², whose tail is R^(1−2β).",
        );
        page.text(&self.known_optimum_text());
        page.text(&self.yardstick_text());
        page.csv("rates-best", &self.best_table());
        let s = &self.settings;
        page.text(&format!(
            "Drawn: {} draws of N = {:?} points in 1-D and {:?} in 2-D of a standard normal \
             density, integrated over a grid; squared bias and variance are those of the \
             draws.\n{}",
            s.rate_draws,
            s.rate_points[0],
            s.rate_points[1],
            self.drawn_text()
        ));
        page.csv("rates-drawn", &self.drawn_table());
        for d in DIMENSIONS {
            page.plot(&format!("mise-{d}d"), &self.drawn_plot(d));
        }
        page.plot("bias-variance", &self.parts_plot());
        page.plot("best-mise", &self.best_plot(true));
        page.plot("best-radius", &self.best_plot(false));
    }

    /// How far the found optimum is from the known one.
    fn known_optimum_text(&self) -> String {
        let off = |rate: &Rate| {
            let known = |n: f64| (n + 1.0).ln().sqrt();
            rate.best.iter().map(|&[n, r, _]| (r / known(n) - 1.0).abs()).fold(0.0, f64::max)
        };
        let known = |rate: &&Rate| {
            rate.target == Target::Gaussian && rate.dimensions == 1 && rate.power == 1
        };
        let off = self.rates.rates.iter().find(known).map_or(f64::NAN, off);
        format!(
            "For φ = z and a standard normal in 1-D the best R is √ln(N+1), as the derivative of \
             equation 26 shows; the found ones lie within {off:.0e} of it, relatively. So their \
             exponents of N are those of a logarithm: no power, but small."
        )
    }

    /// The least errors for a normal density beside that of a Gaussian kernel.
    fn yardstick_text(&self) -> String {
        let beside = |rate: &Rate| {
            // The first N that is as large as the paper's.
            let [n, _, error] = *rate.best.iter().find(|best| best[0] > 0.99e5)?;
            let times = error / silvermans_error(rate.dimensions, n);
            Some(format!("{times:.2} for {} in {}-D", phi(rate.power), rate.dimensions))
        };
        let normal = self.rates.rates.iter().filter(|rate| rate.target == Target::Gaussian);
        format!(
            "The least MISE at N = 10⁵ over that of a Gaussian kernel with Silverman's \
             bandwidth, exactly: {}.",
            normal.filter_map(beside).collect::<Vec<_>>().join(", ")
        )
    }

    fn best_table(&self) -> Table {
        let mut table = Table::new(&["target", "dimensions", "power", "n", "radius", "mise"]);
        for rate in &self.rates.rates {
            for best in &rate.best {
                let mut row = vec![
                    rate.target.name().to_owned(),
                    rate.dimensions.to_string(),
                    rate.power.to_string(),
                ];
                row.extend(best.map(|x| x.to_string()));
                table.row(row);
            }
        }
        table
    }

    fn drawn_table(&self) -> Table {
        let mut table = Table::new(&[
            "dimensions",
            "power",
            "n",
            "radius",
            "mise",
            "sd",
            "bias2",
            "variance",
            "exact_bias2",
            "exact_variance",
        ]);
        for drawn in &self.rates.drawn {
            let mut row =
                [drawn.dimensions, drawn.power as usize, drawn.n].map(|x| x.to_string()).to_vec();
            let numbers = [
                drawn.radius,
                drawn.error.mean,
                drawn.error.sd().unwrap_or(f64::NAN),
                drawn.bias,
                drawn.variance,
                drawn.exact.bias,
                drawn.exact.variance_times_n / drawn.n as f64,
            ];
            row.extend(numbers.map(|x| x.to_string()));
            table.row(row);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::Example;
    use super::super::tiny_findings;
    use super::*;

    #[test]
    fn the_page_has_the_papers_numbers_beside_ours() {
        let page = tiny_findings().page("just lab fourier-integral seed=1");
        for part in [
            "seed=1",
            "1.29e-5",
            "2.42e-5",
            "6.00e-2",
            "300 points",
            "φ = z⁴",
            "2π/3",
            "best-mise.svg",
            "No error falls more slowly",
            "drawn means lie within",
            "for φ = z⁶ in 2-D",
        ] {
            assert!(page.markdown().contains(part), "no {part:?} in {}", page.markdown());
        }
        let folder = tempfile::tempdir().unwrap();
        page.write(folder.path()).unwrap();
        let lines =
            |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap().lines().count();
        assert_eq!(lines("examples.csv"), 1 + 6 * 4);
        assert_eq!(lines("examples-by-radius.csv"), 1 + 6 * (4 + 1) * 3);
        assert_eq!(lines("rates.csv"), 1 + 2 * 2 * 4);
        assert_eq!(lines("rates-best.csv"), 1 + 16 * SOUGHT.2);
        assert_eq!(lines("rates-drawn.csv"), 1 + 2 * 8 * 4);
    }

    #[test]
    fn a_sentence_says_on_which_side_of_the_paper_an_error_lies() {
        let pooled = |mean: f64, sd: f64| Pooled { n: 2, mean, squares: sd * sd };
        let mut finding = Finding {
            example: Example::Density1,
            errors: vec![[pooled(9e-5, 0.0); 4], [pooled(4.3e-6, 1e-7); 4]],
            silverman: pooled(1e-6, 0.0),
            gaussian: vec![pooled(9e-6, 0.0), pooled(8e-6, 0.0)],
            variance: pooled(1.0, 0.0),
        };
        finding.errors[1][2].mean = 4e-6;
        let said = finding.sentence(&[1.0, 2.0]);
        assert!(said.ends_with("φ = z⁴ at R = 2.00, lies 3.2 times below the paper's."), "{said}");
        assert_eq!(finding.beside_gaussian(), "density, 1-D (φ = z⁴): 2.0 times below it");
        // Four kernels, two radii.
        assert!(said.contains("the least of 8 errors (chosen on the test points"), "{said}");
        assert_eq!(finding.reaches(0, &[1.0, 2.0]), Some([2.0, 2.0]));
        finding.errors[1] = [pooled(1.2e-5, 1e-6); 4];
        let said = finding.sentence(&[1.0, 2.0]);
        assert!(said.ends_with("lies within one standard deviation of the paper's."), "{said}");
        finding.errors[1] = [pooled(2.58e-5, 1e-6); 4];
        assert!(finding.sentence(&[1.0, 2.0]).contains("2.0 times above"));
        assert_eq!(finding.reaches(0, &[1.0, 2.0]), None);
    }
}
