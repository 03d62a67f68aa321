//! Decisions on the objects that the body of a request lists: the samples of a batch, and objects to delete.

use http::StatusCode;
use http::request::Parts;

use super::{AuditRecord, Facts};
use crate::access::Denied;
use crate::audit::AuditedHead;
use crate::audit::line::name;
use crate::audit::request::Outcome;
use crate::audit::verdict::Verdict;
use crate::error::{Error, Result};
use crate::s3::RequestAddress;

impl AuditRecord {
    /// Decides on a sample of this batch by `admit`, and counts the decision. `head` is that of the sample's request.
    ///
    /// # Errors
    /// Those of `admit`.
    pub fn admit_sample<T>(&self, head: Parts, admit: impl FnOnce(AuditedHead) -> Result<T>) -> Result<T> {
        let (sample, admitted) = self.admit(head, admit);
        self.add_sample(&sample, admitted.as_ref().err());
        admitted
    }

    /// Decides on the object that this batch writes, as [`admit_sample`](Self::admit_sample). It has a line also if it is allowed.
    ///
    /// # Errors
    /// Those of `admit`.
    pub fn admit_target<T>(&self, head: Parts, admit: impl FnOnce(AuditedHead) -> Result<T>) -> Result<T> {
        let (target, admitted) = self.admit(head, admit);
        self.add_sample(&target, admitted.as_ref().err());
        if admitted.is_ok() && self.0.has_log {
            let outcome = Outcome::default();
            let verdict = target.verdict(&outcome);
            target.write(&outcome, &verdict, &mut self.0.facts.lock().object_lines);
        }
        admitted
    }

    /// The record of an object of this batch, and what `admit` decides on it.
    fn admit<T>(&self, head: Parts, admit: impl FnOnce(AuditedHead) -> Result<T>) -> (Self, Result<T>) {
        // A batch has no virtual host, and neither have its samples.
        let address = RequestAddress::new(b"", head.uri.path(), &[]);
        let facts = Facts::of_address(address.as_ref());
        let record = Self::start(self.0.peer, None, self.0.has_log, facts);
        let admitted = admit(AuditedHead::new(head, address, record.clone()));
        (record, admitted)
    }

    fn add_sample(&self, sample: &Self, failure: Option<&Error>) {
        let denial = failure.map(Outcome::from_error);
        let denial = denial.map(|outcome| {
            let verdict = sample.verdict(&outcome);
            (outcome, verdict)
        });
        let denial = denial.filter(|(_, verdict)| matches!(verdict, Verdict::Denied { .. }));
        let mut facts = self.0.facts.lock();
        match denial {
            None => {
                facts.objects.allowed += 1;
                if facts.caller.is_none() {
                    facts.caller.clone_from(&sample.0.facts.lock().caller);
                }
            }
            Some((outcome, verdict)) => {
                facts.objects.denied += 1;
                if self.0.has_log {
                    sample.write(&outcome, &verdict, &mut facts.object_lines);
                }
            }
        }
    }

