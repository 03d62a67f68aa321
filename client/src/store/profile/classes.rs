//! Classes of the measured samples, by the size of their objects.

use pushdown::plan::{CacheHits, Candidate, Class, LoadingCost, Stage};

use super::{Profile, ReplicaReport, SampleProfile};
use crate::measure::float;

impl Profile {
    /// Cores of the replicas that serve; of the gateway if it has one address.
    pub(crate) fn all_gateway_cores(&self) -> Option<f64> {
        let serving = || {
            let replicas = self.replicas.iter();
            replicas.filter(|replica| replica.state == ReplicaReport::SERVING)
        };
        match serving().count() {
            0 | 1 => self.gateway_cores,
            _ => serving().map(|replica| replica.cores).sum(),
        }
    }

    /// The samples in at most `max_classes` classes of equally many samples, from the smallest objects to the largest. Costs
    /// are means.
    ///
    /// The stages are those that can be planned for every sample.
    pub fn classes(&self, max_classes: usize) -> Vec<Class> {
        let samples = self.by_size();
        let values = (1..=self.pipeline.len()).map(Stage::After);
        let stages: Vec<Stage> = [Stage::Object, Stage::CroppedJpeg]
            .into_iter()
            .chain(values)
            .filter(|stage| {
                samples.iter().all(|sample| {
                    sample
                        .candidates
                        .iter()
                        .any(|candidate| candidate.stage == *stage)
                })
            })
            .collect();
        samples
            .chunks(self.class_size(max_classes))
            .map(|chunk| Class {
                fraction: float(chunk.len() as u64) / float(samples.len() as u64),
                candidates: stages.iter().map(|stage| mean(chunk, *stage)).collect(),
            })
            .collect()
    }

    /// The most bytes of an object of each class: the midpoint to the next class, and infinity for the last.
    pub fn bounds(&self, max_classes: usize) -> Vec<f64> {
        let samples = self.by_size();
        let classes: Vec<_> = samples.chunks(self.class_size(max_classes)).collect();
        let edge = |class: usize| {
            let last = classes[class].last().map_or(0.0, |sample| stored(sample));
            let next = classes.get(class + 1).and_then(|next| next.first());
            next.map_or(f64::INFINITY, |next| f64::midpoint(last, stored(next)))
        };
        (0..classes.len()).map(edge).collect()
    }

    fn by_size(&self) -> Vec<&SampleProfile> {
        let mut samples: Vec<_> = self.samples.iter().collect();
        samples.sort_by(|a, b| stored(a).total_cmp(&stored(b)));
        samples
    }

    fn class_size(&self, max_classes: usize) -> usize {
        self.samples.len().div_ceil(max_classes.max(1)).max(1)
    }
}

fn stored(sample: &SampleProfile) -> f64 {
    sample.candidates.first().map_or(0.0, |candidate| candidate.bytes)
}

fn mean(samples: &[&SampleProfile], stage: Stage) -> Candidate {
    let candidates = || {
        samples.iter().filter_map(|sample| {
            sample
                .candidates
                .iter()
                .find(|candidate| candidate.stage == stage)
        })
    };
    let mean = |cost: fn(&Candidate) -> f64| {
        candidates().map(cost).sum::<f64>() / float(samples.len().max(1) as u64)
    };
    Candidate {
        stage,
        bytes: mean(|candidate| candidate.bytes),
        gateway_seconds: mean(|candidate| candidate.gateway_seconds),
        host_seconds: mean(|candidate| candidate.host_seconds),
        weights_bytes: mean(|candidate| candidate.weights_bytes),
        loading: LoadingCost::default(),
        hits: CacheHits::default(),
    }
}
