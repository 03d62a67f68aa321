//! Builds a reader from its settings.

use std::{
    num::NonZeroUsize,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicUsize},
};

use pushdown::{
    Engine, Family, Kind, available_engine,
    wire::{Features, Split},
};

use super::{PushdownReaderBuilder, applies::SampleKind, open::OpenedDataSet};
use crate::{
    cpu::CpuPool,
    error::{Error, ErrorKind, Result},
    error_policy::ErrorPolicy,
    planning::{Adapter, Mode, ProbeRequest, stages_after_models},
    stats::Counters,
    store::{Store, refined},
    units::objects::{GetPermits, PushdownReader, ReplicaUse, Session, WarmUp},
    value_cache::ValueCache,
    weights::preload,
};

impl PushdownReaderBuilder {
    /// Checks the settings and lists the prefix.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) or [`ErrorKind::Pipeline`](crate::ErrorKind) for invalid settings;
    /// [`ErrorKind::Refused`](crate::ErrorKind) if the bucket cannot be listed.
    pub async fn build(mut self) -> Result<PushdownReader> {
        self.check_applies(SampleKind::Objects)?;
        if self.spec.warm.is_some() && self.spec.seed.is_none() {
            // Random steps do not run.
            self.spec.seed = Some(0);
            self.spec.shuffle = false;
        }
        let cpu = CpuPool::build(self.spec.threads, self.spec.local_ranks)?;
        let OpenedDataSet {
            plan,
            store,
            pipeline,
            objects,
        } = Box::pin(self.open(SampleKind::Objects)).await?;
        self.check_samples(&objects, &pipeline)?;
        if self.spec.warm.is_some() {
            self.check_warm_up(&store).await?;
            let steps = WarmUp::steps(&pipeline, self.spec.split);
            self.spec.split = u8::try_from(steps).map_or(Split::Full, Split::At);
        }
        let (mut mode, mut pipeline) = (self.spec.mode, pipeline);
        let value_cache = match self.spec.value_cache {
            Some(folder) => Some(ValueCache::open(
                folder,
                self.spec.value_cache_bytes,
                objects.bucket(),
                &pipeline,
            )?),
            None => None,
        };
        let (mut value_cache, objects, missing) = cpu
            .run(move || {
                let missing = value_cache.as_ref().map(|cache| cache.missing(&objects));
                (value_cache, objects, missing)
            })
            .await?;
        let mut adapter = None;
        let mut first_stage = 0;
        let after_models = match mode {
            Mode::Auto => {
                let whole = pipeline.clone();
                cpu.run(move || stages_after_models(&whole)).await?
            }
            Mode::Pushdown | Mode::Plain => None,
        };
        if let Some((first, stage)) = after_models {
            first_stage = first;
            self.spec.split = u8::try_from(stage).map_or(Split::Full, Split::At);
        } else if mode == Mode::Auto {
            pipeline = refined(&pipeline);
            // Cached values need no plan.
            let planned = missing.as_ref().unwrap_or(&objects);
            adapter = Adapter::new(
                &pipeline,
                planned,
                self.spec.batch_size,
                cpu.threads(),
                self.spec.max_expand,
            )
            .map(|adapter| {
                adapter
                    .with_epoch_samples(plan.share(planned.len()).sample_count() / plan.worker.count)
                    .with_traffic(Arc::clone(store.traffic()), store.gateway_traffic().cloned())
            });
            if let Some(known) = self.observations {
                adapter = adapter.map(|adapter| adapter.with_observations(*known));
            }
            if let Some(adapter) = &adapter {
                let needs_whole = |cache: &ValueCache| {
                    let steps = adapter.crop_steps();
                    steps.is_some_and(|steps| cache.may_have_stage_before(steps))
                };
                let request = ProbeRequest {
                    may_crop: !value_cache.as_ref().is_some_and(needs_whole),
                    objects: planned,
                    seed: self.spec.seed,
                    epoch: self.spec.epoch,
                    later_epochs: self.spec.epochs.get() - 1,
                };
                Box::pin(adapter.probe(&store, request)).await?;
                if let Some(why) = adapter.reason_to_read_plainly(planned) {
                    warn_of_plain_reading(&why);
                }
            } else {
                warn_of_plain_reading("the gateway computes tables for readers of rows only");
                mode = Mode::Plain;
            }
        }
        if let Some(cache) = &mut value_cache {
            cache.set_pipeline(&pipeline);
        }
        let first_host_step = match (mode, self.spec.split) {
            (Mode::Plain, _) => 0,
            (Mode::Pushdown, Split::At(stage)) => usize::from(stage),
            _ => pipeline.len(),
        };
        let first_host_step = match (&value_cache, missing) {
            (Some(cache), Some(missing)) if missing.is_empty() => {
                cache.first_stage(&objects).max(first_host_step)
            }
            _ => first_host_step,
        };
        preload(&pipeline.steps()[first_host_step..]);
        let gets = GetPermits::new(NonZeroUsize::new(self.spec.gets).unwrap_or(NonZeroUsize::MIN));
        // The runtime covers only steps that this host may run, so that no library is loaded in vain.
        let first_possible_host_step = match (mode, self.spec.split) {
            (Mode::Pushdown, Split::Full) => pipeline.len(),
            (Mode::Pushdown, Split::At(stage)) => usize::from(stage),
            _ => 0,
        };
        let runtime = available_engine(&pipeline.steps()[first_possible_host_step..])
            .runtime()
            .cloned();
        let samples = plan.share(objects.len()).sample_count();
        let can_replace = adapter.is_some();
        let weight_download = can_replace
            .then(|| store.download_weights(pipeline.steps()))
            .flatten();
        let sample_bytes = pipeline.kinds().last().and_then(Kind::bytes);
        let session = Session {
            engine: Engine::new(Family::ALL, runtime),
            is_overloaded: AtomicBool::new(false),
            has_failing_rows: AtomicBool::new(false),
            loss_warning_logged: AtomicBool::new(false),
            rounding_warning_logged: AtomicBool::new(false),
            store,
            objects,
            pipeline,
            split: self.spec.split,
            first_stage,
            compression: self.spec.compression,
            mode,
            adapter,
            value_cache,
            error_policy: ErrorPolicy::new(self.spec.on_error, None, Some(samples))?,
            seed: self.spec.seed,
            first_epoch: self.spec.epoch,
            epochs: self.spec.epochs,
            limits: self.limits,
            cpu,
            gets,
            counters: Counters::default(),
            warm: self.spec.warm,
            replica_use: ReplicaUse::new(plan.max_samples_in_flight(sample_bytes)),
            max_stage: AtomicUsize::new(usize::MAX),
        };
        Ok(PushdownReader::new(session, plan, weight_download))
    }
}

impl PushdownReaderBuilder {
    /// Checks that values can be cached without being delivered.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for another mode, a value cache or further columns; [`ErrorKind::NotAGateway`] if the gateway is too old.
    async fn check_warm_up(&self, store: &Store) -> Result<()> {
        if self.spec.mode != Mode::Pushdown || self.spec.value_cache.is_some() {
            return Err(Error::config(
                "a warm-up delivers nothing: expected mode pushdown and no value cache",
            ));
        }
        let features = store.ask_for_features().await;
        if features.has(Features::DELIVER) {
            return Ok(());
        }
        let text = format!(
            "{} cannot cache values without delivering them: its answers do not list the feature `deliver`; use a newer gateway",
            store.gateway_name()
        );
        Err(Error::new(ErrorKind::NotAGateway, text))
    }
}

/// Says why nothing is pushed down, in the words of a reader that falls back later.
fn warn_of_plain_reading(why: &str) {
    tracing::warn!(
        why,
        "falling back to plain reading: the whole pipeline runs on this host"
    );
}
