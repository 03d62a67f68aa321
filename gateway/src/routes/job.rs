//! Parses and checks a GET or HEAD with a pipeline, before anything is fetched.

mod member;

use std::{str::FromStr, sync::Arc};

use http::{HeaderMap, HeaderName, Method, header, request::Parts};
use pushdown::{
    BytesKind, Pipeline,
    wire::{self, BatchRequest, CachedRatios, ObjectForm, Split},
};
use pushdown_s3::{Address, escapes};

use super::{account::account, scoped_models::ScopedModels};
use crate::{
    cache::{CacheSample, CacheUnit, Prefixes, ResultCache},
    compute::{BatchMembers, QueuePosition, Tenant},
    config::TenantBy,
    error::{Error, ErrorKind, Result},
    models::ModelRegistry,
    origin::{ObjectId, ShardMember, StatedStore, StoreSignature},
    s3::{query::values, sign::Signature},
};

/// A pipeline to run on one sample.
#[derive(Debug, Clone)]
pub(super) struct PipelineJob {
    pub(super) pipeline: Arc<Pipeline>,
    /// Identify values of the pipeline; all samples of a request share them.
    pub(super) prefixes: Prefixes,
    pub(super) split: Split,
    /// The form in which the stored object may be sent, for the split 0.
    pub(super) form: Option<ObjectForm>,
    /// Maximum bytes of the value. A larger value is replaced by the object.
    pub(super) max_bytes: Option<u64>,
    pub(super) seed: Option<u64>,
    pub(super) epoch: Option<u32>,
    /// The percent-decoded key, then `\0` and the member.
    pub(super) sample_id: Vec<u8>,
    /// Of a GET or HEAD: the member to read instead of the whole object.
    pub(super) member: Option<ShardMember>,
    /// Whether the answer is a row of a batch, which has no headers of the object.
    pub(super) is_row: bool,
    /// Whether the value is sent, and not only kept in the result cache.
    pub(super) is_delivered: bool,
    pub(super) sharing: Sharing,
    /// The tenant that is charged once the store has authorized the request, and the position in its queue.
    pub(super) position: QueuePosition,
}

/// What a job has in common with other requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Cached values, computations in flight, and batches of a model.
    Everything,
    /// The same but for values of models: in a batch, their last bits depend on the other samples.
    ExactValues,
    /// Nothing: all steps run for this request, since its caller measures them.
    Nothing,
}

/// Query parameters that make a GET read something other than the object's content.
const SUB_RESOURCES: [&str; 12] = [
    "acl",
    "annotation",
    "attributes",
    "encryption",
    "legal-hold",
    "object-lock",
    "retention",
    "select",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
];

/// Headers that make the store answer with something other than the whole object.
const PARTIAL_ANSWER_HEADERS: [HeaderName; 4] = [
    header::RANGE,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

impl PipelineJob {
    /// Parses the pipeline request in `parts`, with those of the models that the caller can use.
    pub(super) fn for_request(
        parts: &Parts,
        store_signature: &StoreSignature,
        models: &ModelRegistry,
        tenant_by: TenantBy,
    ) -> Result<Self> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(invalid(format!(
                "invalid method for a pipeline: expected GET or HEAD, found {}",
                parts.method
            )));
        }
        let store = store_signature.stated().map(StatedStore::endpoint);
        let address = Address::new(store, parts.uri.path()).filter(|address| !address.key.is_empty());
        let Some(address) = address else {
            return Err(invalid(
                "invalid path for a pipeline: expected /bucket/key, found no key",
            ));
        };
        let signature = Signature::from_parts(parts)?;
        let query = parts.uri.query().unwrap_or_default();
        if let Some(name) = SUB_RESOURCES
            .into_iter()
            .find(|name| values(query, name).next().is_some())
        {
            return Err(invalid(format!(
                "invalid query for a pipeline: expected the object's content, found the sub-resource `{name}`"
            )));
        }
        refuse_partial_reads(parts, query, &signature)?;

        let text =
            value(parts, query, wire::header::PIPELINE)?.ok_or_else(|| invalid("the pipeline is missing"))?;
        let scope = store_signature.model_scope();
        let pipeline = ScopedModels::parse(models, &scope, |models| Pipeline::parse_with(&text, models))?;
        let split = parsed(
            parts,
            query,
            wire::header::SPLIT,
            "full, smallest or a stage number",
        )?;
        let split = split.unwrap_or(Split::Full);
        let form = parsed(parts, query, wire::header::FORM, "cropped-jpeg")?;
        if form.is_some() && split != Split::At(0) {
            return Err(invalid(format!(
                "unexpected {}: expected it for the split 0 only, found {split}",
                wire::header::FORM
            )));
        }
        let account = match store_signature {
            StoreSignature::Unchanged | StoreSignature::Stated(_) => {
                account(tenant_by, &signature, store, &address.bucket)
            }
            StoreSignature::Renewed(signing) => Some(signing.allowed().key().tenant().to_owned()),
        };
        let pipeline = Arc::new(pipeline);
        let member = member::for_request(parts, query, &address)?;
        Ok(Self {
            prefixes: Prefixes::new(Arc::clone(&pipeline)),
            pipeline,
            split,
            form,
            max_bytes: None,
            seed: parsed(parts, query, wire::header::SEED, "a non-negative integer")?,
            epoch: parsed(parts, query, wire::header::EPOCH, "a non-negative integer")?,
            sample_id: wire::sample_id(store, parts.uri.path(), member.as_ref().map(ShardMember::name)),
            member,
            is_row: false,
            is_delivered: true,
            sharing: if wants_fresh_value(&parts.headers) {
                Sharing::Nothing
            } else {
                Sharing::Everything
            },
            position: Tenant::from_access_key(account.as_deref()).position_now(),
        })
    }
}

