//! What is kept of earlier epochs and runs: read before anything is asked for, and added to.

use std::{ops::Range, sync::Arc};

use pushdown::{Context, Kind, Sample, wire::Split};

use super::{Job, Session, intake::Intake};
use crate::{
    error::Result,
    keep::{Keep, KeptStage, Reason},
    stats::add,
};

/// Takes every value that is kept.
pub(super) async fn fetch(session: &Arc<Session>, job: &Job, intake: &Intake<'_>) -> Result<()> {
    if session.keep.is_none() {
        return Ok(());
    }
    let loads: Vec<_> = intake
        .missing()
        .into_iter()
        .map(|slot| {
            let (session, index) = (Arc::clone(session), job.places[slot].index);
            let cpu = session.cpu.clone();
            (slot, cpu.run_for(job.number, move || session.load(index)))
        })
        .collect();
    for (slot, load) in loads {
        if let Some((stage, value)) = load.await? {
            intake.kept(slot, stage, value)?;
        }
    }
    Ok(())
}

impl Session {
    /// What is kept of an object, or why nothing is; `None` without a folder.
    fn kept_stage(&self, index: usize) -> Option<Result<(&Keep, &KeptStage), Reason>> {
        let keep = self.keep.as_ref()?;
        Some(match keep.stage(self.objects[index].bytes) {
            Some(stage) if stage.number >= self.first_stage => Ok((keep, stage)),
            Some(_) => Err(Reason::NoModels),
            None => Err(keep.too_large()),
        })
    }

    fn load(&self, index: usize) -> Option<(u8, Sample)> {
        let (keep, stage) = self.kept_stage(index)?.ok()?;
        let value = keep.load(&self.objects[index], stage, &self.pipeline, &self.limits)?;
        Some((u8::try_from(stage.number).ok()?, value))
    }

    /// Whether the value that is kept of an object comes up on the way from `stage`. Why it does not is counted.
    pub(super) fn keeps_from(&self, index: usize, stage: u8) -> bool {
        let reason = match self.kept_stage(index) {
            None => return false,
            Some(Ok((_, kept))) if kept.number >= usize::from(stage) => return true,
            Some(Ok(_)) if self.objects[index].bytes.is_none() => Reason::Unlisted,
            Some(Ok(_)) => Reason::AfterRandom,
            Some(Err(reason)) => reason,
        };
        self.counters.not_kept.count(reason);
        false
    }

    /// Runs `steps`, and keeps what is to be kept on the way.
    pub(super) fn run_and_keep(
        &self,
        index: usize,
        steps: Range<usize>,
        sample: Sample,
        context: &Context<'_>,
    ) -> pushdown::Result<Sample> {
        let Some(Ok((keep, stage))) = self.kept_stage(index) else {
            return self.run_steps(index, steps, sample, context);
        };
        let object = &self.objects[index];
        let arrived = (steps.start == 0).then(|| sample.bytes());
        let stored = object.bytes.or(arrived);
        if let (Sample::Bytes(bytes), 0) = (&sample, steps.start) {
            // An object shows what becomes of it: one whose value is too large to be kept is not run in two parts.
            let kinds = self.pipeline.kinds_for(&Kind::of_object(arrived, bytes));
            let value = kinds.ok().and_then(|kinds| kinds.get(stage.number)?.bytes());
            if value > stored {
                self.counters.not_kept.count(keep.too_large());
                return self.run_steps(index, steps, sample, context);
            }
        }
        let value = self.run_steps(index, steps.start..stage.number, sample, context)?;
        match keep.store(object, stored, stage, &value) {
            Ok(()) => add(&self.counters.newly_kept, 1),
            Err(reason) => self.counters.not_kept.count(reason),
        }
        self.run_steps(index, stage.number..steps.end, value, context)
    }

    /// The split, but no further than to what is kept, where that surely is no larger than the object: behind it there is
    /// nothing left to keep.
    pub(super) fn up_to_what_is_kept(&self, index: usize, split: Split) -> Split {
        let Some(Ok((_, stage))) = self.kept_stage(index) else {
            return split;
        };
        let Ok(kept) = u8::try_from(stage.number) else {
            return split;
        };
        match split {
            _ if !stage.surely_fits(self.objects[index].bytes) => split,
            Split::At(stage) => Split::At(stage.min(kept)),
            Split::Full | Split::Smallest => Split::At(kept),
        }
    }
}
