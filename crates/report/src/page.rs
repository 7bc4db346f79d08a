//! One page about one or several training runs: what was learned, how it was played, what it
//! scored and how far the numbers can be trusted.
//!
//! It is made of the files in the runs' folders alone, and comes as one HTML file that needs
//! nothing else (no script, no picture beside it), and as Markdown. The two are rendered from the
//! same blocks. The tables of scores are CSV too, with every digit. Text from files is shown as
//! text, whatever it holds.
//!
//! What was measured differently is kept apart: last checkpoints, those selected by the loss on
//! held-out episodes, and chosen ones have tables of their own, and so has the best of several,
//! which is picked by the very scores it then shows.

mod agent_names;
mod agents;
mod best;
mod choices;
mod document;
mod first;
mod html;
mod labels;
mod markdown;
mod over_seeds;
mod pictures;
mod protocols;
mod run_files;
mod scores;
mod seeds;
mod stale;
mod study;

use std::fs;
use std::path::{Path, PathBuf};

use overtone_plot::Line;

use document::{Block, Document};
use overtone_eval::evaluation::{ended, n_episodes};
use overtone_eval::statistics::Bootstrap;
use overtone_eval::summary::{digits, fixed};
use overtone_eval::table::Table;
use overtone_eval::{Summary, TargetResult};
use protocols::Protocols;
pub use run_files::{EvaluationFile, Metrics, PageError, RunFiles, VideoFile};
use scores::{Role, Row};
use seeds::Groups;
pub use study::StudyCell;

/// A page, and the tables on it.
#[derive(Clone, Debug)]
pub struct Page {
    document: Document,
    /// Name without ending, contents.
    csv: Vec<(&'static str, Table)>,
}

impl Page {
    /// Lays a page about these runs out. Intervals are made as `bootstrap` says.
    ///
    /// # Errors
    /// When there is no run, an evaluation has a target without a finite score, or the
    /// bootstrap cannot be made.
    pub fn new(runs: &[RunFiles], bootstrap: &Bootstrap) -> Result<Self, PageError> {
        let runs = told_apart(runs.to_vec());
        let title = match &runs[..] {
            [] => return Err(PageError::NoRun),
            [run] => first::title(run),
            runs => first::title_of(runs),
        };
        Self::laid_out(title, &runs, &[], bootstrap)
    }

    /// Lays the page of a study out: its cells against each other first.
    ///
    /// # Errors
    /// As [`Page::new`].
    pub fn of_study(
        name: &str,
        cells: &[StudyCell],
        bootstrap: &Bootstrap,
    ) -> Result<Self, PageError> {
        let runs = told_apart(cells.iter().flat_map(|cell| &cell.runs).cloned().collect());
        if runs.is_empty() {
            return Err(PageError::NoRun);
        }
        let title = format!("Study {name}{}", study::caveats(cells));
        Self::laid_out(title, &runs, cells, bootstrap)
    }

    /// `cells` are those of a study, whose runs are `runs` in this order; without a study none.
    fn laid_out(
        title: String,
        runs: &[RunFiles],
        cells: &[StudyCell],
        bootstrap: &Bootstrap,
    ) -> Result<Self, PageError> {
        let protocols = Protocols::of(runs);
        let rows = Row::all(runs, &protocols, bootstrap)?;
        let groups = Groups::of(&rows, bootstrap)?;
        let mut blocks = Vec::new();
        // What says how the numbers are made is read once, if ever.
        let mut notes = Vec::new();
        let mut csv = Vec::new();
        if !cells.is_empty() {
            let cells = study::Cells::of(cells, runs, &rows, bootstrap)?;
            blocks.extend(cells.strips());
            blocks.extend(cells.blocks(bootstrap, &mut notes));
            csv.push(("cells", cells.csv()));
            blocks.extend(warnings(runs));
        }
        let compared = agents::section(&rows, &|row| study::of_row(cells, runs, row), bootstrap)?;
        let mut agents = compared.blocks;
        if !agents.is_empty() {
            agents.insert(0, heading("Agents and tasks"));
        }
        csv.extend([("agents", compared.agents), ("improvement", compared.improvement)]);
        csv.retain(|(_, table)| !table.is_empty());
        notes.extend(compared.notes.map(Block::Text));
        let mut played = Vec::new();
        protocol_section(&protocols, runs, &mut played);
        played.extend(choices::section(runs));
        if cells.is_empty() {
            match runs {
                [run] => blocks.extend(first::of_run(run, &rows, bootstrap)?),
                runs => blocks.extend(first::of_runs(runs, &rows)),
            }
            blocks.extend(warnings(runs));
            playing_section(runs, &rows, &mut blocks);
            curves_section(runs, &rows, &mut blocks);
            scores_section(runs, &rows, bootstrap, &mut blocks, &mut notes);
            seeds_section(&groups, bootstrap, &mut blocks, &mut notes);
            blocks.extend(agents);
            checkpoints_section(&rows, &mut blocks);
            fold("Protocol and modes", played, &mut blocks);
            fold("How the numbers are made", notes, &mut blocks);
            fold("Learning rate and gradient norm", slow_curves(runs), &mut blocks);
            runs_section(runs, &mut blocks);
        } else {
            // What a study is for comes first, and what one reads of single runs last.
            blocks.extend(agents);
            study_curves_section(cells, &mut blocks);
            fold("Protocol and modes", played, &mut blocks);
            fold("How the numbers are made", notes, &mut blocks);
            fold("Gradient norm", study::curves(cells, &study::SLOW), &mut blocks);
            let (mut single, mut of_single) = (Vec::new(), Vec::new());
            scores_section(runs, &rows, bootstrap, &mut single, &mut of_single);
            single.extend(of_single);
            // The cells are what is put together over seeds.
            single.extend(groups.notes.iter().map(text));
            checkpoints_section(&rows, &mut single);
            single.extend(returns_plot(&rows));
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
            ("episodes", episodes_csv(&rows)),
            ("seeds", groups.csv()),
            ("protocols", protocols.table()),
        ]);
        Ok(Self { document: Document { title, blocks }, csv })
    }

