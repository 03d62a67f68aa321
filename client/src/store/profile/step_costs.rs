//! Seconds of groups of steps, at the gateway and on this host, and the cost of each candidate split.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;
use pushdown::{
    Context, Pipeline, Sample, Step,
    pipeline::NamedModel,
    plan::{CacheHits, Candidate, LoadingCost, Stage},
};
use rustix::time::{ClockId, clock_gettime};

use crate::{
    error::{Error, Result},
    measure::{ServerTiming, float},
    weights::models_of,
};

/// Fused steps, and the seconds they took.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepGroup {
    first: usize,
    steps: usize,
    pub(super) seconds: f64,
}

/// Runs the first `until` steps and returns the CPU seconds of each group of them, over all threads.
pub(super) fn run(
    pipeline: &Pipeline,
    until: usize,
    sample: Sample,
    context: &Context<'_>,
) -> Result<Vec<StepGroup>> {
    let cpu = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    let (_, groups) = pipeline.run_timed(0..until, sample, context, cpu)?;
    let groups = groups.into_iter().map(|group| StepGroup {
        first: group.steps.start,
        steps: group.steps.len(),
        seconds: group.time.as_secs_f64(),
    });
    Ok(groups.collect())
}

/// The gateway's groups: the last entries of `Server-Timing`, after origin, queue and read. Each is named after its
/// steps.
pub(super) fn gateway_groups(headers: &HeaderMap, pipeline: &Pipeline) -> Result<Vec<StepGroup>> {
    let timing = ServerTiming::from_headers(headers);
    let mut groups: Vec<StepGroup> = Vec::new();
    for (name, seconds) in timing.phases() {
        let first = groups.last().map_or(0, |last| last.first + last.steps);
        let rest = &pipeline.steps()[first..];
        let steps = (1..=rest.len()).find(|steps| {
            let names: Vec<_> = rest[..*steps].iter().map(Step::name).collect();
            names.join("_") == name
        });
        groups.extend(steps.map(|steps| StepGroup {
            first,
            steps,
            seconds,
        }));
    }
    match groups.last() {
        Some(last) if last.first + last.steps == pipeline.len() => Ok(groups),
        _ => Err(Error::protocol(format!(
            "invalid Server-Timing from the gateway: expected all steps of the pipeline, found `{}`",
            timing.text()
        ))),
    }
}

/// The cost of a split after each group, and between layers, whose costs are proportional to their multiplications. A stage
/// of unknown size is left out.
///
/// Groups that did not run on this host are assumed to differ from the gateway's by the same factor as those that did.
/// Weights are those of the `missing` models, which this host would have to download.
pub(super) fn candidates(
    pipeline: &Pipeline,
    bytes: &[Option<u64>],
    host_groups: &[StepGroup],
    gateway_groups: &[StepGroup],
    missing: &[Arc<dyn NamedModel>],
) -> Result<Vec<Candidate>> {
    let same_steps = |(a, b): (&StepGroup, &StepGroup)| (a.first, a.steps) == (b.first, b.steps);
    if host_groups.len() > gateway_groups.len() || !host_groups.iter().zip(gateway_groups).all(same_steps) {
        return Err(Error::protocol(
            "the gateway and this host fuse steps differently: use the same version on both",
        ));
    }
    let sum = |groups: &[StepGroup]| groups.iter().map(|group| group.seconds).sum::<f64>();
    let slowdown = sum(&gateway_groups[..host_groups.len()]) / sum(host_groups);
    let slowdown = if slowdown.is_finite() && slowdown > 0.0 {
        slowdown
    } else {
        1.0
    };
    let groups = gateway_groups.iter().enumerate().map(|(index, at_gateway)| {
        let seconds = host_groups
            .get(index)
            .map_or(at_gateway.seconds / slowdown, |on_host| on_host.seconds);
        let on_host = StepGroup {
            seconds,
            ..*at_gateway
        };
        (on_host, at_gateway.seconds)
    });
    let groups: Vec<(StepGroup, f64)> = groups.collect();
    let total: f64 = groups.iter().map(|(group, _)| group.seconds).sum();
    let mut candidates = Vec::new();
    let mut add = |stage: usize, gateway: f64, host_before: f64| {
        candidates.extend(bytes[stage].map(|bytes| Candidate {
            stage: Stage::after(stage),
            bytes: float(bytes),
            gateway_seconds: gateway,
            host_seconds: (total - host_before).max(0.0),
            weights_bytes: weights(&pipeline.steps()[stage..], missing),
            loading: LoadingCost::default(),
            hits: CacheHits::default(),
        }));
    };
    add(0, 0.0, 0.0);
    let (mut gateway, mut host) = (0.0, 0.0);
    for (group, gateway_seconds) in groups {
        let steps = &pipeline.steps()[group.first..group.first + group.steps];
        let macs: Vec<f64> = steps.iter().map(|step| float(step.macs())).collect();
        let all: f64 = macs.iter().sum();
        let mut done = 0.0;
        for (index, macs) in macs.iter().enumerate() {
            done += macs;
            let last = index + 1 == steps.len();
            if last || all > 0.0 {
                let part = if last { 1.0 } else { done / all };
                add(
                    group.first + index + 1,
                    gateway + gateway_seconds * part,
                    host + group.seconds * part,
                );
            }
        }
        gateway += gateway_seconds;
        host += group.seconds;
    }
    Ok(candidates)
}

/// Bytes of the `missing` models that `steps` need.
fn weights(steps: &[Step], missing: &[Arc<dyn NamedModel>]) -> f64 {
    let needed = models_of(steps)
        .into_iter()
        .filter(|model| missing.contains(model));
    needed.map(|model| float(model.bytes())).sum()
}
