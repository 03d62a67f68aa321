//! The steps of one sample: on the CPU pool, layers of networks together with other samples.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use pushdown::{Context, Kind, Sample, Step};

use super::{Pushdown, request::Job};
use crate::error::{Error, ErrorKind, Result};

impl Pushdown {
    /// Runs the steps, those of networks together with other samples.
    pub(super) async fn run(
        &self,
        source: Bytes,
        job: &Job,
        stage: usize,
        limits: pushdown::Limits,
    ) -> Result<(Sample, Vec<GroupTime>)> {
        self.networks.touch(&job.pipeline.steps()[..stage]);
        let (mut sample, mut times) = (Sample::Bytes(source), Vec::new());
        let mut done = 0;
        while done < stage {
            let layers = job.pipeline.first_layers(done..stage);
            let next = layers.as_ref().map_or(stage, |(steps, _)| steps.start);
            if done < next {
                let (value, groups) = self.run_steps(sample, job, done..next, limits).await?;
                (sample, done) = (value, next);
                times.extend(groups);
            }
            if let Some((steps, layers)) = layers {
                job.pipeline.check(steps.clone(), &Kind::from(&sample), &limits)?;
                let Sample::Tensor(tensor) = sample else {
                    return Err(Error::new(ErrorKind::Internal, "layers take a tensor"));
                };
                let ran = self.layers.run(&job.tenant, &layers, tensor).await?;
                times.push(GroupTime {
                    time: ran.time,
                    ..GroupTime::start(&job.pipeline.steps()[steps.clone()])
                });
                (sample, done) = (Sample::Tensor(ran.value), steps.end);
            }
        }
        Ok((sample, times))
    }

    /// Runs steps on the CPU pool.
    async fn run_steps(
        &self,
        sample: Sample,
        job: &Job,
        steps: Range<usize>,
        limits: pushdown::Limits,
    ) -> Result<(Sample, Vec<GroupTime>)> {
        let (pipeline, seed, epoch) = (Arc::clone(&job.pipeline), job.seed, job.epoch);
        let sample_id = job.sample_id.clone();
        let work = move || {
            let context = Context {
                sample_id: &sample_id,
                seed,
                epoch,
                limits,
            };
            let mut groups: Vec<(GroupTime, Instant)> = Vec::new();
            let sample = pipeline.run_observed(steps, sample, &context, |index, count| {
                end_last(&mut groups);
                groups.push((
                    GroupTime::start(&pipeline.steps()[index..index + count]),
                    Instant::now(),
                ));
            })?;
            end_last(&mut groups);
            Ok::<_, pushdown::Error>((sample, groups.into_iter().map(|(group, _)| group).collect()))
        };
        Ok(self.cpu.run(&job.tenant, work).await??)
    }
}

/// How long a step, or a fused group of them, took.
#[derive(Debug)]
pub(super) struct GroupTime {
    pub(super) first: &'static str,
    /// `resize+center_crop`.
    pub(super) name: String,
    pub(super) time: Duration,
}

impl GroupTime {
    fn start(steps: &[Step]) -> Self {
        let name = steps.iter().map(Step::name).collect::<Vec<_>>().join("+");
        Self {
            first: steps.first().map_or("", Step::name),
            name,
            time: Duration::ZERO,
        }
    }
}

/// A group ends where the next one starts.
fn end_last(groups: &mut [(GroupTime, Instant)]) {
    if let Some((group, started)) = groups.last_mut() {
        group.time = started.elapsed();
    }
}
