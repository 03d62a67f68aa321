//! Keys of values in the result cache.

use std::sync::{Arc, OnceLock};

use http::HeaderValue;
use pushdown::{Pipeline, engine_of, pipeline::Digest};

use crate::{compute::Tenant, config::Scope, origin::ObjectId};

/// The key of a value: a digest of everything that determines its bytes, and of the object's address.
///
/// The address is part of it on purpose. An ETag is an MD5 at best, and without the address the writer of one object could
/// choose bytes that collide with those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueKey(Digest);

/// The prefixes of a pipeline, each as a digest of its canonical text with the digests of its models, and of the engine
/// that runs it. Computed on first use; clones share them.
#[derive(Debug, Clone)]
pub struct Prefixes(Arc<PrefixDigests>);

#[derive(Debug)]
struct PrefixDigests {
    pipeline: Arc<Pipeline>,
    /// By stage. `None` if no runtime can run its models.
    digests: Box<[OnceLock<Option<Digest>>]>,
    /// Number of steps before the first random one.
    deterministic: usize,
}

/// The name of the group of tenants that share values with `tenant`.
pub(super) fn group_name(scope: Scope, tenant: &Tenant) -> &str {
    match scope {
        Scope::Shared => "",
        Scope::Tenant => tenant.access_key().unwrap_or_default(),
    }
}

impl ValueKey {
    /// The key of the value at `prefix` of a version of an object. With [`Scope::Tenant`] it differs by tenant.
    pub fn new(
        object: &ObjectId,
        etag: &HeaderValue,
        prefix: &Digest,
        scope: Scope,
        tenant: &Tenant,
    ) -> Self {
        Self(Digest::from_parts([
            object.digest().as_bytes().as_slice(),
            etag.as_bytes(),
            prefix.as_bytes(),
            group_name(scope, tenant).as_bytes(),
        ]))
    }

    /// The digest.
    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

impl From<Digest> for ValueKey {
    fn from(digest: Digest) -> Self {
        Self(digest)
    }
}

impl Prefixes {
    /// The prefixes of `pipeline`.
    pub fn new(pipeline: Arc<Pipeline>) -> Self {
        let stages = pipeline.len() + 1;
        let steps = pipeline.steps().iter();
        Self(Arc::new(PrefixDigests {
            deterministic: steps.take_while(|step| !step.is_random()).count(),
            digests: (0..stages).map(|_| OnceLock::new()).collect(),
            pipeline,
        }))
    }

    /// The last stage up to `stage` whose value is the same in every epoch.
    pub fn last_deterministic(&self, stage: usize) -> usize {
        self.0.deterministic.min(stage)
    }

    /// The digest of the prefix at `stage`; `None` past the pipeline, or if no runtime can run its models.
    pub fn digest(&self, stage: usize) -> Option<Digest> {
        let digest = || {
            let pipeline = &self.0.pipeline;
            let engine = engine_of(&pipeline.steps()[..stage]).ok()?;
            Some(Digest::from_parts([
                pipeline.canonical(stage).as_bytes(),
                &stage.to_le_bytes(),
                engine.to_string().as_bytes(),
            ]))
        };
        *self.0.digests.get(stage)?.get_or_init(digest)
    }
}

#[cfg(test)]
mod tests {
    use http::Uri;

    use super::*;

    fn prefixes(pipeline: &str) -> Prefixes {
        Prefixes::new(Arc::new(Pipeline::parse(pipeline).unwrap()))
    }

    fn object(path: &'static str) -> ObjectId {
        ObjectId::new(None, &Uri::from_static(path))
    }

    #[test]
    fn everything_that_a_value_depends_on_changes_its_key() {
        let (one, other) = (
            prefixes("decode | resize(8, 8)"),
            prefixes("decode | resize(8, 9)"),
        );
        let tenants = [Tenant::default(), Tenant::from_access_key(Some("a"))];
        let key = |path, etag, prefix: &Prefixes, stage, scope, tenant: &Tenant| {
            let etag = HeaderValue::from_static(etag);
            ValueKey::new(
                &object(path),
                &etag,
                &prefix.digest(stage).unwrap(),
                scope,
                tenant,
            )
        };
        let first = key("/b/k", "\"e\"", &one, 2, Scope::Shared, &tenants[0]);
        assert_eq!(first, key("/b/k", "\"e\"", &one, 2, Scope::Shared, &tenants[1]));
        for changed in [
            key("/b/l", "\"e\"", &one, 2, Scope::Shared, &tenants[0]),
            key("/b/k", "\"f\"", &one, 2, Scope::Shared, &tenants[0]),
            key("/b/k", "\"e\"", &other, 2, Scope::Shared, &tenants[0]),
            key("/b/k", "\"e\"", &one, 1, Scope::Shared, &tenants[0]),
            key("/b/k", "\"e\"", &one, 2, Scope::Tenant, &tenants[1]),
        ] {
            assert_ne!(first, changed);
        }
    }

    #[test]
    fn equal_prefixes_of_different_pipelines_have_equal_digests() {
        let (short, long) = (prefixes("decode"), prefixes("decode | resize(8, 8) | flip_h"));
        assert_eq!(short.digest(1), long.digest(1));
        assert_ne!(long.digest(1), long.digest(2));
        assert_eq!(long.digest(4), None);
        assert_eq!([1, 2, 3].map(|stage| long.last_deterministic(stage)), [1, 2, 2]);
    }

    /// The text of an engine has the versions of the step families, and the library that runs models.
    #[test]
    fn a_digest_covers_the_engine_of_its_prefix_alone() {
        let prefixes = prefixes("decode | resize(8, 8) | to_float");
        let pipeline = &prefixes.0.pipeline;
        let digest_with = |engine: &str| {
            Digest::from_parts([
                pipeline.canonical(2).as_bytes(),
                &2_usize.to_le_bytes(),
                engine.as_bytes(),
            ])
        };
        let engine = engine_of(&pipeline.steps()[..2]).unwrap().to_string();
        assert_eq!(prefixes.digest(2), Some(digest_with(&engine)));
        let later_decode = engine.replace("decode=", "decode=1");
        let all_steps = engine_of(pipeline.steps()).unwrap().to_string();
        for other in [later_decode, all_steps, String::new()] {
            assert_ne!(other, engine);
            assert_ne!(prefixes.digest(2), Some(digest_with(&other)), "{other}");
        }
    }
}
