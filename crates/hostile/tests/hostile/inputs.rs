//! [`Inputs`]: every damaged file of a target, by number.

use std::path::{Path, PathBuf};
use std::{fs, io::Write};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use overtone_core::seed;
use overtone_hostile::mutate::mutate;
use rand::{RngExt, SeedableRng};

use crate::targets::{Seed, Target};

/// The damaged files of a target in a folder that holds its sound ones.
pub struct Inputs {
    folder: PathBuf,
    seeds: Vec<Seed>,
    gzip: bool,
    seed: u64,
    /// The seed whose file is damaged at the moment.
    damaged: Option<usize>,
}

impl Inputs {
    /// The inputs of `target`; its sound files are written into the empty folder `folder` now.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn new(target: &Target, seed: u64, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let seeds = (target.prepare)(folder).with_context(|| target.name.to_owned())?;
        ensure!(!seeds.is_empty(), "{} has no seed", target.name);
        let seed = seed::derive(seed, target.name);
        let inputs =
            Self { folder: folder.to_path_buf(), seeds, gzip: target.gzip, seed, damaged: None };
        for at in 0..inputs.seeds.len() {
            inputs.write(at, &inputs.seeds[at].bytes)?;
        }
        Ok(inputs)
    }

    /// How many sound files there are, and the path of each.
    pub fn sound(&self) -> impl Iterator<Item = PathBuf> {
        self.seeds.iter().map(|seed| self.folder.join(&seed.file))
    }

    /// Writes sound file `at` in its place.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn place_sound(&mut self, at: usize) -> Result<PathBuf> {
        self.restore()?;
        self.damaged = Some(at);
        self.write(at, &self.seeds[at].bytes)
    }

    /// Writes input `number` in the place of the sound file it was made of, whose path is
    /// given; the file damaged before is sound again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn place(&mut self, number: u64) -> Result<PathBuf> {
        let mut generator = seed::Generator::seed_from_u64(seed::derive_nth(self.seed, number));
        let base = generator.random_range(0..self.seeds.len());
        // Parts that files of one name have in common can be spliced.
        let file = &self.seeds[base].file;
        let alike = || self.seeds.iter().enumerate().filter(|(_, seed)| seed.kind() == kind(file));
        let bytes: Vec<&[u8]> = alike().map(|(_, seed)| seed.bytes.as_slice()).collect();
        let at = alike().position(|(at, _)| at == base).unwrap_or(0);
        let bytes = mutate(&bytes, at, &mut generator);
        if self.damaged != Some(base) {
            self.restore()?;
        }
        self.damaged = Some(base);
        self.write(base, &bytes)
    }

    /// Makes the damaged file sound again.
    fn restore(&mut self) -> Result<()> {
        if let Some(at) = self.damaged.take() {
            self.write(at, &self.seeds[at].bytes)?;
        }
        Ok(())
    }

    fn write(&self, at: usize, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.folder.join(&self.seeds[at].file);
        if self.gzip {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(bytes)?;
            fs::write(&path, gzip.finish()?)?;
        } else {
            fs::write(&path, bytes)?;
        }
        Ok(path)
    }
}

impl Seed {
    fn kind(&self) -> &str {
        kind(&self.file)
    }
}

/// The kind of a file, by its name without folders: seeds of one kind can be spliced.
fn kind(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}
