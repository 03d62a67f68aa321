//! Reads clocks and counters for events.

use std::time::Duration;

use pushdown::plan::{LoadingCost, SetupCosts};
use rustix::time::{ClockId, clock_gettime};

use super::{
    Adapter,
    event::{Event, Moment, ResourceUsage, SamplesLeft},
    float,
};
use crate::measure::ReceivedBytes;

impl Adapter {
    /// The end of a batch, with what is left after it.
    pub(crate) fn batch_end(&self, left: SamplesLeft) -> Event {
        Event::BatchEnded {
            left,
            usage: self.usage(),
            setup: self.setup_costs(),
        }
    }

    /// A change of the gateway, with what is left of the epoch.
    pub(crate) fn gateway_change(&self, left: SamplesLeft) -> Event {
        Event::GatewayChanged {
            left,
            setup: self.setup_costs(),
        }
    }

    pub(super) fn moment(&self) -> Moment {
        // Counted after all bytes, of which they are a part.
        let gateway = self.gateway_traffic.as_ref();
        let gateway = gateway.map_or(0, |traffic| traffic.received_bytes());
        Moment {
            at: self.began.elapsed(),
            received: ReceivedBytes {
                store: self.traffic.received_bytes().saturating_sub(gateway),
                gateway,
            },
        }
    }

    pub(super) fn usage(&self) -> ResourceUsage {
        let host_cpu = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
        ResourceUsage {
            moment: self.moment(),
            host_cpu_seconds: host_cpu.as_secs_f64(),
        }
    }

    /// What models still cost before they run: weights that are not on this host, and the loading of layers.
    pub(super) fn setup_costs(&self) -> SetupCosts {
        let missing = self.models.iter().filter(|model| !model.is_local());
        // Loading layers is assumed to take as long at the gateway as on this host.
        let all = self.pipeline.len();
        let loading = (0..=all).map(|stage| LoadingCost {
            gateway_seconds: self.pipeline.loading_time(0..stage).as_secs_f64(),
            host_seconds: self.pipeline.loading_time(stage..all).as_secs_f64(),
        });
        SetupCosts {
            weights_bytes: missing.map(|model| float(model.bytes())).sum(),
            loading: loading.collect(),
        }
    }
}
