//! One page about one or several training runs: training, evaluation protocols, scores, and the
//! uncertainty of the scores.
//!
//! The page is made from the files in the run directories. It is rendered from the same blocks as
//! one HTML file and as Markdown. The HTML file is self-contained: no scripts and no other files.
//! The tables of scores are also written as CSV with all digits. Text from files is escaped,
//! whatever it contains.
//!
//! Scores that were measured differently have separate tables. Last checkpoints, checkpoints
//! selected by the held-out loss, and chosen checkpoints are kept apart. The best checkpoint also
//! has its own table, because it is selected by the same scores that the table shows.
//!
//! Estimates from a recording are in a section of their own, because they are not scores.

mod agent_names;
mod agents;
mod best;
mod choices;
mod document;
mod estimates;
mod first;
mod html;
mod imitation;
mod labels;
mod markdown;
mod pictures;
mod protocols;
mod run_files;
mod scores;
mod seeds;
mod stale;
mod study;
mod study_cell;

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::{Reference, counted};
use overtone_plot::Line;

use document::{Block, Document};
use overtone_eval::evaluation::outcome_name;
use overtone_eval::statistics::Bootstrap;
use overtone_eval::summary::{digits, fixed};
use overtone_eval::table::{Table, or_dash};
use overtone_eval::{Summary, TargetResult};
use protocols::Protocols;
pub use run_files::{Estimates, EvaluationFile, Metrics, PageError, RunFiles, VideoFile};
use scores::{Role, Row};
use seeds::Groups;
pub use study_cell::{FailedRun, StudyCell};

/// A page and its tables.
#[derive(Clone, Debug)]
pub struct Page {
    document: Document,
    /// File name without ending, and contents.
    csv: Vec<(&'static str, Table)>,
}

impl Page {
    /// A page about these runs, with intervals from `bootstrap`.
    ///
    /// # Errors
    /// When `runs` is empty, an evaluation has a target without a finite score, or `bootstrap` is
    /// invalid.
    pub fn new(runs: &[RunFiles], bootstrap: &Bootstrap) -> Result<Self, PageError> {
        let runs = with_labels(runs.to_vec());
        let title = match &runs[..] {
            [] => return Err(PageError::NoRun),
            [run] => first::title(run),
            runs => first::title_of(runs),
        };
        Self::laid_out(title, &runs, &[], bootstrap)
    }

    /// The page of a study, which starts with the comparison of its cells.
    ///
    /// # Errors
    /// As [`Page::new`].
    pub fn of_study(
        name: &str,
        cells: &[StudyCell],
        bootstrap: &Bootstrap,
    ) -> Result<Self, PageError> {
        let runs = with_labels(cells.iter().flat_map(|cell| &cell.runs).cloned().collect());
        if runs.is_empty() {
            return Err(PageError::NoRun);
        }
        let title = format!("Study {name}{}", study::caveats(cells));
        Self::laid_out(title, &runs, cells, bootstrap)
    }

