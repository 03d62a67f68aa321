//! The permission to read one version of an object, for one request (law 6).

use http::{HeaderValue, StatusCode, header};
use tokio::time::Instant;

use super::{ObjectId, OriginObject};
use crate::access::{Access, Action, Allowed, Keys, Target, Upstream};

/// Proof that a request may read one version of an object, and all its members if it is a shard.
///
/// There are two constructors. One reads the store's answer to the request itself. The other is for keys with
/// `upstream = "gateway"`, whose grants decide: it takes a request that they allow, and a version that the store has confirmed
/// to the gateway's identity before. Whoever hands out a byte that was derived from an object earlier, or for another request,
/// asks for this proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    object: ObjectId,
    etag: HeaderValue,
    /// When the gateway asked the store with its own identity; `None` for a caller's identity, and without a question.
    asked_at: Option<Instant>,
}

/// A version of an object that the store has confirmed to the gateway's own identity: the object had this version at some time
/// after the gateway asked. Only [`Authorization::confirmation`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    object: ObjectId,
    etag: HeaderValue,
    asked_at: Instant,
}

impl Authorization {
    /// The authorization in the store's answer to a request for `object`. `None` for a refusal, and for an answer that does
    /// not name its version.
    pub fn from_answer(object: ObjectId, answer: &OriginObject) -> Option<Self> {
        let is_authorized = matches!(
            answer.status,
            StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED
        );
        let etag = answer.headers.get(header::ETAG).filter(|_| is_authorized)?;
        Some(Self {
            object,
            // A copy: the value shares the buffer that the answer was read into.
            etag: HeaderValue::from_bytes(etag.as_bytes()).ok()?,
            asked_at: answer.asked_at,
        })
    }

    /// The authorization of a request that may do nothing but read the object of `confirmation`, by grants alone. `None` unless the
    /// gateway's identity stands for the key at the store, and `keys` still allow the request.
    pub fn from_grant(allowed: &Allowed, keys: &Keys, confirmation: &Confirmation) -> Option<Self> {
        let Confirmation { object, etag, .. } = confirmation;
        let is_read = |access: &Access| match access.target() {
            Target::Object { bucket, key } => {
                matches!(access.action(), Action::Read | Action::Versions) && object.is_at(bucket, key)
            }
            _ => false,
        };
        let accesses = allowed.accesses();
        let is_allowed = allowed.key().upstream() == Upstream::Gateway
            && accesses.iter().any(|access| access.action() == Action::Read)
            && accesses.iter().all(is_read)
            && allowed.is_still_valid(keys);
        is_allowed.then(|| Self {
            object: *object,
            etag: etag.clone(),
            asked_at: None,
        })
    }

    /// Whether it covers this version of this object, or of the shard that this is a member of.
    pub fn covers(&self, object: &ObjectId, etag: &HeaderValue) -> bool {
        self.object.object_digest() == object.object_digest() && self.etag == *etag
    }

    /// What the store has confirmed to the gateway's identity. `None` if the store was asked with a caller's identity, or not at
    /// all: then others learn nothing from it, and an earlier confirmation gets no longer.
    pub fn confirmation(&self) -> Option<Confirmation> {
        Some(Confirmation {
            object: self.object,
            etag: self.etag.clone(),
            asked_at: self.asked_at?,
        })
    }
}

impl Confirmation {
    /// The object.
    pub const fn object(&self) -> &ObjectId {
        &self.object
    }

    /// When the gateway asked.
    pub const fn asked_at(&self) -> Instant {
        self.asked_at
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Uri};

    use pushdown::shard::{MemberRange, ShardFormat};

    use super::*;
    use crate::{
        access::{Grants, Needs},
        origin::ShardMember,
    };

    fn answer(status: u16, etag: Option<&'static str>) -> OriginObject {
        let etag = etag.map(|etag| (header::ETAG, HeaderValue::from_static(etag)));
        OriginObject::for_test(StatusCode::from_u16(status).unwrap(), HeaderMap::from_iter(etag))
    }

    #[test]
    fn only_answers_that_name_a_version_authorize() {
        let object = ObjectId::new(None, &Uri::from_static("/bkt/k"));
        let other = ObjectId::new(None, &Uri::from_static("/bkt/l"));
        let etag = HeaderValue::from_static("\"1\"");
        for status in [200, 206, 304] {
            let authorization = Authorization::from_answer(object, &answer(status, Some("\"1\""))).unwrap();
            assert!(authorization.covers(&object, &etag));
            assert!(!authorization.covers(&other, &etag));
            assert!(!authorization.covers(&object, &HeaderValue::from_static("W/\"1\"")));
            assert_eq!(Authorization::from_answer(object, &answer(status, None)), None);
        }
        for status in [100, 204, 301, 400, 403, 404, 412, 416, 500, 503] {
            assert_eq!(
                Authorization::from_answer(object, &answer(status, Some("\"1\""))),
                None
            );
        }
    }

