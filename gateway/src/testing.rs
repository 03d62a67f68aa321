//! What fuzz targets, benchmarks and integration tests use of the gateway's modules. No interface: all of it can change in any version.

pub use crate::{
    access::{Grants, Keys, Needs},
    cache::{CacheSample, CacheUnit, Config as CacheConfig, Hints, Prefixes, ResultCache, SourceHead},
    compute::Tenant,
    config::{Scope, Settings},
    error::Error,
    origin::{ObjectId, SignedPayload, Signer, StoreIdentity},
    routes::Route,
    s3::{
        AddressStyle,
        action::Operation,
        auth::{AuthError, ChunkSeed, PayloadMode, Quoted, Verified, Verifier, stream::VerifyingBody},
        sign::Signature,
    },
    telemetry::{METRICS, Metrics},
};
