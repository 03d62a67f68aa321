//! Computes one sample: model layers in micro-batches with other samples, other steps on the CPU pool.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use pushdown::{Cancellation, Context, Kind, Sample, Step};

use super::{
    cached::ReleasedValue,
    computed::{ComputedSample, ValueMemory, ValueOrigin},
    sample::{AdmittedSample, AdmittedStart, ObjectStream},
};
use crate::{
    cache::{CacheSample, SourceHead},
    compute::{MicroBatcher, Permit},
    error::{Error, ErrorKind, Result},
    routes::{Services, http::Timing, job::PipelineJob, prepared::Prepared},
};

/// Values of at most this size are copied into the result cache by the I/O thread: another thread would take longer to wake.
const MAX_COPY_BYTES: u64 = 1 << 20;

/// The steps that have run, and their times.
#[derive(Debug, Default)]
struct StepTimes(Vec<GroupTime>);

impl AdmittedSample {
    /// Computes the value at the stage of the answer.
    pub(in crate::routes) async fn compute(
        self,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
    ) -> Result<ComputedSample> {
        let computed = match self.start {
            AdmittedStart::Object(stream, permit) => {
                compute_object(stream, permit, self.timing, services, job, prepared).await
            }
            AdmittedStart::Cached(value, permit) => {
                continue_cached(value, permit, self.timing, services, job, prepared).await
            }
            AdmittedStart::Flight(flight) => flight.result(services, job, prepared, self.timing).await,
        }?;
        services.metrics.count_value(computed.origin.name());
        Ok(computed)
    }
}

/// Reads the rest of the object, runs the steps up to the stage, and caches the last value that is the same in every epoch.
pub(super) async fn compute_object(
    stream: ObjectStream,
    permit: Permit,
    timing: Timing,
    services: &Services,
    job: &PipelineJob,
    prepared: &Prepared,
) -> Result<ComputedSample> {
    let started = Instant::now();
    let (cacheable, origin_time) = (stream.cacheable(), stream.origin_time);
    let (source, permit, timing) = stream.read(permit, timing, services, job, prepared).await?;
    let fetch_time = origin_time + started.elapsed();
    let mut stage = prepared.stage;
    services.models.mark_used(&job.pipeline.steps()[..stage]);
    let fallback = job.max_bytes.is_some().then(|| source.clone());
    let (start, mut times) = ((Sample::Bytes(source), 0), StepTimes::default());
    let mut sample = run_and_cache(start, stage, cacheable, fetch_time, services, job, &mut times).await?;
    if let Some(source) = fallback.filter(|_| job.is_too_large(sample.bytes())) {
        (sample, stage) = (Sample::Bytes(source), 0);
    }
    times.finish((sample, stage), ValueOrigin::Computed, permit, timing, services)
}

/// Runs the steps after a cached value.
pub(super) async fn continue_cached(
    value: ReleasedValue,
    permit: Permit,
    timing: Timing,
    services: &Services,
    job: &PipelineJob,
    prepared: &Prepared,
) -> Result<ComputedSample> {
    let (stage, mut times) = (prepared.stage, StepTimes::default());
    services
        .models
        .mark_used(&job.pipeline.steps()[value.stage..stage]);
    let origin = if value.stage == stage {
        ValueOrigin::Cached(value.level)
    } else {
        ValueOrigin::Prefix(value.stage)
    };
    let (start, cacheable) = ((value.sample, value.stage), Some((value.key, value.source)));
    let sample = run_and_cache(start, stage, cacheable, value.time, services, job, &mut times).await?;
    times.finish((sample, stage), origin, permit, timing, services)
}

/// Runs the steps from a value and its stage up to `stage`, and caches the last value that is the same in every epoch.
/// `start_time` is the time that the first value took.
async fn run_and_cache(
    (mut sample, mut done): (Sample, usize),
    stage: usize,
    cacheable: Option<(CacheSample, Arc<SourceHead>)>,
    start_time: Duration,
    services: &Services,
    job: &PipelineJob,
    times: &mut StepTimes,
) -> Result<Sample> {
    let last = job.prefixes.last_deterministic(stage);
    if let Some((key, head)) = cacheable
        && last > done
        // A cut between steps costs what running them together saves, so it must be worth it.
        && (last == stage || services.cache.is_wanted(&key, last))
    {
        sample = run_steps(sample, done..last, services, job, times).await?;
        done = last;
        let cost = start_time + times.total();
        cache_value(services, job, key, last, head, &sample, cost).await?;
    }
    run_steps(sample, done..stage, services, job, times).await
}

