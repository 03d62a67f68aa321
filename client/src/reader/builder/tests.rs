use super::*;

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
            fault(|builder| builder.shard((2, 2))),
            fault(|builder| builder.batch_size(usize::MAX)),
            fault(|builder| builder.every((2, 2))),
            fault(|builder| builder.every((0, 0))),
            random.to_string(),
            PushdownReader::builder().check().unwrap_err().to_string(),
        ]
        .join("\n")
    );
}
