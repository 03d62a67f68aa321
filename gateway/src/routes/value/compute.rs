//! Computes one value: model layers in micro-batches with other samples, other steps on the CPU pool.

use std::{
    fmt,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use pushdown::{
    Cancellation, Context, Kind, Sample, Step,
    wire::{CacheStatus, ObjectForm},
};

use crate::{
    cache::{CacheLevel, CacheSample, Hit, SourceHead, ValueKey},
    compute::{MicroBatcher, Permit},
    error::{Error, ErrorKind, Result},
    routes::{http::Timing, job::PipelineJob, stage::StagedJob},
};

/// Values of at most this size are copied into the result cache by the I/O thread: another thread would take longer to wake.
const MAX_COPY_BYTES: u64 = 1 << 20;
/// Attempts to write a value that is not delivered to a disk that is busy.
const MAX_WRITES: u32 = 8;

/// The value at its stage, and what holds the memory of its bytes.
#[derive(Debug)]
pub(in crate::routes) struct ComputedValue<M> {
    pub(in crate::routes) stage: usize,
    pub(in crate::routes) sample: Sample,
    pub(in crate::routes) memory: M,
    pub(in crate::routes) timing: Timing,
    /// Time of the steps on the CPU pool for this request.
    pub(in crate::routes) compute_time: Duration,
    /// Where the value came from.
    pub(in crate::routes) origin: ValueOrigin,
    /// The key of the value, if the result cache had it or has got it.
    pub(in crate::routes) cached: Option<ValueKey>,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::routes) enum ValueOrigin {
    /// All steps ran for this request.
    Computed,
    /// The result cache.
    Cached(CacheLevel),
    /// A computation that another request began.
    Shared,
    /// A value at this stage in the result cache, and the steps after it.
    Prefix(usize),
}

/// A value from which the steps that are left are computed: the object, or a cached value.
#[derive(Debug)]
pub(super) struct FirstValue {
    pub(super) sample: Sample,
    /// The number of steps applied to it.
    pub(super) stage: usize,
    /// The time that it took to have the value.
    pub(super) time: Duration,
    /// The key of the values in the result cache, and their object; `None` if they must not be cached.
    pub(super) cacheable: Option<(CacheSample, Arc<SourceHead>)>,
    /// If it is a cached value.
    pub(super) hit: Option<Hit>,
    /// Its key then.
    pub(super) key: Option<ValueKey>,
    /// Where the value at the stage of the answer comes from.
    pub(super) origin: ValueOrigin,
}

/// The steps that have run, and their times.
#[derive(Debug, Default)]
struct StepTimes(Vec<GroupTime>);

/// The time of a step, or of a group of fused steps.
#[derive(Debug)]
struct GroupTime {
    /// Name of the first step.
    first: &'static str,
    /// Names of all steps, as in `resize+center_crop`.
    name: String,
    time: Duration,
}

impl FirstValue {
    /// Runs the steps up to the stage of the answer, if any are left, and caches the last value that is the same in every epoch. The
    /// stored object replaces a value that turns out to be too large. `permit` is the memory of this value and of the steps; what is
    /// returned keeps that of its own bytes.
    ///
    /// # Errors
    /// Those of the steps; [`ErrorKind::EntityTooLarge`] for a value above the limit on answers.
    pub(super) async fn compute(
        self,
        mut permit: Permit,
        mut timing: Timing,
        staged: &StagedJob,
    ) -> Result<ComputedValue<Permit>> {
        // Locals are dropped before parameters: bytes before their memory.
        let Self {
            mut sample,
            stage: mut done,
            time,
            cacheable,
            hit,
            key: mut cached,
            origin,
        } = self;
        let StagedJob {
            services, job, stage, ..
        } = staged;
        if let (Some(hit), Some((key, _))) = (hit, &cacheable) {
            services.cache.observe_hit(key, hit);
        }
        services.models.mark_used(&job.pipeline.steps()[done..*stage]);
        let object = (done == 0 && job.max_bytes.is_some()).then(|| sample.clone());
        let (mut times, last) = (StepTimes::default(), job.prefixes.last_deterministic(*stage));
        if let Some((key, head)) = cacheable
            && last > done
            // A cut between steps costs what running them together saves, so it must be worth it.
            && (last == *stage || services.cache.is_wanted(&key, last))
        {
            sample = run_steps(sample, done..last, staged, &mut times).await?;
            done = last;
            let cost = time + times.total();
            cached = cache_value(staged, key, last, head, &sample, cost).await?;
        }
        let cached_stage = done;
        if staged.crop_memory.is_some() {
            sample = crop_jpeg(sample, staged, &mut times).await?;
        }
        if done < *stage {
            sample = run_steps(sample, done..*stage, staged, &mut times).await?;
            done = *stage;
        }
        if let Some(object) = object
            && job.is_too_large(sample.bytes())
        {
            (sample, done) = (object, 0);
        }
        services.check_output(sample.bytes())?;
        permit.shrink_to(sample.bytes());
        let compute_time = times.total();
        for group in times.0 {
            // The time of a fused group counts for its first step.
            services.metrics.add_step_time(group.first, group.time);
            timing.add(group.name, group.time);
        }
        Ok(ComputedValue {
            stage: done,
            sample,
            memory: permit,
            timing,
            compute_time,
            origin,
            cached: cached.filter(|_| done == cached_stage),
        })
    }
}

/// Adds a value to the result cache, if it is worth it. Waits for the disk if the value is not delivered: then to be there is all that is
/// asked for. Returns its key.
async fn cache_value(
    staged: &StagedJob,
    key: CacheSample,
    stage: usize,
    head: Arc<SourceHead>,
    value: &Sample,
    cost: Duration,
) -> Result<Option<ValueKey>> {
    let StagedJob { services, job, .. } = staged;
    let cache = &services.cache;
    let Some(admission) = cache.admit(&key, stage, value.bytes(), cost) else {
        return Ok(None);
    };
    let is_small = value.bytes() <= MAX_COPY_BYTES;
    let insert = || async {
        if is_small {
            return Ok(cache.insert(&key, stage, &head, value, admission));
        }
        let (cache, key, head, value) = (cache.clone(), key.clone(), Arc::clone(&head), value.clone());
        let insert = move || cache.insert(&key, stage, &head, &value, admission);
        // Its place in the queue is that of the request: the answer waits with its memory, and would else wait for newer requests.
        services.cpu.run(&job.position, insert).await
    };
    let mut cached = insert().await?;
    if !job.is_delivered {
        for _ in 1..MAX_WRITES {
            cache.flush().await;
            if cached.is_none_or(|key| cache.contains(&key)) {
                break;
            }
            cached = insert().await?;
        }
    }
    Ok(cached)
}

/// Runs steps: model layers in micro-batches, others on the CPU pool.
async fn run_steps(
    mut sample: Sample,
    steps: Range<usize>,
    staged: &StagedJob,
    times: &mut StepTimes,
) -> Result<Sample> {
    let StagedJob { services, job, .. } = staged;
    let (mut done, limits) = (steps.start, services.sample_limits());
    while done < steps.end {
        let layers = MicroBatcher::first_layers(&job.pipeline, &(done..steps.end));
        let next = layers.as_ref().map_or(steps.end, |(steps, _)| steps.start);
        if done < next {
            let work = steps_to_run(sample, staged, done..next, limits);
            let (value, groups) = services.cpu.run_while_awaited(&job.position, work).await??;
            (sample, done) = (value, next);
            times.0.extend(groups);
        }
        if let Some((steps, layers)) = layers {
            job.pipeline.check(steps.clone(), &Kind::from(&sample), &limits)?;
            let Sample::Tensor(tensor) = sample else {
                return Err(Error::new(ErrorKind::Internal, "a model requires a tensor"));
            };
            let batcher = &services.micro_batcher;
            let output = batcher
                .run(&job.position, &layers, tensor, job.batch_members())
                .await?;
            times
                .0
                .push(GroupTime::new(&job.pipeline.steps()[steps.clone()], output.time));
            (sample, done) = (Sample::Tensor(output.value), steps.end);
        }
    }
    Ok(sample)
}

/// The object as a cropped JPEG, if it has that form.
async fn crop_jpeg(sample: Sample, staged: &StagedJob, times: &mut StepTimes) -> Result<Sample> {
    let StagedJob { services, job, .. } = staged;
    let Sample::Bytes(object) = sample else {
        return Err(Error::new(ErrorKind::Internal, "only an object can be cropped"));
    };
    let (own, limits) = (Arc::clone(job), services.sample_limits());
    let work = move |is_awaited: &(dyn Fn() -> bool + Sync)| {
        let is_cancelled = || !is_awaited();
        let started = Instant::now();
        let context = context(&own, limits, Cancellation::when(&is_cancelled));
        let crop = own.pipeline.crop_jpeg(&object, &context)?;
        let sample = crop.map_or(Sample::Bytes(object), Sample::CroppedJpeg);
        Ok::<_, pushdown::Error>((sample, started.elapsed()))
    };
    let (sample, time) = services.cpu.run_while_awaited(&job.position, work).await??;
    let name = ObjectForm::CroppedJpeg.name();
    times.0.push(GroupTime {
        first: name,
        name: name.to_owned(),
        time,
    });
    Ok(sample)
}

/// What the steps of a job get besides the value.
fn context<'a>(
    job: &'a PipelineJob,
    limits: pushdown::Limits,
    cancellation: Cancellation<'a>,
) -> Context<'a> {
    Context {
        seed: job.seed,
        epoch: job.epoch,
        limits,
        cancellation,
        ..Context::new(&job.sample_id)
    }
}