    /// The page as one HTML file.
    pub fn to_html(&self) -> String {
        html::render(&self.document.title, &self.document.blocks)
    }

    /// The page in Markdown; its pictures are the files `<stem>-<name>.svg` and `.gif`.
    pub fn to_markdown(&self, stem: &str) -> String {
        markdown::render(&self.document.title, &self.document.blocks, stem)
    }

    /// Every file: `<stem>.html`, `<stem>.md`, the pictures that the latter shows, and the tables
    /// `scores`, `episodes`, `seeds`, `protocols` and, where there are any, `cells`, `agents` and
    /// `improvement` as `<stem>-<name>.csv`.
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

    /// Writes every file into `folder`, each as a whole or not at all, the HTML page last, and
    /// says where that is. Files of an earlier page of this name that this one does not have are
    /// removed.
    ///
    /// # Errors
    /// When a file cannot be written or removed.
    pub fn write(&self, folder: &Path, stem: &str) -> Result<PathBuf, PageError> {
        fs::create_dir_all(folder).map_err(PageError::file(folder))?;
        let files = self.files(stem);
        for (name, contents) in &files {
            let path = folder.join(name);
            overtone_files::replace(&path, contents).map_err(PageError::file(&path))?;
        }
        for name in stale::files(folder, stem, &files)? {
            let path = folder.join(name);
            fs::remove_file(&path).map_err(PageError::file(&path))?;
        }
        Ok(folder.join(format!("{stem}.html")))
    }
}

/// Adds what is shown on demand, where there is any.
fn fold(summary: &str, inside: Vec<Block>, blocks: &mut Vec<Block>) {
    if !inside.is_empty() {
        blocks.push(Block::Fold(summary.to_owned(), inside));
    }
}

