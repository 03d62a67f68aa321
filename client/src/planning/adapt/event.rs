//! What the planner observes while samples are read.

use std::time::Duration;

use pushdown::{
    StepTiming,
    plan::{SetupCosts, Stage},
    wire::{CacheStatus, CachedRatios},
};

use crate::{
    measure::{GatewayCpus, ReceivedBytes},
    store::SampleProfile,
};

/// An observation. It is plain data with its own time, so that a recorded sequence leads a new planner to the same plans.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// A few objects were measured before the first batch.
    Profiled {
        samples: Vec<SampleProfile>,
        link_bytes_per_second: Option<f64>,
        gateway_cores: Option<f64>,
        left: SamplesLeft,
        setup: SetupCosts,
    },
    /// Objects may be requested as cropped JPEGs from now on, or not any more.
    CropsAllowed(bool),
    /// The first stored object is about to be requested.
    ReadingBegan(ResourceUsage),
    /// The samples of a batch are about to be requested.
    SamplesBegan(Vec<RequestedStage>),
    /// A sample in flight changes its route.
    SampleRerouted {
        from: RequestedStage,
        to: RequestedStage,
    },
    /// A sample has arrived or failed.
    SampleEnded(RequestedStage),
    /// A batch of `samples` samples is no longer read. Some may not have ended.
    SamplesReleased {
        samples: usize,
        unfinished: Vec<RequestedStage>,
    },
    /// A stored object is requested.
    ReadBegan(Moment),
    /// The head of its answer has arrived.
    ReadAnswered {
        object_bytes: Option<u64>,
        moment: Moment,
    },
    /// The object has arrived, or failed.
    ReadEnded {
        object_bytes: Option<u64>,
        moment: Moment,
    },
    /// A value of an answer has arrived in part. Only reported of a gateway beside the store.
    ValueBegan(Moment),
    /// The rest of it has arrived, or will not.
    ValueEnded(Moment),
    /// A batch request is sent.
    RequestBegan,
    /// Its answer states what the gateway has.
    RequestAnswered(GatewayCpus),
    /// A replica of the gateway is lost. Samples of the epoch that are left are planned again.
    GatewayChanged { left: SamplesLeft, setup: SetupCosts },
    /// Its answer states which objects the gateway caches at each stage.
    CachedRatiosAnnounced(CachedRatios),
    /// The answer has arrived, or failed.
    RequestEnded,
    /// The gateway sent a value for a sample.
    ValueReceived {
        /// Bytes of the object, if known.
        stored: Option<u64>,
        requested: Stage,
        value: ReceivedValue,
        /// The hash of the object, as a fraction of all hashes.
        hash_fraction: f64,
    },
    /// Steps of a sample ran on this host.
    HostStepsRan {
        /// Bytes of the object, if known.
        stored: Option<u64>,
        /// Whether it arrived as a cropped JPEG.
        is_cropped: bool,
        ran: Vec<StepTiming>,
    },
    /// The consumer took this long for a batch.
    BatchConsumed { time: Duration, samples: usize },
    /// A batch is complete. Samples of the epoch that are left after it are planned again.
    BatchEnded {
        left: SamplesLeft,
        usage: ResourceUsage,
        setup: SetupCosts,
    },
}

/// What is left to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SamplesLeft {
    /// Samples of the current epoch.
    pub(crate) samples: usize,
    /// Epochs after it.
    pub(crate) later_epochs: u32,
}

/// The time of an event, and the bytes received until then. With one address, all of them are from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moment {
    /// Since the planner was made.
    pub(crate) at: Duration,
    pub(crate) received: ReceivedBytes,
}

/// What this process has used until a moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ResourceUsage {
    pub(crate) moment: Moment,
    pub(crate) host_cpu_seconds: f64,
}

/// The size class of a sample, and the stage at which it is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestedStage {
    pub(super) class: usize,
    pub(super) stage: Stage,
}

/// A value received from the gateway.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ReceivedValue {
    pub(crate) stage: Stage,
    pub(crate) bytes: u64,
    /// CPU time of the gateway's steps.
    pub(crate) seconds: f32,
    /// Where the gateway had it from. Only the seconds of computed values are the cost of all steps; those of others are the cost
    /// of a cache hit.
    pub(crate) cache: CacheStatus,
}
