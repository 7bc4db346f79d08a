//! [`Loader`]: batches assembled ahead of the training thread.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::DataError;
use crate::sample::batch::{Batch, BatchOptions};
use crate::sample::dataset::Dataset;
use crate::sample::sampler::WindowSampler;

/// Options of a [`Loader`].
#[derive(Clone, Debug, PartialEq)]
pub struct LoaderConfig {
    /// Windows per batch.
    pub batch: usize,
    /// Batches kept ready: enough to hide a hiccup, few enough to cost little memory.
    pub ahead: usize,
    /// Threads that copy frames; one gives some 20,000 windows of 30 timesteps a second.
    pub threads: usize,
    /// Options for filling batches.
    pub contents: BatchOptions,
    /// The assembled part of the batches.
    pub share: Share,
}

/// The part of the batches that is assembled, if several loaders share one sampler's windows: the
/// places `own` of each `of` consecutive batches. The windows of the others are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Places, from 0, below `of`.
    pub own: Range<usize>,
    /// Batches of a round.
    pub of: usize,
}

impl Default for Share {
    /// All batches.
    fn default() -> Self {
        Self { own: 0..1, of: 1 }
    }
}

impl LoaderConfig {
    /// Batches of `batch` windows as [`BatchOptions::default`] has them: one copying thread, or on larger
    /// machines an eighth of the cores.
    pub fn new(batch: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self {
            batch,
            ahead: 3,
            threads: (cores / 8).max(1),
            contents: BatchOptions::default(),
            share: Share::default(),
        }
    }
}

/// Endless batches, assembled by a thread of its own.
///
/// The thread ends when the loader is dropped.
#[derive(Debug)]
pub struct Loader {
    batches: Option<Receiver<Result<Batch, DataError>>>,
    used: SyncSender<Batch>,
    thread: Option<JoinHandle<()>>,
    waited: Duration,
}

impl Loader {
    /// Batches of `dataset` from where `sampler` stands.
    ///
    /// # Errors
    /// If the batch size is 0, the share is empty or a thread cannot be started.
    pub fn new(
        dataset: Arc<Dataset>,
        mut sampler: WindowSampler,
        config: LoaderConfig,
    ) -> Result<Self, DataError> {
        let LoaderConfig { batch: size, ahead, threads, contents, share: Share { own, of } } =
            config;
        if size == 0 {
            return Err(DataError::Sampling("a batch needs at least one window".into()));
        }
        if own.is_empty() || own.end > of {
            let reason = format!("expected some of {of} batches to assemble, got {own:?}");
            return Err(DataError::Sampling(reason));
        }
        let mut place = 0;
        let mut fill = move |batch: &mut Batch| {
            if place == 0 {
                sampler.pass_over(own.start * size);
                place = own.start;
            }
            batch.fill(&dataset, &mut sampler, size, &contents)?;
            place += 1;
            if place == own.end {
                sampler.pass_over((of - own.end) * size);
                place = 0;
            }
            Ok::<_, DataError>(())
        };
        let stopped = |error: &dyn std::fmt::Display| DataError::Loader(error.to_string());
        // Its own pool: frames are copied while the global one computes.
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|i| format!("frames-{i}"))
            .build()
            .map_err(|error| stopped(&error))?;
        let ahead = ahead.max(1);
        let (send, batches) = sync_channel(ahead);
        let (used, reusable) = sync_channel(ahead + 2);
        let thread = thread::Builder::new()
            .name("batches".into())
            .spawn(move || {
                loop {
                    let mut batch: Batch = reusable.try_recv().unwrap_or_default();
                    let filled = pool.install(|| fill(&mut batch));
                    let failed = filled.is_err();
                    // Sending fails once the loader is dropped.
                    if send.send(filled.map(|()| batch)).is_err() || failed {
                        return;
                    }
                }
            })
            .map_err(|error| stopped(&error))?;
        Ok(Self { batches: Some(batches), used, thread: Some(thread), waited: Duration::ZERO })
    }

    /// The next batch; return it with [`Loader::recycle`] when done, so that its memory is reused.
    ///
    /// # Errors
    /// If a batch cannot be filled, or [`DataError::Loader`] if the assembling thread has ended:
    /// after an error, or by a panic.
    #[expect(clippy::should_implement_trait, reason = "endless and fallible: no iterator")]
    pub fn next(&mut self) -> Result<Batch, DataError> {
        let start = Instant::now();
        let received = self.batches.as_ref().and_then(|batches| batches.recv().ok());
        self.waited += start.elapsed();
        received.unwrap_or_else(|| {
            let panic = self.thread.take().and_then(|thread| thread.join().err());
            let words = panic.and_then(|panic| {
                panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
            });
            Err(DataError::Loader(words.unwrap_or_else(|| "no reason was given".into())))
        })
    }

    /// Returns a batch's memory to the loader.
    pub fn recycle(&self, batch: Batch) {
        match self.used.try_send(batch) {
            // Full: enough spare memory is waiting. Disconnected: the worker does not need it any
            // more.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    /// Seconds the caller has waited in [`Loader::next`] so far.
    pub fn waited(&self) -> f64 {
        self.waited.as_secs_f64()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // First the receiver: the thread may be waiting for room.
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
