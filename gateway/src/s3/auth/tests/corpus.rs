//! What clients sign: heads that `tests/clients/test_corpus.py` has recorded. Each is accepted at its own time, and refused after
//! any change.

mod changes;
mod parts;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::s3::errors;
use changes::CHANGES;

/// The heads of one client, and the key that signed them.
struct Recording {
    file: String,
    keys: Keys,
    requests: Vec<testkit::Request>,
}

/// Before the access key of a recording: the access key of another caller, with a secret of its own.
const OTHER_CALLER: &str = "X";

impl Recording {
    /// Reads comments and heads, which are separated by empty lines.
    fn parse(file: String, text: &str) -> Self {
        let setting = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix("# "));
            lines
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                .unwrap()
        };
        let access_key = setting("access-key");
        let other = format!("{OTHER_CALLER}{access_key}");
        let keys = [
            (access_key, setting("secret")),
            (other.as_str(), "the-secret-of-another-caller"),
        ];
        let heads = text.split("\n\n").filter(|block| !block.starts_with('#'));
        Self {
            file,
            keys: Keys::for_test(&keys),
            requests: heads.map(request).collect(),
        }
    }

    fn verify(&self, request: &testkit::Request, now: SystemTime) -> Result<Verified, AuthError> {
        verifier().verify_sent(&parts(request), &self.keys, now)
    }
}

fn request(head: &str) -> testkit::Request {
    let mut lines = head.lines();
    let mut request_line = lines.next().unwrap().split(' ');
    let request = testkit::Request::new(request_line.next().unwrap(), request_line.next().unwrap());
    lines.fold(request, |request, line| {
        let (name, value) = line.split_once(':').unwrap();
        request.header(name, value.trim_start())
    })
}

/// All recordings, at least one.
fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/s3/auth/tests/corpus");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let recordings: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "http"))
        .map(|path| Recording::parse(path.display().to_string(), &fs::read_to_string(path).unwrap()))
        .collect();
    assert!(!recordings.is_empty());
    for recording in &recordings {
        assert!(!recording.requests.is_empty(), "{}", recording.file);
    }
    recordings
}

/// When a request was signed.
fn time_of(request: &testkit::Request) -> SystemTime {
    let (_, query) = request.target.split_once('?').unwrap_or_default();
    let parameter = Query::parse(query).unwrap().decoded(presign::DATE);
    let timestamp = parameter.unwrap_or_else(|| header(request, "x-amz-date").to_owned());
    clock::parse(&timestamp).unwrap()
}

#[test]
fn recorded_requests_are_accepted() {
    for recording in recordings() {
        for request in &recording.requests {
            let verified = recording.verify(request, time_of(request));
            assert!(verified.is_ok(), "{}: {request:?}: {verified:?}", recording.file);
        }
    }
}

#[test]
fn recorded_requests_are_refused_at_another_time() {
    let (soon, weeks) = (Duration::from_mins(16), Duration::from_hours(15 * 24));
    for recording in recordings() {
        for request in &recording.requests {
            let signed_at = time_of(request);
            for now in [signed_at - soon, signed_at + weeks] {
                let refusal = recording.verify(request, now).unwrap_err();
                let is_expected = matches!(
                    refusal,
                    AuthError::Skewed { .. } | AuthError::Expired { .. } | AuthError::NotYetValid
                );
                assert!(is_expected, "{}: {request:?}: {refusal:?}", recording.file);
            }
        }
    }
}

#[test]
fn changed_requests_are_refused() {
    let recordings = recordings();
    for (name, change, codes) in CHANGES {
        let mut found = BTreeSet::new();
        for recording in &recordings {
            for request in &recording.requests {
                for changed in change(request) {
                    assert_ne!(changed, *request, "{name} changes nothing");
                    let Err(refusal) = recording.verify(&changed, time_of(request)) else {
                        panic!("{name}: {}: accepted {changed:?}", recording.file);
                    };
                    let code = errors::auth_answer(&refusal).code;
                    assert!(
                        codes.contains(&code),
                        "{name}: {code}: {}: {changed:?}",
                        recording.file
                    );
                    found.insert(code);
                }
            }
        }
        assert!(found.iter().eq(codes), "{name}: {found:?}");
    }
}
