//! Text, JSON and canonical form are equivalent.

use proptest::prelude::*;
use pushdown::Pipeline;

use super::generate;

proptest! {
    #[test]
    fn canonical_text_round_trips(pipeline in generate::pipeline()) {
        let canonical = pipeline.canonical(pipeline.len());
        let again = Pipeline::parse(&canonical).map_err(|error| TestCaseError::fail(format!("{canonical}: {error}")))?;
        prop_assert_eq!(&again, &pipeline);
        prop_assert_eq!(again.canonical(again.len()), canonical);
        prop_assert_eq!(again.digest(), pipeline.digest());
    }

    #[test]
    fn json_round_trips(pipeline in generate::pipeline()) {
        let json = serde_json::to_string(&pipeline).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let parsed = Pipeline::parse(&json).map_err(|error| TestCaseError::fail(format!("{json}: {error}")))?;
        let read: Pipeline = serde_json::from_str(&json).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&parsed, &pipeline);
        prop_assert_eq!(&read, &pipeline);
        prop_assert_eq!(parsed.digest(), pipeline.digest());
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        if let Err(error) = Pipeline::parse(&text) {
            prop_assert!(error.position().is_some());
        }
    }

    #[test]
    fn no_text_of_the_grammar_panics(text in "[a-z_0-9()\\[\\]{}|,=.\"'\\\\u:+ \t\n-]{0,120}") {
        if let Err(error) = Pipeline::parse(&text) {
            prop_assert!(error.position().is_some());
        }
    }

    #[test]
    fn no_json_panics(text in "\\[[\\[\\]{}\":,a-z0-9.eE+ -]{0,80}") {
        if let Err(error) = Pipeline::parse(&text) {
            prop_assert!(error.position().is_some());
        }
    }
}

/// Different spellings of a pipeline have the same canonical form and digest.
#[test]
fn equal_meanings_have_equal_digests() {
    let same = [
        [
            "decode|resize( short = 256 )",
            "decode | resize(short=256, filter=bilinear, antialias=true)",
        ],
        ["decode(orient=none)", "decode()"],
        ["decode | center_crop(224)", "decode | center_crop(h=224, w=224)"],
        ["decode | flip_h", "decode | flip_h(p=5e-1)"],
        ["decode | flip_h(1)", "decode | flip_h(1.0)"],
        ["decode | flip_h(0)", "decode | flip_h(-0.0)"],
        [
            "decode | color_jitter(0.4)",
            "decode | color_jitter(brightness=[0.6, 1.4], hue=0)",
        ],
        [
            "decode | to_float | normalize(imagenet)",
            "decode | to_float | normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])",
        ],
        [
            "decode | to_float | normalize(mean=0.5, std=0.5)",
            "decode | to_float | normalize(std=[0.5], mean=5e-1)",
        ],
        ["decode | encode(jpeg)", "decode | encode(\"jpeg\", quality=90)"],
        ["decode | encode(jpeg, 80)", "decode | encode(jpeg, quality=80)"],
        [
            "decode | encode(jpeg)",
            "[{\"step\": \"decode\"}, {\"quality\": 90, \"step\": \"encode\", \"format\": \"\\u006apeg\"}]",
        ],
        ["decode | encode('\\u{6a}peg')", "decode | encode(jpeg)"],
        [
            "decode | resize(short=256, antialias=false)",
            "[{\"step\":\"decode\"},{\"step\":\"resize\",\"short\":256,\"antialias\":false}]",
        ],
    ];
    for [one, other] in same {
        let (one, other) = (
            Pipeline::parse(one).expect(one),
            Pipeline::parse(other).expect(other),
        );
        assert_eq!(one, other);
        assert_eq!(one.digest(), other.digest(), "{one}");
        assert_eq!(
            one.digest(),
            Pipeline::parse(&one.to_string()).expect("canonical").digest()
        );
    }
    let different = [
        "decode",
        "decode(orient=exif)",
        "decode | flip_h",
        "decode | flip_h(seed=0)",
        "decode | flip_h(seed=1)",
    ];
    let digests: std::collections::HashSet<_> = different
        .map(|text| Pipeline::parse(text).expect(text).digest())
        .into();
    assert_eq!(digests.len(), different.len());
}

/// In a request, the pipeline is a string or a list of steps.
#[test]
fn a_pipeline_in_json_is_a_string_or_a_list() {
    let text: Pipeline = serde_json::from_str("\"decode | to_float\"").expect("text");
    let list: Pipeline =
        serde_json::from_str("[{\"step\":\"decode\"},{\"step\":\"to_float\"}]").expect("list");
    assert_eq!(text, list);
    for wrong in ["7", "null", "{}", "[]", "[7]", "[{}]", "[[\"decode\"]]"] {
        assert!(serde_json::from_str::<Pipeline>(wrong).is_err(), "{wrong}");
    }
}
