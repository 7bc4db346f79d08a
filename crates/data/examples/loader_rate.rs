//! Prints what a log holds, makes its dataset ready, and measures how fast batches of
//! 16 windows of 30 timesteps are assembled.
//!
//! `cargo run --release -p overtone-data --example loader_rate -- [folder] [cache folder]`; the starter
//! set of Seaquest unless said otherwise.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use overtone_data::{
    BatchOptions, Expected, Loader, LoaderConfig, Origin, Preparation, ReplayLog, Sampling,
    Selection, WindowSampler, check, datasets_folder,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let datasets = datasets_folder()?;
    let folder = args.next().map_or_else(|| datasets.join("starter/Seaquest"), PathBuf::from);
    let cache = args.next().map_or_else(|| datasets.join("cache"), PathBuf::from);

    let start = Instant::now();
    println!("{}", check(&folder, &Expected::default())?.inspection?);
    println!("inspected in {:.2} s", start.elapsed().as_secs_f64());

    let start = Instant::now();
    let log = ReplayLog::open(&folder)?;
    let plan = Preparation::new(log, Origin::other(), Selection::uniform(500_000), 1, &cache)?;
    println!("{plan} (planned in {:.3} s)", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let dataset = Arc::new(plan.ensure(&mut |_, _| {})?);
    println!(
        "{} rows, content {}, ready in {:.2} s",
        dataset.n_transitions(),
        &dataset.content_hash()[..16],
        start.elapsed().as_secs_f64()
    );

    for (name, frames) in [("with frames", true), ("rows only", false)] {
        let sampler = WindowSampler::new(dataset.index().clone(), Sampling::Uniform, 30, 1)?;
        let contents = BatchOptions { frames, ..BatchOptions::default() };
        let config = LoaderConfig { contents, ..LoaderConfig::new(16) };
        let mut loader = Loader::new(dataset.clone(), sampler, config)?;
        let (warm_up, measured) = (50, 500);
        let mut start = Instant::now();
        for batch in 0..warm_up + measured {
            if batch == warm_up {
                start = Instant::now();
            }
            let batch = loader.next()?;
            loader.recycle(batch);
        }
        let rate = f64::from(measured) / start.elapsed().as_secs_f64();
        println!("{name}: {rate:.0} batches of 16 x 30 a second, {:.0} windows/s", 16.0 * rate);
    }
    Ok(())
}