impl PipelineJob {
    /// The job of one sample of a batch request. `pipeline` is the request's.
    pub(super) fn for_sample(
        request: &BatchRequest,
        index: usize,
        pipeline: &Arc<Pipeline>,
        prefixes: &Prefixes,
        position: QueuePosition,
    ) -> Self {
        let sample = &request.samples[index];
        Self {
            pipeline: Arc::clone(pipeline),
            prefixes: prefixes.clone(),
            split: request.split_of(sample),
            // Both are about what is sent.
            form: sample.form.filter(|_| request.deliver),
            max_bytes: sample.max_bytes.filter(|_| request.deliver),
            seed: request.seed,
            epoch: request.epoch,
            sample_id: sample.id(request.store.as_ref()),
            member: None,
            is_row: true,
            is_delivered: request.deliver,
            sharing: match &request.part {
                None => Sharing::Everything,
                Some(part) if part.target.is_some() => Sharing::ExactValues,
                // A trial measures its steps.
                Some(_) => Sharing::Nothing,
            },
            position,
        }
    }

    /// The key of the sample's values in the result cache.
    pub(super) fn cache_sample(&self, object: ObjectId) -> CacheSample {
        CacheSample {
            object,
            prefixes: self.prefixes.clone(),
            tenant: self.position.tenant().clone(),
            unit: CacheUnit::Object,
        }
    }

    /// How much of the data set of `object` is cached, at the last deterministic stage up to each of `stages`. Only for a caller
    /// that the store has authorized to read the object.
    pub(super) fn cached_ratios(
        &self,
        cache: &ResultCache,
        object: ObjectId,
        stages: impl IntoIterator<Item = usize>,
    ) -> CachedRatios {
        let sample = self.cache_sample(object);
        let ratio = |stage| {
            let stage = sample.prefixes.last_deterministic(stage);
            let ratio = cache.cached_ratio(&sample, stage);
            (ratio > 0.0).then_some((u8::try_from(stage).ok()?, ratio))
        };
        stages.into_iter().filter_map(ratio).collect()
    }

    /// The number of first steps on which an answer at `stage` depends.
    pub(super) fn dependency_steps(&self, stage: usize) -> usize {
        dependency_steps(&self.pipeline, stage, self.form)
    }

    /// The number of steps to run for an object: those of the split, and only those before the first random one if the value is not
    /// delivered, since no later value is cached.
    ///
    /// # Errors
    /// For a split beyond the pipeline, and for an object that a step cannot process.
    pub(super) fn stage_of(&self, object: &BytesKind) -> pushdown::Result<usize> {
        let stage = self.pipeline.stage_of(self.split, object)?;
        Ok(if self.is_delivered {
            stage
        } else {
            self.prefixes.last_deterministic(stage)
        })
    }

    /// The stage of the answer, as far as the text of the pipeline determines it; `None` if it depends on the object.
    pub(super) fn stage_from_text(&self) -> Option<usize> {
        if self.split == Split::Smallest {
            return None;
        }
        let stage = self.stage_of(&BytesKind::default()).ok()?;
        let value_bytes = self.pipeline.kinds()[stage].bytes();
        let is_too_large = value_bytes.is_some_and(|bytes| self.is_too_large(bytes));
        Some(if is_too_large { 0 } else { stage })
    }

