//! What the answers of several replicas state, as if they were one gateway.

use std::{collections::BTreeMap, sync::Arc};

use pushdown::{
    plan::{Placement, Tiers},
    wire::{CachedRatios, CpuTime},
};

use super::GatewayCpus;

/// The latest answers of replicas, by id.
#[derive(Debug, Default)]
pub(crate) struct ReplicaAnswers {
    by_id: BTreeMap<Arc<str>, ReplicaAnswer>,
    /// CPU time of replicas that are gone.
    retired: CpuTime,
    /// Whether one has stated its CPU time.
    has_time: bool,
}

#[derive(Debug, Default)]
struct ReplicaAnswer {
    /// Batch requests of this reader in flight.
    pending: u32,
    /// Cores for this reader.
    cores: Option<f64>,
    fingerprint: Option<String>,
    /// The CPU time that it stated last.
    latest: Option<CpuTime>,
    /// The CPU time since its first answer.
    passed: CpuTime,
    ratios: CachedRatios,
}

impl ReplicaAnswers {
    /// Counts a batch request to this replica.
    pub(crate) fn begin(&mut self, id: &Arc<str>) {
        self.by_id.entry(Arc::clone(id)).or_default().pending += 1;
    }

    /// The request has ended.
    pub(crate) fn end(&mut self, id: &Arc<str>) {
        if let Some(answer) = self.by_id.get_mut(id) {
            answer.pending = answer.pending.saturating_sub(1);
        }
    }

    /// Takes what the head of an answer states.
    pub(crate) fn observe(&mut self, id: &Arc<str>, cpus: &GatewayCpus, ratios: CachedRatios) {
        let answer = self.by_id.entry(Arc::clone(id)).or_default();
        if let Some(cores) = cpus.cores {
            let own = f64::from(answer.pending.max(1));
            let part = cpus.batches.map_or(1.0, |all| own / all.max(own));
            answer.cores = Some(cores * part);
        }
        answer.fingerprint.clone_from(&cpus.fingerprint);
        // A gateway that has started again counts from zero.
        if let Some(passed) = cpus
            .time
            .zip(answer.latest)
            .and_then(|(now, before)| now.since(before))
        {
            add_time(&mut answer.passed, passed);
        }
        answer.latest = cpus.time.or(answer.latest);
        answer.ratios = ratios;
        self.has_time |= cpus.time.is_some();
    }

    /// Whether none has answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Forgets replicas that are gone, but for their CPU time.
    pub(crate) fn retain(&mut self, ids: &[Arc<str>]) {
        let retired = &mut self.retired;
        self.by_id.retain(|id, answer| {
            let is_kept = ids.contains(id) || answer.pending > 0;
            if !is_kept {
                add_time(retired, answer.passed);
            }
            is_kept
        });
    }

    /// What the replicas in use state together. Cores are as many as one gateway would need for the same throughput: a replica with fewer
    /// cores than its part of the samples holds up the others. A replica that has not answered counts as the mean of the others.
    pub(crate) fn total(&self, placement: &Placement, ids: &[Arc<str>], used: &[usize]) -> GatewayCpus {
        let of = |index: &usize| self.by_id.get(&ids[*index]);
        let known: Vec<(usize, &ReplicaAnswer)> = used
            .iter()
            .filter_map(|index| Some((*index, of(index)?)))
            .collect();
        let weight = |index: usize| placement.fraction(index);
        let used_weight: f64 = used.iter().map(|index| weight(*index)).sum();
        let shares: Vec<(f64, f64)> = known
            .iter()
            .filter_map(|(index, answer)| Some((answer.cores?, weight(*index))))
            .collect();
        let known_weight: f64 = shares.iter().map(|(_, weight)| weight).sum();
        let cores = (known_weight > 0.0).then(|| Tiers::effective_cores(shares) * used_weight / known_weight);
        let fingerprints = known.iter().map(|(_, answer)| answer.fingerprint.as_ref());
        let mut time = self.retired;
        for answer in self.by_id.values() {
            add_time(&mut time, answer.passed);
        }
        GatewayCpus {
            cores,
            batches: None,
            time: self.has_time.then_some(time),
            // The CPUs of this host, if all of them run there.
            fingerprint: fingerprints
                .reduce(|all, one| all.filter(|all| Some(*all) == one))
                .flatten()
                .cloned(),
        }
    }

