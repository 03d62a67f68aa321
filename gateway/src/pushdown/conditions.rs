//! Conditions and ranges of a request, applied to the derived answer (RFC 9110 sections 13 and 14).

use std::{ops::Range, time::SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// What the conditions ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Answer with the content.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// Evaluates the conditions in `request` in the order of RFC 9110 section 13.2.2.
pub(super) fn evaluate(
    request: &HeaderMap,
    etag: Option<&HeaderValue>,
    modified: Option<&HeaderValue>,
) -> Verdict {
    let etag = etag.and_then(|etag| etag.to_str().ok());
    let modified = modified.and_then(date);
    let since = |name: HeaderName| Some((modified?, request.get(name).and_then(date)?));
    if request.contains_key(header::IF_MATCH) {
        if !lists(request, header::IF_MATCH, etag) {
            return Verdict::Failed;
        }
    } else if since(header::IF_UNMODIFIED_SINCE).is_some_and(|(modified, limit)| modified > limit) {
        return Verdict::Failed;
    }
    if request.contains_key(header::IF_NONE_MATCH) {
        if lists(request, header::IF_NONE_MATCH, etag) {
            return Verdict::NotModified;
        }
    } else if since(header::IF_MODIFIED_SINCE).is_some_and(|(modified, limit)| modified <= limit) {
        return Verdict::NotModified;
    }
    Verdict::Proceed
}

/// The part of an answer of `length` bytes that `request` asks for.
///
/// `None` is all of it: also for a range that is malformed, has several parts, or is for another ETag, as the RFC
/// lets a server do. An unsatisfiable range is the error.
pub(super) fn range(
    request: &HeaderMap,
    etag: Option<&HeaderValue>,
    length: u64,
) -> Result<Option<Range<u64>>, Unsatisfiable> {
    let Some(text) = request.get(header::RANGE).and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    if request
        .get(header::IF_RANGE)
        .is_some_and(|wanted| Some(wanted) != etag)
    {
        return Ok(None);
    }
    let Some((first, last)) = text
        .strip_prefix("bytes=")
        .and_then(|range| range.trim().split_once('-'))
    else {
        return Ok(None);
    };
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first > last => return Ok(None),
        (Ok(first), Ok(last)) => first..last.saturating_add(1).min(length),
        (Ok(first), Err(_)) if last.is_empty() => first..length,
        (Err(_), Ok(suffix)) if first.is_empty() => length.saturating_sub(suffix)..length,
        _ => return Ok(None),
    };
    if range.start < range.end {
        Ok(Some(range))
    } else {
        Err(Unsatisfiable)
    }
}

/// A range that lies beyond the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unsatisfiable;

/// Whether a list of entity tags names `etag`, weak or not on either side; `*` names any.
fn lists(request: &HeaderMap, name: HeaderName, etag: Option<&str>) -> bool {
    let etag = etag.map(|etag| etag.trim_start_matches("W/"));
    let values = request
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || etag == Some(tag.trim_start_matches("W/")))
}

fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETAG: HeaderValue = HeaderValue::from_static("\"abc\"");

    fn verdict(headers: &[(HeaderName, &'static str)]) -> Verdict {
        let modified = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
        evaluate(&request(headers), Some(&ETAG), Some(&modified))
    }

    fn request(headers: &[(HeaderName, &'static str)]) -> HeaderMap {
        headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn conditions() {
        let (before, same) = ("Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 08:49:37 GMT");
        for (headers, expected) in [
            (&[][..], Verdict::Proceed),
            (
                &[(header::IF_NONE_MATCH, "\"x\", W/\"abc\"")],
                Verdict::NotModified,
            ),
            (&[(header::IF_NONE_MATCH, "*")], Verdict::NotModified),
            (
                &[
                    (header::IF_NONE_MATCH, "\"x\""),
                    (header::IF_MODIFIED_SINCE, same),
                ],
                Verdict::Proceed,
            ),
            (&[(header::IF_MATCH, "\"abc\"")], Verdict::Proceed),
            (&[(header::IF_MATCH, "\"x\"")], Verdict::Failed),
            (&[(header::IF_MODIFIED_SINCE, same)], Verdict::NotModified),
            (&[(header::IF_MODIFIED_SINCE, before)], Verdict::Proceed),
            (&[(header::IF_UNMODIFIED_SINCE, before)], Verdict::Failed),
            (&[(header::IF_UNMODIFIED_SINCE, same)], Verdict::Proceed),
            (&[(header::IF_MODIFIED_SINCE, "yesterday")], Verdict::Proceed),
        ] {
            assert_eq!(verdict(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_weak_etag_is_named_by_both_its_forms() {
        let weak = HeaderValue::from_static("W/\"abc\"");
        for tag in ["\"abc\"", "W/\"abc\""] {
            let headers = request(&[(header::IF_NONE_MATCH, tag)]);
            assert_eq!(evaluate(&headers, Some(&weak), None), Verdict::NotModified);
        }
    }

    #[test]
    fn ranges() {
        for (text, expected) in [
            ("bytes=0-9", Ok(Some(0..10))),
            ("bytes=90-", Ok(Some(90..100))),
            ("bytes=-5", Ok(Some(95..100))),
            ("bytes=-500", Ok(Some(0..100))),
            ("bytes=50-500", Ok(Some(50..100))),
            ("bytes=100-", Err(Unsatisfiable)),
            ("bytes=-0", Err(Unsatisfiable)),
            ("bytes=5-4", Ok(None)),
            ("bytes=0-1,3-4", Ok(None)),
            ("lines=0-1", Ok(None)),
            ("bytes=a-b", Ok(None)),
        ] {
            let headers = HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static(text))]);
            assert_eq!(range(&headers, Some(&ETAG), 100), expected, "{text}");
        }
        let other = request(&[(header::RANGE, "bytes=0-9"), (header::IF_RANGE, "\"x\"")]);
        assert_eq!(range(&other, Some(&ETAG), 100), Ok(None));
    }
}
