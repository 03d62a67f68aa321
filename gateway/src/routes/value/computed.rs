//! A computed value, its memory, and where it came from.

use std::{fmt, time::Duration};

use pushdown::{Sample, wire::CacheStatus};

use super::flight::FlightValue;
use crate::{cache::CacheLevel, compute::Permit, routes::http::Timing};

/// The value at its stage, and the memory of its bytes.
#[derive(Debug)]
pub(in crate::routes) struct ComputedSample {
    pub(in crate::routes) stage: usize,
    pub(in crate::routes) sample: Sample,
    pub(in crate::routes) memory: ValueMemory,
    pub(in crate::routes) timing: Timing,
    /// Time of the steps on the CPU pool for this request.
    pub(in crate::routes) compute_time: Duration,
    /// Where the value came from.
    pub(in crate::routes) origin: ValueOrigin,
}

/// Holds the memory of a value until it is sent.
#[derive(Debug)]
pub(in crate::routes) enum ValueMemory {
    Own(Permit),
    Shared(FlightValue),
}

impl ValueMemory {
    /// Whether other requests have the value, or can still have it.
    pub(in crate::routes) const fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// The same memory, no longer shared if no other request has the value: then none can join any more.
    pub(in crate::routes) fn into_own(self) -> Self {
        match self {
            Self::Own(permit) => Self::Own(permit),
            Self::Shared(value) => value.into_memory().unwrap_or_else(Self::Shared),
        }
    }
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::routes) enum ValueOrigin {
    /// All steps ran for this request.
    Computed,
    /// The result cache.
    Cached(CacheLevel),
    /// A computation that another request began.
    Shared,
    /// A value at this stage in the result cache, and the steps after it.
    Prefix(usize),
}

impl ComputedSample {
    /// The same value for another request, or for the one that began the computation. All of them share its bytes.
    pub(super) fn shared_with(&self, is_own: bool, mut timing: Timing, value: FlightValue) -> Self {
        if is_own {
            timing.extend(&self.timing);
        }
        Self {
            stage: self.stage,
            sample: self.sample.clone(),
            memory: ValueMemory::Shared(value),
            timing,
            compute_time: if is_own { self.compute_time } else { Duration::ZERO },
            origin: if is_own { self.origin } else { ValueOrigin::Shared },
        }
    }
}

impl ValueOrigin {
    /// The name in metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Computed => "computed",
            Self::Cached(level) => level.name(),
            Self::Shared => "shared",
            Self::Prefix(_) => "prefix",
        }
    }
}

/// The value of the column.
impl From<ValueOrigin> for CacheStatus {
    fn from(origin: ValueOrigin) -> Self {
        match origin {
            ValueOrigin::Computed => Self::Computed,
            ValueOrigin::Cached(CacheLevel::Memory) => Self::Memory,
            ValueOrigin::Cached(CacheLevel::Disk) => Self::Disk,
            ValueOrigin::Shared => Self::Shared,
            ValueOrigin::Prefix(_) => Self::Prefix,
        }
    }
}

/// The value of the header.
impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Prefix(stage) => write!(f, "={stage}"),
            _ => Ok(()),
        }
    }
}
