//! A cached value: what identifies it, where it may be, and what is released.

use std::{sync::Arc, time::Duration};

use http::HeaderValue;
use pushdown::Sample;

use super::{CacheLevel, Prefixes, SourceHead, ValueKey, quotas::SetId};
use crate::{compute::Tenant, origin::ObjectId};

/// A value that may be cached, for a request that the store has not authorized yet.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(super) key: ValueKey,
    /// The number of steps applied to the value.
    pub stage: usize,
    /// The version of the object that the value was computed from.
    pub etag: HeaderValue,
    /// Bytes of the entry, if it is in memory.
    pub bytes: Option<u64>,
}

impl Candidate {
    /// The key of the value.
    pub const fn key(&self) -> ValueKey {
        self.key
    }
}

/// A cached value, released by an [`Authorization`](crate::origin::Authorization).
#[derive(Debug, Clone)]
pub struct CachedValue {
    /// The value.
    pub sample: Sample,
    /// The number of steps applied.
    pub stage: usize,
    /// Where it was.
    pub level: CacheLevel,
    /// The time that it took to read it.
    pub time: Duration,
    /// The object that it was computed from.
    pub source: Arc<SourceHead>,
    /// The time that the value took from the object; `None` for one of an earlier version of the gateway.
    pub cost: Option<Duration>,
}

/// A cached value that answers a request.
#[derive(Debug, Clone, Copy)]
pub struct Hit {
    /// The number of steps applied.
    pub stage: usize,
    /// Bytes of the value.
    pub bytes: u64,
    /// The time that it took from the object, if that is known.
    pub cost: Option<Duration>,
    /// The time until it was there.
    pub time: Duration,
}

/// The place for a value that a request has computed.
#[derive(Debug, Clone, Copy)]
pub struct Admission {
    pub(super) level: CacheLevel,
    pub(super) owner: Owner,
    /// The time that the value took from the object.
    pub(super) cost: Duration,
}

/// The data set of a cached value, and the hash of its object, which decide whether it has a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    pub(super) set: SetId,
    pub(super) object_hash: u64,
}

/// What identifies the values of a sample: its object, the prefixes of its pipeline, and its tenant.
#[derive(Debug, Clone)]
pub struct CacheSample {
    /// The object.
    pub object: ObjectId,
    /// The prefixes of the pipeline.
    pub prefixes: Prefixes,
    /// The tenant that the request claims.
    pub tenant: Tenant,
    /// What the values are computed from.
    pub unit: CacheUnit,
}

/// What a value is computed from. It decides what a hit costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheUnit {
    /// An object: a hit is a request to the store and a read of the value.
    Object,
    /// A cell of a table, whose bytes have been read: a hit is a read of the value.
    Cell,
}