    /// Builds the blocks. `cells` are the cells of a study, and `runs` are their runs in this
    /// order. Without a study `cells` is empty.
    fn laid_out(
        title: String,
        runs: &[RunFiles],
        cells: &[StudyCell],
        bootstrap: &Bootstrap,
    ) -> Result<Self, PageError> {
        let protocols = Protocols::of(runs);
        let rows = Row::all(runs, cells, &protocols, bootstrap)?;
        let groups = Groups::of(cells, &rows, bootstrap)?;
        let mut blocks = Vec::new();
        // Explanations of the numbers. Readers need them once at most, so they are folded away.
        let mut notes = Vec::new();
        let mut csv = Vec::new();
        if !cells.is_empty() {
            blocks.extend(study::strips(&groups.groups));
            blocks.extend(study::section(cells, &groups));
            notes.push(groups.explanation(bootstrap));
            blocks.extend(warnings(runs));
        }
        let compared = agents::section(&rows, bootstrap)?;
        let mut agents = compared.blocks;
        if !agents.is_empty() {
            agents.insert(0, heading("Agents and tasks"));
        }
        csv.extend([("agents", compared.agents), ("improvement", compared.improvement)]);
        csv.retain(|(_, table)| !table.is_empty());
        notes.extend(compared.notes.map(Block::Text));
        let mut estimates = estimates::section(runs);
        estimates.extend(imitation::section(runs));
        let mut played = Vec::new();
        protocol_section(&protocols, runs, &mut played);
        played.extend(choices::section(runs));
        if cells.is_empty() {
            match runs {
                [run] => blocks.extend(first::of_run(
                    run,
                    &rows,
                    pictures::of_play(runs, &rows),
                    bootstrap,
                )?),
                runs => {
                    blocks.extend(first::of_runs(runs, &rows));
                    playing_section(runs, &rows, &mut blocks);
                }
            }
            blocks.extend(warnings(runs));
            // Without scores, the estimates are the result.
            let (result, estimates) =
                if rows.is_empty() { (estimates, Vec::new()) } else { (Vec::new(), estimates) };
            let is_judged = !result.is_empty();
            blocks.extend(result);
            curves_section(runs, &rows, &mut blocks);
            if !is_judged {
                scores_section(runs, &rows, bootstrap, &mut blocks, &mut notes);
            }
            seeds_section(&groups, bootstrap, &mut blocks, &mut notes);
            blocks.extend(agents);
            checkpoints_section(&rows, &mut blocks);
            blocks.extend(estimates);
            fold("Protocol and modes", played, &mut blocks);
            fold("How the numbers are made", notes, &mut blocks);
            fold("Learning rate and gradient norm", diagnostic_curves(runs), &mut blocks);
            runs_section(runs, &mut blocks);
        } else {
            // The comparison of cells comes first, and details of single runs come last.
            blocks.extend(agents);
            study_curves_section(cells, runs, &rows, &mut blocks);
            fold("Protocol and modes", played, &mut blocks);
            fold("How the numbers are made", notes, &mut blocks);
            fold("Gradient norm", study::curves(cells, study::GRAD_NORM), &mut blocks);
            let (mut single, mut of_single) = (Vec::new(), Vec::new());
            scores_section(runs, &rows, bootstrap, &mut single, &mut of_single);
            single.extend(of_single);
            // The cells already aggregate over seeds.
            single.extend(groups.notes.iter().map(text));
            checkpoints_section(&rows, &mut single);
            single.extend(returns_plot(&rows));
            // Without scores, the estimates are the result.
            if rows.is_empty() { &mut blocks } else { &mut single }.extend(estimates);
            playing_section(runs, &rows, &mut single);
            runs_section(runs, &mut single);
            let summary = match runs.len() {
                1 => "Its one run: scores, actions, episodes, configuration".to_owned(),
                n => format!("Each of its {n} runs: scores, actions, episodes, configuration"),
            };
            blocks.extend([heading("Runs"), Block::Fold(summary, single)]);
        }
        csv.extend([
            ("scores", scores::csv(&rows)),
            ("episodes", scores::episodes_csv(&rows)),
            groups.csv(),
            ("protocols", protocols.table()),
        ]);
        Ok(Self { document: Document { title, blocks }, csv })
    }

    /// The page as one HTML file.
    pub fn to_html(&self) -> String {
        html::render(&self.document.title, &self.document.blocks)
    }

    /// The page as Markdown. Its pictures are the files `<stem>-<name>.svg` and `.gif`.
    pub fn to_markdown(&self, stem: &str) -> String {
        markdown::render(&self.document.title, &self.document.blocks, stem)
    }

    /// All files of the page, by name.
    ///
    /// These are `<stem>.html`, `<stem>.md`, the pictures of the Markdown page, and the tables as
    /// `<stem>-<name>.csv`. Every page has the tables `scores`, `episodes`, `protocols` and `seeds`
    /// (of a study `cells`). The tables `agents` and `improvement` exist only if they have rows.
    pub fn files(&self, stem: &str) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for (name, table) in &self.csv {
            files.push((format!("{stem}-{name}.csv"), table.to_csv().into_bytes()));
        }
        for (file, bytes) in self.document.blocks.iter().flat_map(|block| block.pictures(stem)) {
            files.push((file, bytes.to_vec()));
        }
        files.push((format!("{stem}.md"), self.to_markdown(stem).into_bytes()));
        files.push((format!("{stem}.html"), self.to_html().into_bytes()));
        files
    }

    /// Writes all files into `folder` and returns the path of the HTML page.
    ///
    /// Each file is written atomically, the HTML page last. Leftover files of an earlier page
    /// with this name are removed.
    ///
    /// # Errors
    /// When a file cannot be written or removed.
    pub fn write(&self, folder: &Path, stem: &str) -> Result<PathBuf, PageError> {
        fs::create_dir_all(folder).map_err(PageError::file(folder))?;
        let (before, files) = (stale::files(folder, stem), self.files(stem));
        for (name, contents) in &files {
            let path = folder.join(name);
            overtone_files::replace(&path, contents).map_err(PageError::file(&path))?;
        }
        let is_stale = |name: &&String| !files.iter().any(|(written, _)| written == *name);
        for name in before.iter().filter(is_stale) {
            let path = folder.join(name);
            if path.is_file() {
                fs::remove_file(&path).map_err(PageError::file(&path))?;
            }
        }
        Ok(folder.join(format!("{stem}.html")))
    }
}

