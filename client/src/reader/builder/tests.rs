use super::*;
use crate::{epoch::order::Tail, planning::Mode};

fn fault(change: impl FnOnce(PushdownReaderBuilder) -> PushdownReaderBuilder) -> String {
    let builder = PushdownReader::builder()
        .bucket("b")
        .pipeline("decode | flip_h | to_float")
        .seed(1);
    change(builder).check().unwrap_err().to_string()
}

#[test]
fn invalid_settings_are_refused_before_anything_is_read() {
    let random = PushdownReader::builder()
        .pipeline("decode | flip_h")
        .check()
        .unwrap_err();
    insta::assert_snapshot!(
        [
            fault(|builder| builder.pipeline("decode | flop")),
            fault(|builder| builder.split(Split::At(4))),
            fault(|builder| builder.batch_size(0)),
            fault(|builder| builder.requests(0)),
            fault(|builder| builder.max_expand(f64::NAN)),
            fault(|builder| builder.rank(Rank { index: 2, world: 2 })),
            fault(|builder| builder.batch_size(usize::MAX)),
            fault(|builder| builder.worker(Worker { index: 2, count: 2 })),
            fault(|builder| builder.worker(Worker { index: 0, count: 0 })),
            random.to_string(),
            PushdownReader::builder().check().unwrap_err().to_string(),
        ]
        .join("\n")
    );
}

#[test]
fn settings_survive_serialization_without_credentials() {
    let builder = PushdownReader::builder()
        .endpoint("http://127.0.0.1:9")
        .credentials(Credentials::new("AKIA", "secret"))
        .bucket("b")
        .prefix("train/")
        .pipeline("decode")
        .mode(Mode::Auto)
        .split(Split::At(1))
        .tail(Tail::Pad)
        .rank(Rank { index: 1, world: 2 })
        .worker(Worker { index: 2, count: 3 })
        .timeouts(Timeouts {
            idle: std::time::Duration::from_millis(1500),
            ..Timeouts::default()
        })
        .value_cache("cache");
    let text = serde_json::to_string(builder.spec()).unwrap();
    assert!(!text.contains("AKIA") && !text.contains("secret"), "{text}");
    // As earlier versions have written them.
    assert!(
        text.contains(r#""every":3"#) && text.contains(r#""turn":2"#),
        "{text}"
    );
    let spec: ReaderSpec = serde_json::from_str(&text).unwrap();
    assert_eq!(&spec, builder.spec());
    assert_eq!(PushdownReaderBuilder::from(spec).spec(), builder.spec());
}

#[test]
fn missing_settings_have_defaults_and_unknown_ones_are_errors() {
    assert_eq!(
        serde_json::from_str::<ReaderSpec>("{}").unwrap(),
        ReaderSpec::default()
    );
    let spec: ReaderSpec = serde_json::from_str(
        r#"{"tail": "even", "mode": "auto", "store": {"retry": {"cap_seconds": 0.25}}}"#,
    )
    .unwrap();
    assert_eq!((spec.tail, spec.mode), (Tail::Even, Mode::Auto));
    assert_eq!(spec.store.retry.cap, std::time::Duration::from_millis(250));
    for unknown in [
        r#"{"batchsize": 3}"#,
        r#"{"store": {"secret_key": "x"}}"#,
        r#"{"store": {"timeouts": {"idle_seconds": -1}}}"#,
    ] {
        assert!(serde_json::from_str::<ReaderSpec>(unknown).is_err(), "{unknown}");
    }
}