/// Adds a value to the result cache, if it is worth it.
async fn cache_value(
    services: &Services,
    job: &PipelineJob,
    key: CacheSample,
    stage: usize,
    head: Arc<SourceHead>,
    value: &Sample,
    cost: Duration,
) -> Result<()> {
    let Some(admission) = services.cache.admit(&key, stage, value.bytes(), cost) else {
        return Ok(());
    };
    let (cache, value) = (services.cache.clone(), value.clone());
    let is_small = value.bytes() <= MAX_COPY_BYTES;
    let insert = move || cache.insert(&key, stage, &head, &value, admission);
    if is_small {
        insert();
        Ok(())
    } else {
        // Its place in the queue is that of the request: the answer waits with its memory, and would else wait for newer requests.
        services.cpu.run(&job.position, insert).await
    }
}

/// Runs steps: model layers in micro-batches, others on the CPU pool.
async fn run_steps(
    mut sample: Sample,
    steps: Range<usize>,
    services: &Services,
    job: &PipelineJob,
    times: &mut StepTimes,
) -> Result<Sample> {
    let (mut done, limits) = (steps.start, services.sample_limits());
    while done < steps.end {
        let layers = MicroBatcher::first_layers(&job.pipeline, &(done..steps.end));
        let next = layers.as_ref().map_or(steps.end, |(steps, _)| steps.start);
        if done < next {
            let work = steps_to_run(sample, job, done..next, limits);
            let (value, groups) = services.cpu.run_while_awaited(&job.position, work).await??;
            (sample, done) = (value, next);
            times.0.extend(groups);
        }
        if let Some((steps, layers)) = layers {
            job.pipeline.check(steps.clone(), &Kind::from(&sample), &limits)?;
            let Sample::Tensor(tensor) = sample else {
                return Err(Error::new(ErrorKind::Internal, "a model requires a tensor"));
            };
            let output = services.micro_batcher.run(&job.position, &layers, tensor).await?;
            times
                .0
                .push(GroupTime::new(&job.pipeline.steps()[steps.clone()], output.time));
            (sample, done) = (Sample::Tensor(output.value), steps.end);
        }
    }
    Ok(sample)
}

impl StepTimes {
    fn total(&self) -> Duration {
        self.0.iter().map(|group| group.time).sum()
    }

    /// The value at its stage, which keeps only the memory of its own bytes.
    ///
    /// # Errors
    /// [`ErrorKind::EntityTooLarge`] above the limit on answers.
    fn finish(
        self,
        (sample, stage): (Sample, usize),
        origin: ValueOrigin,
        mut permit: Permit,
        mut timing: Timing,
        services: &Services,
    ) -> Result<ComputedSample> {
        services.check_output(sample.bytes())?;
        permit.shrink_to(sample.bytes());
        let compute_time = self.report(services, &mut timing);
        Ok(ComputedSample {
            stage,
            sample,
            memory: ValueMemory::Own(permit),
            timing,
            compute_time,
            origin,
        })
    }

    /// Adds the times to the metrics and to the answer. Returns their sum.
    fn report(self, services: &Services, timing: &mut Timing) -> Duration {
        let total = self.total();
        for group in self.0 {
            // The time of a fused group counts for its first step.
            services.metrics.add_step_time(group.first, group.time);
            timing.add(group.name, group.time);
        }
        total
    }
}

/// The work of `steps` for the CPU pool. It ends before its next step once nobody awaits it any more.
fn steps_to_run(
    sample: Sample,
    job: &PipelineJob,
    steps: Range<usize>,
    limits: pushdown::Limits,
) -> impl FnOnce(&(dyn Fn() -> bool + Sync)) -> pushdown::Result<(Sample, Vec<GroupTime>)> + Send + use<> {
    let (pipeline, seed, epoch) = (Arc::clone(&job.pipeline), job.seed, job.epoch);
    let sample_id = job.sample_id.clone();
    move |is_awaited| {
        let is_cancelled = || !is_awaited();
        let context = Context {
            seed,
            epoch,
            limits,
            cancellation: Cancellation::when(&is_cancelled),
            ..Context::new(&sample_id)
        };
        let started = Instant::now();
        let (sample, groups) = pipeline.run_timed(steps, sample, &context, || started.elapsed())?;
        let groups = groups
            .into_iter()
            .map(|group| GroupTime::new(&pipeline.steps()[group.steps], group.time));
        Ok((sample, groups.collect()))
    }
}

/// The time of a step, or of a group of fused steps.
#[derive(Debug)]
struct GroupTime {
    /// Name of the first step.
    first: &'static str,
    /// Names of all steps, as in `resize+center_crop`.
    name: String,
    time: Duration,
}

impl GroupTime {
    fn new(steps: &[Step], time: Duration) -> Self {
        let name = steps.iter().map(Step::name).collect::<Vec<_>>().join("+");
        Self {
            first: steps.first().map_or("", Step::name),
            name,
            time,
        }
    }
}