/// Adds a folded section, unless it is empty.
fn fold(summary: &str, inside: Vec<Block>, blocks: &mut Vec<Block>) {
    if !inside.is_empty() {
        blocks.push(Block::Fold(summary.to_owned(), inside));
    }
}

/// The runs with unique labels. Runs with the same name are numbered.
fn with_labels(mut runs: Vec<RunFiles>) -> Vec<RunFiles> {
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for (i, run) in runs.iter_mut().enumerate() {
        let before = names[..i].iter().filter(|other| **other == run.name).count();
        if before > 0 {
            run.name += &format!(" ({})", before + 1);
        }
    }
    let labels = labels::distinct(&runs);
    runs.iter_mut().zip(labels).for_each(|(run, label)| run.label = label);
    runs
}

/// A sentence for each evaluation with failed episodes, and for each unreadable file of estimates.
fn warnings(runs: &[RunFiles]) -> Vec<Block> {
    let sources = runs.iter().flat_map(|run| std::iter::repeat(run).zip(&run.evaluations));
    let sentence = |(run, source): (&RunFiles, &EvaluationFile)| {
        let warning = source.evaluation.warning()?;
        Some(text(format!("Warning: {} of {}: {warning}.", source.file, run.name)))
    };
    sources.filter_map(sentence).chain(estimates::warnings(runs)).collect()
}

/// The distinct items, in the order of their first occurrence.
fn unique<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}

fn heading(words: &str) -> Block {
    Block::Heading(words.to_owned())
}

fn subheading(words: &str) -> Block {
    Block::Subheading(words.to_owned())
}

fn text(words: impl Into<String>) -> Block {
    Block::Text(words.into())
}

fn how_made(bootstrap: &Bootstrap) -> String {
    let &Bootstrap { replications, seed, .. } = bootstrap;
    format!(
        "{} % percentile intervals of {replications} bootstrap replications, seed {seed}",
        bootstrap.percent()
    )
}