/// The runs, those of the same name numbered, each with a label of its own.
fn told_apart(mut runs: Vec<RunFiles>) -> Vec<RunFiles> {
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

/// A sentence for each evaluation of which episodes failed.
fn warnings(runs: &[RunFiles]) -> Vec<Block> {
    let sources = runs.iter().flat_map(|run| std::iter::repeat(run).zip(&run.evaluations));
    let told = |(run, source): (&RunFiles, &EvaluationFile)| {
        let warning = source.evaluation.warning()?;
        Some(text(format!("Warning: {} of {}: {warning}.", source.file, run.name)))
    };
    sources.filter_map(told).collect()
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
        blocks.push(text("No evaluation was found: the agent has not been played."));
        return;
    }
    for role in Role::ALL {
        let mut rows: Vec<&Row<'_>> = rows.iter().filter(|row| row.role == role).collect();
        if rows.is_empty() {
            continue;
        }
        // Files are in the order of their names, in which 1000 comes before 500.
        for own in rows.chunk_by_mut(|a, b| std::ptr::eq(a.run, b.run)) {
            own.sort_by_key(|row| row.step());
        }
        blocks.push(subheading(match role {
            Role::Last => "Last checkpoint of each run",
            Role::HeldOut => "Held-out-selected checkpoint of each run",
            Role::Chosen => "Chosen checkpoints",
            Role::NoWeights => "Policies without weights",
        }));
        blocks.push(Block::Table(scores::readable(&rows)));
    }
    notes.push(text(format!(
        "Scores: each row is one target return, over its n episodes. raw: the sum of raw rewards, a \
         game's score. ±: the sample standard deviation (ddof 1) of episodes. IQM: interquartile \
         mean, without the lowest and the highest quarter. Intervals are over episodes of one \
         trained agent and say nothing about other training seeds: {}.",
        how_made(bootstrap)
    )));
    let is_played = |run: &&RunFiles| rows.iter().any(|row| std::ptr::eq(row.run, *run));
    let unplayed: Vec<&str> =
        runs.iter().filter(|run| !is_played(run)).map(|run| run.name.as_str()).collect();
    if !unplayed.is_empty() {
        blocks.push(text(format!("Not played, so in no table: {}.", unplayed.join(", "))));
    }
    let mut described = Vec::new();
    for setting in rows.iter().map(|row| &row.evaluation().setting) {
        let Some(reference) = &setting.task.reference else { continue };
        let words = format!(
            "{} normalized by {}: {} ({} and {}).",
            setting.task.title,
            reference.convention,
            reference.meaning,
            reference.low,
            reference.high
        );
        if !described.contains(&words) {
            described.push(words);
        }
    }
    notes.extend(described.into_iter().map(text));
    let bins: Vec<_> = rows.iter().filter_map(|row| row.target.smoothness).collect();
    if let Some(first) = bins.first() {
        notes.push(text(
            "Smoothness: of every distribution an action was drawn from, all steps of a target \
             pooled; the L² metric of the Fourier head's paper, lower is smoother.",
        ));
        if bins.iter().any(|other| (other.n_bins, other.order) != (first.n_bins, first.order)) {
            notes.push(text("Its numbers for different bins cannot be compared."));
        }
    }
}

fn seeds_section(
    groups: &Groups<'_>,
    bootstrap: &Bootstrap,
    blocks: &mut Vec<Block>,
    how: &mut Vec<Block>,
) {
    if groups.groups.is_empty() && groups.notes.is_empty() && groups.apart.is_empty() {
        return;
    }
    blocks.push(heading("Over training seeds"));
    for role in Role::ALL {
        if let Some(table) = groups.readable(role) {
            blocks.push(subheading(match role {
                Role::Last => "Last checkpoints",
                Role::HeldOut => "Held-out-selected checkpoints",
                Role::Chosen => "Chosen checkpoints",
                Role::NoWeights => "Policies without weights",
            }));
            blocks.push(Block::Table(table));
        }
    }
    if !groups.groups.is_empty() {
        how.push(text(format!(
            "Over training seeds: runs of one configuration that differ in their seed alone, played by the same \
             protocol; each row is named by its first. A run's score is the mean of its episodes; ±: the sample \
             standard deviation (ddof 1) of runs; intervals are over runs: {}. With few runs \
             such intervals are too narrow (Agarwal et al. 2021).",
            how_made(bootstrap)
        )));
    }
    blocks.extend(groups.notes.iter().chain(&groups.apart).map(text));
}

