//! From settings to a reader.

use std::{num::NonZeroUsize, sync::Arc, sync::atomic::AtomicBool};

use pushdown::{Engine, wire::Split};
use tokio::runtime::Handle;

use super::{PushdownReader, PushdownReaderBuilder, State, open::Opened};
use crate::{
    adapt::{Adapter, behind_models},
    cpu::CpuPool,
    error::Result,
    keep::Keep,
    models::prepare,
    profile::refined,
    session::{Gets, Mode, Session},
    stats::Counters,
};

impl PushdownReaderBuilder {
    /// Checks the settings and lists the prefix.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) or [`ErrorKind::Pipeline`](crate::ErrorKind) for settings that
    /// make no sense; [`ErrorKind::Refused`](crate::ErrorKind) when the bucket cannot be listed.
    pub async fn build(mut self) -> Result<PushdownReader> {
        let cpu = CpuPool::build(self.threads)?;
        let Opened {
            plan,
            bucket,
            store,
            pipeline,
            objects,
        } = self.open().await?;
        let (mut mode, mut pipeline) = (self.mode, pipeline);
        let keep = match self.keep {
            Some(folder) => Some(Keep::open(folder, self.keep_bytes, &bucket, &pipeline)?),
            None => None,
        };
        let (mut keep, objects, missing) = cpu
            .run(move || {
                let missing = keep.as_ref().map(|keep| keep.missing(&objects));
                (keep, objects, missing)
            })
            .await?;
        let mut adapter = None;
        let mut first_stage = 0;
        let behind = match mode {
            Mode::Auto => {
                let whole = pipeline.clone();
                cpu.run(move || behind_models(&whole)).await?
            }
            Mode::Pushdown | Mode::Plain => None,
        };
        if let Some((first, stage)) = behind {
            first_stage = first;
            self.split = u8::try_from(stage).map_or(Split::Full, Split::At);
        } else if mode == Mode::Auto {
            pipeline = refined(&pipeline);
            // What is kept needs no plan.
            let planned = missing.as_deref().unwrap_or(&objects);
            adapter = Adapter::new(
                &pipeline,
                planned,
                self.batch_size,
                cpu.threads(),
                self.max_expand,
            )
            .map(|adapter| adapter.with_samples(plan.limited(plan.shard.len_of(planned.len()))));
            match &adapter {
                Some(adapter) => {
                    let of = (bucket.as_str(), planned, self.seed, self.epoch);
                    adapter.look(&store, of).await?;
                }
                None => mode = Mode::Plain,
            }
        }
        let here = match (mode, self.split) {
            (Mode::Plain, _) => 0,
            (Mode::Pushdown, Split::At(stage)) => usize::from(stage),
            _ => pipeline.len(),
        };
        if let Some(keep) = &mut keep {
            keep.follow(&pipeline);
        }
        let here = match (&keep, missing) {
            (Some(keep), Some(missing)) if missing.is_empty() => keep.first_stage(&objects).max(here),
            _ => here,
        };
        prepare(&pipeline.steps()[here..]);
        let gets = Gets::new(NonZeroUsize::new(self.gets).unwrap_or(NonZeroUsize::MIN));
        // The library is not loaded for what it does not run.
        let may_run_here = match (mode, self.split) {
            (Mode::Pushdown, Split::Full) => pipeline.len(),
            (Mode::Pushdown, Split::At(stage)) => usize::from(stage),
            _ => 0,
        };
        let session = Session {
            engine: Engine::for_steps(&pipeline.steps()[may_run_here..]).unwrap_or_default(),
            told_of_rounding: AtomicBool::new(false),
            store,
            bucket,
            objects,
            pipeline,
            split: self.split,
            first_stage,
            compression: self.compression,
            mode,
            adapter,
            keep,
            on_error: self.on_error,
            seed: self.seed,
            limits: self.limits,
            cpu,
            gets,
            counters: Counters::default(),
            fallen_back: AtomicBool::new(false),
        };
        Ok(PushdownReader {
            session: Arc::new(session),
            plan,
            runtime: Handle::current(),
            state: State::Idle,
            waiting_since: None,
            handed_over: None,
        })
    }
}