    #[test]
    fn who_may_read_a_shard_may_read_its_members() {
        let (target, other) = (Uri::from_static("/bkt/a.tar"), Uri::from_static("/bkt/b.tar"));
        let etag = HeaderValue::from_static("\"1\"");
        let member = |target: &Uri, name| {
            let range = MemberRange::new(0, 512, 7).unwrap();
            let member = ShardMember::new(name, range, ShardFormat::Tar, None);
            ObjectId::new(None, target).member(None, target, &member)
        };
        let first = member(&target, "a.jpg");
        let authorization = Authorization::from_answer(first, &answer(206, Some("\"1\""))).unwrap();
        for covered in [first, member(&target, "b.jpg"), ObjectId::new(None, &target)] {
            assert!(authorization.covers(&covered, &etag));
            assert!(!authorization.covers(&covered, &HeaderValue::from_static("\"2\"")));
        }
        assert!(!authorization.covers(&member(&other, "a.jpg"), &etag));
    }

    const GRANT: &str =
        "[[key.grant]]\nbucket = \"bkt\"\nallow = [\"read\", \"versions\", \"admin\"]\npipelines = true\n";

    fn keys(upstream: &str, grants: &str) -> Keys {
        let text = format!(
            "[[key]]\naccess-key = \"TESTTRAINER00001\"\nsecret = \"a-secret-of-a-test\"\nupstream = \"{upstream}\"\n{grants}"
        );
        Keys::from_text(&text).unwrap()
    }

    fn allowed(keys: &Keys, accesses: &[Access]) -> Allowed {
        let needs = Needs {
            pipelines: true,
            models: Vec::new(),
        };
        Grants::decide(&keys.get("TESTTRAINER00001").unwrap(), accesses, &needs).unwrap()
    }

    fn confirmation(path: &'static str) -> Confirmation {
        let answer = answer(304, Some("\"1\"")).with_asked_at(Instant::now());
        let object = ObjectId::new(None, &Uri::from_static(path));
        let authorization = Authorization::from_answer(object, &answer).unwrap();
        authorization.confirmation().unwrap()
    }

    #[test]
    fn grants_authorize_reads_of_a_confirmed_version() {
        let keys = keys("gateway", GRANT);
        let read = Access::object(Action::Read, "bkt", "k 1");
        let confirmed = confirmation("/bkt/k%201");
        let authorization = Authorization::from_grant(&allowed(&keys, &[read]), &keys, &confirmed).unwrap();
        assert!(authorization.covers(confirmed.object(), &HeaderValue::from_static("\"1\"")));
        // It proves nothing to others: no confirmation outlives its time by being used.
        assert_eq!(authorization.confirmation(), None);
    }

    #[test]
    fn grants_authorize_nothing_else() {
        let keys_in_use = keys("gateway", GRANT);
        let read = |key: &str| Access::object(Action::Read, "bkt", key);
        let confirmed = confirmation("/bkt/k");
        let authorize = |keys: &Keys, accesses: &[Access]| {
            Authorization::from_grant(&allowed(keys, accesses), keys, &confirmed)
        };
        assert!(authorize(&keys_in_use, &[read("k")]).is_some());
        for accesses in [
            vec![read("l")],
            vec![read("k"), read("l")],
            vec![read("k"), Access::object(Action::Admin, "bkt", "k")],
            vec![read("k"), Access::bucket(Action::Versions, "bkt")],
        ] {
            assert_eq!(authorize(&keys_in_use, &accesses), None, "{accesses:?}");
        }
        // The store decides for a key that it knows, with grants or without.
        for grants in [GRANT, ""] {
            assert_eq!(authorize(&keys("self", grants), &[read("k")]), None, "{grants}");
        }
        // The keys in use do not have the grant any more, or not the key.
        let before = allowed(&keys_in_use, &[read("k")]);
        for later in [keys("gateway", ""), keys("self", GRANT), Keys::for_test(&[])] {
            assert_eq!(
                Authorization::from_grant(&before, &later, &confirmed),
                None,
                "{later:?}"
            );
        }
    }
}