/// The work of `steps` for the CPU pool. It ends before its next step once nobody awaits it any more.
fn steps_to_run(
    sample: Sample,
    staged: &StagedJob,
    steps: Range<usize>,
    limits: pushdown::Limits,
) -> impl FnOnce(&(dyn Fn() -> bool + Sync)) -> pushdown::Result<(Sample, Vec<GroupTime>)> + Send + use<> {
    let job = Arc::clone(&staged.job);
    move |is_awaited| {
        let is_cancelled = || !is_awaited();
        let context = context(&job, limits, Cancellation::when(&is_cancelled));
        let started = Instant::now();
        let run = job
            .pipeline
            .run_timed(steps, sample, &context, || started.elapsed());
        let (sample, groups) = run?;
        let groups = groups
            .into_iter()
            .map(|group| GroupTime::new(&job.pipeline.steps()[group.steps], group.time));
        Ok((sample, groups.collect()))
    }
}

impl StepTimes {
    fn total(&self) -> Duration {
        self.0.iter().map(|group| group.time).sum()
    }
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

impl ValueOrigin {
    /// The name in metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Computed => "computed",
            Self::Cached(level) => level.name(),
            Self::Shared => "shared",
            Self::Prefix(_) => "prefix",
        }
    }
}

/// The value of the column.
impl From<ValueOrigin> for CacheStatus {
    fn from(origin: ValueOrigin) -> Self {
        match origin {
            ValueOrigin::Computed => Self::Computed,
            ValueOrigin::Cached(CacheLevel::Memory) => Self::Memory,
            ValueOrigin::Cached(CacheLevel::Disk) => Self::Disk,
            ValueOrigin::Shared => Self::Shared,
            ValueOrigin::Prefix(_) => Self::Prefix,
        }
    }
}

/// The value of the header.
impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Prefix(stage) => write!(f, "={stage}"),
            _ => Ok(()),
        }
    }
}
