//! `overtone train` and `overtone resume`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use overtone_data::AtariDataset;
use overtone_model::device;
use overtone_train::{
    Checkpoint, Finished, Observer, RunDir, StepReport, Trainer, run_dir::CONFIG,
};

use super::{dataset, evaluate};
use crate::{
    keys::{self, Keys},
    progress,
    settings::{Profile, Settings},
};

/// `overtone train key=value…`.
pub fn train(options: &[String]) -> Result<()> {
    let settings = Settings::resolve(options, |settings| {
        let gpu = device::choose(&settings.device).is_ok_and(|chosen| chosen.is_gpu);
        if gpu && dataset::is_published(settings) { Profile::Paper } else { Profile::Quick }
    })?;
    overtone_data::known_game(&settings.game)?;
    let device = device::choose(&settings.device)?;
    if settings.evaluation.episodes > 0 {
        evaluate::check_playable(&settings.game)?;
    }
    let data = dataset::open(&settings)?;
    // A target that cannot be asked for is found before training, not after.
    let returns = sorted_returns(&data);
    crate::settings::targets(&settings.evaluation.target, &returns)?;

    let head = settings.head_name();
    let name = format!(
        "{}-{}-{head}-s{}",
        date(SystemTime::now()),
        settings.game.to_lowercase(),
        settings.seed
    );
    let model = settings.model_config(data.n_actions(), data.episodes().longest())?;
    let run = RunDir::create(&settings.runs, &name)?;
    run.write(CONFIG, settings.to_toml()?.as_bytes())?;
    print_profile(&settings);
    println!("device: {}", device.name);
    let trainer = Trainer::new(
        run.clone(),
        settings.train.clone(),
        &model,
        data,
        settings.seed,
        device.device,
        None,
    )?;
    run_and_evaluate(&settings, &run, trainer)
}

/// `overtone resume [run=…]`.
pub fn resume(options: &[String]) -> Result<()> {
    let mut keys = Keys::from([
        ("run".to_owned(), toml::Value::String(String::new())),
        ("runs".to_owned(), toml::Value::String("runs".into())),
        ("device".to_owned(), toml::Value::String(String::new())),
    ]);
    keys::apply(&mut keys, options)?;
    let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
    let root = std::path::PathBuf::from(text("runs"));
    let run = match text("run").as_str() {
        "" => RunDir::newest(&root)?,
        name => RunDir::open(&root, name)?,
    };
    let mut settings = Settings::load(&run.path().join(CONFIG))?;
    if !text("device").is_empty() {
        settings.device = text("device");
    }
    println!("run: {}", run.path().display());
    let data = dataset::open(&settings)?;
    let checkpoint = match Checkpoint::newest(&run.checkpoints()) {
        Ok((checkpoint, skipped)) => {
            for error in skipped {
                eprintln!("warning: skipped a checkpoint: {error}");
            }
            println!(
                "resuming after update {} from {}",
                checkpoint.state.step,
                checkpoint.path.display()
            );
            Some(checkpoint)
        }
        Err(error) => {
            println!("starting again from update 0 ({error})");
            None
        }
    };
    let model = settings.model_config(data.n_actions(), data.episodes().longest())?;
    let device = device::choose(&settings.device)?;
    println!("device: {}", device.name);
    let trainer = Trainer::new(
        run.clone(),
        settings.train.clone(),
        &model,
        data,
        settings.seed,
        device.device,
        checkpoint.as_ref(),
    )?;
    run_and_evaluate(&settings, &run, trainer)
}

fn sorted_returns(data: &AtariDataset) -> Vec<f32> {
    let mut returns = data.episode_returns();
    returns.sort_by(f32::total_cmp);
    returns
}

fn run_and_evaluate(settings: &Settings, run: &RunDir, trainer: Trainer) -> Result<()> {
    let parameters = overtone_model::weights::n_parameters(trainer.model());
    println!(
        "model: {parameters} parameters, {} head, context {}; {} updates of {} contexts",
        settings.head_name(),
        settings.model.context_length,
        trainer.n_updates(),
        settings.train.batch_size
    );
    println!("run: {} (curves: just tensorboard)", run.path().display());
    let stop = stop_on_interrupt()?;
    let mut printer = Printer { bar: progress::steps(trainer.state().step, trainer.n_updates()) };
    let finished = trainer.train(&stop, &mut printer).inspect_err(|_| printer.bar.abandon())?;
    printer.bar.finish();
    print_finished(&finished);
    if finished.interrupted {
        println!("stopped; go on with: just resume run={}", run.path().display());
        return Ok(());
    }
    if settings.evaluation.episodes == 0 {
        return Ok(());
    }
    evaluate::play(run, &finished.checkpoint, &settings.evaluation, &settings.device)
        .with_context(|| format!("evaluating {}", finished.checkpoint.path.display()))
}

fn print_profile(settings: &Settings) {
    match settings.profile {
        Profile::Paper => println!(
            "profile: paper ({} epochs of {} transitions, batch {})",
            settings.train.epochs, settings.data.transitions, settings.train.batch_size
        ),
        _ => println!(
            "profile: quick, {} updates of {} contexts, for a first look. The paper's profile is \
             5 epochs of 500,000 transitions in batches of 128: profile=paper",
            settings.train.updates, settings.train.batch_size
        ),
    }
}

fn print_finished(finished: &Finished) {
    let share = 100.0 * finished.waited / finished.seconds.max(1e-9);
    println!(
        "trained for {:.0} s, {share:.1} % of it waiting for data; checkpoint {}",
        finished.seconds,
        finished.checkpoint.path.display()
    );
}

/// The first Ctrl-C asks the loop to stop after its step; the second ends the program.
fn stop_on_interrupt() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("\nfinishing this update and saving (again to quit at once)");
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

struct Printer {
    bar: ProgressBar,
}

impl Observer for Printer {
    fn stepped(&mut self, step: u64, loss: f64) {
        self.bar.set_message(format!("loss {loss:.3}"));
        self.bar.set_position(step);
    }

    fn logged(&mut self, report: &StepReport) {
        // Without a terminal the bar is silent: one line a tenth of the run instead.
        let tenth = (report.n_updates / 10).max(1);
        if self.bar.is_hidden() && report.step % tenth < 10 {
            println!(
                "update {}/{}: loss {:.3}, accuracy {:.3}, {:.0} timesteps/s",
                report.step, report.n_updates, report.loss, report.accuracy, report.timesteps_per_s
            );
        }
    }

    fn saved(&mut self, _checkpoint: &Checkpoint) {}
}

/// The day of `time` (UTC) as `2026-11-20`.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day since 1970-01-01 (Hinnant, "chrono-compatible low-level
/// date algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29)); // 30 years and 7 leap days, then 31 + 28
        assert_eq!(civil(20_777), (2026, 11, 20));
    }
}
