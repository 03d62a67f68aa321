//! Who makes parts: a gateway, or this host. Both write the same bytes.

use futures::future::BoxFuture;
use pushdown::wire::{PartAction, PartError, WrittenPart};

use super::{gateway::GatewayMaker, local::LocalMaker};
use crate::error::Result;

/// Makes parts.
#[derive(Debug)]
pub(super) enum Maker {
    Gateway(Box<GatewayMaker>),
    Local(Box<LocalMaker>),
}

/// What became of a part.
#[derive(Debug)]
pub(super) enum Made {
    /// It was written; or, without a name, it would have been.
    Written(WrittenPart),
    /// Objects are no longer those of the list.
    Changed(Vec<PartError>),
    /// It cannot be made.
    Refused {
        action: PartAction,
        code: String,
        message: String,
        errors: Vec<PartError>,
    },
}

/// A part to make.
#[derive(Debug)]
pub(super) struct PartJob<'a> {
    /// The samples in their versions of now.
    pub(super) samples: &'a [super::data_set::CurrentSample<'a>],
    /// Its name in the target; `None` for a trial, of which nothing is written.
    pub(super) name: Option<&'a str>,
    /// The engine that all parts are made by; `None` before it is known.
    pub(super) engine: Option<&'a str>,
}

impl Maker {
    /// Makes a part, and returns the engine that computed it. `progress` gets the number of samples that are done.
    ///
    /// # Errors
    /// If the maker or the store does not answer, after retries.
    pub(super) fn make<'a>(
        &'a self,
        job: &'a PartJob<'a>,
        progress: &'a (dyn Fn(u32) + Sync),
    ) -> BoxFuture<'a, Result<(Made, String)>> {
        match self {
            Self::Gateway(maker) => Box::pin(maker.make(job, progress)),
            Self::Local(maker) => Box::pin(maker.make(job, progress)),
        }
    }

    /// Parts that are made at a time.
    pub(super) async fn parts_in_flight(&self) -> Result<usize> {
        match self {
            Self::Gateway(maker) => maker.parts_in_flight().await,
            Self::Local(_) => Ok(1),
        }
    }

    /// Cores for steps, as far as they are known.
    pub(super) async fn cores(&self) -> Result<f64> {
        match self {
            Self::Gateway(maker) => maker.cores().await,
            Self::Local(maker) => Ok(maker.cores()),
        }
    }

    /// The most bytes of a part: `None` on this host, which has no limit.
    pub(super) async fn max_part_bytes(&self) -> Result<Option<u64>> {
        match self {
            Self::Gateway(maker) => maker.max_part_bytes().await,
            Self::Local(_) => Ok(None),
        }
    }
}
