//! The header `Server-Timing` of an answer.

use http::HeaderMap;

/// The text of the header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerTiming<'a>(&'a str);

impl<'a> ServerTiming<'a> {
    /// An empty text if there is no such header.
    pub(crate) fn from_headers(headers: &'a HeaderMap) -> Self {
        let text = headers.get("server-timing");
        Self(text.and_then(|text| text.to_str().ok()).unwrap_or_default())
    }

    /// The names of phases, and their seconds. The entry of the replica has no duration, and is no phase.
    pub(crate) fn phases(self) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.split(',').filter_map(|entry| {
            let (name, milliseconds) = entry.trim().split_once(";dur=")?;
            let milliseconds = milliseconds.parse::<f64>().ok();
            let milliseconds = milliseconds.filter(|time| time.is_finite() && *time >= 0.0)?;
            Some((name, milliseconds / 1e3))
        })
    }

    /// The text.
    pub(crate) const fn text(self) -> &'a str {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn phases_without_a_valid_duration_are_ignored() {
        let mut headers = HeaderMap::new();
        assert_eq!(ServerTiming::from_headers(&headers).phases().count(), 0);
        let text =
            "replica;desc=\"pushdown-0\", origin;dur=1.5, queue, select;dur=-1, model;dur=x, each;dur=250";
        headers.insert("server-timing", HeaderValue::from_static(text));
        let phases: Vec<_> = ServerTiming::from_headers(&headers).phases().collect();
        assert_eq!(phases, [("origin", 0.0015), ("each", 0.25)]);
    }
}
