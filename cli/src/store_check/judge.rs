//! What the answers of a store mean.

use pushdown_client::internal::ConditionalAnswer;
use serde::Serialize;

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Ok,
    Unsafe,
    Skipped,
}

/// How a store with the right order answers a request with `If-None-Match`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expectation<'a> {
    /// 304 with the ETag of this answer, which has the object.
    NotModified(&'a ConditionalAnswer),
    /// 200 with the same object.
    Object(&'a ConditionalAnswer),
    /// An error: the request may not read the object, or there is none.
    Refusal,
}

impl Outcome {
    /// For people: what is unsafe stands out.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unsafe => "UNSAFE",
            Self::Skipped => "skipped",
        }
    }
}

impl Expectation<'_> {
    /// Judges an answer. The text says what follows from it.
    pub(super) fn judge(self, answer: &ConditionalAnswer) -> (Outcome, String) {
        let is_same = |object: &ConditionalAnswer| answer.etag == object.etag && answer.body == object.body;
        let etag = answer.etag.as_deref().unwrap_or("no ETag");
        let (outcome, note) = match (self, answer.status) {
            (Self::NotModified(object), 304) if answer.etag == object.etag => (Outcome::Ok, String::new()),
            // The gateway takes it for the ETag of the condition.
            (Self::NotModified(_), 304) if answer.etag.is_none() => {
                (Outcome::Ok, "the answer has no ETag".to_owned())
            }
            (Self::NotModified(_), 304) => {
                let note = format!("expected the ETag of the object, found {etag}");
                (Outcome::Unsafe, note)
            }
            (Self::NotModified(object), 200) if is_same(object) => {
                (Outcome::Ok, "the object, the condition is ignored".to_owned())
            }
            (Self::NotModified(_), _) => (Outcome::Unsafe, "expected 304".to_owned()),
            (Self::Object(object), 200) if is_same(object) => (Outcome::Ok, "the object".to_owned()),
            (Self::Object(_), 200) => (
                Outcome::Unsafe,
                "expected the object that was read before".to_owned(),
            ),
            (Self::Object(_), _) => (Outcome::Unsafe, "expected 200 and the object".to_owned()),
            (Self::Refusal, 400..500) => (Outcome::Ok, String::new()),
            (Self::Refusal, 304) => (
                Outcome::Unsafe,
                "expected an error, the condition was compared first".to_owned(),
            ),
            (Self::Refusal, _) => {
                let note = format!("{} bytes, expected an error", answer.body.len());
                (Outcome::Unsafe, note)
            }
        };
        (outcome, note)
    }
}

/// Checks that an answer is one about the request, and not about the state of the store.
///
/// # Errors
/// For redirections, overload and failures of the store.
pub(super) fn check_is_final(answer: &ConditionalAnswer) -> anyhow::Result<()> {
    let ConditionalAnswer {
        status, error_code, ..
    } = answer;
    let code = error_code.as_deref().unwrap_or_default();
    anyhow::ensure!(
        !matches!(status, 300..=303 | 305..=399),
        "the store answered {status} {code}: set the endpoint and the region of the bucket"
    );
    anyhow::ensure!(
        !matches!(status, 408 | 429 | 500..),
        "the store answered {status} {code}: check it again later"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, etag: Option<&str>, body: &'static str) -> ConditionalAnswer {
        ConditionalAnswer {
            status,
            etag: etag.map(str::to_owned),
            error_code: None,
            body: body.into(),
        }
    }

    #[test]
    fn a_304_has_no_other_etag_than_that_of_the_object() {
        let object = answer(200, Some("\"a\""), "bytes");
        for (status, etag, body, expected) in [
            (304, Some("\"a\""), "", Outcome::Ok),
            (304, Some("\"b\""), "", Outcome::Unsafe),
            (304, None, "", Outcome::Ok),
            (200, Some("\"a\""), "bytes", Outcome::Ok),
            (200, Some("\"b\""), "bytes", Outcome::Unsafe),
            (200, Some("\"a\""), "other", Outcome::Unsafe),
            (403, None, "", Outcome::Unsafe),
        ] {
            let (outcome, note) = Expectation::NotModified(&object).judge(&answer(status, etag, body));
            assert_eq!(outcome, expected, "{status} {etag:?} {body}: {note}");
        }
    }

    #[test]
    fn another_etag_needs_the_object() {
        let object = answer(200, Some("\"a\""), "bytes");
        for (status, etag, body, expected) in [
            (200, Some("\"a\""), "bytes", Outcome::Ok),
            (200, Some("\"a\""), "", Outcome::Unsafe),
            (304, Some("\"a\""), "", Outcome::Unsafe),
            (412, None, "", Outcome::Unsafe),
        ] {
            let (outcome, _) = Expectation::Object(&object).judge(&answer(status, etag, body));
            assert_eq!(outcome, expected, "{status} {etag:?} {body}");
        }
    }

    #[test]
    fn nothing_but_an_error_is_a_refusal() {
        for (status, expected) in [
            (403, Outcome::Ok),
            (401, Outcome::Ok),
            (404, Outcome::Ok),
            (304, Outcome::Unsafe),
            (200, Outcome::Unsafe),
            (206, Outcome::Unsafe),
        ] {
            let (outcome, _) = Expectation::Refusal.judge(&answer(status, None, "bytes"));
            assert_eq!(outcome, expected, "{status}");
        }
    }

    #[test]
    fn an_answer_about_the_state_of_the_store_is_not_judged() {
        for status in [301, 307, 408, 429, 500, 503] {
            assert!(check_is_final(&answer(status, None, "")).is_err(), "{status}");
        }
        for status in [200, 206, 304, 400, 403, 404, 412] {
            assert!(check_is_final(&answer(status, None, "")).is_ok(), "{status}");
        }
    }
}
