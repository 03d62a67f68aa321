//! The store's permission to read one version of an object, for one request (law 6).

use http::{HeaderValue, StatusCode, header};

use super::{ObjectId, OriginObject};

/// Proof that the store has authorized a request to read one version of an object.
///
/// The only constructor reads the store's answer to the caller's own signed request. Whoever hands out a byte that was
/// derived from an object earlier, or for another request, asks for this proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    object: ObjectId,
    etag: HeaderValue,
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
        })
    }

    /// Whether it covers this version of this object.
    pub fn covers(&self, object: &ObjectId, etag: &HeaderValue) -> bool {
        self.object == *object && self.etag == *etag
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Uri};

    use super::*;

    fn answer(status: u16, etag: Option<&'static str>) -> OriginObject {
        let etag = etag.map(|etag| (header::ETAG, HeaderValue::from_static(etag)));
        OriginObject::for_test(StatusCode::from_u16(status).unwrap(), HeaderMap::from_iter(etag))
    }

    #[test]
    fn only_answers_that_name_a_version_authorize() {
        let object = ObjectId::new(None, &Uri::from_static("/b/k"));
        let other = ObjectId::new(None, &Uri::from_static("/b/l"));
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
}
