//! Conditions and ranges of a request, applied to an answer (RFC 9110, sections 13 and 14).

use std::{ops::Range, time::SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The result of evaluating the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionResult {
    /// Answer with the content.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// Evaluates the conditions of `request` in the order of RFC 9110, section 13.2.2.
pub fn evaluate(
    request: &HeaderMap,
    etag: Option<&HeaderValue>,
    modified: Option<&HeaderValue>,
) -> ConditionResult {
    let etag = etag.and_then(|etag| etag.to_str().ok());
    let modified = modified.and_then(date);
    let since = |name: HeaderName| Some((modified?, request.get(name).and_then(date)?));
    if request.contains_key(header::IF_MATCH) {
        if !has_matching_etag(request, header::IF_MATCH, etag, Comparison::Strong) {
            return ConditionResult::Failed;
        }
    } else if since(header::IF_UNMODIFIED_SINCE).is_some_and(|(modified, limit)| modified > limit) {
        return ConditionResult::Failed;
    }
    if request.contains_key(header::IF_NONE_MATCH) {
        if has_matching_etag(request, header::IF_NONE_MATCH, etag, Comparison::Weak) {
            return ConditionResult::NotModified;
        }
    } else if since(header::IF_MODIFIED_SINCE).is_some_and(|(modified, limit)| modified <= limit) {
        return ConditionResult::NotModified;
    }
    ConditionResult::Proceed
}

/// The range that `request` asks for, of an answer of `length` bytes.
///
/// `None` is the whole answer. As the RFC allows, this includes a range that is malformed, has several parts, or is
/// conditional on another ETag.
///
/// # Errors
/// [`UnsatisfiableRange`] for a range outside the answer.
pub fn range(
    request: &HeaderMap,
    etag: Option<&HeaderValue>,
    length: u64,
) -> Result<Option<Range<u64>>, UnsatisfiableRange> {
    let Some(text) = request.get(header::RANGE).and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    if request
        .get(header::IF_RANGE)
        .is_some_and(|expected| Some(expected) != etag)
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
        Err(UnsatisfiableRange)
    }
}

/// A range outside the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsatisfiableRange;

/// How two entity tags are compared (RFC 9110, section 8.8.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// Both are strong, and equal.
    Strong,
    /// They are equal but for `W/`.
    Weak,
}

impl Comparison {
    fn matches(self, one: &str, other: &str) -> bool {
        fn opaque(tag: &str) -> &str {
            tag.strip_prefix("W/").unwrap_or(tag)
        }
        match self {
            Self::Strong => one == other && !one.starts_with("W/"),
            Self::Weak => opaque(one) == opaque(other),
        }
    }
}

/// Whether a list of entity tags has one that matches `etag`; `*` matches any.
fn has_matching_etag(
    request: &HeaderMap,
    name: HeaderName,
    etag: Option<&str>,
    comparison: Comparison,
) -> bool {
    let values = request
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || etag.is_some_and(|etag| comparison.matches(tag, etag)))
}

fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETAG: HeaderValue = HeaderValue::from_static("\"abc\"");

    fn result(headers: &[(HeaderName, &'static str)]) -> ConditionResult {
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
    fn conditions_follow_the_order_of_the_rfc() {
        let (before, same) = ("Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 08:49:37 GMT");
        for (headers, expected) in [
            (&[][..], ConditionResult::Proceed),
            (
                &[(header::IF_NONE_MATCH, "\"x\", W/\"abc\"")],
                ConditionResult::NotModified,
            ),
            (&[(header::IF_NONE_MATCH, "*")], ConditionResult::NotModified),
            (
                &[
                    (header::IF_NONE_MATCH, "\"x\""),
                    (header::IF_MODIFIED_SINCE, same),
                ],
                ConditionResult::Proceed,
            ),
            (&[(header::IF_MATCH, "\"abc\"")], ConditionResult::Proceed),
            (&[(header::IF_MATCH, "\"x\"")], ConditionResult::Failed),
            (&[(header::IF_MODIFIED_SINCE, same)], ConditionResult::NotModified),
            (&[(header::IF_MODIFIED_SINCE, before)], ConditionResult::Proceed),
            (&[(header::IF_UNMODIFIED_SINCE, before)], ConditionResult::Failed),
            (&[(header::IF_UNMODIFIED_SINCE, same)], ConditionResult::Proceed),
            (
                &[(header::IF_MODIFIED_SINCE, "yesterday")],
                ConditionResult::Proceed,
            ),
        ] {
            assert_eq!(result(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn if_match_compares_strongly() {
        let (strong, weak) = (ETAG, HeaderValue::from_static("W/\"abc\""));
        for (tags, etag, expected) in [
            ("\"abc\"", &strong, ConditionResult::Proceed),
            ("W/\"abc\"", &strong, ConditionResult::Failed),
            ("W/\"abc\", \"abc\"", &strong, ConditionResult::Proceed),
            ("\"abc\"", &weak, ConditionResult::Failed),
            ("W/\"abc\"", &weak, ConditionResult::Failed),
            ("*", &weak, ConditionResult::Proceed),
        ] {
            let headers = request(&[(header::IF_MATCH, tags)]);
            assert_eq!(evaluate(&headers, Some(etag), None), expected, "{tags} {etag:?}");
        }
    }

    #[test]
    fn if_none_match_compares_weakly() {
        let weak = HeaderValue::from_static("W/\"abc\"");
        for tag in ["\"abc\"", "W/\"abc\""] {
            let headers = request(&[(header::IF_NONE_MATCH, tag)]);
            assert_eq!(
                evaluate(&headers, Some(&weak), None),
                ConditionResult::NotModified
            );
        }
    }

    #[test]
    fn ranges_are_parsed_and_clamped() {
        for (text, expected) in [
            ("bytes=0-9", Ok(Some(0..10))),
            ("bytes=90-", Ok(Some(90..100))),
            ("bytes=-5", Ok(Some(95..100))),
            ("bytes=-500", Ok(Some(0..100))),
            ("bytes=50-500", Ok(Some(50..100))),
            ("bytes=100-", Err(UnsatisfiableRange)),
            ("bytes=-0", Err(UnsatisfiableRange)),
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
