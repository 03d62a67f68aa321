//! Who makes parts: a gateway, or this host. Both write the same bytes.

use futures::future::BoxFuture;
use pushdown::{
    Pipeline,
    part::PartSpec,
    wire::{PartAction, PartError, RefusedPart, WrittenPart},
};

use super::{data_set::CurrentSample, gateway::GatewayMaker, local::LocalMaker, target::Target};
use crate::{
    error::{Error, ErrorKind, Result},
    sample_name::SampleName,
};

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
    Refused(RefusedPart),
}

/// What the values of a data set are made by, and how parts have them.
#[derive(Debug, Clone)]
pub(super) struct Values {
    pub(super) pipeline: Pipeline,
    /// `None` without random steps.
    pub(super) seed: Option<u64>,
    pub(super) epoch: u32,
    pub(super) spec: PartSpec,
}

/// A part to make.
#[derive(Debug)]
pub(super) struct PartJob<'a> {
    /// The samples in their versions of now.
    pub(super) samples: &'a [CurrentSample<'a>],
    /// Its name in the target; `None` for a trial, of which nothing is written.
    pub(super) name: Option<&'a str>,
    /// The engine that all parts are made by; `None` before it is known.
    pub(super) engine: Option<&'a str>,
}

impl<'a> PartJob<'a> {
    /// The samples that errors are about.
    pub(super) fn failed_samples(&self, errors: &[PartError]) -> impl Iterator<Item = &'a CurrentSample<'a>> {
        errors
            .iter()
            .filter_map(|error| self.samples.get(error.row as usize))
    }

    /// The URL of the part, or that it is a trial, for people.
    pub(super) fn about(&self, target: &Target) -> String {
        self.name
            .map_or_else(|| "the trial".to_owned(), |name| target.object_url(name))
    }

    /// What failed of a refused part, for people.
    pub(super) fn failed_action(&self, refused: &RefusedPart) -> String {
        match (refused.action, self.failed_samples(&refused.errors).next()) {
            (PartAction::Read, Some(sample)) => format!("cannot read {}", SampleName::from(sample.object)),
            (PartAction::Write, _) => "cannot write it".to_owned(),
            _ => "cannot make it".to_owned(),
        }
    }

    /// The error of a refused part.
    pub(super) fn refusal(&self, refused: &RefusedPart, target: &Target) -> Error {
        let (about, action) = (self.about(target), self.failed_action(refused));
        let RefusedPart { code, message, .. } = refused;
        let text = format!("{about}: {action}: {code}: {message}");
        Error::new(ErrorKind::Refused, text)
    }
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