fn checkpoints_section(rows: &[Row<'_>], blocks: &mut Vec<Block>) {
    if let Some(table) = best::table(rows) {
        blocks.push(heading("Last, held-out-selected and best checkpoint"));
        blocks.push(Block::Table(table));
        blocks.push(text(
            "raw mean ± sd. The held-out-selected one has the lowest loss on episodes of the data \
             that were kept out of training, and was picked without playing; like the last one's, \
             its score is an honest one. The best was picked by the very episodes shown, so its \
             score is too high on average, the more so the more checkpoints were played. The \
             three may not be compared across runs.",
        ));
    }
}

fn protocol_section(protocols: &Protocols, runs: &[RunFiles], blocks: &mut Vec<Block>) {
    if protocols.len() == 0 {
        return;
    }
    blocks.push(heading("Protocol"));
    if protocols.len() > 1 {
        blocks.push(text("Scores by different protocols may not be compared."));
    }
    blocks.push(Block::Table(protocols.table()));
    let differences = protocols.differences(runs);
    if differences.is_empty() {
        blocks.push(text("Everything was played as the data was recorded and the agents trained."));
    } else {
        blocks.push(subheading("Played otherwise than recorded and trained"));
        blocks.push(Block::Table(differences));
    }
}

fn playing_section(runs: &[RunFiles], rows: &[Row<'_>], blocks: &mut Vec<Block>) {
    let (videos, actions) = (pictures::videos(runs), pictures::actions(rows));
    if !videos.is_empty() {
        blocks.push(heading("Video"));
        blocks.extend(videos);
        blocks.push(text(
            "One episode. Beside the screen: the probability of each action, and in orange the \
             action that was drawn; for a robot, its action.",
        ));
    }
    if !actions.is_empty() {
        blocks.push(heading("Actions"));
        blocks.extend(actions);
        blocks.push(text(
            "Discrete actions: the mean probability of each, over all steps of all episodes of a \
             target. The order is that of the Fourier head's bins. Continuous actions: how often \
             each dimension took which values.",
        ));
    }
}

/// A column of the metrics of all runs against updates, and sentences about those some of whose
/// numbers are none.
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

/// Curves that are looked at when something went wrong.
fn slow_curves(runs: &[RunFiles]) -> Vec<Block> {
    let mut plots = curve(runs, "learning-rate", "learning_rate", "learning rate");
    plots.extend(curve(runs, "grad-norm", "grad_norm", "gradient norm before clipping"));
    plots
}

fn curves_section(runs: &[RunFiles], rows: &[Row<'_>], blocks: &mut Vec<Block>) {
    let mut plots = curve(runs, "loss", "loss", "training loss");
    for column in run_files::own_figures(runs) {
        let name = format!("figure-{}", column.replace('_', "-"));
        let title = column.replace('_', " ");
        // A figure that some steps do not have is no gap.
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
        blocks.push(text("Against updates. Of many points, neighbours are averaged."));
    }
}

/// Of runs of which several checkpoints were played.
fn returns_plot(rows: &[Row<'_>]) -> Vec<Block> {
    let title = "mean raw return of the checkpoints played";
    pictures::curves("return", title, "updates", best::curves(rows))
}

fn study_curves_section(cells: &[StudyCell], blocks: &mut Vec<Block>) {
    let mut plots = study::returns(cells);
    plots.extend(study::curves(cells, &study::OWN));
    if !plots.is_empty() {
        blocks.push(heading("Curves"));
        blocks.extend(plots);
        blocks.push(text(
            "Against updates. Of many points, neighbours are averaged. A line is the mean over the \
             runs of a cell; its band reaches one sample standard deviation (ddof 1) up and down.",
        ));
    }
}

fn runs_section(runs: &[RunFiles], blocks: &mut Vec<Block>) {
    blocks.push(heading("Runs and their episodes"));
    for run in runs {
        blocks.push(subheading(&match run.label == run.name {
            true => run.name.clone(),
            false => format!("{}: {}", run.label, run.name),
        }));
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
        "; evaluation seed {}; {} steps of up to {} at once. To play it again:",
        evaluation.seed,
        evaluation.steps,
        n_episodes(evaluation.parallel_episodes)
    );
    let failed = evaluation.warning().map(|warning| text(format!("Warning: {warning}.")));
    let mut table = Table::new(&["target", "episode", "seed", "length", "raw", "clipped", "ended"]);
    let told = |of: fn(&TargetResult) -> &Summary| digits(evaluation.targets.iter().map(of));
    let [raw, clipped] = [told(|target| &target.raw_return), told(|target| &target.clipped_return)];
    for episode in &evaluation.episodes {
        table.row(vec![
            setting.told(episode.target_return).unwrap_or_else(|| "-".to_owned()),
            episode.episode.to_string(),
            episode.seed.to_string(),
            episode.length.to_string(),
            fixed(episode.raw_return, raw),
            fixed(episode.clipped_return, clipped),
            ended(episode.outcome).to_owned(),
        ]);
    }
    let summary = match evaluation.episodes.len() {
        1 => format!("The one episode of {}", source.file),
        n => format!("All {n} episodes of {}", source.file),
    };
    let mut blocks = vec![text(words), Block::Code(setting.command.clone())];
    blocks.extend(failed);
    blocks.push(Block::Fold(summary, vec![Block::Table(table)]));
    blocks
}

fn episodes_csv(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(&[
        "run",
        "evaluation",
        "task",
        "protocol",
        "checkpoint",
        "updates",
        "target",
        "episode",
        "seed",
        "length",
        "raw_return",
        "clipped_return",
        "ended",
    ]);
    // Weights that are last and held-out-selected have two rows, and were played once.
    let again = |row: &&Row<'_>| row.role == Role::HeldOut && row.step() == row.run.last_step;
    for row in rows.iter().filter(|row| !again(row)) {
        let told = row.told().unwrap_or_default();
        for episode in row.source.episodes(row.target) {
            table.row(vec![
                row.run.name.clone(),
                row.source.file.clone(),
                row.evaluation().setting.task.title.clone(),
                row.protocol.clone(),
                row.role.name().to_owned(),
                row.step().map_or_else(String::new, |step| step.to_string()),
                told.clone(),
                episode.episode.to_string(),
                episode.seed.to_string(),
                episode.length.to_string(),
                episode.raw_return.to_string(),
                episode.clipped_return.to_string(),
                ended(episode.outcome).to_owned(),
            ]);
        }
    }
    table
}
