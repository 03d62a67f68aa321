//! What a reader does, seen from elsewhere.

use std::sync::Arc;

use crate::{
    planning::{Adapter, Observations, PlanReport},
    stats::Stats,
    units::objects::{Mode, Session},
};

/// Observes a [`PushdownReader`](crate::reader::PushdownReader) while it reads, and after it is closed.
#[derive(Debug, Clone)]
pub struct ReaderMonitor(Arc<Session>);

impl ReaderMonitor {
    pub(super) const fn new(session: Arc<Session>) -> Self {
        Self(session)
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        self.0.counters.snapshot(self.0.store.traffic())
    }

    /// The mode in force: plain as well after the gateway turned out to have another engine.
    pub fn mode(&self) -> Mode {
        self.0.mode()
    }

    /// The plan in force and what it was made from, in [`Mode::Auto`]; `None` before the first plan.
    pub fn plan(&self) -> Option<PlanReport> {
        self.0.adapter.as_ref().and_then(Adapter::plan_report)
    }

    /// What the planner has observed, for [another reader](crate::reader::PushdownReaderBuilder::observations) of the same data; `None` before
    /// the first plan, and in other modes than [`Mode::Auto`].
    pub fn observations(&self) -> Option<Observations> {
        self.0.adapter.as_ref().and_then(Adapter::observations)
    }
}
