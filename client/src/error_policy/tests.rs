use bytes::Bytes;
use pushdown::Sample;

use super::*;

/// Batch 3, with a sample for each number, of which those with these numbers failed.
fn batch(samples: usize, failed: &[usize]) -> Batch {
    let row = |number| Row {
        position: 12 + number as u64,
        index: number,
        key: format!("{number}.jpg").into(),
        member: None,
        is_padding: false,
        stage: 0,
        value: if failed.contains(&number) {
            Err(RowError::new("NoSuchKey", "it is not there"))
        } else {
            Ok(Sample::Bytes(Bytes::new()))
        },
        columns: Vec::new(),
    };
    Batch::new(3, (0..samples).map(row).collect())
}

fn policy(on_error: OnError, max_errors: Option<MaxErrors>) -> ErrorPolicy {
    ErrorPolicy::new(on_error, max_errors, Some(20)).unwrap()
}

/// Key and note of the sample that ends the iteration.
fn failure<'a>(policy: &ErrorPolicy, batch: &'a Batch) -> (&'a str, Option<String>) {
    let failure = policy.decide(batch).unwrap_err();
    assert_eq!(failure.error.code, "NoSuchKey");
    assert_eq!(failure.row, &batch.rows()[failure.number]);
    (&failure.row.key, failure.note)
}

#[test]
fn the_first_error_of_a_batch_is_raised() {
    let policy = policy(OnError::Raise, None);
    assert_eq!(policy.decide(&batch(4, &[])), Ok(FailedRows::Reported));
    assert_eq!(failure(&policy, &batch(4, &[1, 2])), ("1.jpg", None));
}

#[test]
fn errors_are_reported_or_skipped() {
    for (on_error, expected) in [
        (OnError::Report, FailedRows::Reported),
        (OnError::Skip, FailedRows::Skipped),
    ] {
        let policy = policy(on_error, None);
        assert_eq!(policy.decide(&batch(4, &[1, 2])), Ok(expected));
        assert_eq!(policy.decide(&batch(4, &[])), Ok(FailedRows::Reported));
    }
}

#[test]
fn the_errors_of_all_batches_are_bounded() {
    for on_error in [OnError::Report, OnError::Skip] {
        for max_errors in [
            MaxErrors::Count(2),
            MaxErrors::Ratio(0.1),
            MaxErrors::Ratio(0.149),
        ] {
            let policy = policy(on_error, Some(max_errors));
            assert!(policy.decide(&batch(4, &[3])).is_ok());
            assert!(policy.decide(&batch(4, &[])).is_ok());
            assert!(policy.decide(&batch(4, &[0])).is_ok());
            let note = "4 samples failed, more than the 2 that max_errors allows";
            assert_eq!(
                failure(&policy, &batch(4, &[1, 2])),
                ("2.jpg", Some(note.to_owned()))
            );
        }
        for max_errors in [MaxErrors::Count(0), MaxErrors::Ratio(0.04)] {
            let policy = policy(on_error, Some(max_errors));
            assert_eq!(
                failure(&policy, &batch(1, &[0])).1.as_deref(),
                Some("1 samples failed, more than the 0 that max_errors allows")
            );
        }
    }
}

#[test]
fn skipping_leaves_out_a_batch_only_if_their_number_is_unknown() {
    let all = batch(2, &[0, 1]);
    let note = "all 2 samples of batch 3 failed: on_error=\"skip\" has none left";
    assert_eq!(
        failure(&policy(OnError::Skip, None), &all),
        ("0.jpg", Some(note.to_owned()))
    );
    let uncounted = ErrorPolicy::new(OnError::Skip, None, None).unwrap();
    assert_eq!(uncounted.decide(&all), Ok(FailedRows::Skipped));
}

#[test]
fn invalid_bounds_are_refused_with_the_reason() {
    let fault = |on_error, max_errors, samples| {
        let refused = ErrorPolicy::new(on_error, Some(max_errors), samples);
        refused.unwrap_err().to_string()
    };
    insta::assert_snapshot!(
        [
            fault(OnError::Raise, MaxErrors::Count(1), Some(20)),
            fault(OnError::Skip, MaxErrors::Ratio(1.5), Some(20)),
            fault(OnError::Skip, MaxErrors::Ratio(-0.5), Some(20)),
            fault(OnError::Skip, MaxErrors::Ratio(f64::NAN), Some(20)),
            fault(OnError::Report, MaxErrors::Ratio(0.1), None),
        ]
        .join("\n"),
        @r#"
    invalid max_errors: expected None with on_error="raise", which ends with the first error
    invalid max_errors: expected a fraction from 0.0 to 1.0 or a whole number, found 1.5
    invalid max_errors: expected a fraction from 0.0 to 1.0 or a whole number, found -0.5
    invalid max_errors: expected a fraction from 0.0 to 1.0 or a whole number, found NaN
    invalid max_errors: expected a whole number, since the number of samples is unknown, found 0.1
    "#
    );
}
