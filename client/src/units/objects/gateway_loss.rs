//! What becomes of batches whose gateway does not serve, or may not read what this host may.

use pushdown::wire::RowError;

use super::{BatchJob, Mode, SampleRoute, Session, intake::Intake};
use crate::{error::Error, sample_name::SampleName};

impl Session {
    /// Whether this host can do without the gateway: a plan may read from the store plainly, and no weights are missing.
    pub(super) fn is_gateway_dispensable(&self) -> bool {
        self.adapter.is_some() && self.store.is_gateway_dispensable(self.pipeline.steps())
    }

    /// Whether batches that begin now are read plainly, since the gateway does not serve.
    pub(super) fn is_gateway_lost(&self) -> bool {
        self.adapter.is_some() && self.store.is_gateway_lost(self.pipeline.steps())
    }

    /// The store refuses a sample to the gateway, with this error, but not to this host: from now on all are read plainly.
    pub(super) fn observe_refused_gateway(&self, index: usize, error: &RowError) {
        let name = SampleName::from(self.objects.object(index));
        let why = format!(
            "the store refuses the gateway s3://{}/{name}, which this host may read: {error}",
            self.objects.bucket()
        );
        self.limit_stage(0, &why);
    }

    /// The error of a gateway that did not answer. It names the model for which this host depends on the gateway, if there is one.
    pub(super) fn gateway_error(&self, error: Error) -> Error {
        match self.mode {
            Mode::Auto => self.store.name_missing_model(error, self.pipeline.steps()),
            Mode::Pushdown | Mode::Plain => error,
        }
    }
}

impl BatchJob {
    /// Makes the routes of these slots plain, and removes them.
    pub(super) fn leave_to_host(&self, intake: &Intake<'_>, slots: &mut Vec<usize>) {
        for slot in slots.drain(..) {
            self.routes.set(slot, SampleRoute::PLAIN);
            intake.reroute(slot);
        }
    }
}