    /// Whether a step computes values from cells of a table.
    pub(super) fn has_cells(&self) -> bool {
        let mut steps = self.pipeline.steps().iter();
        steps.any(|step| step.inner_steps().is_some())
    }

    /// Whether a value of another request may replace one of this job.
    pub(super) fn accepts_others(&self) -> bool {
        match self.sharing {
            Sharing::Everything => true,
            Sharing::ExactValues => self.pipeline.steps().iter().all(|step| step.models().is_empty()),
            Sharing::Nothing => false,
        }
    }

    /// The samples with which this one may run through a model.
    pub(super) const fn batch_members(&self) -> BatchMembers {
        match self.sharing {
            Sharing::Everything => BatchMembers::Any,
            Sharing::ExactValues | Sharing::Nothing => BatchMembers::One,
        }
    }

    /// Whether a value of `bytes` exceeds the job's limit, so that the object replaces it.
    pub(super) fn is_too_large(&self, bytes: u64) -> bool {
        self.max_bytes.is_some_and(|max| bytes > max)
    }

    /// The stage to answer with, if the prefix is a table scan. For `smallest` this is the last stage, although it may
    /// turn out not to be the smallest.
    pub(super) fn scan_stage(&self) -> Option<usize> {
        let stage = match self.split {
            Split::At(stage) => usize::from(stage),
            Split::Full | Split::Smallest => self.pipeline.len(),
        };
        self.pipeline.is_scan(&(0..stage)).then_some(stage)
    }
}

/// The number of first steps on which an answer at `stage` depends: those that have run, and for a `form` of the stored object those that
/// decide what is left out of it.
pub(super) fn dependency_steps(pipeline: &Pipeline, stage: usize, form: Option<ObjectForm>) -> usize {
    let of_form = form.and_then(|form| match form {
        ObjectForm::CroppedJpeg => pipeline.crop_steps(),
    });
    of_form.map_or(stage, |steps| steps.max(stage))
}

/// Whether the caller asks caches for no value of an earlier request (RFC 9111, 5.2.1.4).
fn wants_fresh_value(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    let mut directives = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    directives.any(|directive| directive.trim().eq_ignore_ascii_case("no-cache"))
}

/// Refuses requests for which the store would return only a part of the object: a part cannot be decoded, and a signed
/// header cannot be removed.
fn refuse_partial_reads(parts: &Parts, query: &str, signature: &Signature) -> Result<()> {
    if let Some(name) = PARTIAL_ANSWER_HEADERS
        .iter()
        .find(|name| parts.headers.contains_key(*name) && signature.has_signed(name))
    {
        return Err(invalid(format!(
            "signed header {name}: the store would apply it to the stored object, but a pipeline requires the whole \
             object; send {name} unsigned to apply it to the result"
        )));
    }
    if values(query, "partNumber").next().is_some() {
        return Err(invalid(
            "invalid parameter partNumber: it selects a part of the stored object, but a pipeline requires the whole object",
        ));
    }
    Ok(())
}

/// The value of a header or of a query parameter of the same name. It may occur once.
fn value(parts: &Parts, query: &str, name: &'static str) -> Result<Option<String>> {
    let headers = parts.headers.get_all(name).iter().map(|value| {
        value.to_str().map(str::to_owned).map_err(|_| {
            invalid(format!(
                "invalid header {name}: expected ASCII; write other characters as \\u{{..}} in a string"
            ))
        })
    });
    let queries = values(query, name).map(|value| {
        String::from_utf8(escapes::decode_form(value))
            .map_err(|_| invalid(format!("invalid parameter {name}: expected UTF-8")))
    });
    let mut values = headers.chain(queries);
    let first = values.next().transpose()?;
    match values.next() {
        Some(_) => Err(invalid(format!(
            "duplicate {name}: expected it once, as a header or in the query"
        ))),
        None => Ok(first),
    }
}

fn parsed<T: FromStr>(parts: &Parts, query: &str, name: &'static str, expected: &str) -> Result<Option<T>> {
    value(parts, query, name)?
        .map(|text| {
            text.trim().parse().map_err(|_| {
                Error::new(
                    ErrorKind::InvalidArgument,
                    format!("invalid {name}: expected {expected}, found `{text}`"),
                )
            })
        })
        .transpose()
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests;