fn scores_section(
    runs: &[RunFiles],
    rows: &[Row<'_>],
    bootstrap: &Bootstrap,
    blocks: &mut Vec<Block>,
    notes: &mut Vec<Block>,
) {
    blocks.push(heading("Scores"));
    if rows.is_empty() {
        blocks.push(text("No evaluation found: this agent has not been evaluated."));
        return;
    }
    for role in Role::ALL {
        let mut rows: Vec<&Row<'_>> = rows.iter().filter(|row| row.role == role).collect();
        if rows.is_empty() {
            continue;
        }
        // Files are sorted by name, so 1000 comes before 500.
        for of_run in rows.chunk_by_mut(|a, b| std::ptr::eq(a.run, b.run)) {
            of_run.sort_by_key(|row| row.step());
        }
        blocks.push(subheading(match role {
            Role::Last => "Last checkpoint of each run",
            Role::HeldOut => "Held-out-selected checkpoint of each run",
            Role::Chosen => "Chosen checkpoints",
            Role::NoWeights => "Policies without weights",
        }));
        let episodes = rows.iter().map(|row| row.choosing_episodes().to_string()).collect();
        blocks.extend(choices::counted(scores::readable(&rows), episodes));
    }
    notes.push(text(format!(
        "Scores: each row shows one target return over n episodes. raw: the sum of raw rewards (the \
         score of a game). ±: sample standard deviation (ddof 1) over episodes. IQM: interquartile \
         mean, without the lowest and the highest quarter. Intervals are over the episodes of one \
         trained agent, not over training seeds: {}.",
        how_made(bootstrap)
    )));
    let is_evaluated = |run: &&RunFiles| rows.iter().any(|row| std::ptr::eq(row.run, *run));
    let not_evaluated: Vec<&str> =
        runs.iter().filter(|run| !is_evaluated(run)).map(|run| run.name.as_str()).collect();
    if !not_evaluated.is_empty() {
        let names = not_evaluated.join(", ");
        blocks.push(text(format!("Not evaluated, and therefore not in the tables: {names}.")));
    }
    let described = rows.iter().filter_map(|row| {
        let task = &row.setting().task;
        let Reference { convention, meaning, low, high } = task.reference.as_ref()?;
        Some(format!("{} normalized by {convention}: {meaning} ({low} and {high}).", task.title))
    });
    notes.extend(unique(described).into_iter().map(text));
    if rows.iter().any(|row| row.success.is_some()) {
        notes.push(text(format!(
            "Success: fraction of episodes that the environment called a success at their last \
             step, with Wilson's {} % interval over episodes. Tables over runs summarize the \
             runs' fractions.",
            bootstrap.percent()
        )));
    }
    let bins: Vec<_> = rows.iter().filter_map(|row| row.target.smoothness).collect();
    let is_fourier = rows.iter().any(|row| row.setting().has_fourier_head());
    if let (true, Some(first)) = (is_fourier, bins.first()) {
        notes.push(text(
            "Smoothness: the L² metric of the Fourier head paper, pooled over the action \
             distributions of all steps of a target. Lower is smoother.",
        ));
        if bins.iter().any(|other| (other.n_bins, other.order) != (first.n_bins, first.order)) {
            notes.push(text(
                "Smoothness values for different numbers or orders of bins cannot be compared.",
            ));
        }
    }
}

fn seeds_section(
    groups: &Groups<'_>,
    bootstrap: &Bootstrap,
    blocks: &mut Vec<Block>,
    how: &mut Vec<Block>,
) {
    if groups.groups.is_empty() && groups.notes.is_empty() && groups.ungrouped.is_empty() {
        return;
    }
    blocks.push(heading("Over training seeds"));
    blocks.extend(groups.tables());
    if !groups.groups.is_empty() {
        how.push(groups.explanation(bootstrap));
    }
    blocks.extend(groups.notes.iter().chain(&groups.ungrouped).map(text));
}

fn checkpoints_section(rows: &[Row<'_>], blocks: &mut Vec<Block>) {
    if let Some(table) = best::table(rows) {
        blocks.push(heading("Last, held-out-selected and best checkpoint"));
        blocks.extend(table);
        blocks.push(text(
            "raw mean ± sd. The held-out-selected checkpoint has the lowest loss on episodes that \
             were kept out of training. It was selected without any evaluation, so its score is \
             unbiased, like the score of the last checkpoint. The best checkpoint was selected by \
             the episodes shown, so its score is too high on average. This bias grows with the \
             number of evaluated checkpoints. Do not compare the three across runs.",
        ));
    }
}

fn protocol_section(protocols: &Protocols, runs: &[RunFiles], blocks: &mut Vec<Block>) {
    if protocols.len() == 0 {
        return;
    }
    blocks.push(heading("Protocol"));
    if protocols.len() > 1 {
        blocks.push(text("Scores with different protocols cannot be compared."));
    }
    blocks.push(Block::Table(protocols.table()));
    let differences = protocols.differences(runs);
    if differences.is_empty() {
        blocks.push(text("All evaluations use the settings of the recorded data and of training."));
    } else {
        blocks.push(subheading("Differences from the recorded data and training"));
        blocks.push(Block::Table(differences));
    }
}

fn playing_section(runs: &[RunFiles], rows: &[Row<'_>], blocks: &mut Vec<Block>) {
    let [played, words] = pictures::of_play(runs, rows);
    if !played.is_empty() {
        blocks.push(heading("Actions and videos"));
        blocks.extend(played);
        blocks.extend(words);
    }
}

/// Plots of one column of the metrics of all runs against updates, and a sentence about each run
/// whose column contains non-finite values.
fn curve(runs: &[RunFiles], name: &str, column: &str, title: &str) -> Vec<Block> {
    let line = |run: &RunFiles| {
        let points = run.metrics.as_ref()?.against_steps(column)?;
        Some(Line::new(run.label.clone(), points))
    };
    let mut plots =
        pictures::curves(name, title, "updates", runs.iter().filter_map(line).collect());
    plots.extend(pictures::broken(runs, column, title));
    plots
}

/// Curves for diagnosing problems.
fn diagnostic_curves(runs: &[RunFiles]) -> Vec<Block> {
    let mut plots = curve(runs, "learning-rate", "learning_rate", "learning rate");
    plots.extend(curve(runs, "grad-norm", "grad_norm", "gradient norm before clipping"));
    plots
}

fn curves_section(runs: &[RunFiles], rows: &[Row<'_>], blocks: &mut Vec<Block>) {
    let mut plots = curve(runs, "loss", "loss", "training loss");
    for column in run_files::algorithm_figures(runs) {
        if is_the_loss(runs, &column) {
            continue;
        }
        let name = format!("figure-{}", column.replace('_', "-"));
        let title = column.replace('_', " ");
        // Some steps do not have this figure, so missing values are not reported.
        let line = |run: &RunFiles| {
            let points = run.metrics.as_ref()?.against_steps(&column)?;
            Some(Line::new(run.label.clone(), points))
        };
        let lines = runs.iter().filter_map(line).collect();
        plots.extend(pictures::curves(&name, &title, "updates", lines));
    }
    plots.extend(returns_plot(rows));
    if !plots.is_empty() {
        blocks.push(heading("Curves"));
        blocks.extend(plots);
        blocks.push(text("x axis: updates. Neighbouring points of long curves are averaged."));
    }
}

/// Whether a column of the metrics is the loss of each run that has it, as with a single loss.
fn is_the_loss(runs: &[RunFiles], column: &str) -> bool {
    let bits = |values: &Vec<f64>| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    runs.iter().filter_map(|run| run.metrics.as_ref()).all(|metrics| {
        let [loss, figure] = ["loss", column].map(|name| metrics.columns.get(name).map(bits));
        figure.is_none() || figure == loss
    })
}

/// Curves of the mean return, for runs with several evaluated checkpoints.
fn returns_plot(rows: &[Row<'_>]) -> Vec<Block> {
    let title = "mean raw return of the evaluated checkpoints";
    pictures::curves("return", title, "updates", best::curves(rows))
}

fn study_curves_section(
    cells: &[StudyCell],
    runs: &[RunFiles],
    rows: &[Row<'_>],
    blocks: &mut Vec<Block>,
) {
    let evaluated = |figure| study::evaluated(figure, cells, runs, rows);
    let mut plots: Vec<Block> = first::FIGURES.iter().flat_map(evaluated).collect();
    plots.extend(study::curves(cells, study::LOSS));
    if !plots.is_empty() {
        blocks.push(heading("Curves"));
        blocks.extend(plots);
        blocks.push(text(
            "x axis: updates. Neighbouring points of long curves are averaged. A line is the mean \
             over the runs of a cell. Its band is ± one sample standard deviation (ddof 1).",
        ));
    }
}

fn runs_section(runs: &[RunFiles], blocks: &mut Vec<Block>) {
    blocks.push(heading("Runs and their episodes"));
    for run in runs {
        let title = if run.label == run.name {
            run.name.clone()
        } else {
            format!("{}: {}", run.label, run.name)
        };
        blocks.push(subheading(&title));
        for source in &run.evaluations {
            blocks.extend(evaluation_blocks(source));
        }
        let config = vec![Block::Code(run.config_text.clone())];
        blocks.push(Block::Fold("Configuration (config.toml)".into(), config));
    }
}

fn evaluation_blocks(source: &EvaluationFile) -> Vec<Block> {
    let (evaluation, setting) = (&source.evaluation, &source.evaluation.setting);
    let mut words = format!(
        "{}: {} in {}; {}",
        source.file, setting.task.title, setting.simulator, setting.policy
    );
    if let Some(checkpoint) = &setting.checkpoint {
        words += &format!("; {} ({} updates)", checkpoint.path.display(), checkpoint.step);
    }
    for (name, hash) in [("data", &setting.dataset_hash), ("ROM", &setting.rom_md5)] {
        if let Some(hash) = hash {
            words += &format!("; {name} {hash}");
        }
    }
    words += &format!(
        "; evaluation seed {}; {} steps, up to {} in parallel. To repeat this evaluation:",
        evaluation.seed,
        evaluation.steps,
        counted(evaluation.parallel_episodes, "episode")
    );
    let failed = evaluation.warning().map(|warning| text(format!("Warning: {warning}.")));
    let digits =
        |summary: fn(&TargetResult) -> &Summary| digits(evaluation.targets.iter().map(summary));
    let raw = digits(|target| &target.raw_return);
    let clipped = digits(|target| &target.clipped_return);
    let table = Table::of(
        &evaluation.episodes,
        &[
            ("target", &|episode| or_dash(setting.condition(episode.target_return))),
            ("episode", &|episode| episode.episode.to_string()),
            ("seed", &|episode| episode.seed.to_string()),
            ("length", &|episode| episode.length.to_string()),
            ("raw", &|episode| fixed(episode.raw_return, raw)),
            ("clipped", &|episode| fixed(episode.clipped_return, clipped)),
            ("ended", &|episode| outcome_name(episode.outcome).to_owned()),
            ("success", &|episode| {
                or_dash(episode.success.map(|yes| if yes { "yes" } else { "no" }))
            }),
        ],
    )
    .without_dashes();
    let summary = match evaluation.episodes.len() {
        1 => format!("The one episode of {}", source.file),
        n => format!("All {n} episodes of {}", source.file),
    };
    let mut blocks = vec![text(words), Block::Code(setting.command.clone())];
    blocks.extend(failed);
    blocks.push(Block::Fold(summary, vec![Block::Table(table)]));
    blocks
}