    /// The part of the data set's values at each stage that the replicas in use cache.
    pub(crate) fn cached_ratios(
        &self,
        placement: &Placement,
        ids: &[Arc<str>],
        used: &[usize],
    ) -> CachedRatios {
        let used_weight: f64 = used.iter().map(|index| placement.fraction(*index)).sum();
        let mut ratios = BTreeMap::<u8, f64>::new();
        for index in used {
            let Some(answer) = self.by_id.get(&ids[*index]) else {
                continue;
            };
            let share = placement.fraction(*index) / used_weight;
            for (stage, ratio) in answer.ratios.iter() {
                *ratios.entry(stage).or_default() += share * ratio;
            }
        }
        ratios.into_iter().collect()
    }
}

fn add_time(sum: &mut CpuTime, time: CpuTime) {
    sum.busy_seconds += time.busy_seconds;
    sum.total_seconds += time.total_seconds;
    sum.step_seconds += time.step_seconds;
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 3] = ["a", "b", "c"];

    fn ids() -> Vec<Arc<str>> {
        IDS.map(Arc::from).to_vec()
    }

    fn stated(cores: f64, batches: f64, busy_seconds: f64) -> GatewayCpus {
        GatewayCpus {
            cores: Some(cores),
            batches: Some(batches),
            time: Some(CpuTime {
                busy_seconds,
                total_seconds: 2.0 * busy_seconds,
                step_seconds: busy_seconds,
            }),
            fingerprint: Some("cpu".to_owned()),
        }
    }

    fn busy_seconds(answers: &ReplicaAnswers, placement: &Placement) -> f64 {
        let total = answers.total(placement, &ids(), &[0, 1, 2]);
        total.time.unwrap_or_default().busy_seconds
    }

    #[test]
    fn replicas_count_as_one_gateway() {
        let placement = Placement::new(IDS.iter().map(|id| (*id, 2.0)));
        let (ids, mut answers) = (ids(), ReplicaAnswers::default());
        for id in &ids {
            answers.begin(id);
            answers.observe(id, &stated(2.0, 1.0, 5.0), CachedRatios::from_iter([(3, 0.6)]));
        }
        let cores = |answers: &ReplicaAnswers, used: &[usize]| answers.total(&placement, &ids, used).cores;
        assert!((cores(&answers, &[0, 1, 2]).unwrap() - 6.0).abs() < 1e-9);
        // One is lost.
        assert!((cores(&answers, &[0, 2]).unwrap() - 4.0).abs() < 1e-9);
        // Another reader has half of one, which holds up the others.
        answers.observe(&ids[1], &stated(2.0, 2.0, 6.0), CachedRatios::default());
        assert!((cores(&answers, &[0, 1, 2]).unwrap() - 3.0).abs() < 1e-9);
        assert!((cores(&answers, &[0, 2]).unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(cores(&ReplicaAnswers::default(), &[0, 1, 2]), None);
        let ratios = answers.cached_ratios(&placement, &ids, &[0, 1, 2]);
        assert!((ratios.ratio(3) - 0.4).abs() < 1e-9);
        let total = answers.total(&placement, &ids, &[0, 1, 2]);
        assert_eq!(total.fingerprint.as_deref(), Some("cpu"));
        answers.observe(&ids[1], &GatewayCpus::default(), CachedRatios::default());
        assert_eq!(answers.total(&placement, &ids, &[0, 1, 2]).fingerprint, None);
    }

    #[test]
    fn cpu_time_is_that_since_the_first_answers() {
        let placement = Placement::new(IDS.iter().map(|id| (*id, 2.0)));
        let (ids, mut answers) = (ids(), ReplicaAnswers::default());
        for (id, busy, expected) in [
            (0, 100.0, 0.0),
            (0, 101.0, 1.0),
            (1, 900.0, 1.0),
            (1, 902.0, 3.0),
            (0, 1.0, 3.0),
            (0, 2.0, 4.0),
        ] {
            answers.observe(&ids[id], &stated(2.0, 1.0, busy), CachedRatios::default());
            assert!(
                (busy_seconds(&answers, &placement) - expected).abs() < 1e-9,
                "{id} {busy}"
            );
        }
        // What a replica that is gone has worked stays.
        answers.retain(&ids[1..]);
        assert!((busy_seconds(&answers, &placement) - 4.0).abs() < 1e-9);
        assert_eq!(ReplicaAnswers::default().total(&placement, &ids, &[0]).time, None);
    }
}
