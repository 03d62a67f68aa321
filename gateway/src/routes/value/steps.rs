//! Runs the steps of one sample: model layers in micro-batches with other samples, other steps on the CPU pool.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use pushdown::{Cancellation, Context, Kind, Sample, Step};

use crate::{
    error::{Error, ErrorKind, Result},
    routes::{Services, job::PipelineJob},
};

/// Runs the first `stage` steps. Returns the value and the time of each group of fused steps.
pub(super) async fn run_steps(
    services: &Services,
    source: Bytes,
    job: &PipelineJob,
    stage: usize,
    limits: pushdown::Limits,
) -> Result<(Sample, Vec<GroupTime>)> {
    services.models.mark_used(&job.pipeline.steps()[..stage]);
    let (mut sample, mut times) = (Sample::Bytes(source), Vec::new());
    let mut done = 0;
    while done < stage {
        let layers = job.pipeline.first_model(done..stage);
        let next = layers.as_ref().map_or(stage, |(steps, _)| steps.start);
        if done < next {
            let work = steps_to_run(sample, job, done..next, limits);
            let (value, groups) = services.cpu.run_while_awaited(&job.position, work).await??;
            (sample, done) = (value, next);
            times.extend(groups);
        }
        if let Some((steps, layers)) = layers {
            job.pipeline.check(steps.clone(), &Kind::from(&sample), &limits)?;
            let Sample::Tensor(tensor) = sample else {
                return Err(Error::new(ErrorKind::Internal, "a model requires a tensor"));
            };
            let output = services.micro_batcher.run(&job.position, &layers, tensor).await?;
            times.push(GroupTime::new(&job.pipeline.steps()[steps.clone()], output.time));
            (sample, done) = (Sample::Tensor(output.value), steps.end);
        }
    }
    Ok((sample, times))
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
            sample_id: &sample_id,
            seed,
            epoch,
            limits,
            cancellation: Cancellation::when(&is_cancelled),
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
pub(in crate::routes) struct GroupTime {
    /// Name of the first step.
    pub(in crate::routes) first: &'static str,
    /// Names of all steps, as in `resize+center_crop`.
    pub(in crate::routes) name: String,
    pub(in crate::routes) time: Duration,
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
