//! Samples whose parts arrive one by one.

use std::collections::BTreeMap;

use bytes::Bytes;
use pushdown::{Sample, wire::RowError};
use pushdown_exec::sync::Mutex;

use super::part::Part;
use crate::{error::Result, objects::Objects, units::objects::intake::Intake};

/// Collects the parts of samples, and hands over each sample once all of its parts have arrived or failed.
#[derive(Debug)]
pub(super) struct Assembly<'a> {
    objects: &'a Objects,
    intake: &'a Intake<'a>,
    /// By slot: samples of which a part is missing.
    incomplete: Mutex<BTreeMap<usize, IncompleteSample>>,
}

#[derive(Debug)]
struct IncompleteSample {
    missing: usize,
    value: Bytes,
    columns: Vec<Option<Bytes>>,
    /// The first error of a part.
    error: Option<RowError>,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(objects: &'a Objects, intake: &'a Intake<'a>) -> Self {
        Self {
            objects,
            intake,
            incomplete: Mutex::default(),
        }
    }

    /// Takes a part that has arrived, or the error with which it failed.
    pub(super) fn take(&self, part: Part, content: Result<Bytes, RowError>) -> Result<()> {
        let Some(sample) = self.complete(part, content) else {
            return Ok(());
        };
        match sample.error {
            Some(error) => self.intake.failed(part.slot, error),
            None => self
                .intake
                .value(part.slot, 0, Sample::Bytes(sample.value), sample.columns),
        }
    }

    /// Adds a part, and returns its sample if no other part is missing.
    fn complete(&self, part: Part, content: Result<Bytes, RowError>) -> Option<IncompleteSample> {
        let mut incomplete = self.incomplete.lock();
        let sample = incomplete.entry(part.slot).or_insert_with(|| IncompleteSample {
            missing: Part::of_sample(self.objects, part.slot, part.index).count(),
            value: Bytes::new(),
            columns: vec![None; self.objects.columns().len()],
            error: None,
        });
        sample.missing = sample.missing.saturating_sub(1);
        match (content, part.column) {
            (Ok(value), None) => sample.value = value,
            (Ok(content), Some(column)) => sample.columns[column] = Some(content),
            (Err(error), _) => {
                sample.error.get_or_insert(error);
            }
        }
        if sample.missing == 0 {
            incomplete.remove(&part.slot)
        } else {
            None
        }
    }
}
