//! Computes one sample: model layers in micro-batches with other samples, other steps on the CPU pool.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use pushdown::{Cancellation, Context, Kind, Sample, Step};

use super::sample::AdmittedSample;
use crate::{
    compute::{MicroBatcher, Permit},
    error::{Error, ErrorKind, Result},
    routes::{Services, http::Timing, job::PipelineJob, prepared::Prepared},
};

/// The value at its stage, and the permit for its bytes.
#[derive(Debug)]
pub(in crate::routes) struct ComputedSample {
    pub(in crate::routes) stage: usize,
    pub(in crate::routes) sample: Sample,
    pub(in crate::routes) permit: Permit,
    pub(in crate::routes) timing: Timing,
    /// Time of the steps on the CPU pool.
    pub(in crate::routes) compute_time: Duration,
}

impl AdmittedSample {
    /// Reads the rest of the object and runs the steps up to the stage.
    pub(in crate::routes) async fn compute(
        self,
        services: &Services,
        job: &PipelineJob,
        prepared: &Prepared,
    ) -> Result<ComputedSample> {
        let (source, mut permit, mut timing) = self.read(services, job, prepared).await?;
        let (mut stage, limits) = (prepared.stage, services.sample_limits());
        services.models.mark_used(&job.pipeline.steps()[..stage]);
        let fallback = job.max_bytes.is_some().then(|| source.clone());
        let (mut sample, mut done, mut times) = (Sample::Bytes(source), 0, Vec::new());
        while done < stage {
            let layers = MicroBatcher::first_layers(&job.pipeline, &(done..stage));
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
        if let Some(source) = fallback.filter(|_| job.is_too_large(sample.bytes())) {
            (sample, stage) = (Sample::Bytes(source), 0);
        }
        services.check_output(sample.bytes())?;
        permit.shrink_to(sample.bytes());
        let compute_time = times.iter().map(|group| group.time).sum();
        for group in times {
            // The time of a fused group counts for its first step.
            services.metrics.add_step_time(group.first, group.time);
            timing.add(group.name, group.time);
        }
        Ok(ComputedSample {
            stage,
            sample,
            permit,
            timing,
            compute_time,
        })
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
