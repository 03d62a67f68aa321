//! A plan for the objects of a data set, made from a few of them.

use std::num::NonZeroUsize;

use pushdown::{
    Kind, Pipeline,
    plan::{Plan, Rules, Tiers},
};

use crate::{
    error::{ErrorKind, Result},
    profile::{Profile, float},
    store::{Object, Store},
};

/// Objects that are measured, spread over the data set.
const MEASURED: usize = 12;
/// Classes of objects by size that are told apart.
const CLASSES: usize = 4;
/// Data sets of fewer objects are not worth measuring.
const WORTHWHILE: usize = 4 * MEASURED;

/// How far the gateway takes each object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment {
    /// The pipeline, its networks cut at the stages of the plan.
    pub(crate) pipeline: Pipeline,
    /// From the smallest objects to the largest.
    classes: Vec<Ways>,
}

/// What becomes of the objects of a class.
#[derive(Debug, Clone, PartialEq)]
struct Ways {
    /// Objects of up to so many bytes.
    up_to: f64,
    /// Stages, each with the share of objects that go there or to one before it.
    stages: Vec<(u8, f64)>,
}

impl Assignment {
    /// Measures some of `objects` and plans for the rest; `None` where plain reading is the plan, or where nothing can
    /// be measured.
    ///
    /// # Errors
    /// As the store refuses the objects.
    pub(crate) async fn make(
        store: &Store,
        bucket: &str,
        objects: &[Object],
        pipeline: &Pipeline,
        seed: Option<u64>,
        epoch: u32,
    ) -> Result<Option<Self>> {
        if objects.len() < WORTHWHILE {
            return Ok(None);
        }
        let step = objects.len() / MEASURED;
        let some: Vec<_> = objects.iter().step_by(step.max(1)).cloned().collect();
        let profile = match store.profile(bucket, &some, pipeline, seed, epoch).await {
            Ok(profile) => profile,
            Err(error) if matches!(error.kind(), ErrorKind::NotAGateway | ErrorKind::Protocol) => {
                tracing::warn!(%error, "no plan can be made, objects are read plainly");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if profile.samples.is_empty() {
            return Ok(None);
        }
        Ok(Self::of(profile, objects.len()))
    }

    /// The plan for `count` objects like those of the profile.
    fn of(profile: Profile, count: usize) -> Option<Self> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get) as u64;
        let tiers = Tiers {
            gateway_cores: profile.gateway_cores.unwrap_or(1.0),
            link_bytes: profile.link_bytes.unwrap_or(f64::INFINITY),
            host_cores: float(cores),
            trainer_seconds: 0.0,
            shared: false,
        };
        let rules = Rules {
            samples_left: float(count as u64),
            ..Rules::default()
        };
        let classes = profile.classes(CLASSES);
        let plan = Plan::best(&tiers, &classes, &rules);
        let ways: Vec<_> = classes
            .iter()
            .zip(&plan.shares)
            .zip(profile.bounds(CLASSES))
            .map(|((class, shares), up_to)| {
                let mut sum = 0.0;
                let stages = class
                    .candidates
                    .iter()
                    .zip(shares)
                    .filter(|(_, share)| **share > 0.0);
                let stages = stages.map(|(way, share)| {
                    sum += share / class.share;
                    (u8::try_from(way.stage).unwrap_or(u8::MAX), sum)
                });
                Ways {
                    up_to,
                    stages: stages.collect(),
                }
            })
            .collect();
        tracing::info!(
            samples_per_second = 1.0 / plan.load.seconds(),
            plainly = 1.0 / Plan::plain(&tiers, &classes).load.seconds(),
            bound = ?plan.load.bound(),
            ?ways,
            "planned"
        );
        let plain = ways
            .iter()
            .all(|class| class.stages.iter().all(|(stage, _)| *stage == 0));
        (!plain).then_some(Self {
            pipeline: profile.pipeline,
            classes: ways,
        })
    }

    /// The stage of an object: by its size, and among objects of a size in turns, so that any stretch of the data set
    /// has the shares of the plan. Stage 0 where the value could have more bytes than the object.
    pub(crate) fn stage(&self, index: usize, bytes: Option<u64>) -> u8 {
        /// The golden ratio: its multiples are spread evenly, wherever one starts.
        const TURN: f64 = 0.618_033_988_749_895;
        let size = bytes.map(float);
        let mut classes = self.classes.iter();
        let class = classes.find(|class| size.is_none_or(|size| size <= class.up_to));
        let turn = (float(index as u64) * TURN).fract();
        let stages = class
            .or_else(|| self.classes.last())
            .map_or(&[][..], |class| &class.stages);
        let way = stages
            .iter()
            .find(|(_, sum)| turn < *sum)
            .or_else(|| stages.last());
        let fits = |stage: &u8| {
            let value = self
                .pipeline
                .kinds()
                .get(usize::from(*stage))
                .and_then(Kind::bytes);
            value.is_some_and(|value| bytes.is_none_or(|stored| value <= stored))
        };
        way.map(|(stage, _)| *stage).filter(fits).unwrap_or_default()
    }

    /// The first stage that any object stops at: steps from there on run here.
    pub(crate) fn first_stage(&self) -> usize {
        let stages = self.classes.iter().flat_map(|class| &class.stages);
        usize::from(stages.map(|(stage, _)| *stage).min().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use pushdown::plan::Candidate;

    use super::*;
    use crate::profile::SampleProfile;

    fn profile(link_bytes: f64) -> Profile {
        let sample = |bytes: f64| {
            let way = |stage: usize, bytes: f64, gateway: f64, host: f64| Candidate {
                stage,
                bytes,
                gateway_seconds: gateway,
                host_seconds: host,
                weights: 0.0,
            };
            SampleProfile {
                key: bytes.to_string(),
                ways: vec![
                    way(0, bytes, 0.0, bytes / 1e8),
                    way(2, 30_000.0, bytes / 1e8, 0.0),
                ],
            }
        };
        Profile {
            pipeline: Pipeline::parse("decode | resize(100, 100)").unwrap(),
            samples: [10e3, 20e3, 1e6, 2e6, 4e6, 5e6, 8e6, 9e6].map(sample).to_vec(),
            failed: Vec::new(),
            link_bytes: Some(link_bytes),
            gateway_cores: Some(4.0),
        }
    }

    #[test]
    fn large_objects_are_pushed_and_small_ones_are_not() {
        let assignment = Assignment::of(profile(1e6), 1000).unwrap();
        for index in 0..100 {
            assert_eq!(assignment.stage(index, Some(15_000)), 0);
            assert_eq!(
                assignment.stage(index, Some(29_999)),
                0,
                "a value of 30,000 bytes is more"
            );
            assert_eq!(assignment.stage(index, Some(4_000_000)), 2);
            assert_eq!(assignment.stage(index, Some(40_000_000)), 2);
        }
        assert_eq!(assignment.first_stage(), 0);
        // Over an open link there is still the work to share: some of each class, as the plan has it.
        let open = Assignment::of(profile(f64::INFINITY), 1000).unwrap();
        let pushed = (0..1000)
            .filter(|index| open.stage(*index, Some(9_000_000)) == 2)
            .count();
        let shares = &open.classes[3].stages;
        let share = 1.0
            - shares
                .iter()
                .find(|(stage, _)| *stage == 0)
                .map_or(0.0, |(_, share)| *share);
        assert!(
            (float(pushed as u64) / 1000.0 - share).abs() < 0.01,
            "{pushed} of 1000, planned {share}"
        );
    }
}