    /// Records the decision on one of the objects that a verified request lists in its body.
    pub fn add_object(&self, bucket: &[u8], key: &[u8], denied: Option<&Denied>) {
        let record = &self.0;
        let mut facts = record.facts.lock();
        let Some(denied) = denied else {
            facts.objects.allowed += 1;
            return;
        };
        facts.objects.denied += 1;
        if !record.has_log {
            return;
        }
        let object = Facts {
            caller: facts.caller.clone(),
            operation: facts.operation,
            action: facts.action,
            bucket: name(bucket),
            object_key: name(key),
            ..Facts::default()
        };
        let outcome = Outcome {
            status: Some(StatusCode::FORBIDDEN.as_u16()),
            ..Outcome::default()
        };
        let verdict = Verdict::Denied {
            reason: denied.audit_reason(),
        };
        let object = Self::start(record.peer, None, true, object);
        object.write(&outcome, &verdict, &mut facts.object_lines);
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use serde_json::Value;

    use super::*;
    use crate::access::{Action, Keys};
    use crate::error::ErrorKind;
    use crate::s3::errors::ACCESS_DENIED;

    const ACCESS_KEY: &str = "TESTTRAINER00001";

    fn batch() -> AuditRecord {
        AuditRecord::new(&head("/_pushdown/v1/batch"), None, Some("pushdown:Batch"), true)
    }

    fn head(target: &str) -> Parts {
        let request = Request::get(target).header("host", "gateway").body(()).unwrap();
        request.into_parts().0
    }

    /// Verifies a sample, and denies it if its key begins with `private`.
    fn admit(head: AuditedHead) -> Result<Parts> {
        let keys = Keys::for_test(&[(ACCESS_KEY, "one-secret-of-a-test")]);
        let (parts, _, record) = head.into_parts();
        record.set_caller(&keys.get(ACCESS_KEY).unwrap());
        if parts.uri.path().contains("private") {
            let denied = Denied::NoGrant(Action::Read);
            return Err(Error::new(ErrorKind::AccessDenied, ACCESS_DENIED).with_source(denied));
        }
        Ok(parts)
    }

    fn lines(record: &AuditRecord) -> Vec<Value> {
        let outcome = Outcome {
            status: Some(200),
            ..Outcome::default()
        };
        let mut text = String::new();
        record.write(&outcome, &record.verdict(&outcome), &mut text);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn denied_samples_have_lines_and_allowed_ones_are_counted() {
        let record = batch();
        let targets = ["/photos/a", "/photos/private/b", "/photos/c"];
        for target in targets {
            let admitted = record.admit_sample(head(target), admit);
            assert_eq!(admitted.is_err(), target.contains("private"));
        }
        let lines = lines(&record);
        let fields = |line: &Value, names: &[&str]| -> Vec<Value> {
            names.iter().map(|name| line[name].clone()).collect()
        };
        assert_eq!(lines.len(), 2);
        let sample = fields(
            &lines[0],
            &["bucket", "key", "verdict", "reason", "status", "access_key"],
        );
        let expected = ["photos", "private/b", "denied", "no grant: read"].map(Value::from);
        assert_eq!(sample[..4], expected);
        assert_eq!(sample[4..], [403.into(), Value::from(ACCESS_KEY)]);
        let batch = fields(&lines[1], &["operation", "verdict", "access_key", "bucket"]);
        let expected = ["pushdown:Batch", "allowed", ACCESS_KEY].map(Value::from);
        assert_eq!(batch[..3], expected);
        assert_eq!(batch[3], Value::Null);
        assert_eq!(lines[1]["objects_allowed"], 2);
        assert_eq!(lines[1]["objects_denied"], 1);
    }

    #[test]
    fn an_allowed_target_has_a_line() {
        let record = batch();
        for target in ["/photos/part.tar", "/photos/private/part.tar"] {
            let admitted = record.admit_target(head(target), admit);
            assert_eq!(admitted.is_err(), target.contains("private"));
        }
        let lines = lines(&record);
        assert_eq!(lines.len(), 3);
        for (line, (key, verdict)) in lines
            .iter()
            .zip([("part.tar", "allowed"), ("private/part.tar", "denied")])
        {
            assert_eq!(
                (&line["key"], &line["verdict"]),
                (&key.into(), &verdict.into()),
                "{line}"
            );
        }
        assert_eq!(
            (&lines[2]["objects_allowed"], &lines[2]["objects_denied"]),
            (&1.into(), &1.into())
        );
    }

    #[test]
    fn a_batch_without_an_allowed_sample_is_denied() {
        let record = batch();
        let unverified = |_| Err::<(), _>(Error::new(ErrorKind::InvalidRequest, "no signature"));
        assert!(record.admit_sample(head("/photos/a"), unverified).is_err());
        let lines = lines(&record);
        assert_eq!(lines[0]["reason"], "InvalidRequest");
        assert_eq!(lines[0]["access_key"], Value::Null);
        assert_eq!(lines[1]["reason"], "all samples are denied");
    }

    #[test]
    fn objects_to_delete_are_decided_one_by_one() {
        let record = AuditRecord::new(&head("/photos?delete"), None, None, true);
        record.add_object(b"photos", b"a", None);
        let denied = Denied::NoGrant(Action::Delete);
        record.add_object(b"photos", b"b", Some(&denied));
        let lines = lines(&record);
        assert_eq!(lines[0]["key"], "b");
        assert_eq!(lines[0]["reason"], "no grant: delete");
        assert_eq!(lines[1]["objects_allowed"], 1);
        assert_eq!(lines[1]["objects_denied"], 1);
    }
}
