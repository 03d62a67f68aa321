//! Seconds of groups of steps, on both sides, and what they make of a split.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;
use pushdown::{
    Context, Pipeline, Sample, Step,
    plan::{Candidate, LoadingCost},
    step::model::Model,
};
use rustix::time::{ClockId, clock_gettime};

use crate::{
    error::{Error, Result},
    models::of_steps,
};

/// Steps that ran as one, with what they took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    first: usize,
    steps: usize,
    seconds: f64,
}

/// Runs the first steps and gives the CPU seconds of each group of them, all threads together.
pub(super) fn run(
    pipeline: &Pipeline,
    until: usize,
    sample: Sample,
    context: &Context<'_>,
) -> Result<Vec<Group>> {
    let cpu = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    let (_, groups) = pipeline.run_timed(0..until, sample, context, cpu)?;
    let groups = groups.into_iter().map(|group| Group {
        first: group.steps.start,
        steps: group.steps.len(),
        seconds: group.time.as_secs_f64(),
    });
    Ok(groups.collect())
}

/// The gateway's groups: the last entries of `Server-Timing`, behind origin, queue and read. Each is named after its
/// steps.
pub(super) fn gateway_groups(headers: &HeaderMap, pipeline: &Pipeline) -> Result<Vec<Group>> {
    let timing = headers
        .get("server-timing")
        .and_then(|timing| timing.to_str().ok())
        .unwrap_or_default();
    let entries = timing.split(',').filter_map(|entry| {
        let (name, milliseconds) = entry.trim().split_once(";dur=")?;
        let milliseconds = milliseconds.parse::<f64>().ok();
        let milliseconds = milliseconds.filter(|time| time.is_finite() && *time >= 0.0)?;
        Some((name, milliseconds / 1e3))
    });
    let mut groups: Vec<Group> = Vec::new();
    for (name, seconds) in entries {
        let first = groups.last().map_or(0, |last| last.first + last.steps);
        let rest = &pipeline.steps()[first..];
        let steps = (1..=rest.len()).find(|steps| {
            let names: Vec<_> = rest[..*steps].iter().map(Step::name).collect();
            names.join("_") == name
        });
        groups.extend(steps.map(|steps| Group {
            first,
            steps,
            seconds,
        }));
    }
    match groups.last() {
        Some(last) if last.first + last.steps == pipeline.len() => Ok(groups),
        _ => Err(Error::protocol(format!(
            "the gateway's Server-Timing `{timing}` does not tell of all steps of the pipeline"
        ))),
    }
}

/// What splits at the end of each group come to, and within layers, whose costs are in the ratio of their
/// multiplications. A stage whose bytes are not known is none to plan with.
///
/// Groups that did not run here are taken to differ from the gateway's as those do that did. Weights are those of the `far`
/// models, which this host has to fetch.
pub(super) fn ways(
    pipeline: &Pipeline,
    bytes: &[Option<u64>],
    here: &[Group],
    there: &[Group],
    far: &[Arc<Model>],
) -> Result<Vec<Candidate>> {
    let alike = |(a, b): (&Group, &Group)| (a.first, a.steps) == (b.first, b.steps);
    if here.len() > there.len() || !here.iter().zip(there).all(alike) {
        return Err(Error::protocol(
            "the gateway runs steps together that run apart here",
        ));
    }
    let sum = |groups: &[Group]| groups.iter().map(|group| group.seconds).sum::<f64>();
    let slower = sum(&there[..here.len()]) / sum(here);
    let slower = if slower.is_finite() && slower > 0.0 {
        slower
    } else {
        1.0
    };
    let groups = there.iter().enumerate().map(|(index, there)| {
        let seconds = here
            .get(index)
            .map_or(there.seconds / slower, |here| here.seconds);
        (Group { seconds, ..*there }, there.seconds)
    });
    let groups: Vec<(Group, f64)> = groups.collect();
    let total: f64 = groups.iter().map(|(group, _)| group.seconds).sum();
    let mut ways = Vec::new();
    let mut way = |stage: usize, gateway: f64, done_here: f64| {
        ways.extend(bytes[stage].map(|bytes| Candidate {
            stage,
            bytes: float(bytes),
            gateway_seconds: gateway,
            host_seconds: (total - done_here).max(0.0),
            weights_bytes: weights(&pipeline.steps()[stage..], far),
            loading: LoadingCost::default(),
        }));
    };
    way(0, 0.0, 0.0);
    let (mut gateway, mut host) = (0.0, 0.0);
    for (group, there) in groups {
        let steps = &pipeline.steps()[group.first..group.first + group.steps];
        let macs: Vec<f64> = steps
            .iter()
            .map(|step| match step {
                Step::Model(model) => float(model.macs()),
                _ => 0.0,
            })
            .collect();
        let all: f64 = macs.iter().sum();
        let mut done = 0.0;
        for (index, macs) in macs.iter().enumerate() {
            done += macs;
            let last = index + 1 == steps.len();
            if last || all > 0.0 {
                let part = if last { 1.0 } else { done / all };
                way(
                    group.first + index + 1,
                    gateway + there * part,
                    host + group.seconds * part,
                );
            }
        }
        gateway += there;
        host += group.seconds;
    }
    Ok(ways)
}

/// Bytes of the `far` models that `steps` need.
fn weights(steps: &[Step], far: &[Arc<Model>]) -> f64 {
    let needed = of_steps(steps).into_iter().filter(|model| far.contains(model));
    needed.map(|model| float(model.description().bytes)).sum()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes and counts, of which a few digits matter"
)]
pub(crate) const fn float(number: u64) -> f64 {
    number as f64
}
