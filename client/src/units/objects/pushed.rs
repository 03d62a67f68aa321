//! Pushdown: a batch is a request to each replica that its samples are placed on.

mod answer;
mod features;
mod read;
mod refusals;
mod request;

use std::sync::Arc;

use futures::{StreamExt as _, stream::FuturesUnordered};

use super::{BatchJob, Session, intake::Intake};
use crate::{error::Result, store::Replica};
use read::fetch_from;

/// How the reads from a replica end, without a permanent error.
pub(super) enum ReplicaEnd {
    /// All samples have arrived, or have another route.
    Served,
    /// The gateway had no time, or did not answer: this host reads the samples that are missing.
    LeftToHost,
    /// These slots are to be requested from another replica.
    Displaced(Displaced),
}

/// Samples that another replica is to be asked for.
pub(super) struct Displaced {
    pub(super) slots: Vec<usize>,
    /// The replica that serves and has failed this batch, if that is the reason.
    pub(super) failed: Option<Arc<Replica>>,
}

/// Reads the values of these slots. Leaves those missing that are to be read plainly. Returns whether the gateway had time for the others.
pub(super) async fn fetch(
    session: &Arc<Session>,
    job: &BatchJob,
    intake: &Intake<'_>,
    slots: Vec<usize>,
) -> Result<bool> {
    if slots.is_empty() {
        return Ok(true);
    }
    session.replica_use.batch_began(&job.progress);
    let (mut is_served, mut avoided) = (true, Vec::new());
    let mut reads = FuturesUnordered::new();
    let mut unplaced = slots;
    loop {
        if !unplaced.is_empty() {
            let placed = session.place(job, unplaced.clone(), &avoided).await?;
            if placed.is_empty() {
                job.leave_to_host(intake, &mut unplaced);
                is_served = false;
            }
            for placed in placed {
                reads.push(fetch_from(session, job, intake, placed, avoided.clone()));
            }
        }
        unplaced = match reads.next().await.transpose()? {
            None => return Ok(is_served),
            Some(ReplicaEnd::Served) => Vec::new(),
            Some(ReplicaEnd::LeftToHost) => {
                is_served = false;
                Vec::new()
            }
            Some(ReplicaEnd::Displaced(Displaced { mut slots, failed })) => {
                avoided.extend(failed);
                session.observe_displacement(job);
                session.plan_again(job, intake, &mut slots);
                slots
            }
        };
    }
}
